"""Streams: deltas folded into whole wire objects, which the shapes of `rows` read; and back.

A stream sends an object as it begins, and then pieces of its fields. Rows say which (`Row.grows`).

- `Growing`: the rows of a union that grow, looked up by the class of a part and by the type of a
  delta.
- `Folded`: an object as it began, and what came since; `whole()` is the object as a body has it.
- `Transitions`: what may follow what in a stream, for its encoder.

>>> from dragoman.model.parts import Text
>>> from dragoman.wire.rows import Row, Shape
>>> said = Row("words", "text", is_required=True, grows="more.words")
>>> growing = Growing(Union("some", Shape("some", "note", Text, said)))
>>> note = Folded(growing.begun({"type": "note"}))
>>> for words in "H", "i":
...     note.add(said, words)
>>> note.whole()
{'type': 'note', 'words': 'Hi'}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.errors import InvalidInputError
from dragoman.model.jsontext import loads
from dragoman.wire.rows import LIST, OBJECT, Growth, Row, Union

_EVENT_FIELDS = {"signature": "signature", "data": "data", "citations": "citations"}


class Growing:
    """The rows of a union that grow in a stream."""

    def __init__(self, union: Union) -> None:
        """Index them."""
        every = union.growing
        self.begun_with = [growth for growth in every if growth.row.is_required]
        """Those that a part begins with and that are most of what streams: texts and arguments."""
        self.texts = {growth.delta: growth.field for growth in self.begun_with}
        """Their types of deltas, and the field of each."""
        self.deltas = frozenset(growth.delta for growth in every)
        """All types of deltas."""
        self.text_of = {growth.shape.kind: growth for growth in self.begun_with}
        """By class of part."""
        self._by_delta = {(growth.shape.kind, growth.delta): growth for growth in every}
        self._beginnings = {
            growth.shape.tag: (growth.row.wire, {} if _is_object(growth.row) else "")
            for growth in self.begun_with
        }

    def of(self, part: Any, delta: Mapping[str, Any]) -> Growth | None:
        """The row of a part that a delta continues."""
        kind = delta.get("type")
        return self._by_delta.get((type(part), kind)) if type(kind) is str else None

    def begun(self, wire: Any) -> Any:
        """An object with the field that it begins with: some servers omit it or send null."""
        kind = wire.get("type") if isinstance(wire, dict) else None
        beginning = self._beginnings.get(kind) if type(kind) is str else None
        if beginning is None:
            return wire
        found = wire.get(beginning[0])
        if found or found == beginning[1]:
            return wire
        return {**wire, beginning[0]: beginning[1]}


class Folded:
    """A wire object of a stream: how it began, and the pieces that came since."""

    __slots__ = ("_grown", "wire")

    def __init__(self, wire: Any) -> None:
        """Begin with a copy, if it is an object."""
        self.wire: Any = dict(wire) if isinstance(wire, dict) else wire
        self._grown: dict[str, tuple[Row, list[Any]]] = {}

    def pieces(self, row: Row) -> list[Any]:
        """The list of pieces of a row, which others may append to."""
        found = self._grown.get(row.wire)
        if found is None:
            found = self._grown[row.wire] = row, []
        return found[1]

    def add(self, row: Row, piece: Any) -> None:
        """Take a piece."""
        self.pieces(row).append(piece)

    def merge(self, delta: Mapping[str, Any]) -> None:
        """Take a delta of an object without a shape: texts grow, other fields are replaced."""
        for key, value in delta.items():
            known = self.wire.get(key)
            if key == "type":
                continue
            if isinstance(known, str) and isinstance(value, str):
                self.wire[key] = known + value
            elif value is not None or known is None:
                self.wire[key] = value

    def has_grown(self, *fields: str) -> bool:
        """Whether pieces came, or pieces of these fields of the model."""
        return any(
            pieces and (not fields or row.field in fields) for row, pieces in self._grown.values()
        )

    def whole(self) -> Any:
        """The object as a body has it."""
        if not self._grown:
            return self.wire
        made = dict(self.wire)
        for row, pieces in self._grown.values():
            if pieces:
                made[row.wire] = _joined(row, made.get(row.wire), pieces)
        return made


def piece_in(growth: Growth, delta: Mapping[str, Any]) -> Any:
    """The piece that a delta brings; `LookupError` if it has none, or one of another type."""
    piece = delta[growth.field]
    if type(piece) is not str and not _is_list(growth.row):
        raise LookupError
    return piece


def event_fields(row: Row, piece: Any) -> dict[str, Any]:
    """What a piece adds to a part, as fields of a `PartDelta`; empty if nothing.

    An empty signature is something: that there is one.
    """
    value = piece
    if _is_list(row):
        value = row.value.read([piece]) if row.value.read is not None else (piece,)
    return {_EVENT_FIELDS.get(row.field, "text"): value} if value or row.is_last else {}


def _is_list(row: Row) -> bool:
    return row.value.test == LIST.test


def _is_object(row: Row) -> bool:
    return row.value.test == OBJECT.test


def _joined(row: Row, begun: Any, pieces: list[Any]) -> Any:
    """The value of a field; of an object the text itself if it is not complete JSON."""
    if _is_list(row):
        return [*(begun if isinstance(begun, list) else ()), *pieces]
    text = "".join(pieces)
    if not _is_object(row):
        return (begun or "") + text
    try:
        return loads(text) if text else begun
    except InvalidInputError:
        return text


class Transitions:
    """What may follow what in a stream: by state, the frames that may come, and where they lead.

    >>> stream = Transitions("idle", {"idle": {"start": "busy"}, "busy": {"stop": "idle"}})
    >>> stream.go("start")
    >>> stream.state, stream.may("start")
    ('busy', False)
    """

    __slots__ = ("_table", "state")

    def __init__(self, start: str, table: Mapping[str, Mapping[str, str]]) -> None:
        """Begin in a state."""
        self.state, self._table = start, table

    def may(self, frame: str) -> bool:
        """Whether a frame may come now."""
        return frame in self._table[self.state]

    def go(self, frame: str) -> None:
        """Take note of a frame; `LookupError` if it may not come: a fault of the encoder."""
        self.state = self._table[self.state][frame]
