"""Everything that a type allows, case by case, and the instance of each.

`cases` names what there is to build: each object with its required fields only and with all of
them, each optional field alone, each member of each union, each constant, null and the empty list
where they are allowed. `Builder` makes one of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.sdk_types.sentinels import Sentinels
from tests.sdk_types.shapes import Constants, Entries, Items, Leaf, Object, Shape, Union

_MOST_CONSTANTS = 12  # of the hundreds of models that some types list
_DEEPEST = 4  # levels below the one in focus that are built with all their fields

Step = str | int
Way = tuple[Step, ...]
Mode = Literal["minimal", "maximal", "empty"]


@dataclass(frozen=True)
class Case:
    """One thing to build: the way to it from the root, and how much of it."""

    way: Way
    mode: Mode = "minimal"

    def __str__(self) -> str:
        return f"{'.'.join(map(str, self.way)) or 'all'}:{self.mode}"


def cases(root: Shape, left_out: Collection[str] = ()) -> tuple[Case, ...]:
    """Everything there is to build of a type, without the fields that are left out."""
    return tuple(dict.fromkeys(_Walk(left_out).through(root, (), "")))


class _Walk:
    """A walk through a type.

    An object is taken apart once for each field that it can stand in, so that the number of cases
    stays linear in the size of the types, and types that refer to themselves come to an end.
    """

    def __init__(self, left_out: Collection[str]) -> None:
        self._left_out = left_out
        self._seen: set[tuple[str, Shape]] = set()

    def through(self, shape: Shape | None, way: Way, owner: str) -> Iterator[Case]:
        if isinstance(shape, Object):
            yield from self._through_object(shape, way, owner)
        elif isinstance(shape, Union):
            for number, member in enumerate(shape.members):
                yield from self.through(member, (*way, number), owner)
        elif isinstance(shape, Constants):
            for number in range(min(len(shape.values), _MOST_CONSTANTS)):
                yield Case((*way, number))
        elif isinstance(shape, (Items, Entries)):
            yield Case(way, "empty")
            yield from self.through(shape.inner, (*way, "[]"), owner)
        else:
            yield Case(way)

    def _through_object(self, shape: Object, way: Way, owner: str) -> Iterator[Case]:
        if (owner, shape) in self._seen:
            return
        self._seen.add((owner, shape))
        yield Case(way)
        yield Case(way, "maximal")
        for each in shape.fields:
            if each.name not in self._left_out:
                inner = f"{shape.name}.{each.name}"
                yield from self.through(each.shape, (*way, each.name), inner)


@dataclass
class Builder:
    """Builds instances; leaves are sentinels."""

    sentinels: Sentinels
    left_out: Collection[str] = ()
    _stack: list[Shape] = field(default_factory=list)

    def build(self, shape: Shape, case: Case) -> Any:
        """The instance that a case names."""
        return self._made(shape, case.way, case.mode, "")

    def _made(self, shape: Shape | None, way: Way | None, mode: Mode, name: str) -> Any:
        """An instance for a field of that name; `way` is None beside and below the focus."""
        if isinstance(shape, Union):
            if way:
                return self._made(shape.members[int(way[0])], way[1:], mode, name)
            return self._made(_choice(shape, mode), None, mode, name)
        if isinstance(shape, Object):
            return self._object(shape, way, mode)
        if isinstance(shape, Constants):
            return shape.values[int(way[0]) if way else 0]
        if isinstance(shape, (Items, Entries)):
            return self._several(shape, way, mode, name)
        return self.sentinels.leaf(shape.kind, name) if isinstance(shape, Leaf) else None

    def _several(self, shape: Items | Entries, way: Way | None, mode: Mode, name: str) -> Any:
        ways: list[Way | None] = [way[1:] if way else None]
        if way == () and mode == "empty":
            ways = []
        elif mode == "maximal" and way is None and not isinstance(shape.inner, Object):
            ways *= 2
        made = [self._made(shape.inner, each, mode, name) for each in ways]
        if isinstance(shape, Items):
            return made
        return {self.sentinels.text("key"): each for each in made}

    def _object(self, shape: Object, way: Way | None, mode: Mode) -> dict[str, Any]:
        """An object: all of it in focus and below, else what is required and on the way."""
        is_full = (
            mode == "maximal"
            and not way
            and shape not in self._stack
            and len(self._stack) < _DEEPEST
        )
        if not way:
            self._stack.append(shape)
        made: dict[str, Any] = {}
        for each in shape.fields:
            is_next = bool(way) and each.name == (way or ("",))[0]
            if each.name in self.left_out or not (is_next or each.is_required or is_full):
                continue
            rest = way[1:] if is_next and way else None
            inner: Mode = mode if is_next or is_full else "minimal"
            made[each.name] = self._made(each.shape, rest, inner, each.name)
        if not way:
            self._stack.pop()
        return made


def _choice(shape: Union, mode: Mode) -> Shape | None:
    """The member to take where nobody asks for another: the plainest, or the fullest."""
    members = [member for member in shape.members if member is not None]
    members.sort(key=lambda member: isinstance(member, (Leaf, Constants)) is (mode == "maximal"))
    return members[0]
