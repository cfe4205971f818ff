"""`Content`: the content of a message as a value of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from dragoman.errors import InvalidInputError
from dragoman.model.collection import Messages
from dragoman.model.content import AnyPart, is_message, part_to_dict, parts_from
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import Refusal, Text, own_extras
from dragoman.model.roles import Role
from dragoman.model.tools import ToolResult


class Content(tuple[AnyPart, ...]):
    """Message content: a tuple of parts, created from text, parts or dicts.

    >>> content = Content("See:", {"type": "image_url", "image_url": {"url": "https://x/y.png"}})
    >>> content, content.add("And?").to_text(" ")
    (Content(Text(4 chars), Image(url)), 'See: And?')

    It is accepted wherever content is: `Message.user(content)`, `Message.from_any(content)`.
    """

    __slots__ = ()

    def __new__(cls, *content: Any) -> Self:
        """Takes texts, parts, dicts of parts, and lists of those."""
        parts = tuple(part for item in content for part in parts_from(item))
        for part in parts:
            part.check()
        return super().__new__(cls, parts)

    @classmethod
    def empty(cls) -> Self:
        """Content without parts."""
        return cls()

    @classmethod
    def from_any(cls, value: Any) -> Self:
        """Creates content from text, parts, dicts, a message or its dict; `None` gives no parts."""
        if isinstance(value, Mapping) and is_message(value):
            value = Message.from_dict(value)
        if isinstance(value, Message):
            value = value.content_parts
        return value if isinstance(value, cls) else cls(value)

    # --- inspection

    @property
    def first(self) -> AnyPart | None:
        """The first part, or `None`."""
        return self.at(0)

    @property
    def last(self) -> AnyPart | None:
        """The last part, or `None`."""
        return self.at(-1)

    def at(self, index: int) -> AnyPart | None:
        """The part at an index, or `None` if the index is out of range."""
        return self[index] if -len(self) <= index < len(self) else None

    @property
    def is_null(self) -> bool:
        """Whether there are no parts at all."""
        return not self

    @property
    def is_empty(self) -> bool:
        """Whether every part is empty."""
        return all(part.is_empty for part in self)

    @property
    def is_simple(self) -> bool:
        """Whether it is a single plain text."""
        return len(self) == 1 and _is_plain(self[0])

    @property
    def is_composite(self) -> bool:
        """Whether it is more than a single plain text."""
        return not (self.is_null or self.is_simple)

    # --- changed copies

    def add(self, *content: Any) -> Self:
        """Returns a copy with more content at the end."""
        return type(self)(self, *content)

    def replace_last(self, part: Any) -> Self:
        """Returns a copy with the last part replaced; if empty, the part is added."""
        return type(self)(self[:-1], part)

    def without_empty(self) -> Self:
        """Returns a copy without empty parts."""
        return type(self)([part for part in self if not part.is_empty])

    def with_field(self, key: str, value: Any) -> Self:
        """Returns a copy with a field set on the last part; see `Part.with_field`."""
        if not self:
            msg = "can't set a field: the content has no parts"
            raise InvalidInputError(msg)
        return self.replace_last(self[-1].with_field(key, value))

    # --- serialisation

    def to_list(self) -> list[dict[str, Any]]:
        """The parts as dicts, in OpenAI's nested shape where it can express them."""
        return [part_to_dict(part) for part in self]

    def normalized(self) -> str | list[dict[str, Any]]:
        """`""` if there are no parts, a string for a single plain text, otherwise dicts."""
        return str(self) if self.is_null or self.is_simple else self.to_list()

    def to_text(self, separator: str = "\n") -> str:
        """Joins the texts."""
        spoken = [part.text for part in self if isinstance(part, (Text, Refusal, ToolResult))]
        return separator.join(spoken)

    def to_message(self, role: Role | str = Role.USER) -> Message:
        """A message with this content."""
        return make_message(Role.parse(role), tuple(self))

    def to_messages(self) -> Messages:
        """A sequence of one user message with this content."""
        return Messages(self.to_message())

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"Content({', '.join(map(repr, self))})"


def _is_plain(part: AnyPart) -> bool:
    return isinstance(part, Text) and not part.citations and not own_extras(part.extras)
