"""The items of a stream, by their place and by their id."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from dragoman.model.content import AnyPart
from dragoman.model.derived_ids import Identity
from dragoman.model.events import Event
from dragoman.wire.openai_responses.stream_growth import GrowingItem, Item, Numbering


class Items:
    """Finds the item that an event is about, and brings all of them to their end."""

    __slots__ = ("_all", "_by_id", "_by_index", "_numbering", "latest")

    def __init__(self) -> None:
        self._numbering = Numbering()
        self._all: list[GrowingItem] = []
        self._by_index: dict[int, GrowingItem] = {}  # the last one there
        self._by_id: dict[str, GrowingItem] = {}
        self.latest: GrowingItem | None = None

    def identify(self, identity: Identity) -> None:
        """Note which response these are the items of."""
        self._numbering.identity = identity

    @property
    def parts(self) -> tuple[AnyPart, ...]:
        """All parts, as they were last told."""
        return tuple([growing.part for growing in self._numbering.parts])

    @property
    def order(self) -> list[int] | None:
        """The parts' numbers in the order of their items; None where that is their own."""
        places = [growing.place for growing in self._numbering.parts]
        if all(one <= other for one, other in pairwise(places)):
            return None
        return sorted(range(len(places)), key=places.__getitem__)

    @property
    def partial(self) -> list[tuple[int, AnyPart]]:
        """What the events do not say of the calls to a server's tools that are not done."""
        found = [item.partial for item in self._all if not item.is_done]
        return [part for part in found if part is not None]

    def of(self, wire: Item) -> GrowingItem | None:
        """The item that an event is about: by its place, else by its id (which may change)."""
        index = wire.get("output_index")
        if type(index) is int:
            return self._by_index.get(index)
        item_id = wire.get("item_id")
        found = self._by_id.get(item_id) if type(item_id) is str else None
        return found or (self.latest if item_id is None else None)

    def begin(self, index: int | None, wire: Item) -> list[Event]:
        """An item begins; one in the same place that never ended does now."""
        known = None if index is None else self._by_index.get(index)
        events = [] if known is None or known.is_done else known.close()
        item = self._add(self._free() if index is None else index, wire)
        return events + item.begin(wire)

    def end(self, index: int | None, wire: Item) -> list[Event]:
        """An item is done."""
        item = self.of({"output_index": index, "item_id": wire.get("id")})
        if item is None or item.is_done or item.kind != wire.get("type"):
            item = self._add(self._free() if index is None else index, wire)
        return item.settle(wire, item.before)

    def settle(self, output: Any) -> list[Event]:
        """The response is done, and has all its items once more, or none."""
        events: list[Event] = []
        ordered = sorted(self._all, key=_index)
        settled: set[GrowingItem] = set()
        previous: AnyPart | None = None
        for index, wire in enumerate(output if isinstance(output, list) else ()):
            item = ordered[index] if index < len(ordered) else None
            if not _is_same(item, wire):  # ids may change from event to event, places do not
                item = self._named(wire)
            if item is None or item in settled:
                item = self._add(index, wire if isinstance(wire, dict) else {})
            settled.add(item)
            events += item.settle(wire, previous)
            previous = item.last
        for item in ordered:
            if not item.is_done:
                events += item.close()
        return events

    def _named(self, wire: Any) -> GrowingItem | None:
        item_id = wire.get("id") if isinstance(wire, dict) else None
        found = self._by_id.get(item_id) if type(item_id) is str else None
        return found if _is_same(found, wire) else None

    def _add(self, index: int, wire: Item) -> GrowingItem:
        item = GrowingItem(index, wire, self._numbering)
        self._all.append(item)
        self._by_index[index] = self.latest = item
        if type(item.id) is str:
            self._by_id[item.id] = item
        return item

    def _free(self) -> int:
        return self.latest.index + 1 if self.latest is not None else 0


def _index(item: GrowingItem) -> int:
    return item.index


def _is_same(item: GrowingItem | None, wire: Any) -> bool:
    return item is not None and isinstance(wire, dict) and item.kind == wire.get("type")
