"""The vendors' own response and stream types, validated strictly.

The SDKs themselves do not validate; here each model is validated, so every field without a default
must be present and have its type.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Annotated, Any, get_args, get_origin

import msgspec
from pydantic import TypeAdapter, ValidationError

import dragoman
from dragoman.model.requests import Request
from tests.sdk_types.streams import events_of

# Fields that the Open Responses specification requires beyond OpenAI's own types; null is allowed.
OPEN_RESPONSES = frozenset({
    "id", "object", "created_at", "completed_at", "status", "incomplete_details", "model",
    "previous_response_id", "instructions", "output", "error", "tools", "tool_choice",
    "truncation", "parallel_tool_calls", "text", "top_p", "presence_penalty", "frequency_penalty",
    "top_logprobs", "temperature", "reasoning", "usage", "max_output_tokens", "max_tool_calls",
    "store", "background", "service_tier", "metadata", "safety_identifier", "prompt_cache_key",
})  # fmt: skip

# The same for items and parts of a response, and for stream events, by their types.
_OPEN_PARTS: dict[str, frozenset[str]] = {
    kind: frozenset(fields.split())
    for kind, fields in {
        "message": "id status role content",
        "function_call": "id call_id name arguments status",
        "function_call_output": "id call_id output status",
        "reasoning": "id summary",
        "compaction": "id encrypted_content",
        "output_text": "text annotations logprobs",
        "refusal": "refusal",
        "summary_text": "text",
        "reasoning_text": "text",
        "url_citation": "url start_index end_index title",
        "function": "name description parameters strict",
    }.items()
}
_IN_ITEM = "sequence_number item_id output_index"
_OPEN_EVENTS: dict[str, frozenset[str]] = {
    f"response.{kind}": frozenset(fields.split())
    for kind, fields in {
        "output_item.added": "sequence_number output_index item",
        "output_item.done": "sequence_number output_index item",
        "content_part.added": f"{_IN_ITEM} content_index part",
        "content_part.done": f"{_IN_ITEM} content_index part",
        "output_text.delta": f"{_IN_ITEM} content_index delta logprobs",
        "output_text.done": f"{_IN_ITEM} content_index text logprobs",
        "output_text.annotation.added": f"{_IN_ITEM} content_index annotation_index annotation",
        "refusal.delta": f"{_IN_ITEM} content_index delta",
        "refusal.done": f"{_IN_ITEM} content_index refusal",
        "reasoning_text.delta": f"{_IN_ITEM} content_index delta",
        "reasoning_text.done": f"{_IN_ITEM} content_index text",
        "reasoning_summary_part.added": f"{_IN_ITEM} summary_index part",
        "reasoning_summary_part.done": f"{_IN_ITEM} summary_index part",
        "reasoning_summary_text.delta": f"{_IN_ITEM} summary_index delta",
        "reasoning_summary_text.done": f"{_IN_ITEM} summary_index text",
        "function_call_arguments.delta": f"{_IN_ITEM} delta",
        "function_call_arguments.done": f"{_IN_ITEM} arguments",
    }.items()
}
_OPEN_USAGE = {"input_tokens", "output_tokens", "total_tokens", "input_tokens_details",
               "output_tokens_details"}  # fmt: skip

# For each dialect: the types of a plain answer, and of stream events. Matching any of them is
# enough: Anthropic has more blocks in its beta types.
_BODIES = {
    "openai-chat": ("groq.types.chat:ChatCompletion", "openai.types.chat:ChatCompletion"),
    "openai-responses": ("openai.types.responses:Response",),
    "anthropic": ("anthropic.types:Message", "anthropic.types.beta:BetaMessage"),
    "gemini": ("google.genai.types:GenerateContentResponse",),
    "ollama": ("ollama:ChatResponse",),
}
_FRAMES = {
    "openai-chat": ("groq.types.chat:ChatCompletionChunk", "openai.types.chat:ChatCompletionChunk"),
    "openai-responses": ("openai.types.responses:ResponseStreamEvent",),
    "anthropic": (
        "anthropic.types:RawMessageStreamEvent",
        "anthropic.types.beta:BetaRawMessageStreamEvent",
    ),
    "gemini": ("google.genai.types:GenerateContentResponse",),
    "ollama": ("ollama:ChatResponse",),
}
_ALWAYS = {
    "anthropic": ("id", "model"),
    "gemini": ("responseId", "modelVersion"),
    "ollama": ("model", "created_at"),
    "openai-chat": ("id", "model", "created"),
    "openai-responses": ("id", "model", "created_at"),
}
"""What is never empty, in no answer and in no frame."""
_LIFECYCLE = frozenset(
    f"response.{word}" for word in ("created", "in_progress", "completed", "incomplete", "failed")
)


@cache
def _models(name: str) -> dict[str, Any]:
    """The models of a type by their `type`; under the empty string, those for any."""
    module, _, kind = name.partition(":")
    found = getattr(import_module(module), kind)
    while get_origin(found) is Annotated:
        found = get_args(found)[0]
    if isinstance(found, type):
        return {"": TypeAdapter(found)}
    return {
        word: TypeAdapter(model)
        for model in get_args(found)
        for word in get_args(model.model_fields["type"].annotation)
    }


def _validate(names: tuple[str, ...], body: Mapping[str, Any]) -> None:
    data = msgspec.json.encode(body)
    for number, name in enumerate(names, 1):
        models = _models(name)
        adapter = models.get("") or models.get(body.get("type", ""))
        assert adapter is not None, body.get("type")
        try:
            # Google's models parse times and enums before validation.
            adapter.validate_json(data, strict=not name.startswith("google"))
        except ValidationError as error:
            # Unknown fields are fine: the SDK may be older.
            is_newer = all(each["type"] == "extra_forbidden" for each in error.errors())
            if number == len(names) and not is_newer:
                raise
        else:
            return


def check_body(front: str, data: bytes) -> dict[str, Any]:
    """Check that a plain answer has all fields that its vendor's types require."""
    body: dict[str, Any] = msgspec.json.decode(data)
    _validate(_BODIES[front], body)
    _check_stamp(front, body)
    if front == "openai-responses":
        _check_open_responses(body)
    return body


