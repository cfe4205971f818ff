"""One message of a conversation."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from threading import Lock
from typing import Any, Literal, Protocol, Self, get_args, runtime_checkable

import msgspec
from msgspec.structs import force_setattr

from dragoman.errors import InvalidInputError
from dragoman.model import shapes
from dragoman.model.content import (
    AnyPart,
    is_content,
    is_message,
    part_to_dict,
    parts_from,
    text_of,
)
from dragoman.model.frozen import EMPTY, FrozenDict, thaw
from dragoman.model.ids import new_id
from dragoman.model.jsontext import convert
from dragoman.model.media import Audio, Image, Media
from dragoman.model.parts import Origin, Part, Refusal, Text, Thinking
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolResult
from dragoman.model.usage import FinishReason, Usage
from dragoman.model.value import Value, expect, expect_number, own_mapping, own_tuple

Kind = Literal["system", "developer", "user", "assistant", "tool_call", "tool_result"]
Content = str | Part | Mapping[str, Any] | Iterable[str | Part | Mapping[str, Any]]

_CANONICAL = "canonical"
_DERIVED = frozenset({"kind", "text", "content", "thinking", "tool_call_id"})
_KINDS: dict[Role, Kind] = {
    Role.SYSTEM: "system",
    Role.DEVELOPER: "developer",
    Role.USER: "user",
    Role.TOOL: "tool_result",
}
_PART_KINDS = get_args(AnyPart)
_PART_TYPES = frozenset(_PART_KINDS)
_SYSTEM, _DEVELOPER, _USER = Role.SYSTEM, Role.DEVELOPER, Role.USER
_ASSISTANT, _TOOL = Role.ASSISTANT, Role.TOOL  # an enum member costs 200 ns to look up in 3.11


@runtime_checkable
class ProvidesMessage(Protocol):
    """Anything that can stand for a message."""

    def to_message(self) -> Message:
        """The message."""
        ...


class Message(Value, frozen=True):
    """Who said what: a role and the parts of what was said. Immutable.

    >>> Message.user("What is in this picture?", Image.from_url("https://example.com/cat.png"))
    Message(user, Text(24 chars), Image(url))

    `==` asks whether the same was said: role, name, parts and metadata count, tool arguments by
    value; ids, times, usage, origin and extras don't. `identical` compares everything.
    """

    role: Role
    parts: tuple[AnyPart, ...] = ()
    name: str | None = None
    id: str = ""
    metadata: Mapping[str, Any] = EMPTY
    """The developer's own; stored, never sent to a provider."""
    extras: Mapping[str, Any] = EMPTY
    """By dialect: what the wire's message held that the other fields don't say."""
    origin: Origin | None = None
    usage: Usage | None = None
    finish: FinishReason | None = None
    created_at: float | None = None

    def __post_init__(self) -> None:
        # Runs for every message made or read: the tests are ordered and worded for speed.
        if self.role.__class__ is not Role:
            force_setattr(self, "role", Role.parse(self.role))
        if self.parts.__class__ is not tuple:
            own_tuple(self, "parts", _PART_KINDS)
        for part in self.parts:
            if type(part) is Text:
                if part.text.__class__ is not str:  # a decoder's slip would brick the history
                    part.check()
            elif part.__class__ not in _PART_TYPES:
                own_tuple(self, "parts", _PART_KINDS)
        if self.metadata is not EMPTY:
            own_mapping(self, "metadata")
        if self.extras.__class__ is not FrozenDict:
            own_mapping(self, "extras")

    # --- making one

    @classmethod
    def system(cls, *content: Content, **fields: Any) -> Self:
        """Instructions for the model."""
        return cls._made(_SYSTEM, content, fields)

    @classmethod
    def developer(cls, *content: Content, **fields: Any) -> Self:
        """Instructions for the model, by the application's developer."""
        return cls._made(_DEVELOPER, content, fields)

    @classmethod
    def user(cls, *content: Content, **fields: Any) -> Self:
        """What the user says: text, media, or both. `""` is content, None is not."""
        if len(content) == 1 and type(content[0]) is str and not fields:
            return cls(_USER, (Text(content[0]),))  # most messages are this; twice as fast
        return cls._made(_USER, content, fields)

    @classmethod
    def assistant(
        cls, *content: Content | None, tool_calls: Iterable[ToolCall] = (), **fields: Any
    ) -> Self:
        """What the model says and the tools it calls; one of the two must be there."""
        if not tool_calls and len(content) == 1 and type(content[0]) is str and not fields:
            return cls(_ASSISTANT, (Text(content[0]),))  # as in `user`
        said = tuple(item for item in content if item is not None)
        return cls._made(_ASSISTANT, (*said, *tool_calls), fields)

    @classmethod
    def tool(
        cls,
        *results: ToolResult | str,
        is_error: bool = False,
        tool_name: str | None = None,
        **fields: Any,
    ) -> Self:
        """The results of tool calls, or a call's id and its result as text.

        >>> Message.tool("call_1", "sunny") == Message.tool(ToolResult.success("call_1", "sunny"))
        True
        """
        if results and not isinstance(results[0], ToolResult):
            if len(results) != 2:  # noqa: PLR2004 - an id and a result
                msg = "Message.tool takes tool results, or a call id and its result"
                raise InvalidInputError(msg)
            call_id, result = results
            make = ToolResult.error if is_error else ToolResult.success
            results = (make(call_id, result, tool_name=tool_name),)  # type: ignore[arg-type]  # checked there
        return cls._made(_TOOL, results, fields)

    @classmethod
    def _made(cls, role: Role, content: tuple[Any, ...], fields: dict[str, Any]) -> Self:
        if len(content) == 1 and type(content[0]) is str and not fields and role is not _TOOL:
            return cls(role, (Text(content[0]),))
        parts = tuple(part for item in content for part in _parts_of(item))
        if not parts:
            is_answer = role is _ASSISTANT
            what = "an assistant" if is_answer else f"a {role}"
            needs = "content or tool calls" if is_answer else "content"
            msg = f"{what} message needs {needs}; the empty text will do"
            raise InvalidInputError(msg)
        if role is _TOOL:
            own = [part for part in parts if isinstance(part, ToolResult)]
            if len(own) != len(parts) or not all(result.call_id for result in own):
                msg = "a tool message holds tool results, each with the id of its call"
                raise InvalidInputError(msg)
        _check_fields(fields)
        return cls(role, parts, **fields)

    @classmethod
    def empty(cls, role: Role | str = _USER) -> Self:
        """A message that says nothing."""
        return cls(Role.parse(role))

    @classmethod
    def from_any(cls, value: Any, role: Role | str | None = None) -> Self:
        """A message from whatever people have at hand.

        A text, a part, a list of either, a dict of any shape (`from_dict`), another message, an
        object with `to_message()`, or any other object, which is taken by its text. `role`, if
        given, is the message's role whatever the input says.
        """
        if not isinstance(value, Message) and isinstance(value, ProvidesMessage):
            value = value.to_message()
            expect(value, Message, "what to_message() returns")
        if isinstance(value, Message):
            made = value if isinstance(value, cls) else cls.from_dict(value.to_dict())
        elif isinstance(value, Mapping) and is_message(value):
            made = cls.from_dict(value)
        elif value is None:
            msg = "None is not a message"
            raise InvalidInputError(msg)
        else:
            made = cls(_USER, parts_from(value if is_content(value) else text_of(value)))
        return made if role is None else made.with_role(role)

    @classmethod
    def from_input(cls, value: Any, role: Role | str = _USER) -> Self:
        """A message as it is, from `to_message()`, or from anything else by its text."""
        if isinstance(value, (Message, ProvidesMessage)):
            return cls.from_any(value)
        return cls(Role.parse(role), (Text(text_of(value)),))

    @staticmethod
    def is_message(value: Any) -> bool:
        """Whether raw input is a dict that describes a message, rather than a part of one."""
        return isinstance(value, Mapping) and is_message(value)

    @staticmethod
    def becomes_composite(value: Any) -> bool:
        """Whether `from_any` of this input would be more than a plain text."""
        return value is not None and Message.from_any(value).is_composite

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """A message from a dict: canonical, OpenAI's, or any of the seeds' shapes.

        Fields that nobody knows are kept as extras under `canonical`.
        """
        expect(data, Mapping, "a message dict")
        if "parts" in data:
            known = {key: data[key] for key in data if key in cls.__struct_fields__}
            message: Self = convert({**known, "role": Role.parse(data.get("role", _USER))}, cls)
            unknown = {key: data[key] for key in data if key not in known}
            return message if not unknown else message._with_extras_of(
                _CANONICAL, {**message.extras.get(_CANONICAL, EMPTY), **unknown}
            )  # fmt: skip
        return cls(**shapes.read(data))

    def to_dict(
        self, *, shape: shapes.Shape = "canonical", metadata: bool = True
    ) -> dict[str, Any]:
        """The message as plain data: `canonical` holds everything; the others are the seeds' own.

        >>> Message.user("hi").to_dict(shape="content")
        {'role': 'user', 'content': 'hi'}
        """
        if shape not in shapes.SHAPES:
            msg = f"unknown shape; expected one of {', '.join(shapes.SHAPES)}"
            raise InvalidInputError(msg)
        if shape == "canonical":
            self.settle()
            written: dict[str, Any] = thaw(msgspec.to_builtins(self))
            written.setdefault("parts", ())  # by which `from_dict` knows this shape
            if not metadata:
                written.pop("metadata", None)
            return written
        written = shapes.write(self, shape)
        if metadata and self.metadata:
            written["_metadata" if shape == "content" else "metadata"] = thaw(self.metadata)
        return written

    # --- its id

    def settle(self) -> None:
        """Assign the id, if it has not been asked for yet."""
        if not _id_slot.__get__(self):
            with _id_lock:  # two threads asking first must get the same answer
                if not _id_slot.__get__(self):
                    _id_slot.__set__(self, new_id())

    # --- what it says

    @property
    def kind(self) -> Kind:
        """The role, told apart further: an assistant's tool calls, and tool results."""
        if self.role is _ASSISTANT:
            return "tool_call" if self.tool_calls else "assistant"
        return _KINDS[self.role]

    @property
    def text(self) -> str:
        """All text, and the words of refusals and of tool results.

        An assistant's text parts are pieces of one utterance and are joined as they are; others'
        are separate items, joined by newlines.
        """
        return self.joined("" if self.role is _ASSISTANT else "\n")

    def joined(self, separator: str) -> str:
        """As `text`, joined by this separator."""
        return separator.join(
            part.text for part in self.parts if isinstance(part, (Text, Refusal, ToolResult))
        )

    @property
    def content(self) -> str | tuple[Part, ...] | None:
        """What is said besides thinking and tool calls: plain text where that is all, or parts."""
        parts = self.content_parts
        if not parts:
            return None
        if len(parts) == 1 and isinstance(parts[0], (Text, ToolResult)) and not self.is_composite:
            return parts[0].text
        return parts

    @property
    def content_parts(self) -> tuple[Part, ...]:
        """All parts but thinking and tool calls."""
        return tuple(part for part in self.parts if not isinstance(part, (Thinking, ToolCall)))

    @property
    def thinking(self) -> str:
        """The readable part of the model's reasoning; empty where there is none."""
        return "\n".join(
            part.text for part in self.parts if isinstance(part, Thinking) and part.text
        )

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The tools that the model calls, in order."""
        return tuple(part for part in self.parts if isinstance(part, ToolCall))

    @property
    def tool_results(self) -> tuple[ToolResult, ...]:
        """The results that the message carries, in order."""
        return tuple(part for part in self.parts if isinstance(part, ToolResult))

    @property
    def tool_call_id(self) -> str | None:
        """The id of the call that a message with a single result answers."""
        results = self.tool_results
        return results[0].call_id if len(results) == 1 else None

    @property
    def media(self) -> tuple[Media, ...]:
        """Images, audio, video and files, in order."""
        return tuple(part for part in self.parts if isinstance(part, Media))

    @property
    def is_null(self) -> bool:
        """Whether it has no parts at all."""
        return not self.parts

    @property
    def is_empty(self) -> bool:
        """Whether it says nothing and has no metadata."""
        return not self.metadata and all(part.is_empty for part in self.parts)

    @property
    def is_simple(self) -> bool:
        """Whether it is one plain text and nothing else."""
        return len(self.parts) == 1 and _is_plain_text(self.parts[0])

    @property
    def is_composite(self) -> bool:
        """Whether it is more than one plain text."""
        return bool(self.parts) and not (
            self.is_simple
            or (len(self.parts) == 1 and isinstance(self.parts[0], ToolResult)
                and isinstance(self.parts[0].content, str))
        )  # fmt: skip

    def field(self, key: str, default: Any = None) -> Any:
        """A field by name: the message's own, one derived from it, or an extra."""
        if key in self.__struct_fields__ or key in _DERIVED:
            value = getattr(self, key)
            return default if value is None else value
        return self.extra(key, default)

    def normalized(self) -> str | list[dict[str, Any]]:
        """The content as seed 003 has it: `""` for none, a text where that is all, or dicts."""
        content = self.content
        if content is None:
            return ""
        if isinstance(content, str):
            return content
        return [part_to_dict(part) for part in content]

    def preview(self, length: int = 50) -> str:
        """The beginning of the text, for people who asked to see it."""
        text = self.text
        return text if len(text) <= length else text[: max(length - 1, 0)] + "…"

    def origin_of(self, part: Part) -> Origin | None:
        """Where a part came from: its own origin, or the message's."""
        return part.origin if part.origin is not None else self.origin

    def __str__(self) -> str:
        return self.text

    # --- changed copies

    def replace(self, **changes: Any) -> Self:
        """A copy with these fields changed; it is still the same message, with the same id."""
        if "id" not in changes:
            self.settle()
        _check_fields(changes)
        made = super().replace(**changes)
        if "parts" in changes:
            for part in made.parts:
                part.check()
        return made

    def with_id(self, id: str) -> Self:
        """The same message under another id."""
        expect(id, str, "the id of a message")
        return self.replace(id=id)

    def with_role(self, role: Role | str) -> Self:
        """Said by another; what the wire said of the old role's message is dropped."""
        return self.replace(role=Role.parse(role), extras=self._own_extras())

    def with_name(self, name: str | None) -> Self:
        """Said by a participant of that name."""
        return self.replace(name=name)

    def with_content(self, *content: Content) -> Self:
        """Saying something else instead; tool calls and thinking go with the old content."""
        return self.with_parts(*content)  # type: ignore[arg-type]  # it takes content as well

    def with_parts(self, *parts: Part) -> Self:
        """With these parts instead."""
        checked = tuple(part for item in parts for part in _parts_of(item))
        return self.replace(parts=checked, extras=self._own_extras())

    def add_part(self, part: Content) -> Self:
        """With one more part, or several, at the end."""
        return self.replace(parts=(*self.parts, *_parts_of(part)))

    def without_empty(self) -> Self:
        """Without the parts that say nothing."""
        return self.replace(parts=tuple(part for part in self.parts if not part.is_empty))

    def add_content_from(self, other: Message) -> Self:
        """With the parts of another message at the end; each keeps its own origin."""
        expect(other, Message, "the source of the content")
        mine, theirs = self.parts_with_origin(), other.parts_with_origin()
        return self.replace(parts=(*mine, *theirs))

    def parts_with_origin(self) -> tuple[AnyPart, ...]:
        """The parts, each with the origin it has through its message: safe to move elsewhere."""
        if self.origin is None:
            return self.parts
        return tuple(
            part if part.origin is not None else part.replace(origin=self.origin)
            for part in self.parts
        )

    def with_field(self, key: str, value: Any) -> Self:
        """With a field set on the last part; see `Part.with_field`."""
        if not self.parts:
            msg = "the message has no part to set a field on"
            raise InvalidInputError(msg)
        return self.replace(parts=(*self.parts[:-1], self.parts[-1].with_field(key, value)))

    def append_field(self, key: str, value: Any) -> Self:
        """As `with_field`: seed 003's name for it."""
        return self.with_field(key, value)

    def with_image(self, image: Image | str, *, detail: str | None = None) -> Self:
        """With a picture at the end, given as an `Image`, an address or a data URL."""
        return self.add_part(
            image if isinstance(image, Image) else Image.from_url(image, detail=detail)
        )

    def with_audio(self, audio: Audio | str, audio_format: str = "wav") -> Self:
        """With sound at the end, given as an `Audio` or as base64 and its format."""
        return self.add_part(
            audio if isinstance(audio, Audio) else Audio.from_format(audio, audio_format)
        )

    def with_metadata(self, key: str, value: Any) -> Self:
        """With one more, or another, entry in the metadata."""
        return self.replace(metadata={**self.metadata, key: value})

    def without_metadata(self, key: str) -> Self:
        """Without that entry in the metadata."""
        return self.replace(metadata={k: v for k, v in self.metadata.items() if k != key})

    # --- extras

    def extra(self, key: str, default: Any = None, *, dialect: str = _CANONICAL) -> Any:
        """One extra field, of the canonical form or of a dialect."""
        return self.extras.get(dialect, EMPTY).get(key, default)

    def has_extra(self, key: str, *, dialect: str = _CANONICAL) -> bool:
        """Whether there is such an extra field."""
        return key in self.extras.get(dialect, EMPTY)

    def with_extra(self, key: str, value: Any, *, dialect: str = _CANONICAL) -> Self:
        """With an extra field; one of a dialect is sent to that dialect's targets."""
        return self._with_extras_of(dialect, {**self.extras.get(dialect, EMPTY), key: value})

    def without_extra(self, key: str, *, dialect: str = _CANONICAL) -> Self:
        """Without that extra field."""
        kept = {k: v for k, v in self.extras.get(dialect, EMPTY).items() if k != key}
        return self._with_extras_of(dialect, kept)

    def _with_extras_of(self, dialect: str, fields: dict[str, Any]) -> Self:
        others = {name: value for name, value in self.extras.items() if name != dialect}
        return self.replace(extras={**others, dialect: fields} if fields else others)

    def _own_extras(self) -> Mapping[str, Any]:
        """Extras that no dialect gave: they survive a change of content."""
        own = self.extras.get(_CANONICAL)
        return FrozenDict({_CANONICAL: own}) if own else EMPTY

    # --- comparing and showing

    def _said(self) -> tuple[Any, ...]:
        return (self.role, self.name, self.parts, self.metadata)

    def _sizes(self) -> Iterator[str]:
        yield self.role.value
        yield from (repr(part) for part in self.parts)


