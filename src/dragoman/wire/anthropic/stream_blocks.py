"""Content blocks of a stream between their start and their stop."""

from __future__ import annotations

from typing import Any

from dragoman.errors import InvalidInputError
from dragoman.model.content import AnyPart
from dragoman.model.events import PartDelta
from dragoman.model.jsontext import loads
from dragoman.model.parts import Opaque, ServerToolCall, Text, Thinking
from dragoman.model.tools import ToolCall
from dragoman.wire.anthropic.dialect import Block
from dragoman.wire.anthropic.tables import BLOCKS, decode_citations, decode_part
from dragoman.wire.lane.templates import Growth
from dragoman.wire.reading import Reading
from dragoman.wire.rows import OBJECT

BEGUN = [growth for growth in BLOCKS.growing if growth.row.is_required]
"""The rows of text, thinking and arguments, which a block begins with and which grow."""
# The initial field of a block; some servers omit it or send null.
_BEGINNINGS = {
    growth.shape.tag: (growth.row.wire, {} if growth.row.value.test == OBJECT.test else "")
    for growth in BEGUN
}
TEXT_DELTAS = {growth.delta: growth.field for growth in BEGUN}
"""Delta types with text, and the field that holds it."""
KNOWN_DELTAS = frozenset(growth.delta for growth in BLOCKS.growing)
_GROWS: dict[type, str] = {growth.shape.kind: growth.delta for growth in BEGUN}
"""Delta types with text by part class."""

BARE_DELTA = frozenset({"type", "index", "delta", "obfuscation"})  # the last is padding: W18
_BARE_PIECE = 2  # fields of a delta: its type and its value


class GrowingBlock:
    """A block that has started and not stopped yet.

    Text, thinking and call arguments are only passed on, since the consumer accumulates the events.
    Kept here is what the accumulated part would lack: citations, the arguments of server tools,
    and unknown fields.
    """

    __slots__ = ("_beginning", "_citations", "_pieces", "_wire", "index", "is_open", "part")

    def __init__(self, index: int, wire: Any, reading: Reading) -> None:
        self.index = index
        self._beginning = wire
        self._wire: Any = _begun(wire)
        self.part: AnyPart = _unwritten(decode_part(self._wire, reading))
        self._pieces: list[str] = []
        self._citations: list[Any] = []
        self.is_open = True

    def is_begun_by(self, wire: Any) -> bool:
        """Whether a start is that of this block again, maybe after its end."""
        return bool(wire == self._beginning)

    @property
    def may_go_on(self) -> bool:
        """Whether a repeated start may be followed by the rest of this block."""
        is_named = isinstance(self._beginning, dict) and self._beginning.get("id") is not None
        return self.is_open and (is_named or not (self._pieces or self._citations))

    def grow(self, delta: Block) -> PartDelta | None:
        """Decode a delta; None if it adds nothing, or only to the part emitted at the stop.

        Raises `LookupError` for a delta that does not fit the block.
        """
        kind, part = delta.get("type"), self.part
        if type(kind) is str and kind == _GROWS.get(type(part)):
            text = _text(delta, TEXT_DELTAS[kind])
            self._pieces.append(text)
            return PartDelta(self.index, text) if text else None
        if kind == "signature_delta" and type(part) is Thinking:
            return PartDelta(self.index, signature=_text(delta, "signature"))
        if kind == "citations_delta" and type(part) is Text and "citation" in delta:
            self._citations.append(delta["citation"])
            found = decode_citations([delta["citation"]])
            return PartDelta(self.index, citations=found) if found else None
        if type(part) is Opaque and isinstance(self._wire, dict):
            _merge(self._wire, delta)
            return None
        raise LookupError

    def growth(self, wire: Block, delta: Block, grown: PartDelta) -> Growth | None:
        """The growth of a part, if the event was only more text."""
        field = TEXT_DELTAS.get(delta["type"])
        if field is None or len(delta) != _BARE_PIECE or type(wire.get("index")) is not int:
            return None
        is_bare = wire.keys() <= BARE_DELTA
        return Growth(grown, ("delta", field), kept=(self._pieces,)) if is_bare else None

    def stop(self, reading: Reading) -> AnyPart | None:
        """The whole part, if that is more than the sum of its start and deltas."""
        self.is_open = False
        part = self.part
        if type(part) is Opaque:
            return decode_part(self._wire, reading)
        if type(part) is Text and self._citations:
            text = part.text + "".join(self._pieces)
            known = self._wire.get("citations")
            citations = [*(known if isinstance(known, list) else ()), *self._citations]
            return decode_part({**self._wire, "text": text, "citations": citations}, reading)
        if type(part) is ServerToolCall and (written := "".join(self._pieces)):
            return decode_part({**self._wire, "input": _arguments(written)}, reading)
        return None


def unannounced_block(delta: Block) -> Block | None:
    """The start of a block that a server forgot to announce; None if it can't be guessed."""
    kind: Any = delta.get("type")
    if kind not in ("text_delta", "thinking_delta"):
        return None
    field = TEXT_DELTAS[kind]
    return {"type": field, field: ""}


def _begun(wire: Any) -> Any:
    """A copy of a block that deltas can be merged into."""
    if not isinstance(wire, dict):
        return wire
    kind = wire.get("type")
    beginning = _BEGINNINGS.get(kind) if type(kind) is str else None
    if beginning is not None and not wire.get(beginning[0]):
        return {**wire, beginning[0]: beginning[1]}
    return dict(wire)


def _unwritten(part: AnyPart) -> AnyPart:
    """A call as it begins: its empty object stands for arguments that are not yet written."""
    if type(part) is ToolCall and part.input is not None and not part.input:
        return part.replace_unchecked(raw="", input=None)
    return part


def _text(delta: Block, field: str) -> str:
    text = delta.get(field)
    if type(text) is str:
        return text
    raise LookupError


def _merge(wire: Block, delta: Block) -> None:
    """Merge the unknown fields of a delta: strings are appended, other values replaced."""
    for key, value in delta.items():
        known = wire.get(key)
        if key == "type":
            continue
        if isinstance(known, str) and isinstance(value, str):
            wire[key] = known + value
        elif value is not None or known is None:
            wire[key] = value


def _arguments(written: str) -> Any:
    """Parse arguments; the text itself if it is not complete JSON."""
    try:
        return loads(written)
    except InvalidInputError:
        return written
