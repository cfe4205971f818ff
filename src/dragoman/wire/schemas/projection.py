"""A schema as a target takes it, what that costs, and the way back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from dragoman.errors import InvalidInputError
from dragoman.model.frozen import FrozenDict, freeze_mapping
from dragoman.model.jsontext import dumps, loads
from dragoman.model.validation.budget import Budget, TooManyStepsError
from dragoman.wire.losses import Loss
from dragoman.wire.schemas.keywords import Weight, labels_of, weight_of
from dragoman.wire.schemas.profiles import Profile

if TYPE_CHECKING:
    from dragoman.wire.schemas.undo import Undo


# --- what it may cost to fit the schemas of one request to its target

FREE_STEPS = 2
"""Steps for each byte of a schema that are not counted: ordinary schemas take fewer."""
MAX_STEPS = 250_000
"""Steps beyond those, for all schemas of a request together: well under a second."""


class Cost(NamedTuple):
    """Of one schema."""

    steps: int = 0
    size: int = 0
    """In bytes, of the original."""

    @property
    def excess(self) -> int:
        """The steps beyond those that are free."""
        return max(0, self.steps - FREE_STEPS * self.size)


class Costs:
    """Counts, schema by schema, what one request takes beyond what is free."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = MAX_STEPS

    def charge(self, cost: Cost, where: str) -> None:
        """Count a schema; raise where it is too much."""
        self._left -= cost.excess
        if self._left < 0:
            raise too_expensive(where)


def too_expensive(where: str) -> InvalidInputError:
    """The error of a schema that asks for too much work."""
    msg = (
        f"{where}: the schema grows to more than {MAX_STEPS} steps of work for this target (beyond "
        f"{FREE_STEPS} for each byte, alone or with the schemas before it); simplify it: fewer "
        "alternatives, fewer references within references, or several tools in its place"
    )
    return InvalidInputError(msg)


# --- projection

_REMEMBERED = 512
_REMEMBERED_BYTES = 8 * 2**20
"""Of schemas as text: what is kept of one takes ten to twenty times as much memory."""
_FREE = Cost()
_MAX_ROUNDS = 4
"""What is merged or cut off may leave something to do; mostly the second round finds nothing."""

_Key = tuple[int | bytes, Profile]
_Made = TypeVar("_Made")


class Projection:
    """A schema as a target takes it.

    - `schema`: what to send.
    - `losses`: where the target may answer what the original forbids, or can't answer what it
      allows; paths are within the schema (see `losses_at`).
    - `drops_labels`: whether a title, a comment or the like is left out, which no answer shows.
    - `is_faithful`: whether the values keep the shape that the original asks for. Where they do
      not (free names, tuples, any value at all, levels cut off, too many unions for the target),
      what can be sent without being strict had better be.
    - `cost`: the work that it took.
    - `undo`: takes what the target answers back to the original's terms.
    """

    __slots__ = ("_placed", "_undos", "_weight", "cost", "drops_labels", "is_faithful", "losses",
                 "schema")  # fmt: skip

    def __init__(
        self,
        schema: FrozenDict,
        losses: tuple[Loss, ...] = (),
        undos: Sequence[Undo] = (),
        *,
        is_faithful: bool = True,
        drops_labels: bool = False,
        cost: Cost = _FREE,
    ) -> None:
        self.schema = schema
        self.losses = losses
        self.is_faithful = is_faithful
        self.drops_labels = drops_labels
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

    >>> from dragoman.wire.schemas import PROFILES
    >>> schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    >>> made = projected(schema, PROFILES["openai-strict"])
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


class _Memory(Generic[_Made]):
    """What was made before; all of it is forgotten where it gets too much."""

    __slots__ = ("_found", "_size")

    def __init__(self) -> None:
        self._found: dict[_Key, _Made] = {}
        self._size = 0

    def get(self, key: _Key) -> _Made | None:
        """What was made of it."""
        return self._found.get(key)

    def keep(self, key: _Key, value: _Made, size: int) -> None:
        """Remember it, unless it would leave little room for others."""
        if size > _REMEMBERED_BYTES // 4:
            return
        if len(self._found) >= _REMEMBERED or self._size + size > _REMEMBERED_BYTES:
            self.clear()
        self._found[key] = value
        self._size += size

    def clear(self) -> None:
        """Forget everything."""
        self._found.clear()
        self._size = 0


# Tools that live as long as their program are known by what they are, others by their text, in
# which the order of keys counts: the same tools come with every request.
_known = _Memory[tuple[FrozenDict, Projection]]()
_known_texts = _Memory[Projection]()


def _remembered(schema: Mapping[str, Any], profile: Profile, where: str) -> Projection:
    found = _known.get((id(schema), profile))
    if found is not None and found[0] is schema:
        return found[1]
    frozen = freeze_mapping(schema, "a schema")
    if profile.keywords is None and not profile.has_object_root:
        return Projection(frozen)
    raw = dumps(frozen)
    made = _by_text(raw, profile, where)
    if frozen is schema:  # nobody can change it
        _known.keep((id(frozen), profile), (frozen, made), len(raw))
    return made


def _by_text(raw: bytes, profile: Profile, where: str) -> Projection:
    made = _known_texts.get((raw, profile))
    if made is None:
        try:
            made = _compiled(raw, profile)
        except TooManyStepsError:
            raise too_expensive(where) from None
        _known_texts.keep((raw, profile), made, len(raw))
    return made


def _compiled(raw: bytes, profile: Profile) -> Projection:
    # The compiler is imported when there is something to compile.
    from dragoman.wire.schemas.compiler import Compiler
    from dragoman.wire.schemas.undo import Undo

    budget = Budget(FREE_STEPS * len(raw) + MAX_STEPS)  # of a request's, it is counted afterwards
    original: Any = loads(raw)
    schema, losses, undos, is_faithful = original, list[Loss](), list[Undo](), True
    for _ in range(_MAX_ROUNDS):
        compiler = Compiler(schema, profile, budget)
        made, plan = compiler.compiled()
        if made == schema:
            break
        run = compiler.run
        if run.has_undo or compiler.wrapped is not None:
            undos.insert(0, Undo(plan, freeze_mapping(made), compiler.wrapped))
        # What is lost in a later round was nothing that anybody could point to.
        is_first = schema is original
        losses += [each if is_first else Loss("", each.reason) for each in run.losses]
        is_faithful = is_faithful and run.is_faithful
        schema = made
    return Projection(
        freeze_mapping(schema, "the projected schema"),
        tuple(dict.fromkeys(losses)),
        undos,
        is_faithful=is_faithful,
        drops_labels=schema is not original and _drops_labels(original, schema),
        cost=Cost(budget.spent, len(raw)),
    )


def _drops_labels(original: Any, made: Any) -> bool:
    """Whether a label is nowhere in what was made of a schema, whichever step left it out."""
    labels = set(labels_of(original))
    return bool(labels) and not labels <= set(labels_of(made))
