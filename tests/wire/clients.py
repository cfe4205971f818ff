"""Simulated clients of a front: what they send back, and what reaches the provider."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any

import dragoman
from dragoman.model.events import Event
from dragoman.model.messages import Message
from dragoman.model.parts import Origin
from dragoman.model.requests import Request
from dragoman.model.responses import Response
from dragoman.model.roles import Role
from dragoman.model.tools import ToolResult
from dragoman.wire.encoded import Encoded

FRONTS = ("anthropic", "gemini", "openai-chat", "openai-responses")
_SEALED = frozenset(
    {"signature", "thoughtSignature", "thought_signature", "encrypted_content", "encrypted_index"}
)


def history(front: str, body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """An answer's messages, contents or items, as a client repeats them."""
    if front == "anthropic":
        return [{"role": "assistant", "content": body["content"]}]
    if front == "openai-chat":
        message = body["choices"][0]["message"]
        return [{key: value for key, value in message.items() if value is not None}]
    if front == "openai-responses":
        return list(body["output"])
    return [body["candidates"][0]["content"]]


def asked(front: str, said: Iterable[Mapping[str, Any]]) -> tuple[Message, ...]:
    """The messages that a front decodes, from a client that repeats the answer."""
    if front == "gemini":
        opening: dict[str, Any] = {"role": "user", "parts": [{"text": "Hi"}]}
        body: dict[str, Any] = {"contents": [opening, *said]}
    elif front == "openai-responses":
        body = {"model": "m", "input": [{"role": "user", "content": "Hi"}, *said]}
    else:
        body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}, *said]}
        body |= {"max_tokens": 9} if front == "anthropic" else {}
    return dragoman.dialect(front).decode_request(body).messages[1:]


def returned(front: str, response: Response) -> tuple[Message, ...]:
    """The messages that a client sends back after a response."""
    return asked(front, history(front, dragoman.dialect(front).encode_response(response).body))


def streamed(front: str, events: Iterable[Event]) -> bytes:
    """The stream of a front."""
    full: Any = dragoman.dialect(front)
    encoder = full.stream_encoder()
    return b"".join([encoder.feed(event) for event in events]) + bytes(encoder.close())


def folded(front: str, stream: bytes) -> dict[str, Any]:
    """The body that a client builds from a stream."""
    full: Any = dragoman.dialect(front)
    decoder = full.stream_decoder()
    decoder.feed(stream)
    decoder.close()
    module = import_module(f"dragoman.wire.{front.replace('-', '_')}.response")
    body: dict[str, Any] = module.encode_response(
        decoder.response
    ).body  # unchanged: a client seals nothing
    return body


def returned_stream(front: str, events: Iterable[Event]) -> tuple[Message, ...]:
    """The messages that a client sends back after a stream."""
    return asked(front, history(front, folded(front, streamed(front, events))))


def sent(home: str, messages: Iterable[Message], origin: Origin | None = None) -> Encoded:
    """The provider's request: the answer, and results for its calls."""
    turns: list[Message] = [Message.user("Hi")]
    for message in messages:
        turns.append(message if origin is None else message.replace(origin=origin))
        if message.tool_calls:
            results = [ToolResult(call.id, "done", tool_name=call.name)
                       for call in message.tool_calls]  # fmt: skip
            turns.append(Message(Role.TOOL, tuple(results)))
    turns.append(Message.user("And?"))
    return dragoman.dialect(home).encode_request(Request(model="m", messages=tuple(turns)))


def needed(body: dict[str, Any]) -> dict[str, Any]:
    """What a provider needs of a request: of Responses' items, ids only directly after reasoning.

    W23 and W24 are about those; no other reader of an id or a status is known.
    """
    if "input" not in body:
        return body
    items, before = list[Any](), ""
    for item in body["input"]:
        kept = {name: value for name, value in item.items() if name != "status"}
        if before != "reasoning" and kept.get("type") in {"message", "function_call"}:
            kept.pop("id", None)
        if kept.get("role") == "assistant" and isinstance(kept["content"], list):
            kept["content"] = "".join(part["text"] for part in kept["content"])
            kept.pop("type", None)
        items.append(kept)
        before = item.get("type")
    return body | {"input": items}


def seals(home: str, body: Any) -> list[tuple[str, str]]:
    """All opaque state in the provider's request, in order."""
    return list(_seals(home, body))


def _seals(home: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        kind = value.get("type")
        for key, inner in value.items():
            is_data = key == "data" and kind in ("redacted_thinking", "reasoning.encrypted")
            is_id = key == "id" and home == "openai-responses"
            if isinstance(inner, str) and (key in _SEALED or is_data or is_id):
                yield key, inner
            else:
                yield from _seals(home, inner)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _seals(home, item)
