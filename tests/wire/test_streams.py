"""Streams with the request's own names and schemas."""

from __future__ import annotations

import json
from typing import Any

import pytest

import dragoman
from dragoman import MessageAccumulator, Request, Usage
from dragoman.model.events import Event, ResponseEnd, UsageUpdate
from dragoman.model.parts import Origin
from dragoman.model.tools import make_definition
from dragoman.wire.context import Context

NAME = "mcp.server/search"

ANTHROPIC: list[dict[str, Any]] = [
    {"type": "message_start", "message": {
        "id": "m", "type": "message", "role": "assistant", "model": "c", "content": [],
        "stop_reason": None, "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1}}},
    {"type": "content_block_start", "index": 0, "content_block": {
        "type": "tool_use", "id": "t1", "name": "ALIAS", "input": {}}},
    {"type": "content_block_delta", "index": 0,
     "delta": {"type": "input_json_delta", "partial_json": '{"q": 1}'}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": None},
     "usage": {"output_tokens": 5}},
    {"type": "message_stop"},
]  # fmt: skip
CHAT = [
    {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [
        {"index": 0, "finish_reason": None, "delta": {"role": "assistant", "tool_calls": [
            {"index": 0, "id": "t1", "type": "function",
             "function": {"name": "ALIAS", "arguments": '{"q": 1}'}}]}}]},
    {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [
        {"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
]  # fmt: skip

GEMINI = {"candidates": [{"finishReason": "STOP", "content": {"role": "model", "parts": [
    {"functionCall": {"name": "ALIAS", "args": {"q": 1}}}]}}]}  # fmt: skip


def _stream(dialect: str, alias: str) -> bytes:
    if dialect == "anthropic":
        frames = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in ANTHROPIC]
    elif dialect == "gemini":
        frames = [f"data: {json.dumps(GEMINI)}\n\n"]
    else:
        frames = [*(f"data: {json.dumps(chunk)}\n\n" for chunk in CHAT), "data: [DONE]\n\n"]
    return "".join(frames).replace("ALIAS", alias).encode()


@pytest.mark.parametrize("dialect", ["anthropic", "gemini", "openai-chat"])
def test_aliases_are_restored_in_streams(dialect: str) -> None:
    """Every event and the response have the tool's own name instead of its alias."""
    tool = make_definition(NAME, parameters={"type": "object"}, origin=Origin(dialect="x"))
    speaker: Any = dragoman.dialect(dialect)
    encoded = speaker.encode_request(Request(model="m", tools=(tool,)))
    (alias,) = encoded.context.names
    decoder = speaker.stream_decoder(encoded.context)
    events = [*decoder.feed(_stream(dialect, alias)), *decoder.close()]
    assert decoder.is_complete
    assert decoder.response.tool_calls[0].name == NAME
    folded = MessageAccumulator()
    folded.extend(events)
    assert folded.message.tool_calls[0].name == NAME
    assert folded.message.tool_calls[0].arguments == {"q": 1}


@pytest.mark.parametrize("name", dragoman.dialects())
def test_every_dialect_implements_the_contract(name: str) -> None:
    """Errors are decoded, rules are checked, and the default target has the dialect."""
    speaker = dragoman.dialect(name)
    assert speaker.decode_error(401, b"{}").status == 401
    assert speaker.check({"messages": 3})
    assert speaker.target.dialect == name


@pytest.mark.parametrize("options", [{"include_usage": True}, {"include_usage": False}, 5, None])
def test_usage_is_sent_on_request(options: Any) -> None:
    """The request in the context decides whether a Chat stream ends with usage (W9)."""
    chat = dragoman.dialect("openai-chat")
    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "Hi"}]}
    asked = chat.decode_request({**body, "stream_options": options})
    encoder = chat.stream_encoder(Context(request=asked))
    events: list[Event] = [UsageUpdate(Usage(input=3, output=4)), ResponseEnd()]
    sent = b"".join(map(encoder.feed, events)) + encoder.close()
    assert (b'"prompt_tokens":3' in sent) is (options == {"include_usage": True})


@pytest.mark.parametrize("name", dragoman.dialects())
def test_the_context_may_be_none(name: str) -> None:
    """A context of None is the same as no context."""
    speaker = dragoman.dialect(name)
    assert speaker.stream_decoder(None).feed(b"") == []
    assert speaker.stream_encoder(None).losses == speaker.stream_encoder().losses
