"""Reads one input item: a message, or an item of a list of messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, ValuesView
from contextlib import suppress
from io import IOBase
from itertools import groupby
from typing import Any, NoReturn, TypeGuard

from dragoman.errors import InvalidInputError
from dragoman.model.collection import Messages
from dragoman.model.content import parts_from
from dragoman.model.inputs import role_of
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import Part
from dragoman.model.responses import Response
from dragoman.model.roles import Role
from dragoman.model.value import expect
from dragoman.wire.documents import is_canonical
from dragoman.wire.inputs.message_dialects import is_message, message_around
from dragoman.wire.inputs.message_dicts import Slot
from dragoman.wire.inputs.objects import peer_of, plain, read_object, read_peer_objects

_SUPPORTED = (
    "supported are texts, parts, Message objects, (role, text) pairs, dicts in a known shape, and"
    " the message objects of known libraries (docs/guides/import-conversations.md)"
)
_BY_TEXT = "from_input accepts any object and uses its text"
_SEE_DOCS = "see docs/guides/import-conversations.md for what can be read, and how to read the rest"
_BINARY = (bytes, bytearray, memoryview)


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
