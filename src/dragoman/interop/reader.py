"""The reader of user input: converts it to messages and requests.

`Message.from_any`, `Messages.from_any` and everything built on them use it for input that the model
layer can't read itself; models and agents use it for requests and histories.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, ValuesView
from contextlib import suppress
from io import IOBase
from itertools import groupby
from typing import Any, NoReturn, TypeGuard, cast

from dragoman.errors import InvalidInputError
from dragoman.interop import message_dialects
from dragoman.interop.message_dialects import is_message, message_around
from dragoman.interop.message_dicts import Slot, decoded, paired, runs_of, with_system
from dragoman.interop.objects import peer_of, plain, read_object, read_peer_objects
from dragoman.model.collection import Messages
from dragoman.model.content import parts_from
from dragoman.model.inputs import role_of
from dragoman.model.jsontext import JsonText, dumps, loads
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import Part
from dragoman.model.requests import Request
from dragoman.model.responses import Response
from dragoman.model.roles import Role
from dragoman.model.value import expect
from dragoman.wire.detection import detect, evidence
from dragoman.wire.dialect import dialect
from dragoman.wire.documents import (
    is_canonical,
    is_response,
    read_canonical,
)

_SUPPORTED = (
    "supported are texts, parts, Message objects, (role, text) pairs, dicts in a known shape, and"
    " the message objects of known libraries (docs/guides/import-conversations.md)"
)
_BY_TEXT = "from_input accepts any object and uses its text"
_SEE_DOCS = "see docs/guides/import-conversations.md for what can be read, and how to read the rest"


def slots_of(item: Any) -> Iterable[Slot]:
    """The messages in one item of a conversation, and dicts that are still to be decoded."""
    kind = type(item)
    if issubclass(kind, Message):
        return (item,)
    if issubclass(kind, (str, Part)):
        return (said(parts_from(item)),)
    if issubclass(kind, Mapping):
        return (_slot_of(plain(item)),)
    if is_pair(item):
        return (make_message(Role.parse(item[0]), parts_from(item[1])),)
    if issubclass(kind, (list, tuple)):
        return (content_of(item),)
    return provided(item)


def said(parts: tuple[Any, ...]) -> Message:
    """A message of bare parts, with the role that fits them."""
    return make_message(role_of(parts), parts)


def is_pair(item: Any) -> TypeGuard[tuple[str, str]]:
    """Whether this is a pair of role and text, as in LangChain: `("human", "Hi")`."""
    if not (isinstance(item, tuple) and [type(piece) for piece in item] == [str, str]):
        return False
    with suppress(InvalidInputError):
        return bool(Role.parse(item[0]))
    return False


def _slot_of(wire: dict[str, Any]) -> Slot:
    """A message dict, or a message around a bare part; raises for documents and other dicts."""
    if is_message(wire):
        return wire
    if is_canonical(wire):
        msg = "a list can't contain a canonical document; read it alone with Messages.from_any"
        raise InvalidInputError(msg)
    return _around([wire])


def is_content(items: Sequence[Any]) -> bool:
    """Whether a list is the content of one message rather than several messages."""
    return all(
        issubclass(type(item), (str, Part))
        or (issubclass(type(item), Mapping) and not is_message(dict(item)))
        for item in items
    )


def content_of(items: Sequence[Any]) -> Slot:
    """A message around a list of content: texts, parts, and dicts of parts."""
    if not items or not is_content(items):
        refuse(items)
    return _around(plain(items))


def _around(content: list[Any]) -> Slot:
    """A message around bare content, in a dialect's form or our own."""
    wire = message_around(content)
    if wire is not None:
        return wire
    try:
        return said(parts_from(content))
    except InvalidInputError as error:
        problem = str(error)
    msg = f"this is neither a message nor message content ({problem}); {_SEE_DOCS}"
    raise InvalidInputError(msg)


# --- objects


def provided(item: Any) -> Iterable[Slot]:
    """The messages of an object with `to_message` or `to_messages`, or of a known library."""
    if isinstance(item, (type, Response)):  # a class has the methods of its instances
        refuse(item)
    known = read_object(item)
    if known is not None:
        found = known if isinstance(known, list) else [known]
        return [plain(each) if isinstance(each, dict) else each for each in found]
    if callable(getattr(type(item), "to_message", None)):
        message = item.to_message()
        expect(message, Message, "the result of to_message()")
        return (message,)
    if callable(getattr(type(item), "to_messages", None)):
        messages: Messages = item.to_messages()
        expect(messages, Messages, "the result of to_messages()")
        return messages
    return refuse(item)


def is_several(value: Any) -> TypeGuard[Iterable[Any]]:
    """Whether this is a sequence of items, or an iterator over them.

    Arrays, files, sets and other iterables are not taken for conversations.
    """
    kind = type(value)  # not `__class__`, which a mock may fake
    if issubclass(kind, (*_BINARY, str, IOBase)) or hasattr(kind, "read"):
        return False
    if callable(getattr(kind, "to_message", None)):
        return False  # it represents a single message, as `Content` does
    if issubclass(kind, (Sequence, ValuesView)):
        return True
    return issubclass(kind, Iterator) and iter(value) is value


def refuse(value: Any) -> NoReturn:
    """Raise for a value that is not a message, naming its type."""
    kind = f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__
    msg = f"a message can't be made from {kind}{_hint(value)}; {_SUPPORTED}; {_BY_TEXT}"
    raise InvalidInputError(msg)


def _hint(value: Any) -> str:
    if isinstance(value, type):
        return ""
    if isinstance(value, _BINARY):
        return " among other messages; wrap media in an Image, Audio, Video or File"
    if isinstance(value, Response):
        return "; use its `message`"
    with suppress(Exception):  # a property of an unknown object may raise anything
        if isinstance(value.messages, Messages):
            return "; use its `messages`"
    return ""


def all_slots(items: Iterable[Any]) -> Iterator[Slot]:
    """The messages and dicts of a list, in order; unreadable items raise immediately."""
    for peer, run in groupby(items, lambda item: peer_of(type(item))):
        if peer is None:
            for item in run:
                yield from slots_of(item)
        else:  # such objects must be read together: instructions repeat, results refer to calls
            yield from read_peer_objects(list(run))


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
