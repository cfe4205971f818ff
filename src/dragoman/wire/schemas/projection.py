"""Projections: a schema as a target supports it, with losses and the conversion of values."""

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
    from dragoman.wire.schemas.text_undo import TextUndos
    from dragoman.wire.schemas.undo import Undo


# --- limits on the work for the schemas of one request

BYTES_PER_STEP = 3
"""A step is free for every three bytes of a schema: ordinary schemas hardly need more."""
MAX_STEPS = 100_000
"""Maximum steps beyond those, for all schemas of a request: less than half a second."""


class Cost(NamedTuple):
    """The work for one schema."""

    steps: int = 0
    size: int = 0
    """Bytes of the original."""

    @property
    def excess(self) -> int:
        """The steps beyond the free ones."""
        return max(0, self.steps - self.size // BYTES_PER_STEP)


class Costs:
    """Adds up the work for the schemas of one request."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = MAX_STEPS

    def charge(self, steps: int, where: str) -> None:
        """Charge for a schema; raises if the limit is exceeded."""
        self._left -= steps
        if self._left < 0:
            raise too_expensive(where)


def too_expensive(where: str) -> InvalidInputError:
    """The error for a schema that needs too much work."""
    msg = (
        f"{where}: the schema is too complex for this target: compiling it exceeds {MAX_STEPS} "
        f"steps (beyond one per {BYTES_PER_STEP} bytes, alone or with the schemas before it); "
        "simplify it: fewer alternatives, fewer nested references, or several tools instead of one"
    )
    return InvalidInputError(msg)


# --- projection

_MAX_CACHED = 512
_MAX_CACHED_BYTES = 8 * 2**20
"""Maximum bytes of cached schemas as text: a cached projection takes ten to twenty times that."""
_FREE = Cost()
_MAX_ROUNDS = 4
"""Merging or cutting may leave something to do; mostly the second round changes nothing."""

_Key = tuple[int | bytes, Profile]
_Made = TypeVar("_Made")


class Undos:
    """Converts values back to the original schema: accepts any JSON and never raises."""

    __slots__ = ("_each",)

    def __init__(self, each: Sequence[Undo]) -> None:
        self._each = tuple(each)

    def __call__(self, value: Any) -> Any:
        """Convert a value."""
        for undo in self._each:
            value = undo(value)
        return value

    def of_text(self, *, takes_objects: bool = False) -> TextUndos:
        """The same for the text of a value, in pieces."""
        from dragoman.wire.schemas.text_undo import TextUndos  # as in `_compiled`

        return TextUndos(undo.of_text(takes_objects=takes_objects) for undo in self._each)


class Projection:
    """A schema as a target supports it.

    - `schema`: what to send.
    - `losses`: where the target may return what the original forbids, or can't return what it
      allows; paths are within the schema (see `losses_at`).
    - `drops_labels`: whether titles, comments or the like were dropped, which don't affect output.
    - `is_faithful`: whether values keep the structure that the original requires. If not
      (undeclared properties, tuples, values of any type, levels cut off, too many unions), strict
      mode should not be used where it is optional.
    - `cost`: the work that it took; `excess` are the steps beyond the free ones.
    - `changes_values`: whether values must be converted back.
    - `undo`: converts the target's output back to the original schema.
    """

    __slots__ = ("_placed", "_weight", "changes_values", "cost", "drops_labels", "excess",
                 "is_faithful", "losses", "schema", "undo")  # fmt: skip

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
        self.cost, self.excess = cost, cost.excess
        self._weight: Weight | None = None
        self._placed: tuple[str, tuple[Loss, ...]] | None = None
        self.undo = Undos(undos)
        self.changes_values = bool(undos)

    @property
    def is_exact(self) -> bool:
        """Whether nothing was lost."""
        return not self.losses

    @property
    def weight(self) -> Weight:
        """The counts that targets limit for all schemas of a request together."""
        if self._weight is None:
            self._weight = weight_of(self.schema)
        return self._weight

    def losses_at(self, path: str) -> tuple[Loss, ...]:
        """The losses, with the path of the schema prepended."""
        known = self._placed  # a tool's position is mostly the same as in the last request
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

    The schema itself is not changed. Raises `InvalidInputError` if it is not a JSON object, nests
    too deeply, or takes too much work, alone or with what `costs` already counts; `where` names it
    in the error.
    """
    found = _known.get((id(schema), profile))
    made = found[1] if found is not None and found[0] is schema else _cached(schema, profile, where)
    if made.excess and costs is not None:  # charged even if it was cached
        costs.charge(made.excess, where)
    return made


class _Memory(Generic[_Made]):
    """A cache that is cleared when it exceeds its limits."""

    __slots__ = ("_found", "_size")

    def __init__(self) -> None:
        self._found: dict[_Key, _Made] = {}
        self._size = 0

    def get(self, key: _Key) -> _Made | None:
        """The cached value."""
        return self._found.get(key)

    def keep(self, key: _Key, value: _Made, size: int) -> None:
        """Cache a value, unless it would take most of the space."""
        if size > _MAX_CACHED_BYTES // 4:
            return
        if len(self._found) >= _MAX_CACHED or self._size + size > _MAX_CACHED_BYTES:
            self.clear()
        self._found[key] = value
        self._size += size

    def clear(self) -> None:
        """Remove everything."""
        self._found.clear()
        self._size = 0


# The same tools come with every request: long-lived schemas are found by identity, others by their
# text, in which the order of keys matters.
_known = _Memory[tuple[FrozenDict, Projection]]()
_known_texts = _Memory[Projection]()


def _cached(schema: Mapping[str, Any], profile: Profile, where: str) -> Projection:
    frozen = freeze_mapping(schema, "a schema")
    if profile.keywords is None and not profile.has_object_root:
        return Projection(frozen)
    raw = dumps(frozen)
    made = _by_text(raw, profile, where)
    if frozen is schema:  # it is immutable
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
    # Imported only when there is something to compile.
    from dragoman.wire.schemas.compiler import Compiler
    from dragoman.wire.schemas.undo import Undo

    budget = Budget(len(raw) // BYTES_PER_STEP + MAX_STEPS)  # the request's total is checked later
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
        # Losses of later rounds have no position in the original.
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
    """Whether a label of the original is missing in the result, whichever step dropped it."""
    labels = set(labels_of(original))
    return bool(labels) and not labels <= set(labels_of(made))
