"""State in fields that proxies added to Chat answers comes back, whatever the client speaks.

LiteLLM refuses a history without its signed blocks (BerriAI/litellm#15601), Google one without its
signatures (earendil-works/pi#6733).
"""

from __future__ import annotations

import json
from typing import Any

import pytest

import dragoman
from dragoman.model.messages import Message
from dragoman.model.responses import Response
from tests.wire.clients import FRONTS, asked, folded, history, sent
from tests.wire.front_types import request_to

_CHAT = "openai-chat"
_CALL: dict[str, Any] = {
    "id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"},
}  # fmt: skip
_BLOCK = {"type": "thinking", "thinking": "Think.", "signature": "RXNnQg=="}
_REDACTED = {"type": "redacted_thinking", "data": "UmVk"}
_SIGNED = {"thought_signature": "Q2lR"}


def _called(fields: dict[str, Any] | None = None, /, **message: Any) -> dict[str, Any]:
    return {"content": None, "tool_calls": [{**_CALL, **(fields or {})}], **message}


def _details(of: str, *entries: dict[str, Any]) -> list[dict[str, Any]]:
    return [{**entry, "format": of, "index": number} for number, entry in enumerate(entries)]


_ENCRYPTED = {"type": "reasoning.encrypted", "data": "Z0FB"}
MESSAGES: dict[str, dict[str, Any]] = {
    "LiteLLM's blocks": _called(reasoning_content="Think.", thinking_blocks=[_BLOCK]),
    "two of them": _called(reasoning_content="Think.", thinking_blocks=[_BLOCK, _REDACTED, _BLOCK]),
    "redacted ones": {"content": "Hi", "thinking_blocks": [_REDACTED]},
    "a copy of the blocks": _called(provider_specific_fields={
        "thinking_blocks": [_BLOCK], "reasoning_content": "Think."}),
    "OpenRouter's details of Claude": _called(
        reasoning="Think.",
        reasoning_details=_details("anthropic-claude-v1", {
            "type": "reasoning.text", "text": "Think.", "signature": "RXNnQg=="}),
    ),
    "OpenRouter's details of Gemini": _called(
        reasoning="Think.",
        reasoning_details=_details(
            "google-gemini-v1", {"type": "reasoning.text", "text": "Think."},
            {**_ENCRYPTED, "id": "call_1"}),
    ),
    "OpenRouter's details of OpenAI": {
        "content": "Hi", "reasoning": "Sum",
        "reasoning_details": _details(
            "openai-responses-v1", {"type": "reasoning.summary", "summary": "Sum"},
            {**_ENCRYPTED, "id": "rs_1"}),
    },
    "OpenRouter's details without their text": {
        "content": "Hi", "reasoning": "Sum",
        "reasoning_details": _details("xai-responses-v1", {**_ENCRYPTED, "id": "rs_1"}),
    },
    "Google's signature of a call": _called({"extra_content": {"google": _SIGNED}}),
    "Google's signature of a text": {"content": "Hi", "extra_content": {"google": _SIGNED}},
    "LiteLLM's signature of a call": _called({"provider_specific_fields": _SIGNED}),
    "LiteLLM's signature of a function": _called({
        "function": {**_CALL["function"], "provider_specific_fields": _SIGNED}}),
    "LiteLLM's signature in an id": _called({"id": "call_1__thought__Q2lR"}),
    "LiteLLM's signature of a text": {
        "content": "Hi", "provider_specific_fields": {"thought_signatures": ["Q2lR"]}},
}  # fmt: skip
"""Answers of Chat hosts."""


def _choice(field: str, said: dict[str, Any], finish: str | None) -> dict[str, Any]:
    kind = "chat.completion" if field == "message" else "chat.completion.chunk"
    choice = {"index": 0, field: said, "finish_reason": finish}
    return {"id": "c1", "object": kind, "created": 1, "model": "m", "choices": [choice]}


def _deltas(message: dict[str, Any]) -> list[dict[str, Any]]:
    """The message in pieces: LiteLLM sends the signature of a block after its text."""
    found: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    for key, value in message.items():
        if key == "thinking_blocks":
            found += [{key: [piece]} for block in value for piece in _pieces(block)]
        elif key == "tool_calls":
            found.append({key: [{"index": 0, **value[0]}]})
        elif value is not None:
            found.append({key: value})
    return found


def _pieces(block: dict[str, Any]) -> list[dict[str, Any]]:
    if "signature" not in block:
        return [block]
    return [{**block, "thinking": "Thi", "signature": None},
            {**block, "thinking": "nk.", "signature": None}, {**block, "thinking": ""}]  # fmt: skip


def _stream(message: dict[str, Any]) -> bytes:
    finish = "tool_calls" if "tool_calls" in message else "stop"
    frames = [_choice("delta", delta, None) for delta in _deltas(message)]
    frames.append(_choice("delta", {}, finish))
    return b"".join([f"data: {json.dumps(frame)}\n\n".encode() for frame in frames])


def _whole(message: dict[str, Any]) -> Response:
    body = _choice("message", {"role": "assistant", **message}, "stop")
    return dragoman.dialect(_CHAT).decode_response(body)


def _again(messages: tuple[Message, ...], message: dict[str, Any]) -> dict[str, Any]:
    """The answer in the next request to the Chat host: what it had, of the fields it had."""
    said = sent(_CHAT, messages).body["messages"][1]
    return {key: said.get(key) for key in message}


def _expect_no_report(losses: Any) -> None:
    assert [loss for loss in losses if "signature" in loss.reason or "field" in loss.reason] == []


@pytest.mark.whole
@pytest.mark.parametrize("name", MESSAGES)
@pytest.mark.parametrize("front", [name for name in FRONTS if name != _CHAT])
def test_state_comes_back(front: str, name: str) -> None:
    """A client of another dialect repeats the answer, and the host gets its state."""
    message = MESSAGES[name]
    encoded = dragoman.Front(front, request_to(front)).response(_whole(message))
    _expect_no_report(encoded.losses)
    back = asked(front, history(front, json.loads(encoded.to_bytes())))
    assert _again(back, message) == message
    decoder = dragoman.dialect(_CHAT).stream_decoder()
    events = [*decoder.feed(_stream(message) + b"data: [DONE]\n\n"), *decoder.close()]
    writer = dragoman.Front(front, request_to(front).replace(stream=True)).stream()
    data = b"".join(map(writer.feed, events)) + writer.close()
    _expect_no_report(writer.losses)
    assert _again(asked(front, history(front, folded(front, data))), message) == message


@pytest.mark.whole
@pytest.mark.parametrize("name", MESSAGES)
def test_streamed_state_is_that_of_the_whole_answer(name: str) -> None:
    """Pieces of blocks are joined, so that an agent sends back what it got."""
    message = MESSAGES[name]
    decoder = dragoman.dialect(_CHAT).stream_decoder()
    decoder.feed(_stream(message) + b"data: [DONE]\n\n")
    decoder.close()
    assert _again((decoder.response.message,), message) == message
    assert _again((_whole(message).message,), message) == message
