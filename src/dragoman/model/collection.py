"""`Messages`: an immutable sequence of messages.

Appending is cheap: a sequence and those derived from it by appending share one list, of which each
sees a prefix. Only the longest of them can grow in place; appending to the others copies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import dropwhile, islice, takewhile
from threading import Lock
from typing import Any, Protocol, Self, TypeVar, overload, runtime_checkable

from dragoman.errors import InvalidInputError
from dragoman.model import comparison, document, inputs, merging, shapes
from dragoman.model.content import AnyPart
from dragoman.model.jsontext import JsonText
from dragoman.model.messages import Message, settle_all
from dragoman.model.roles import Role
from dragoman.model.tool_calls import ToolCall
from dragoman.model.value import expect

T = TypeVar("T")
Roles = Role | str | Iterable[Role | str]

_growing = Lock()
_ABSENT: Any = object()


@runtime_checkable
class ProvidesMessages(Protocol):
    """An object that can be converted to `Messages`."""

    def to_messages(self) -> Messages:
        """Returns the messages."""
        ...


class Messages(Sequence[Message]):
    """An immutable sequence of messages.

    >>> conversation = Messages.from_any(["Hello!", {"role": "assistant", "content": "Hi."}])
    >>> len(conversation), conversation[-1].text
    (2, 'Hi.')
    >>> [message.text for message in conversation.append(Message.user("Bye."))]
    ['Hello!', 'Hi.', 'Bye.']
    """

    __slots__ = ("_length", "_shared")

    _shared: list[Message]
    _length: int

    def __init__(self, *messages: Message) -> None:
        for message in messages:
            expect(message, Message, "an item of Messages")
        self._shared = list(messages)
        self._length = len(messages)

    # --- constructors

    @classmethod
    def of(cls, messages: Iterable[Message]) -> Self:
        """Creates a sequence from any iterable of messages."""
        return cls(*messages)

    @classmethod
    def empty(cls) -> Self:
        """An empty sequence."""
        return cls()

    @classmethod
    def from_text(cls, text: str, role: Role | str = Role.USER) -> Self:
        """Creates a sequence of one message with this text."""
        expect(text, str, "the text of a message")
        return cls(Message.from_any(text, role))

    @classmethod
    def from_any(cls, value: Any) -> Self:
        """Converts common input types to `Messages`.

        Accepts a single value of any type that `Message.from_any` accepts, or a list of such values
        in any mixture. Dicts in the same dialect are read together, so that tool results find their
        calls. Also accepts an object with `to_messages()`, a `Request`, a request body, and JSON
        bytes. Any other type raises `InvalidInputError`.
        """
        kind = type(value)
        if issubclass(kind, Messages):
            return value if isinstance(value, cls) else cls.wrapping(value)
        if issubclass(kind, (str, Message)) or inputs.is_plain(value):
            return cls(Message.from_any(value))
        if (kind is list or kind is tuple) and _are_plain(value):
            return cls.wrapping([Message.from_any(item) for item in value])
        if callable(getattr(kind, "to_messages", None)):
            provided = value.to_messages()
            if isinstance(provided, Messages):
                return provided if isinstance(provided, cls) else cls.wrapping(provided)
        return cls.wrapping(inputs.reader().messages(value))

    @classmethod
    def from_input(cls, value: Any) -> Self:
        """Like `from_any` for messages and conversations; anything else becomes a text message."""
        is_known = isinstance(value, (Messages, Message)) or any(
            callable(getattr(type(value), name, None)) for name in ("to_messages", "to_message")
        )
        if is_known:
            return cls.from_any(value)
        return cls(Message.from_input(value))

    @classmethod
    def from_json(cls, raw: JsonText) -> Self:
        """Reads the output of `to_json`, or any JSON that `from_any` accepts."""
        try:
            read: Messages = document.read(raw, "Messages")
        except InvalidInputError as error:
            problem = str(error)
        else:
            return cls._view(read._shared)
        return cls.wrapping(inputs.from_json(raw, problem))

    @classmethod
    def wrapping(cls, messages: Iterable[Message]) -> Self:
        """Wraps messages without checking the type of each."""
        return cls._view(list(messages))

    @classmethod
    def _view(cls, shared: list[Message], length: int | None = None) -> Self:
        made = cls.__new__(cls)
        made._shared = shared
        made._length = len(shared) if length is None else length
        return made

    # --- inspecting raw input

    @staticmethod
    def is_messages(value: Any) -> bool:
        """Whether the value is a list of dicts that each describe a message."""
        return isinstance(value, (list, tuple)) and all(map(Message.is_message, value))

    @staticmethod
    def becomes_empty(value: Any) -> bool:
        """Whether `from_any` of this value would be empty (see `is_empty`)."""
        return value is None or Messages.from_any(value).is_empty

    @staticmethod
    def becomes_composite(value: Any) -> bool:
        """Whether `from_any` of this value would contain more than plain text."""
        return value is not None and Messages.from_any(value).has_composites

    # --- inspection

    @property
    def first(self) -> Message | None:
        """The first message, or `None`."""
        return self._shared[0] if self._length else None

    @property
    def last(self) -> Message | None:
        """The last message, or `None`."""
        return self._shared[self._length - 1] if self._length else None

    def at(self, index: int) -> Message | None:
        """The message at an index, or `None` if the index is out of range."""
        return self[index] if -self._length <= index < self._length else None

    @property
    def head(self) -> Self:
        """A sequence of only the first message."""
        return self[:1]

    @property
    def tail(self) -> Self:
        """A sequence of only the last message."""
        return self[-1:]

    @property
    def first_role(self) -> Role | None:
        """The role of the first message, or `None`."""
        return self.first.role if self.first else None

    @property
    def last_role(self) -> Role | None:
        """The role of the last message, or `None`."""
        return self.last.role if self.last else None

    @property
    def is_empty(self) -> bool:
        """Whether every message is empty."""
        return all(message.is_empty for message in self)

    @property
    def not_empty(self) -> bool:
        """Whether any message has content."""
        return not self.is_empty

    @property
    def pending_tool_calls(self) -> tuple[ToolCall, ...]:
        """The tool calls without a result, in order.

        >>> call = ToolCall.create("call_1", "weather")
        >>> Messages(Message.user("Rain?"), Message.assistant(call)).pending_tool_calls == (call,)
        True
        """
        pending: dict[str, ToolCall] = {}
        for message in self:
            if message.role.is_system:
                continue
            for result in message.tool_results:
                pending.pop(result.call_id, None)
            if message.role is not Role.TOOL:
                pending |= {call.id: call for call in message.tool_calls}
        return tuple(pending.values())

    @property
    def has_composites(self) -> bool:
        """Whether any message is more than a single plain text."""
        return any(message.is_composite for message in self)

    @property
    def parts(self) -> tuple[AnyPart, ...]:
        """The parts of all messages, in order."""
        return tuple(part for message in self for part in message.parts)

    # --- functional operations

    def map(self, function: Callable[[Message], T]) -> list[T]:
        """The results of calling a function with each message."""
        return [function(message) for message in self]

    def map_text(self, function: Callable[[str], str]) -> Self:
        """Returns a copy with every string that a provider would see as the function returns it.

        See `Message.map_text`; returns itself if nothing changes.

        >>> Messages.from_any("I am Ada.").map_text(str.upper)[0].text
        'I AM ADA.'
        """
        made = [message.map_text(function) for message in self]
        is_same = all(one is other for one, other in zip(made, self, strict=True))
        return self if is_same else self._view(made)

    def filter(self, predicate: Callable[[Message], bool]) -> Self:
        """The messages for which the predicate holds, empty messages included."""
        return self.wrapping(message for message in self if predicate(message))

    def reduce(self, function: Callable[[T, Message], T], initial: T) -> T:
        """Folds all messages into one value, starting with `initial`."""
        return reduce(function, self, initial)

    # --- by role

    def for_roles(self, roles: Roles) -> Self:
        """The messages with any of these roles."""
        wanted = Role.normalize(roles)
        return self.filter(lambda message: message.role in wanted)

    def except_roles(self, roles: Roles) -> Self:
        """The messages with none of these roles."""
        unwanted = Role.normalize(roles)
        return self.filter(lambda message: message.role not in unwanted)

    def head_with_roles(self, roles: Roles) -> Self:
        """The leading messages that have any of these roles."""
        wanted = Role.normalize(roles)
        return self.wrapping(takewhile(lambda message: message.role in wanted, self))

    def tail_after_roles(self, roles: Roles) -> Self:
        """All messages from the first one that has none of these roles."""
        wanted = Role.normalize(roles)
        return self.wrapping(dropwhile(lambda message: message.role in wanted, self))

    def remap_roles(self, mapping: Mapping[Any, Role | str]) -> Self:
        """Replaces roles, such as `{"developer": "system"}`; other roles stay."""
        roles = {Role.parse(old): Role.parse(new) for old, new in mapping.items()}
        return self.wrapping(
            message.with_role(roles[message.role]) if message.role in roles else message
            for message in self
        )

    # --- changed copies

    def append(self, message: Any) -> Self:
        """Returns a copy with a message added at the end, in amortised constant time."""
        added = Message.from_any(message)
        with _growing:  # if two threads append to the same sequence, one of them must copy
            if len(self._shared) == self._length:
                self._shared.append(added)
                return self._view(self._shared)
        return self._view([*self, added])

    def extend(self, messages: Any) -> Self:
        """Returns a copy with messages added at the end."""
        longer = self
        for message in self.from_any(messages):
            longer = longer.append(message)
        return longer

    def prepend(self, messages: Any) -> Self:
        """Returns a copy with messages added at the beginning."""
        return self.wrapping((*self.from_any(messages), *self))

    def replace_last(self, message: Any) -> Self:
        """Returns a copy with the last message replaced; if empty, the message is added."""
        return self[:-1].append(message)

    def without_first(self) -> Self:
        """Returns a copy without the first message."""
        return self[1:]

    def without_last(self) -> Self:
        """Returns a copy without the last message."""
        return self[:-1]

    def without_empty(self) -> Self:
        """Returns a copy without empty messages."""
        return self.filter(lambda message: not message.is_empty)

    def reversed(self) -> Self:
        """Returns a copy in reverse order."""
        return self[::-1]

    def with_field(self, key: str, value: Any) -> Self:
        """Returns a copy with a field set on the last part of the last message."""
        if self.last is None:
            msg = "can't set a field: there are no messages"
            raise InvalidInputError(msg)
        return self.replace_last(self.last.with_field(key, value))

    def append_field(self, key: str, value: Any) -> Self:
        """An alias of `with_field`."""
        return self.with_field(key, value)

    def merged_per_role(self, separator: str = "\n\n") -> Self:
        """Merges consecutive messages of the same role into one message each."""
        return self.wrapping(merging.merged_per_role(self, separator))

    def consolidated(self) -> Self:
        """Combines the results of each round of tool calls into one message."""
        return self.wrapping(merging.consolidated(self))

    def split_results(self) -> Self:
        """Splits messages so that each holds a single tool result."""
        return self.wrapping(merging.split_results(self))

    # --- lookup by field

    def find(self, key: str, value: Any) -> int | None:
        """The index of the first message whose field `key` equals `value`, or `None`.

        The fields are those of `Message.field`. A missing field never matches.
        """
        places = enumerate(self)
        return next((i for i, each in places if each.field(key, _ABSENT) == value), None)

    def get(self, key: str, value: Any) -> Message | None:
        """The first message whose field `key` equals `value`, or `None`."""
        index = self.find(key, value)
        return None if index is None else self[index]

    def has(self, key: str, value: Any) -> bool:
        """Whether any message has a field `key` that equals `value`."""
        return self.find(key, value) is not None

    def set(self, key: str, value: Any, message: Any) -> Self:
        """Replaces the first message whose field `key` equals `value`, or appends the message."""
        index = self.find(key, value)
        if index is None:
            return self.append(message)
        return self.wrapping((*self[:index], Message.from_any(message), *self[index + 1 :]))

    def remove(self, key: str, value: Any) -> Self:
        """Returns a copy without the first message whose field `key` equals `value`."""
        index = self.find(key, value)
        return self if index is None else self.wrapping((*self[:index], *self[index + 1 :]))

    # --- serialisation

    def to_json(self) -> bytes:
        """Serialises the conversation to versioned JSON, which `from_json` reads."""
        items = tuple(self)
        settle_all(items)
        return document.write("Messages", items)

    def to_list(
        self, *, skip_empty: bool = True, shape: shapes.Shape = "openai", metadata: bool = True
    ) -> list[dict[str, Any]]:
        """The messages as dicts, in one of the shapes of `Message.to_dict`.

        In shapes where a message holds a single tool result, a message with several results
        becomes several dicts (see `split_results`).
        """
        kept = (message for message in self if not (skip_empty and message.is_empty))
        each = kept if shape == "canonical" else merging.split_results(kept)
        return [message.to_dict(shape=shape, metadata=metadata) for message in each]

    def to_text(
        self, separator: str = "\n", renderer: Callable[[Message], str] | None = None
    ) -> str:
        """Joins all texts; raises if a message is more than plain text and no renderer is given."""
        if renderer is None and self.has_composites:
            msg = "some messages are more than plain text; use to_list, or pass a renderer"
            raise InvalidInputError(msg)
        return separator.join((renderer or str)(message) for message in self.without_empty())

    def to_messages(self) -> Self:
        """Returns itself."""
        return self

    # --- sequence protocol

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    def __getitem__(self, index: int | slice) -> Message | Self:
        if isinstance(index, slice):
            start, stop, step = index.indices(self._length)
            if start == 0 and step == 1:  # a prefix: nothing to copy
                return self._view(self._shared, stop)
            if step > 0:  # avoids copying everything before it
                return self._view(self._shared[start:stop:step])
            return self._view(self._shared[: self._length][index])
        if not -self._length <= index < self._length:
            msg = "message index out of range"
            raise IndexError(msg)
        return self._shared[index if index >= 0 else index + self._length]

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Message]:
        return islice(self._shared, self._length)

    def __add__(self, other: Any) -> Self:
        if not isinstance(other, Iterable) or isinstance(other, (str, bytes, Mapping)):
            return NotImplemented
        return self.extend(other)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Messages):
            return NotImplemented
        return self._length == len(other) and all(
            mine == theirs for mine, theirs in zip(self, other, strict=True)
        )

    def __hash__(self) -> int:
        return hash(tuple(self))

    def equal_ignoring_call_ids(self, other: object) -> bool:
        """Compares like `==`, but lets tool call ids differ, as they do across providers.

        The ids must correspond one to one: a result for a different call is a difference.

        >>> answered = Messages(Message.tool("call_1", "noon"))
        >>> renamed = Messages(Message.tool("toolu_1", "noon"))
        >>> answered == renamed, answered.equal_ignoring_call_ids(renamed)
        (False, True)
        """
        return isinstance(other, Messages) and comparison.equal_ignoring_call_ids(self, other)

    def _repr_markdown_(self) -> str:
        """The conversation as Markdown, for notebooks."""
        from dragoman.model.markdown import markdown

        return markdown(self)

    def __repr__(self) -> str:
        return f"Messages({', '.join(repr(message) for message in self)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(self)

    def __copy__(self) -> Self:
        return self  # immutable

    def __deepcopy__(self, _memo: dict[int, Any]) -> Self:
        return self


def _are_plain(items: list[Any] | tuple[Any, ...]) -> bool:
    """Whether all items are texts, messages, or dicts of a role and a text."""
    kinds = set(map(type, items))
    if kinds == {str}:
        # Two texts in a tuple may be a role and its text: `("human", "Hi")`.
        return type(items) is list or len(items) != 2  # noqa: PLR2004 - a pair
    if not all(kind in (str, dict) or issubclass(kind, Message) for kind in kinds):
        return False
    return dict not in kinds or all(inputs.is_plain(item) for item in items if type(item) is dict)


document.register("Messages", list[Message], Messages.wrapping)
