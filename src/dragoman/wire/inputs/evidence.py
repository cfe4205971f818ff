"""Which dialect a message dict is in, by what only that dialect writes.

Our own shapes (`Message.from_dict`) are variations of OpenAI Chat's: flat tool calls, camelCase,
texts among the content. A dict that has one of these is ours; `{"role": "user", "content": "Hi"}`
is everybody's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dragoman.model.content import is_message as is_own_message
from dragoman.model.parts import Part
from dragoman.model.reasoning_fields import has_own_details
from dragoman.wire.recognition import given_away, has_typed_parts
from dragoman.wire.translation import is_block, is_ollamas

OWN = "own"
"""One of the shapes of `Message.from_dict`."""

CHAT, RESPONSES, ANTHROPIC, GEMINI = "openai-chat", "openai-responses", "anthropic", "gemini"
_WORDS = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
_SPOKEN = frozenset({"system", "developer", "user", "assistant"})  # in several dialects

# What only our own shapes have: fields of a message, and kinds of content. Three kinds Anthropic
# has as well, with a field that ours lack.
_CAMEL = frozenset({"toolCalls", "toolCallId", "toolName", "functionCall", "isError"})
_RESULT = frozenset({"tool_name", "is_error", "data"})
_PARTS = frozenset({"tool_call", "server_tool_call", "server_tool_result", "opaque", "audio",
                    "video", "custom"})  # fmt: skip
_THEIRS = {"thinking": "thinking", "tool_result": "tool_use_id", "image": "source"}

# What only OpenAI Chat and the servers that speak it have.
_CHAT_FIELDS = frozenset({"tool_calls", "function_call", "refusal", "annotations", "audio",
                          "reasoning", "reasoning_content", "reasoning_details",
                          "executed_tools"})  # fmt: skip
_TEXT = 2  # a type and a text
_CHAT_PARTS = frozenset({"image_url", "input_audio", "file", "refusal", "video_url"})

_GEMINI_PARTS = frozenset({"text", "functionCall", "functionResponse", "inlineData", "fileData",
                           "executableCode", "codeExecutionResult", "thought", "thoughtSignature",
                           "videoMetadata", "toolCall", "toolResponse"})  # fmt: skip


def dialects_of(dicts: Sequence[dict[str, Any]]) -> list[str]:
    """The dialect of each of these dicts, or `OWN`.

    A dict that several dialects could have written goes with the dicts before it, or after it.
    """
    found = [dialect_of(item) for item in dicts]
    nearby = next((name for name in found if _is_nearby(name)), None)
    named: list[str] = []
    for name, item in zip(found, dicts, strict=True):
        nearby = name if _is_nearby(name) else nearby
        alone = CHAT if _has_marks(item) else OWN
        named.append(name or (nearby if nearby and _fits(item, nearby) else alone))
    return named


def _fits(item: Mapping[str, Any], name: str) -> bool:
    """Whether a dict that could be of several dialects can be of this one."""
    if "type" in item:  # an item of a kind that we don't know
        return name == RESPONSES
    return name in (CHAT, RESPONSES) or item.get("role") != "developer"


def _has_marks(item: Mapping[str, Any]) -> bool:
    """Whether a text in the content has fields of a wire, such as `cache_control`."""
    texts = (part for part in _blocks(item) if part.get("type") == "text")
    return any(len(part) > _TEXT for part in texts)


def _is_nearby(name: str | None) -> bool:
    """Whether a dict of everybody's, which has `content`, can be of the dialect of this one."""
    return name not in (None, OWN, GEMINI)


def dialect_of(item: dict[str, Any]) -> str | None:
    """The dialect that a dict is in, or `OWN`; None where it could be of several."""
    if "parts" in item and not _has_gemini_parts(item):
        return OWN
    name = given_away(item)
    if name is not None:
        return ANTHROPIC if is_answer(item) else name
    if isinstance(item.get("type"), str):
        return None
    return OWN if _has_own_content(item) or _has_own_fields(item) else _dialect_of_message(item)


