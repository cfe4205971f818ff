"""The events of a stream, as bytes; each has the next number (W33)."""

from __future__ import annotations

from typing import Any

from dragoman.model.jsontext import dumps
from dragoman.wire.framing import sse

_TEXT_DELTA = (
    b"event: response.output_text.delta\ndata: "
    b'{"type":"response.output_text.delta","sequence_number":%d,"item_id":%b,"output_index":%d,'
    b'"content_index":%d,"delta":%b,"logprobs":%b}\n\n'
)


class Frames:
    """Writes events, and counts them."""

    __slots__ = ("_number",)

    def __init__(self) -> None:
        self._number = 0

    def event(self, type: str, **fields: Any) -> bytes:
        """Any event, named twice: clients look at either."""
        return self.whole({"type": type, "sequence_number": 0, **fields})

    def whole(self, body: dict[str, Any]) -> bytes:
        """An event that has its type already."""
        body["sequence_number"] = self._next()
        return sse(dumps(body), body["type"])

    def text_delta(self, item_id: bytes, place: tuple[int, int], text: str, logprobs: Any) -> bytes:
        """More of a text; the item's id is JSON already."""
        return _TEXT_DELTA % (
            self._next(), item_id, *place, dumps(text), dumps(logprobs) if logprobs else b"[]",
        )  # fmt: skip

    def _next(self) -> int:
        number = self._number
        self._number += 1
        return number
