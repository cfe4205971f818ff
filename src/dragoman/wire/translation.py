"""Telling which dialect a body is in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.errors import InvalidInputError
from dragoman.model.jsontext import loads
from dragoman.wire.dialect import Body

_CHAT, _ANTHROPIC = "openai-chat", "anthropic"
_RESPONSES, _GEMINI, _OLLAMA = "openai-responses", "gemini", "ollama"

# Fields that only one dialect has, by the dialect they give away. The order is that of certainty.
_FIELDS: tuple[tuple[str, frozenset[str]], ...] = (
    (
        _GEMINI,
        frozenset({"contents", "candidates", "generationConfig", "generation_config",
                   "systemInstruction", "system_instruction", "usageMetadata", "promptFeedback"}),
    ),
    (
        _RESPONSES,
        frozenset({"input", "previous_response_id", "max_output_tokens", "output"}),
    ),
    (
        _ANTHROPIC,
        frozenset({"system", "anthropic_version", "stop_sequences", "stop_reason",
                   "stop_sequence", "mcp_servers", "container", "context_management"}),
    ),
    (
        _CHAT,
        frozenset({"choices", "max_completion_tokens", "response_format", "functions", "stop", "n",
                   "logprobs", "stream_options", "reasoning_effort", "frequency_penalty",
                   "presence_penalty", "parallel_tool_calls", "seed"}),
    ),
)  # fmt: skip
# Of a dialect whose messages and tools are those of `openai-chat`, but for these.
_OLLAMA_FIELDS = frozenset({"options", "keep_alive", "format", "think", "done", "done_reason",
                            "eval_count"})  # fmt: skip
_BLOCKS = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking", "document",
                     "server_tool_use", "search_result", "image", "mcp_tool_use", "compaction",
                     "container_upload", "tool_addition", "tool_removal"})  # fmt: skip
_RESULT_BLOCKS = "_tool_result"  # what the types of all results of its own tools end in
_INTERACTION_FIELDS = frozenset({"generation_config", "system_instruction", "agent",
                                 "response_modalities"})  # fmt: skip
_STEPS = ("user_input", "model_output", "thought", "function_result")
_PATHS = ((":generateContent", _GEMINI), (":streamGenerateContent", _GEMINI),
          ("/chat/completions", _CHAT), ("/responses", _RESPONSES), ("/api/chat", _OLLAMA),
          ("/messages", _ANTHROPIC), ("awPredict", _ANTHROPIC))  # fmt: skip


def detect(body: Body, *, path: str | None = None, headers: Mapping[str, str] | None = None) -> str:
    """The dialect that a request or response is in; raises where nothing tells.

    A body that several dialects could have written, a model and a user's text, is taken for the
    one that most servers speak: `openai-chat`.
    """
    place = (path or "").partition("?")[0]
    for ending, name in _PATHS:
        if place.endswith(ending):
            return name
    if headers and any(key.lower() == "anthropic-version" for key in headers):
        return _ANTHROPIC
    wire: Any = body if isinstance(body, Mapping) else loads(body)
    if place.endswith("/interactions") or (isinstance(wire, Mapping) and _is_interaction(wire)):
        msg = "Gemini's Interactions API is none of the dialects; generateContent is `gemini`"
        raise InvalidInputError(msg)
    found = _by_fields(wire) if isinstance(wire, Mapping) else None
    if found is None:
        msg = "nothing in the body tells its dialect; name it"
        raise InvalidInputError(msg)
    return found


def _is_interaction(wire: Mapping[str, Any]) -> bool:
    """Whether a body is of Gemini's Interactions API, whose `input` is as in Responses.

    A bare text as `input` is anybody's, and read as Responses.
    """
    if wire.get("object") == "interaction" or "previous_interaction_id" in wire:
        return True
    if "input" not in wire:
        return False
    given = wire["input"] if isinstance(wire["input"], list) else ()
    steps = [step for step in given if isinstance(step, Mapping)]
    return not _INTERACTION_FIELDS.isdisjoint(wire) or any(
        step.get("role") == "model" or step.get("type") in _STEPS for step in steps
    )


def _by_fields(wire: Mapping[str, Any]) -> str | None:
    messages = wire.get("messages")
    if not _OLLAMA_FIELDS.isdisjoint(wire):
        return _OLLAMA
    if isinstance(messages, list):
        found = _by_messages(messages) or _by_tools(wire.get("tools")) or _by_names(wire)
        return found or (_ANTHROPIC if _names_claude(wire) else _CHAT)
    if isinstance(wire.get("prompt"), Mapping):
        return _RESPONSES  # a stored prompt, and nothing else
    return _by_names(wire)


def _names_claude(wire: Mapping[str, Any]) -> bool:
    """The last resort: a body that says nothing but who should answer, as Anthropic names it."""
    model = wire.get("model")
    return isinstance(model, str) and model.startswith("claude") and "max_tokens" in wire


def _by_names(wire: Mapping[str, Any]) -> str | None:
    for name, fields in _FIELDS:
        if not fields.isdisjoint(wire):
            return name
    return None


def _by_messages(messages: list[Any]) -> str | None:
    """What only one of the three dialects with `messages` would say in them."""
    for message in messages:
        if not isinstance(message, Mapping):
            continue
        if is_ollamas(message):
            return _OLLAMA
        if message.get("role") in ("tool", "function", "developer") or "tool_calls" in message:
            return _CHAT
        content = message.get("content")
        for part in content if isinstance(content, list) else ():
            kind = part.get("type") if isinstance(part, Mapping) else None
            if kind in ("image_url", "input_audio", "file", "refusal"):
                return _CHAT
            if is_block(part):
                return _ANTHROPIC
    return None


def is_block(part: Any) -> bool:
    """Whether a part of a message's content is a block that only Anthropic has."""
    kind = part.get("type") if isinstance(part, Mapping) else None
    return isinstance(kind, str) and (kind in _BLOCKS or kind.endswith(_RESULT_BLOCKS))


def is_ollamas(message: Mapping[str, Any]) -> bool:
    """Whether a message names its tool, thinks in plain text, or has arguments that are no text."""
    if "tool_name" in message or isinstance(message.get("thinking"), str):
        return True
    images, calls = message.get("images"), message.get("tool_calls")
    if isinstance(images, list) and any(isinstance(image, str) for image in images):
        return True
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, Mapping) else None
        if isinstance(function, Mapping) and isinstance(function.get("arguments"), Mapping):
            return True
    return False


def _by_tools(tools: Any) -> str | None:
    for tool in tools if isinstance(tools, list) else ():
        if isinstance(tool, Mapping):
            if "function" in tool or "custom" in tool:
                return _CHAT
            if "input_schema" in tool:
                return _ANTHROPIC
    return None
