"""Content without a message, as one value."""

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
    """The parts of what is said: a tuple of them, made from whatever people write as content.

    >>> content = Content("See:", {"type": "image_url", "image_url": {"url": "https://x/y.png"}})
    >>> content, content.add("And?").to_text(" ")
    (Content(Text(4 chars), Image(url)), 'See: And?')

    It may stand wherever content is taken: `Message.user(content)`, `Message.from_any(content)`.
    """

    __slots__ = ()

    def __new__(cls, *content: Any) -> Self:
        """Texts, parts, dicts of parts, and lists of those."""
        parts = tuple(part for item in content for part in parts_from(item))
        for part in parts:
            part.check()
        return super().__new__(cls, parts)

    @classmethod
    def empty(cls) -> Self:
        """No parts."""
        return cls()

    @classmethod
    def from_any(cls, value: Any) -> Self:
        """Content from a text, parts, dicts, a message or its dict; None is no content."""
        if isinstance(value, Mapping) and is_message(value):
            value = Message.from_dict(value)
        if isinstance(value, Message):
            value = value.content_parts
        return value if isinstance(value, cls) else cls(value)

    # --- looking at it

    @property
    def first(self) -> AnyPart | None:
        """The first part."""
        return self.at(0)

    @property
    def last(self) -> AnyPart | None:
        """The last part."""
        return self.at(-1)

    def at(self, index: int) -> AnyPart | None:
        """The part at a place, or None where there is no such place."""
        return self[index] if -len(self) <= index < len(self) else None

    @property
    def is_null(self) -> bool:
        """Whether there are no parts at all."""
        return not self

    @property
    def is_empty(self) -> bool:
        """Whether it says nothing."""
        return all(part.is_empty for part in self)

    @property
    def is_simple(self) -> bool:
        """Whether it is one plain text and nothing else."""
        return len(self) == 1 and _is_plain(self[0])

    @property
    def is_composite(self) -> bool:
        """Whether it is more than one plain text."""
        return not (self.is_null or self.is_simple)

    # --- changed copies

    def add(self, *content: Any) -> Self:
        """With more at the end."""
        return type(self)(self, *content)

    def replace_last(self, part: Any) -> Self:
        """With another last part; the only one where there was none."""
        return type(self)(self[:-1], part)

    def without_empty(self) -> Self:
        """Without the parts that say nothing."""
        return type(self)([part for part in self if not part.is_empty])

    def with_field(self, key: str, value: Any) -> Self:
        """With a field set on the last part; see `Part.with_field`."""
        if not self:
            msg = "the content has no part to set a field on"
            raise InvalidInputError(msg)
        return self.replace_last(self[-1].with_field(key, value))

    # --- writing it down

    def to_list(self) -> list[dict[str, Any]]:
        """The parts as dicts, in OpenAI's nested shape where that has a form for them."""
        return [part_to_dict(part) for part in self]

    def normalized(self) -> str | list[dict[str, Any]]:
        """`""` for none, a text where that is all, or the dicts of the parts."""
        return str(self) if self.is_null or self.is_simple else self.to_list()

    def to_text(self, separator: str = "\n") -> str:
        """The texts, joined."""
        spoken = [part.text for part in self if isinstance(part, (Text, Refusal, ToolResult))]
        return separator.join(spoken)

    def to_message(self, role: Role | str = Role.USER) -> Message:
        """A message that says this."""
        return make_message(Role.parse(role), tuple(self))

    def to_messages(self) -> Messages:
        """One user message that says this."""
        return Messages(self.to_message())

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"Content({', '.join(map(repr, self))})"


def _is_plain(part: AnyPart) -> bool:
    return isinstance(part, Text) and not part.citations and not own_extras(part.extras)
