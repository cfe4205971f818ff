"""What a document is: a request, a response or a history, in some dialect or in our own form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

from dragoman.cli.splitting import Piece
from dragoman.errors import InvalidInputError
from dragoman.model.collection import Messages
from dragoman.model.conversation import ConversationHistory
from dragoman.model.jsontext import loads
from dragoman.model.requests import Request
from dragoman.model.responses import Response
from dragoman.model.store import MessageStore
from dragoman.wire.dialect import dialect, dialects
from dragoman.wire.translation import detect

AUTO = "auto"
CANONICAL = "canonical"

Conversation = Request | Response | Messages

# Fields that only responses have, in any dialect; and those that requests may have too, but never
# instead of their messages.
_ANSWERS = frozenset({"choices", "candidates", "promptFeedback", "usageMetadata", "output",
                      "stop_reason"})  # fmt: skip
_ALSO_ANSWERS = frozenset({"usage", "message", "done"})
# Fields that messages have, and items that stand in for them.
_SAYINGS = frozenset({"role", "parts", "type"})
_ITEMS = frozenset({"function_call", "function_call_output", "reasoning", "item_reference",
                    "message", "custom_tool_call", "custom_tool_call_output"})  # fmt: skip
_ITEM_PARTS = frozenset({"input_text", "output_text", "input_image", "input_file"})

NO_DOCUMENT = "a document is a JSON object, or an array of messages"
_ONE_MESSAGE = (
    "this is one message; put the messages of a conversation into one array, which is one document"
)


class Document(NamedTuple):
    """What was read, and what it was written in."""

    dialect: str
    value: Conversation


class Reader:
    """Reads documents of one dialect, of our own form (`canonical`), or of any (`auto`)."""

    def __init__(self, source: str = AUTO) -> None:
        self._source = source
        self._dialect = None if source in (AUTO, CANONICAL) else dialect(source)

    def read_piece(self, piece: Piece) -> Document:
        """As `read`, for a piece of an input."""
        if piece.problem is not None:
            raise InvalidInputError(piece.problem)
        return self.read(piece.raw)

    def read(self, raw: bytes) -> Document:
        """The conversation in a document; raises where it is none."""
        wire = loads(raw)
        if isinstance(wire, dict):
            return self._read_object(wire, raw)
        if isinstance(wire, list):
            return self._read_history(wire)
        raise InvalidInputError(NO_DOCUMENT)

    def _read_object(self, wire: dict[str, Any], raw: bytes) -> Document:
        spoken = self._dialect
        if spoken is None:
            if is_canonical(wire):
                return Document(CANONICAL, _read_canonical(wire["kind"], raw))
            if self._source == CANONICAL:
                msg = "this is no document of ours; name its dialect, or say auto"
                raise InvalidInputError(msg)
            if is_message(wire):
                raise InvalidInputError(_ONE_MESSAGE)
            spoken = dialect(detect(wire))
        if is_response(wire, spoken.messages_field):
            return Document(spoken.name, spoken.decode_response(wire))
        if spoken.messages_field not in wire:
            refuse_others(wire)
        return Document(spoken.name, spoken.decode_request(wire))

    def _read_history(self, items: list[Any]) -> Document:
        if self._dialect is None and (self._source == CANONICAL or _has_typed_parts(items)):
            return Document(CANONICAL, Messages.from_any(items))
        spoken = self._dialect or dialect(dialect_of_history(items))
        request = spoken.decode_request({spoken.messages_field: items})
        return Document(spoken.name, Messages.wrapping(request.messages))


def is_canonical(wire: Mapping[str, Any]) -> bool:
    """Whether this is a document of ours."""
    return "dragoman" in wire and isinstance(wire.get("kind"), str)


def is_response(wire: Mapping[str, Any], messages_field: str) -> bool:
    """Whether this is a response and no request of a dialect that has its messages there."""
    if not _ANSWERS.isdisjoint(wire):
        return True  # it may still repeat what it was asked (Responses)
    return messages_field not in wire and not _ALSO_ANSWERS.isdisjoint(wire)


def is_message(wire: Any) -> bool:
    """Whether this is a message or an item, not a document."""
    if not isinstance(wire, dict) or _SAYINGS.isdisjoint(wire) or is_canonical(wire):
        return False
    return not is_response(wire, "") and _message_fields().isdisjoint(wire)


def dialect_of_history(items: list[Any]) -> str:
    """The dialect of a list of messages."""
    found = next((name for item in items if (name := _given_away(item)) is not None), None)
    return found or detect({"messages": items})


@cache
def _message_fields() -> frozenset[str]:
    return frozenset(dialect(name).messages_field for name in dialects())


def _given_away(item: Any) -> str | None:
    """The dialect, where a message can be of one only that has no `messages`."""
    if not isinstance(item, dict):
        return None
    if isinstance(item.get("parts"), list):
        return "gemini"
    content = item.get("content")
    parts = content if isinstance(content, list) else ()
    is_item = _is_one_of(item, _ITEMS) or any(_is_one_of(part, _ITEM_PARTS) for part in parts)
    return "openai-responses" if is_item else None


def _is_one_of(wire: Any, kinds: frozenset[str]) -> bool:
    kind = wire.get("type") if isinstance(wire, dict) else None
    return isinstance(kind, str) and kind in kinds


def _has_typed_parts(items: list[Any]) -> bool:
    """Whether these are messages as our own documents have them."""
    first = items[0] if items else None
    parts = first.get("parts") if isinstance(first, dict) else None
    part = parts[0] if isinstance(parts, list) and parts else None
    return isinstance(part, dict) and "type" in part


def refuse_others(wire: Mapping[str, Any]) -> None:
    """Raise for what is neither a request nor a response."""
    if isinstance(wire.get("error"), (dict, str)):
        msg = "this is a provider's error, neither a request nor a response"
        raise InvalidInputError(msg)
    if is_message(wire):
        raise InvalidInputError(_ONE_MESSAGE)


_CANONICAL: dict[str, Callable[[bytes], Conversation]] = {
    "Request": Request.from_json,
    "Response": Response.from_json,
    "Messages": Messages.from_json,
    "ConversationHistory": lambda raw: ConversationHistory.from_json(raw).messages,
    "MessageStore": lambda raw: MessageStore.from_json(raw).to_messages(),
}


def _read_canonical(kind: str, raw: bytes) -> Conversation:
    read = _CANONICAL.get(kind)
    if read is None:
        msg = f"a document of ours is no conversation unless it is a {', '.join(_CANONICAL)}"
        raise InvalidInputError(msg)
    return read(raw)
