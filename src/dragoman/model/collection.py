"""A conversation as a value: an immutable sequence of messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, Self, overload, runtime_checkable

from dragoman.errors import InvalidInputError
from dragoman.model import document
from dragoman.model.jsontext import JsonText
from dragoman.model.messages import Message, settle_all
from dragoman.model.parts import Part
from dragoman.model.value import expect


@runtime_checkable
class ProvidesMessages(Protocol):
    """Anything that can stand for a conversation."""

    def to_messages(self) -> Messages:
        """The messages."""
        ...


class Messages(Sequence[Message]):
    """An immutable sequence of messages.

    >>> conversation = Messages.from_any(["Hello!", {"role": "assistant", "content": "Hi."}])
    >>> len(conversation), conversation[-1].text
    (2, 'Hi.')
    """

    __slots__ = ("_items",)

    def __init__(self, *messages: Message) -> None:
        for message in messages:
            expect(message, Message, "an item of Messages")
        self._items = messages

    @classmethod
    def of(cls, messages: Iterable[Message]) -> Self:
        """From any iterable of messages."""
        return cls(*messages)

    @classmethod
    def from_any(cls, value: Any) -> Self:
        """From a text, a message, dicts of any shape, a list of those, or `to_messages()`."""
        if isinstance(value, ProvidesMessages):
            value = value.to_messages()
        if isinstance(value, cls):
            return value
        if isinstance(value, (str, Mapping, Message, Part)) or hasattr(value, "to_message"):
            return cls(Message.from_any(value))
        if value is None:
            msg = "None is not a conversation"
            raise InvalidInputError(msg)
        if isinstance(value, Iterable) and not isinstance(value, (bytes, bytearray)):
            return cls(*(Message.from_any(item) for item in value))
        return cls(Message.from_any(value))

    def to_json(self) -> bytes:
        """The conversation as a versioned document; see `dragoman.model.document`."""
        settle_all(self._items)
        return document.write("Messages", self._items)

    @classmethod
    def from_json(cls, raw: JsonText) -> Self:
        """The conversation in a document."""
        return cls.wrapping(document.read(raw, "Messages")._items)

    @classmethod
    def wrapping(cls, items: tuple[Message, ...]) -> Self:
        """Around a tuple that is known to hold messages."""
        messages = cls.__new__(cls)
        messages._items = items
        return messages

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    def __getitem__(self, index: int | slice) -> Message | Self:
        if isinstance(index, slice):
            return type(self)(*self._items[index])
        return self._items[index]

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Message]:
        return iter(self._items)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Messages):
            return NotImplemented
        return self._items == other._items

    def __hash__(self) -> int:
        return hash(self._items)

    def __repr__(self) -> str:
        return f"Messages({', '.join(repr(message) for message in self._items)})"


document.register("Messages", tuple[Message, ...], Messages.wrapping)
