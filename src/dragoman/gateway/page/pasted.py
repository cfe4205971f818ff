"""Reads text pasted into the lens: bodies and streams of any dialect, other libraries' messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from dragoman.errors import DragomanError, InvalidInputError
from dragoman.interop.peers import langchain, pydantic_ai
from dragoman.model.collection import Messages
from dragoman.model.jsontext import loads
from dragoman.model.responses import Response
from dragoman.providers.documents.reading import AUTO, Reader
from dragoman.wire.dialect import dialect, dialects
from dragoman.wire.documents import Conversation

_STREAMS = (b"data:", b"event:", b": ", b":\n")
_LANGCHAIN = frozenset({
    "human", "ai", "system", "tool", "function", "developer", "chat", "AIMessageChunk",
})  # fmt: skip
_NO_STREAM = "this looks like a stream, but no dialect can read it; choose its dialect"


class Pasted(NamedTuple):
    """The pasted conversation, and the dialect that it was written in."""

    source: str
    value: Conversation


def read(text: bytes, source: str | None) -> Pasted:
    """Parses a text in the given dialect, or detects its dialect."""
    given = text.lstrip()
    if given.startswith(_STREAMS):
        return _stream(given, source)
    if source in (None, AUTO):
        peer = _of_peer(loads(given))
        if peer is not None:
            return peer
    found = Reader(source or AUTO).read(given)
    return Pasted(found.dialect, found.value)


def _of_peer(wire: Any) -> Pasted | None:
    """Reads messages dumped by LangChain or pydantic-ai; None for anything else."""
    items = wire if isinstance(wire, list) else ()
    if not items or not all(isinstance(item, Mapping) for item in items):
        return None
    if all(item.get("kind") in {"request", "response"} and "parts" in item for item in items):
        return Pasted("pydantic-ai", Messages.wrapping(pydantic_ai.decode_messages(items)))
    if all(_is_langchain(item) for item in items):
        return Pasted("langchain", Messages.wrapping(langchain.decode_messages(items)))
    return None


def _is_langchain(item: Mapping[str, Any]) -> bool:
    kind, data = item.get("type"), item.get("data")
    inner = data if isinstance(data, Mapping) else item
    return isinstance(kind, str) and kind in _LANGCHAIN and "content" in inner


def _stream(text: bytes, source: str | None) -> Pasted:
    names = [source] if source not in (None, AUTO) and source is not None else dialects()
    for name in names:
        response = _streamed(name, text)
        if response is not None:
            return Pasted(name, response)
    raise InvalidInputError(_NO_STREAM)


def _streamed(name: str, text: bytes) -> Response | None:
    """Decodes a stream in one dialect; None if the response has no content."""
    decoder = dialect(name).stream_decoder()
    try:
        decoder.feed(text if text.endswith(b"\n\n") else text + b"\n\n")
        decoder.close()
    except DragomanError:
        pass
    response = decoder.response
    return response if any(choice.message.parts for choice in response.choices) else None
