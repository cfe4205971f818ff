"""Telling what a piece of JSON is: a message, a list of them, a request, a response, ours.

`translation.detect` tells the dialect of a body; here it is about what is not known to be one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from dragoman.errors import InvalidInputError
from dragoman.model.collection import Messages
from dragoman.model.conversation import ConversationHistory
from dragoman.model.jsontext import JsonText
from dragoman.model.messages import Message
from dragoman.model.requests import Request
from dragoman.model.responses import Response
from dragoman.model.store import MessageStore
from dragoman.wire.dialect import dialect, dialects
from dragoman.wire.translation import detect

Conversation = Request | Response | Messages

# Fields that only responses have, in any dialect; and those that requests may have too, but never
# instead of their messages.
_ANSWERS = frozenset({"choices", "candidates", "promptFeedback", "usageMetadata", "output",
                      "stop_reason"})  # fmt: skip
_ALSO_ANSWERS = frozenset({"usage", "message", "done"})
# Fields that messages have, and items that stand in for them.
_SAYINGS = frozenset({"role", "parts", "type"})
_ITEMS = frozenset({"function_call", "function_call_output", "reasoning", "item_reference",
                    "custom_tool_call", "custom_tool_call_output", "web_search_call",
                    "file_search_call", "tool_search_call", "tool_search_output",
                    "code_interpreter_call", "image_generation_call", "computer_call",
                    "computer_call_output", "mcp_call", "mcp_list_tools", "mcp_approval_request",
                    "mcp_approval_response", "local_shell_call", "local_shell_call_output",
                    "shell_call", "shell_call_output", "apply_patch_call",
                    "apply_patch_call_output", "compaction"})  # fmt: skip
_ALL_ITEMS = _ITEMS | {"message"}  # which is also what Anthropic calls a response
_ITEM_PARTS = frozenset({"input_text", "output_text", "input_image", "input_file"})


def is_canonical(wire: Mapping[str, Any]) -> bool:
    """Whether this is a document of ours."""
    return "dragoman" in wire and isinstance(wire.get("kind"), str)


def is_response(wire: Mapping[str, Any], messages_field: str) -> bool:
    """Whether this is a response and no request of a dialect that has its messages there."""
    if not _ANSWERS.isdisjoint(wire):
        # It may still repeat what it was asked (Responses, whose tool results have an `output`).
        return not _is_one_of(wire, _ITEMS)
    return messages_field not in wire and not _ALSO_ANSWERS.isdisjoint(wire)


def is_message(wire: Any) -> bool:
    """Whether this is a message or an item, not a document."""
    if not isinstance(wire, dict) or _SAYINGS.isdisjoint(wire) or is_canonical(wire):
        return False
    return not is_response(wire, "") and message_fields().isdisjoint(wire)


def dialect_of_history(items: Sequence[Any]) -> str:
    """The dialect of a list of messages."""
    found = next((name for item in items if (name := given_away(item)) is not None), None)
    return found or detect({"messages": items})


def has_typed_parts(item: Any) -> bool:
    """Whether this is a message as our own documents have them."""
    parts = item.get("parts") if isinstance(item, dict) else None
    part = parts[0] if isinstance(parts, (list, tuple)) and parts else None
    return isinstance(part, dict) and "type" in part


@cache
def message_fields() -> frozenset[str]:
    """Where requests have their messages, in any dialect."""
    return frozenset(dialect(name).messages_field for name in dialects())


def given_away(item: Any) -> str | None:
    """The dialect of a message or an item that only Gemini or Responses has; None for others."""
    if not isinstance(item, dict):
        return None
    if isinstance(item.get("parts"), list):
        _expect_no_pydantic_ai(item["parts"])
        return "gemini"
    content = item.get("content")
    parts = content if isinstance(content, list) else ()
    is_item = _is_one_of(item, _ALL_ITEMS)
    is_item = is_item or any(_is_one_of(part, _ITEM_PARTS) for part in parts)
    return "openai-responses" if is_item else None


def _expect_no_pydantic_ai(parts: list[Any]) -> None:
    """Raise for its messages, which have parts as Gemini's do: read so, nothing would be left."""
    if any(isinstance(part, dict) and "part_kind" in part for part in parts):
        msg = "these are dumps of pydantic-ai: dragoman.interop.from_pydantic_ai reads them"
        raise InvalidInputError(msg)


def _is_one_of(wire: Any, kinds: frozenset[str]) -> bool:
    kind = wire.get("type") if isinstance(wire, Mapping) else None
    return isinstance(kind, str) and kind in kinds


# --- documents of ours

_CANONICAL: dict[str, Callable[[JsonText], Conversation]] = {
    "Request": Request.from_json,
    "Response": Response.from_json,
    "Message": lambda raw: Messages(Message.from_json(raw)),
    "Messages": Messages.from_json,
    "ConversationHistory": lambda raw: ConversationHistory.from_json(raw).messages,
    "MessageStore": lambda raw: MessageStore.from_json(raw).to_messages(),
}


def read_canonical(kind: str, raw: JsonText) -> Conversation:
    """The conversation in a document of ours, of the kind that it says; raises for others."""
    read = _CANONICAL.get(kind)
    if read is None:
        msg = f"a document of ours is no conversation unless it is a {', '.join(_CANONICAL)}"
        raise InvalidInputError(msg)
    return read(raw)
