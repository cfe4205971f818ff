"""Decodes requests whose messages are plain from their bytes, by the types that a dialect states.

A body that the types take is read from what they decoded. If only a few messages are odd, or only
the settings, these are read in the general way, from dicts, and put in their place. Whatever may
have more meaning than that (ids that repeat, or are missing) is left to the general decoder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from msgspec import UNSET, MsgspecError, Raw, UnsetType, ValidationError, defstruct
from msgspec.json import Decoder
from msgspec.structs import force_setattr

from dragoman.errors import DragomanError
from dragoman.model.jsontext import plain_decoder
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import Origin
from dragoman.model.requests import BLANK, Request
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolResult
from dragoman.model.value import shallow_copy
from dragoman.wire.call_ids import CallIds
from dragoman.wire.plain.writing import NotPlain
from dragoman.wire.reading import Reading

put = force_setattr
copy = shallow_copy
_MANY = 40
"""So many odd messages are read one by one, whatever the others are."""
_LEAST = 4096
"""The fewest bytes of a body for which it pays to read odd things apart."""
_split = Decoder(dict[str, Raw]).decode
_elements = Decoder(list[Raw]).decode
_decode = Decoder().decode
_ODD = (NotPlain, DragomanError, MsgspecError, UnicodeError, RecursionError)
Ids = list[str]


class Readable(NamedTuple):
    """What a dialect states of plain requests."""

    item: Any
    """The types of plain messages."""
    settings: dict[str, Any]
    """The types of the plain settings, by their names."""
    read: Callable[[Iterable[Any]], tuple[list[Message], Ids]]
    """The messages, and the ids of their calls; raises `NotPlain`."""
    settle: Callable[[Any], dict[str, Any]]
    """The fields of a request, of a body as it was decoded; raises `NotPlain`."""
    decode_message: Callable[[Any, Reading, int], Message]
    """The general decoder of a message, for odd ones."""
    is_first: bool = False
    """Whether requests for other dialects are read this way before heads are looked for."""


def blank(role: Role, origin: Origin, **fields: Any) -> Message:
    """A message to copy: this is several times as fast as making one."""
    return make_message(role, (), origin=origin, **fields)


class Reader:
    """Decodes the requests of one dialect."""

    def __init__(
        self,
        field: str,
        origin: Origin,
        known: Readable,
        decode: Callable[[dict[str, Any]], Request],
    ) -> None:
        """Take the field of the messages, and the general decoder of a request."""
        self._field, self._origin = field, origin
        self._read, self._settle = known.read, known.settle
        self._decode_message = known.decode_message
        self.is_first = known.is_first
        self._decode_rest = decode
        items: Any = list[known.item]  # type: ignore[name-defined]  # a union, as a value
        fields: list[Any] = [(field, items)]
        fields += [(name, kind | UnsetType, UNSET) for name, kind in known.settings.items()]
        self._whole = plain_decoder(
            defstruct("Body", fields, forbid_unknown_fields=True, gc=False)
        ).decode
        self._message = plain_decoder(known.item).decode

    def request(self, raw: bytes) -> Request | None:
        """The request; None if the general decoder must read it."""
        try:
            found = self._whole(raw)
            messages, ids = self._read(getattr(found, self._field))
            if not messages or not _are_distinct(ids):
                return None
            return BLANK.replace_trusted(messages=tuple(messages), **self._settle(found))
        except (NotPlain, ValidationError):
            pass
        except _ODD:
            return None
        return self._read_apart(raw) if len(raw) >= _LEAST else None

    def _read_apart(self, raw: bytes) -> Request | None:
        """Read the messages by their types, and what is odd in the general way."""
        try:
            fields = _split(raw)
            messages = self._mixed(_elements(fields.pop(self._field)))
            if not messages:
                return None
            rest = {name: _decode(value) for name, value in fields.items()}
            request = self._decode_rest({**rest, self._field: []})
        except (*_ODD, KeyError):
            return None
        return request.replace_trusted(messages=tuple(messages))

    def _mixed(self, items: list[Raw]) -> list[Message]:
        """The messages, some of which are odd; raises `NotPlain` if most are."""
        made: list[Message] = []
        ids: Ids = []
        turns: list[Any] = []
        """Plain ones that are not read yet."""
        odd = 0
        for place, item in enumerate(items):
            try:
                turns.append(self._message(item))
                continue
            except ValidationError:
                odd += 1
            if odd > _MANY and 2 * odd > place:
                raise NotPlain
            more, new = self._read(turns)
            message = self._odd(item, place)
            made += [*more, message]
            ids += new
            ids += [part.id for part in message.parts if isinstance(part, ToolCall)]
            turns = []
        more, new = self._read(turns)
        if not _are_distinct(ids + new):
            raise NotPlain
        return made + more

    def _odd(self, item: Raw, place: int) -> Message:
        """An odd message; raises `NotPlain` if it may depend on others."""
        message = self._decode_message(_decode(item), Reading(self._origin, CallIds()), place)
        for part in message.parts:
            if isinstance(part, ToolCall) and part.wire_id is not UNSET:
                raise NotPlain
            if isinstance(part, ToolResult) and not part.call_id:
                raise NotPlain
        return marked(message, self._origin)


def marked(message: Message, here: Origin) -> Message:
    """A message that was just decoded, with its origin: see `Target.owns`."""
    if message.origin is not None:
        return message
    for part in message.parts:
        if part.origin is not None and part.origin.dialect != here.dialect:
            return message  # it contains state that was unwrapped from an envelope
    put(message, "origin", here)
    return message


def _are_distinct(ids: Ids) -> bool:
    return not ids or (len(set(ids)) == len(ids) and "" not in ids)
