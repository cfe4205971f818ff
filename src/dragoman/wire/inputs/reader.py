"""The reader of user input: converts it to messages and requests.

`Message.from_any`, `Messages.from_any` and everything built on them use it for input that the model
layer can't read itself; models and agents use it for requests and histories.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

from dragoman.errors import InvalidInputError
from dragoman.model.collection import Messages
from dragoman.model.jsontext import JsonText, dumps, loads
from dragoman.model.messages import Message
from dragoman.model.requests import Request
from dragoman.model.responses import Response
from dragoman.wire.detection import detect, evidence
from dragoman.wire.dialect import dialect
from dragoman.wire.documents import (
    is_canonical,
    is_response,
    read_canonical,
)
from dragoman.wire.inputs import message_dialects
from dragoman.wire.inputs.items import (
    all_slots,
    content_of,
    is_content,
    is_pair,
    is_several,
    slots_of,
)
from dragoman.wire.inputs.message_dicts import Slot, decoded, paired, runs_of, with_system
from dragoman.wire.inputs.objects import plain

_A_RESPONSE = "a response is not a history; pass the messages that led to it, and its own message"
_DOCUMENT = re.compile(r'\s*\{\s*"dragoman"\s*:')
_BINARY = (bytes, bytearray, memoryview)


class Reader:
    """Reads messages and conversations; see `dragoman.model.inputs`."""

    def message(self, value: object) -> Message:
        """The single message that a value represents; raises if it is none, or several."""
        if value is None:
            msg = "None is not a message"
            raise InvalidInputError(msg)
        if isinstance(value, (list, tuple)) and not is_pair(value) and is_content(value):
            return _read([content_of(value)])[0] if value else Message.empty()
        messages = self.messages(value)
        if len(messages) == 1:
            return messages[0]
        msg = f"expected one message, got {len(messages)}; use Messages.from_any for several"
        raise InvalidInputError(msg)

    def messages(self, value: object) -> Messages:
        """The conversation that a value represents."""
        if value is None:
            msg = "None is not a conversation"
            raise InvalidInputError(msg)
        if isinstance(value, Request):
            return Messages.wrapping(with_system(value))
        if isinstance(value, _BINARY):
            return Messages.wrapping(_read_json(*_loaded(value)))
        if isinstance(value, Mapping):
            return Messages.wrapping(_read_json(plain(value)))
        if is_several(value) and not is_pair(value):
            return Messages.wrapping(_read(all_slots(value)))
        return Messages.wrapping(_read(slots_of(value)))

    def from_json(self, raw: JsonText) -> Messages:
        """The conversation in JSON that is not a canonical document."""
        return Messages.wrapping(_read_json(loads(raw), raw))

    def is_message(self, value: Mapping[str, Any]) -> bool:
        """Whether a dict describes a message, in any dialect."""
        return message_dialects.is_message(dict(value))

    def dialect_of_part(self, value: Mapping[str, Any]) -> str | None:
        """The dialect of a part of a message; None if it may be our own."""
        return message_dialects.dialect_of_part(value)


INPUT_READER = Reader()


def read_history(value: object) -> Messages:
    """Like `Messages.from_any`, but a text may also be a canonical document."""
    if isinstance(value, str) and _DOCUMENT.match(value):
        return Messages.wrapping(_read_json(loads(value), value))
    return Messages.from_any(value)


def read_request(value: object) -> Request:
    """A request from a `Request`, a request body, or anything that `Messages.from_any` accepts."""
    if isinstance(value, Request):
        return value
    held: Request | Sequence[Message]
    if isinstance(value, Mapping):
        held = _held_in(plain(value))
    elif isinstance(value, _BINARY):
        wire, raw = _loaded(value)
        held = _held_in(wire, raw) if isinstance(wire, dict) else _read_json(wire, raw)
    else:
        held = Messages.from_any(value)
    return held if isinstance(held, Request) else Request(messages=tuple(held))


# --- JSON


def _loaded(raw: bytes | bytearray | memoryview) -> tuple[Any, bytes]:
    """Parse bytes as JSON."""
    text = bytes(raw)
    try:
        return loads(text), text
    except InvalidInputError as error:
        problem = str(error)
    msg = f"bytes must be JSON: {problem}; wrap media in an Image, Audio, Video or File"
    raise InvalidInputError(msg)


def _read_json(wire: Any, raw: JsonText | None = None) -> list[Message]:
    if isinstance(wire, dict):
        held = _held_in(wire, raw)
        return with_system(held) if isinstance(held, Request) else held
    if isinstance(wire, list):
        return _read(all_slots(wire))
    msg = "the JSON of a conversation must be an object, or an array of messages"
    raise InvalidInputError(msg)


def _held_in(wire: dict[str, Any], raw: JsonText | None = None) -> Request | list[Message]:
    """The content of a dict: a canonical document, a request body, or one message."""
    if is_canonical(wire):
        return _document(wire, raw)
    if wire.keys() == {"messages"} and isinstance(wire["messages"], list):
        return _read(all_slots(wire["messages"]))
    request = _request_in(wire)
    return _read(slots_of(wire)) if request is None else request


def _document(wire: Mapping[str, Any], raw: JsonText | None) -> Request | list[Message]:
    read = read_canonical(wire["kind"], dumps(wire) if raw is None else raw)
    if isinstance(read, Response):
        raise InvalidInputError(_A_RESPONSE)
    return read if isinstance(read, Request) else list(read)


def _request_in(wire: dict[str, Any]) -> Request | None:
    """The request in a body; None if it is a message, or a part of one."""
    if message_dialects.is_message(wire) or isinstance(wire.get("type"), str):
        return None
    if evidence().message_fields.isdisjoint(wire) and message_dialects.is_part(wire):
        return None
    spoken = None
    with suppress(InvalidInputError):
        spoken = dialect(detect(wire))
    if is_response(wire, spoken.messages_field if spoken else ""):
        raise InvalidInputError(_A_RESPONSE)
    return decoded(spoken, wire) if spoken else None


def _read(slots: Iterable[Slot]) -> list[Message]:
    """Decode the dicts among the messages, and match all results to their calls."""
    given = list(slots)
    if all(isinstance(slot, Message) for slot in given):
        return cast("list[Message]", given)
    return paired(list(runs_of(given)))
