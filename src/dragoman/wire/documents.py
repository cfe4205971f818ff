"""Telling what a piece of JSON is: a message, a list of them, a request, a response, ours.

`detection` tells the dialect of a body; here it is about what is not known to be one.
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
    """Whether this is a document of ours."""
    return "dragoman" in wire and isinstance(wire.get("kind"), str)


def is_response(wire: Mapping[str, Any], messages_field: str) -> bool:
    """Whether this is a response and no request of a dialect that has its messages there."""
    known = evidence()
    if not known.response_fields.isdisjoint(wire):
        # It may still be an item of Responses, whose tool results have an `output`.
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
    """Whether this is a message as our own documents have them."""
    parts = item.get("parts") if isinstance(item, dict) else None
    part = parts[0] if isinstance(parts, (list, tuple)) and parts else None
    return isinstance(part, dict) and "type" in part


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
