"""The events of a stream, as bytes."""

from __future__ import annotations

from typing import Any

from dragoman.model.jsontext import dumps
from dragoman.wire.anthropic.context import Block
from dragoman.wire.framing import sse

_DELTA = (
    b"event: content_block_delta\ndata: "
    b'{"type":"content_block_delta","index":%d,"delta":{"type":"%b","%b":%b}}\n\n'
)
MESSAGE_STOP = sse(b'{"type":"message_stop"}', "message_stop")


def event(type: str, **fields: Any) -> bytes:
    """Any event, named twice: clients look at either (W66)."""
    return sse(dumps({"type": type, **fields}), type)


def message_start(body: Block) -> bytes:
    """The beginning of a message, which has no content yet."""
    return event("message_start", message=body)


def block_start(index: int, block: Any) -> bytes:
    """The beginning of a block."""
    return event("content_block_start", index=index, content_block=block)


def text_delta(index: int, text: str) -> bytes:
    """More of a text."""
    return _DELTA % (index, b"text_delta", b"text", dumps(text))


def thinking_delta(index: int, text: str) -> bytes:
    """More of the thinking."""
    return _DELTA % (index, b"thinking_delta", b"thinking", dumps(text))


def signature_delta(index: int, signature: str) -> bytes:
    """The proof of the thinking, which comes last."""
    return _DELTA % (index, b"signature_delta", b"signature", dumps(signature))


def input_json_delta(index: int, piece: str) -> bytes:
    """More of a call's arguments."""
    return _DELTA % (index, b"input_json_delta", b"partial_json", dumps(piece))


def citations_delta(index: int, citation: Any) -> bytes:
    """One more source of a text."""
    return _DELTA % (index, b"citations_delta", b"citation", dumps(citation))


def block_stop(index: int) -> bytes:
    """The end of a block."""
    return sse(b'{"type":"content_block_stop","index":%d}' % index, "content_block_stop")