def _check_stamp(front: str, body: Mapping[str, Any]) -> None:
    for key in _ALWAYS[front]:
        assert body[key], key
    assert not str(body.get("created_at", "")).startswith("1970"), "created_at"


def _check_open_responses(body: Mapping[str, Any]) -> None:
    assert body.keys() >= OPEN_RESPONSES, OPEN_RESPONSES - body.keys()
    for item in (*body["output"], *body["tools"]):
        _check_open_parts(item)
    assert body["reasoning"] is None or body["reasoning"].keys() >= {"effort", "summary"}
    assert "format" in body["text"]
    if (usage := body["usage"]) is not None:
        assert usage.keys() >= _OPEN_USAGE, usage.keys()
        assert "cached_tokens" in usage["input_tokens_details"]
        assert "reasoning_tokens" in usage["output_tokens_details"]
    if (error := body["error"]) is not None:
        assert error.keys() >= {"code", "message"}, error.keys()
    if (details := body["incomplete_details"]) is not None:
        assert "reason" in details


def _check_open_parts(wire: Any) -> None:
    """Check an item or a part, and those inside it."""
    if isinstance(wire, list):
        for each in wire:
            _check_open_parts(each)
    if not isinstance(wire, dict):
        return
    needed = _OPEN_PARTS.get(wire.get("type", ""), frozenset())
    assert wire.keys() >= needed, (wire["type"], needed - wire.keys())
    for key in ("content", "summary", "annotations"):
        _check_open_parts(wire.get(key))


def check_stream(front: str, data: bytes) -> list[dict[str, Any]]:
    """Check that every frame of a stream is complete, with one id, time and model."""
    frames = events_of(data, front)
    heads = set()
    for frame in frames:
        if "error" in frame and front in _ERROR_FRAMES:
            continue
        if front == "anthropic" and frame.get("type") not in _EVENTS_OF_ANTHROPIC:
            continue
        _validate(_FRAMES[front], frame)
        head = _head(front, frame)
        if head is not None:
            _check_stamp(front, head)
            heads.add(tuple([str(head.get(key)) for key in _HEAD]))
        if frame.get("type") in _LIFECYCLE:
            _check_open_responses(frame["response"])
        if front == "openai-responses":
            needed = _OPEN_EVENTS.get(frame["type"], frozenset())
            assert frame.keys() >= needed, (frame["type"], needed - frame.keys())
            _check_open_parts(frame.get("item"))
    assert len(heads) == 1 or (not heads and "error" in frames[-1]), heads
    return frames


_ERROR_FRAMES = frozenset({"openai-chat", "gemini", "ollama"})
_HEAD = ("id", "model", "created", "created_at", "responseId", "modelVersion", "createTime")
_EVENTS_OF_ANTHROPIC = frozenset({
    "message_start", "message_delta", "message_stop", "content_block_start",
    "content_block_delta", "content_block_stop",
})  # fmt: skip


def _head(front: str, frame: dict[str, Any]) -> dict[str, Any] | None:
    if front == "anthropic":
        return frame.get("message")
    if front == "openai-responses":
        return frame.get("response")
    return frame


def request_to(front: str) -> Request:
    """A request of this dialect's client."""
    said: dict[str, Any] = {"role": "user", "content": "Hi"}
    path = None
    body: dict[str, Any] = {"model": "asked-for", "messages": [said]}
    if front == "openai-responses":
        body = {"model": "asked-for", "input": "Hi"}
    elif front == "gemini":
        body = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}
        path = "/v1beta/models/asked-for:generateContent"
    elif front == "anthropic":
        body["max_tokens"] = 99
    return dragoman.dialect(front).decode_request(body, path=path)
