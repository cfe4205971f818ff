"""Classifies JSON: a message, a list of messages, a request, a response, or a canonical document.

`detection` finds the dialect of a body; this module handles JSON not yet known to be a body.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dragoman.errors import InvalidInputError
from dragoman.model.collection import Messages
from dragoman.model.conversation import ConversationHistory
from dragoman.model.jsontext import JsonText
from dragoman.model.messages import Message
from dragoman.model.requests import Request
from dragoman.model.responses import Response
from dragoman.model.store import MessageStore
from dragoman.wire.detection import evidence

Conversation = Request | Response | Messages


def is_canonical(wire: Mapping[str, Any]) -> bool:
    """Whether this is a canonical document."""
    return "dragoman" in wire and isinstance(wire.get("kind"), str)


def is_response(wire: Mapping[str, Any], messages_field: str) -> bool:
    """Whether this is a response, and not a request with its messages in that field."""
    known = evidence()
    if not known.response_fields.isdisjoint(wire):
        # It may still be a Responses item: tool results there have an `output`.
        kind = wire.get("type")
        return not (isinstance(kind, str) and kind in known.item_types)
    return messages_field not in wire and not known.possible_response_fields.isdisjoint(wire)


def is_message(wire: Any) -> bool:
    """Whether this is a message or an item, not a document."""
    if not isinstance(wire, dict) or is_canonical(wire):
        return False
    known = evidence()
    if known.message_marks.isdisjoint(wire) or not known.message_fields.isdisjoint(wire):
        return False
    return not is_response(wire, "")


def has_typed_parts(item: Any) -> bool:
    """Whether this is a message in canonical form."""
    parts = item.get("parts") if isinstance(item, dict) else None
    part = parts[0] if isinstance(parts, (list, tuple)) and parts else None
    return isinstance(part, dict) and "type" in part


# --- canonical documents

_CANONICAL: dict[str, Callable[[JsonText], Conversation]] = {
    "Request": Request.from_json,
    "Response": Response.from_json,
    "Message": lambda raw: Messages(Message.from_json(raw)),
    "Messages": Messages.from_json,
    "ConversationHistory": lambda raw: ConversationHistory.from_json(raw).messages,
    "MessageStore": lambda raw: MessageStore.from_json(raw).to_messages(),
}


def read_canonical(kind: str, raw: JsonText) -> Conversation:
    """Read the conversation in a canonical document; raises for kinds that hold none."""
    read = _CANONICAL.get(kind)
    if read is None:
        msg = f"not a conversation: expected a canonical {', '.join(_CANONICAL)}"
        raise InvalidInputError(msg)
    return read(raw)
