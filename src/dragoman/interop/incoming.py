"""Reads messages of the vendors' SDKs: their objects, and the dicts of requests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from msgspec.structs import replace

from dragoman.errors import InvalidInputError, WireError
from dragoman.interop.object_data import plain, refuse
from dragoman.interop.objects import peer_of
from dragoman.interop.sdk_objects import nested_wire, read_sdk_object, sdk_wire
from dragoman.model.collection import Messages
from dragoman.model.content import AnyPart
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import Text
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall
from dragoman.wire.dialect import dialect

MessageIn = Callable[[dict[str, Any]], dict[str, Any] | None]
"""Finds the message in a wire response; None if there is none or more than one."""


class Item(NamedTuple):
    """An input item: a wire message, or a decoded one."""

    wire: dict[str, Any] | None
    message: Message | None = None


def items_of(value: Any) -> list[Any]:
    """One or several objects as a list."""
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        return [value]
    if sdk_wire(value) is not None:  # pydantic models are iterable
        return [value]
    return list(value)


def read_item(value: Any, name: str, message_in: MessageIn | None = None) -> Item:
    """Read a message, a dict, or an object of an SDK for this dialect.

    `message_in` finds the message in a response, to be decoded with the messages around it.
    """
    if isinstance(value, Message):
        return Item(None, value)
    if isinstance(value, str):
        return Item(None, make_message(Role.USER, (Text(value),)))
    if isinstance(value, Mapping):
        return Item(plain(value, value, nested_wire))
    found = None if isinstance(value, type) else sdk_wire(value)
    if found is None:
        refuse(value, "is not a message of this library")
    if found[0] != name:
        refuse(value, f"is a message of {found[0]}, not of {name}")
    read = read_sdk_object(value)
    if isinstance(read, Message):
        return Item(None if message_in is None else message_in(found[1]), read)
    return Item(found[1])


def decode_items(items: Iterable[Item], name: str) -> list[Message]:
    """Decode the items; consecutive wire messages are decoded together as a conversation."""
    messages: list[Message] = []
    run: list[Item] = []
    for item in items:
        if item.wire is None:
            messages += _decode_run(run, name)
            run = []
            messages += [] if item.message is None else [item.message]
        else:
            run.append(item)
    return messages + _decode_run(run, name)


def _decode_run(run: list[Item], name: str) -> list[Message]:
    if not run:
        return []
    decoded = list(decode_body({dialect(name).messages_field: [item.wire for item in run]}, name))
    if len(decoded) != len(run):
        return decoded
    return [_with_answer(message, item) for message, item in zip(decoded, run, strict=True)]


def decode_body(body: dict[str, Any], name: str) -> tuple[Message, ...]:
    """Decode the messages in a request body, instructions first."""
    try:
        request = dialect(name).decode_request(body)
    except WireError as error:
        problem = str(error)
    else:
        instructions = (make_message(Role.SYSTEM, request.system),) if request.system else ()
        return (*instructions, *request.messages)
    # The caller's mistake, not a peer's: so not a `WireError`.
    msg = f"the messages can't be read as {name}: {problem}"
    raise InvalidInputError(msg)


def _with_answer(message: Message, item: Item) -> Message:
    """The message of the response, which has more fields, with the call ids of the conversation."""
    if item.message is None:
        return message
    calls = iter(message.tool_calls)

    def named(part: AnyPart) -> AnyPart:
        call = next(calls, None) if isinstance(part, ToolCall) else None
        return part if call is None else replace(part, id=call.id, wire_id=call.wire_id)

    return replace(item.message, parts=tuple([named(part) for part in item.message.parts]))


def read_system(system: Any, field: str, name: str) -> list[Message]:
    """Read instructions that a library has outside the list of messages."""
    if system is None:
        return []
    wire = system if isinstance(system, str) else plain(system, _listed(system), nested_wire)
    return list(decode_body({field: wire, dialect(name).messages_field: []}, name))


def _listed(system: Any) -> Any:
    return system if isinstance(system, (Mapping, list, tuple)) else nested_wire(system)


def read_all(
    value: Any,
    name: str,
    *,
    system: list[Message],
    message_in: MessageIn | None = None,
    then: Callable[[Message], Message] | None = None,
) -> Messages:
    """Read a conversation from one object or several."""
    messages = decode_items([read_item(item, name, message_in) for item in items_of(value)], name)
    read = messages if then is None else [then(message) for message in messages]
    return Messages.wrapping([*system, *read])


Dump = dict[str, Any]


def read_peers(
    value: Any,
    peer: str,
    dump: Callable[[Any], Dump],
    decode: Callable[[Iterable[Mapping[str, Any]]], list[Message]],
) -> Messages:
    """Read a conversation from one or several objects of a library, or dumps of them."""
    is_one = isinstance(value, Mapping) or peer_of(type(value)) == peer
    if not is_one and (isinstance(value, (str, bytes, type)) or not isinstance(value, Iterable)):
        refuse(value, f"is not a message of {peer}")
    dumps = [_dump(item, peer, dump) for item in ([value] if is_one else value)]
    return Messages.wrapping(decode(dumps))


def _dump(item: Any, peer: str, dump: Callable[[Any], Dump]) -> Dump:
    if isinstance(item, Mapping):
        read: Dump = plain(item, item)
        return read
    if isinstance(item, type) or peer_of(type(item)) != peer:
        msg = f"a {type(item).__name__} is not a message of {peer}"
        raise InvalidInputError(msg)
    return dump(item)
