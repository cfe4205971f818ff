"""Reads messages of libraries that have their own conversation model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from dragoman.errors import InvalidInputError
from dragoman.model.collection import Messages
from dragoman.model.messages import Message
from dragoman.wire.inputs.object_data import plain, refuse
from dragoman.wire.inputs.objects import peer_of

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