_FIELD_TYPES: dict[str, Any] = {
    "name": str,
    "id": str,
    "origin": Origin,
    "usage": Usage,
    "finish": FinishReason,
}


def _check_fields(fields: dict[str, Any]) -> None:
    for name, value in fields.items():
        if value is not None and name in _FIELD_TYPES:
            expect(value, _FIELD_TYPES[name], f"Message.{name}")
    expect_number(fields.get("created_at"), "Message.created_at")
    if isinstance(extras := fields.get("extras"), Mapping):
        for of_dialect in extras.values():
            expect(of_dialect, Mapping, "the extras of a dialect")


def _is_plain_text(part: Part) -> bool:
    return isinstance(part, Text) and not part.citations and _CANONICAL not in part.extras


def _parts_of(item: Any) -> tuple[AnyPart, ...]:
    if item is None:
        msg = "None is not content; the empty text will do"
        raise InvalidInputError(msg)
    parts = parts_from(item)
    for part in parts:
        part.check()
    return parts


def settle_all(messages: Collection[Message]) -> None:
    """Assign the ids that have not been asked for yet."""
    if not all(map(_id_slot.__get__, messages)):
        for message in messages:
            message.settle()


def assigned_id(message: Message) -> str | None:
    """The message's id, without assigning one; None where it has none yet."""
    found: str = _id_slot.__get__(message)
    return found or None


def _read_id(message: Message) -> str:
    """Unique, sortable by time; assigned when first asked for, which most messages never are."""
    found: str = _id_slot.__get__(message)
    if not found:
        message.settle()
        found = _id_slot.__get__(message)
    return found


# The field's own descriptor gives way to one that assigns the id on first need: making a message
# then costs half, and a gateway, which never asks, pays nothing.
_id_lock = Lock()
_id_slot: Any = Message.__dict__["id"]
type.__setattr__(Message, "id", property(_read_id))
