"""The vendors' own types of answers and of their streams, held strictly to what they require.

The SDKs themselves take anything; here each model is validated, so that every field without a
default has to be there, and of its type.
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

# What the Open Responses specification requires, null or not, beyond OpenAI's own types.
OPEN_RESPONSES = frozenset({
    "id", "object", "created_at", "completed_at", "status", "incomplete_details", "model",
    "previous_response_id", "instructions", "output", "error", "tools", "tool_choice",
    "truncation", "parallel_tool_calls", "text", "top_p", "presence_penalty", "frequency_penalty",
    "top_logprobs", "temperature", "reasoning", "usage", "max_output_tokens", "max_tool_calls",
    "store", "background", "service_tier", "metadata", "safety_identifier", "prompt_cache_key",
})  # fmt: skip

# Of each dialect: the types of a whole answer, and of what a stream is made of. Any of them will
# do: Anthropic has more blocks while they are being tried out.
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
    """The models of a type by the `type` that they are for; under the empty word, of any."""
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
            # Google's reads its own times and enumerations before it checks.
            adapter.validate_json(data, strict=not name.startswith("google"))
        except ValidationError as error:
            # Fields that an SDK is too old for are no fault.
            is_newer = all(each["type"] == "extra_forbidden" for each in error.errors())
            if number == len(names) and not is_newer:
                raise
        else:
            return


def check_body(front: str, data: bytes) -> dict[str, Any]:
    """A whole answer, which has all that its vendor's types require."""
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
    for item in body["output"]:
        assert isinstance(item, dict)
        for part in item["content"] if item.get("type") == "message" else ():
            if part["type"] == "output_text":
                assert part.keys() >= {"text", "annotations", "logprobs"}, part.keys()


def check_stream(front: str, data: bytes) -> list[dict[str, Any]]:
    """A stream, every frame of which has it, with one id, time and model in all of them."""
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
    """What a client of this dialect may ask."""
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
