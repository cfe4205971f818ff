"""A schema as a target takes it, what that cost, and the way back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from dragoman.model.frozen import FrozenDict, freeze_mapping
from dragoman.model.jsontext import dumps, loads
from dragoman.model.validation.budget import TooManyStepsError
from dragoman.wire.losses import Loss
from dragoman.wire.schemas.costs import Cost, Costs, budget_for, too_expensive
from dragoman.wire.schemas.profiles import Profile
from dragoman.wire.schemas.weights import Weight, weight_of

if TYPE_CHECKING:
    from dragoman.wire.schemas.undoing import Undo

_REMEMBERED = 512
_FREE = Cost()
_MAX_ROUNDS = 4
"""What is merged or cut off may leave something to do; mostly the second round finds nothing."""


class Projection:
    """A schema as a target takes it.

    - `schema`: what to send.
    - `losses`: where the target may answer what the original forbids, or can't answer what it
      allows; paths are within the schema (see `losses_at`).
    - `is_faithful`: whether the values keep the shape that the original asks for. Where they do
      not (free names, tuples, any value at all, levels cut off, too many unions for the target),
      what can be sent without being strict had better be.
    - `cost`: the work that it took (see `costs`).
    - `undo`: takes what the target answers back to the original's terms.
    """

    __slots__ = ("_placed", "_undos", "_weight", "cost", "is_faithful", "losses", "schema")

    def __init__(
        self,
        schema: FrozenDict,
        losses: tuple[Loss, ...] = (),
        undos: Sequence[Undo] = (),
        *,
        is_faithful: bool = True,
        cost: Cost = _FREE,
    ) -> None:
        self.schema = schema
        self.losses = losses
        self.is_faithful = is_faithful
        self.cost = cost
        self._weight: Weight | None = None
        self._placed: tuple[str, tuple[Loss, ...]] | None = None
        self._undos = tuple(undos)

    @property
    def is_exact(self) -> bool:
        """Whether nothing was lost."""
        return not self.losses

    @property
    def weight(self) -> Weight:
        """What targets count in all schemas of a request together."""
        if self._weight is None:
            self._weight = weight_of(self.schema)
        return self._weight

    @property
    def changes_values(self) -> bool:
        """Whether there is anything to undo."""
        return bool(self._undos)

    def undo(self, value: Any) -> Any:
        """The value that the original's author meant; any JSON goes in, and nothing is raised."""
        for undo in self._undos:
            value = undo(value)
        return value

    def losses_at(self, path: str) -> tuple[Loss, ...]:
        """The losses, with the path of the schema before theirs."""
        known = self._placed  # a tool mostly stands where it stood in the last request
        if known is None or known[0] != path:
            placed = [
                Loss(f"{path}.{loss.path}" if loss.path else path, loss.reason)
                for loss in self.losses
            ]
            known = self._placed = (path, tuple(placed))
        return known[1]

    def __repr__(self) -> str:
        faithful = "" if self.is_faithful else ", not faithful"
        return f"Projection({len(self.losses)} losses{faithful})"


def projected(
    schema: Mapping[str, Any],
    profile: Profile,
    costs: Costs | None = None,
    where: str = "the schema",
) -> Projection:
    """The schema for the target that the profile describes.

    >>> from dragoman.wire.schemas import OPENAI_STRICT
    >>> schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    >>> made = projected(schema, OPENAI_STRICT)
    >>> made.schema["required"], made.schema["properties"]["n"]["type"], made.undo({"n": None})
    (['n'], ['integer', 'null'], {})

    The schema itself is not changed. Raises `InvalidInputError` for what is no JSON object, nests
    too deeply, or takes too much work, alone or with what `costs` has already counted; `where`
    names it in the error.
    """
    made = _remembered(schema, profile, where)
    if costs is not None:  # counted whether or not it was known already
        costs.charge(made.cost, where)
    return made


def _remembered(schema: Mapping[str, Any], profile: Profile, where: str) -> Projection:
    # Tools that live as long as their program are known by what they are, others by their text.
    found = _known.get((id(schema), profile))
    if found is not None and found[0] is schema:
        return found[1]
    frozen = freeze_mapping(schema, "a schema")
    if profile.keywords is None and not profile.has_object_root:
        made = Projection(frozen)
    else:
        try:
            made = _projected(dumps(frozen), profile)
        except TooManyStepsError:
            raise too_expensive(where) from None
    if frozen is schema:  # nobody can change it
        if len(_known) >= _REMEMBERED:
            _known.clear()
        _known[id(frozen), profile] = (frozen, made)
    return made


_known: dict[tuple[int, Profile], tuple[FrozenDict, Projection]] = {}


@lru_cache(maxsize=_REMEMBERED)
def _projected(raw: bytes, profile: Profile) -> Projection:
    """By its text, in which the order of keys counts: the same tools come with every request."""
    # The compiler is imported when there is something to compile.
    from dragoman.wire.schemas.compiler import Compiler
    from dragoman.wire.schemas.undoing import Undo

    budget = budget_for(len(raw))
    original: Any = loads(raw)
    schema, losses, undos, is_faithful = original, list[Loss](), list[Undo](), True
    for _ in range(_MAX_ROUNDS):
        compiler = Compiler(schema, profile, budget)
        made, plan = compiler.compiled()
        if made == schema:
            break
        run = compiler.run
        if run.acts or compiler.wrapped is not None:
            undos.insert(0, Undo(plan, freeze_mapping(made), compiler.wrapped))
        # What is lost in a later round was nothing that anybody could point to.
        losses += (
            run.losses if schema is original else [Loss("", each.reason) for each in run.losses]
        )
        is_faithful = is_faithful and not run.bends
        schema = made
    noted = tuple(dict.fromkeys(losses))
    return Projection(
        freeze_mapping(schema, "the projected schema"),
        noted,
        undos,
        is_faithful=is_faithful,
        cost=Cost(budget.spent, len(raw)),
    )
