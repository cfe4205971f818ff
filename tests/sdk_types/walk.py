"""Enumerates everything that a type allows, and builds an instance for each case.

`cases` lists what to build: each object with its required fields only and with all of
them, each optional field alone, each member of each union, each constant, null and the empty list
where they are allowed. `Builder` builds one of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.sdk_types.sentinels import Sentinels
from tests.sdk_types.shapes import Constants, Entries, Items, Leaf, Object, Shape, Union

_MOST_CONSTANTS = 12  # some types list hundreds of models
_DEEPEST = 4  # levels below the focus that are built with all their fields

Step = str | int
Way = tuple[Step, ...]
Mode = Literal["minimal", "maximal", "empty"]


@dataclass(frozen=True)
class Case:
    """One case to build: the path to its focus from the root, and how much to build there."""

    way: Way
    mode: Mode = "minimal"

    def __str__(self) -> str:
        return f"{'.'.join(map(str, self.way)) or 'all'}:{self.mode}"


def cases(root: Shape, left_out: Collection[str] = ()) -> tuple[Case, ...]:
    """All cases of a type, without the excluded fields."""
    return tuple(dict.fromkeys(_Walk(left_out).through(root, (), "")))


class _Walk:
    """Walks through a type.

    An object is expanded once for each field that can contain it. The number of cases is then
    linear in the size of the types, and recursive types end.
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
    """Builds instances; their values are sentinels."""

    sentinels: Sentinels
    left_out: Collection[str] = ()
    _stack: list[Shape] = field(default_factory=list)

    def build(self, shape: Shape, case: Case) -> Any:
        """The instance of a case."""
        return self._made(shape, case.way, case.mode, "")

    def _made(self, shape: Shape | None, way: Way | None, mode: Mode, name: str) -> Any:
        """An instance for a field of that name; `way` is None outside the path to the focus."""
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
        """An object: complete in the focus and below, else its required fields and the path."""
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
    """The default member: the simplest, or the one with the most fields."""
    members = [member for member in shape.members if member is not None]
    members.sort(key=lambda member: isinstance(member, (Leaf, Constants)) is (mode == "maximal"))
    return members[0]