def _dialect_of_message(item: dict[str, Any]) -> str | None:
    """As `dialect_of`, for a dict with a role and a content."""
    if any(map(is_block, _blocks(item))):
        return ANTHROPIC
    role = item.get("role")
    if not isinstance(role, str) or role not in _WORDS:
        return OWN  # by another name, or none
    if is_ollamas(item):
        return "ollama"
    return None if role in _SPOKEN and not _is_chats(item) else CHAT


def is_answer(item: Mapping[str, Any]) -> bool:
    """Whether this is a response of Anthropic's, which is a message as well."""
    return item.get("type") == "message" and "stop_reason" in item


def _blocks(item: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = item.get("content")
    blocks = content if isinstance(content, list) else ()
    return [block for block in blocks if isinstance(block, dict)]


def _has_gemini_parts(item: Mapping[str, Any]) -> bool:
    parts = item["parts"]
    if not isinstance(parts, list) or has_typed_parts(item):
        return False
    return any(isinstance(part, dict) and _is_geminis(part) for part in parts)


def _is_geminis(part: Mapping[str, Any]) -> bool:
    # Its SDK writes `function_call`, the API `functionCall`; `part_kind` is pydantic-ai's.
    return "part_kind" in part or any(_camel(key) in _GEMINI_PARTS for key in part)


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def _has_own_content(item: Mapping[str, Any]) -> bool:
    content = item.get("content")
    if not isinstance(content, list):
        return isinstance(content, (Part, dict))
    return any(map(_is_own_part, content))


def _is_own_part(part: Any) -> bool:
    kind = part.get("type") if isinstance(part, dict) else None
    if not isinstance(kind, str):
        return True  # a text, a part, or a dict that is known by its field
    return kind in _PARTS or (kind in _THEIRS and _THEIRS[kind] not in part)


def _has_own_fields(item: Mapping[str, Any]) -> bool:
    calls = item.get("tool_calls")
    if isinstance(calls, list) and any(map(_is_own_call, calls)):
        return True
    if "tool_call_id" in item and (not _RESULT.isdisjoint(item) or item.get("role") == "function"):
        return True
    if has_own_details(item.get("reasoning_details")):
        return True
    return "dialect_extras" in item or not _CAMEL.isdisjoint(item)


def _is_own_call(call: Any) -> bool:
    """Whether a call is flat, carries a signature as our shapes do, or has no name."""
    if not isinstance(call, dict) or "name" in call or "signature" in call:
        return True
    return call.keys() <= {"id", "type"} or call.get("function") == {}


def _is_chats(item: Mapping[str, Any]) -> bool:
    if not _CHAT_FIELDS.isdisjoint(item):
        return True
    kinds = (part.get("type") for part in _blocks(item))
    return any(isinstance(kind, str) and kind in _CHAT_PARTS for kind in kinds)


# --- bare content


def is_part(wire: Mapping[str, Any]) -> bool:
    """Whether a dict without a type is known by its fields to be a part of a message."""
    return _is_geminis(wire) or any(kind in wire for kind in ("text", *_CHAT_PARTS))


def message_around(content: list[Any]) -> dict[str, Any] | None:
    """The message dict around bare blocks or parts of a dialect; None where they are our own."""
    blocks = [part for part in content if isinstance(part, dict)]
    if not blocks or len(blocks) < len(content):
        return None
    if any(is_block(part) and not _is_own_part(part) for part in blocks):
        return {"content": blocks}
    is_gemini = all("type" not in part and _is_geminis(part) for part in blocks)
    is_text = all(part.keys() == {"text"} for part in blocks)
    return {"parts": blocks} if is_gemini and not is_text else None


def is_message(wire: Mapping[str, Any]) -> bool:
    """Whether a dict describes a message, or an item of Responses that stands for one."""
    return is_own_message(wire) or given_away(wire) is not None
