"""One message of a conversation."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from threading import Lock
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Literal,
    Protocol,
    Self,
    get_args,
    runtime_checkable,
)

import msgspec
from msgspec.structs import force_setattr

from dragoman.errors import InvalidInputError
from dragoman.model import comparison, inputs, shapes
from dragoman.model.content import (
    AnyPart,
    is_message,
    part_to_dict,
    parts_from,
    text_of,
)
from dragoman.model.frozen import EMPTY, FrozenDict, thaw
from dragoman.model.ids import new_id
from dragoman.model.jsontext import JsonText
from dragoman.model.media import Audio, Image, Media
from dragoman.model.parts import Origin, Part, Refusal, Text, Thinking, own_extras
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolResult
from dragoman.model.usage import FinishReason, Usage
from dragoman.model.value import (
    Checked,
    Value,
    expect,
    expect_number,
    own_mapping,
    own_tuple,
    unchecked,
)

Kind = Literal["system", "developer", "user", "assistant", "tool_call", "tool_result"]
ContentLike = str | Part | Mapping[str, Any] | Iterable[str | Part | Mapping[str, Any]]

_CANONICAL = "canonical"
_DERIVED = frozenset({"kind", "text", "content", "thinking", "tool_call_id"})
_KINDS: dict[Role, Kind] = {
    Role.SYSTEM: "system",
    Role.DEVELOPER: "developer",
    Role.USER: "user",
    Role.TOOL: "tool_result",
}
_REPORT = ("name", "origin", "usage", "finish", "created_at")
_NOTHING = (None,) * len(_REPORT)
_EDITS = frozenset({"parts", "role"})
_CHECKED = frozenset({ToolCall, ToolResult})  # checked when they were made
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


class Message(Value, frozen=True, metaclass=Checked):
    """Who said what: a role and the parts of what was said. Immutable.

    >>> Message.user("What is in this picture?", Image.from_url("https://example.com/cat.png"))
    Message(user, Text(24 chars), Image(url))

    `==` asks whether the same was said: role, name, parts and metadata count, tool arguments by
    value; ids, times, usage, origin and extras don't. `identical` compares everything.
    """

    schema_excludes: ClassVar[frozenset[str]] = frozenset(
        {"id", "metadata", "extras", "origin", "usage", "finish", "created_at"}
    )

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
            self._take_content()  # `Message("user", "Hello")`
        for part in self.parts:
            if type(part) is Text:
                if part.text.__class__ is not str:  # a decoder's slip would brick the history
                    part.check()
            elif part.__class__ not in _PART_TYPES:
                self._take_content()
        if self.metadata is not EMPTY:
            own_mapping(self, "metadata")
        if self.extras.__class__ is not FrozenDict:
            own_mapping(self, "extras")

    if TYPE_CHECKING:  # the constructor takes more than the fields hold

        def __init__(  # noqa: PLR0913, PLR0917 - the fields in their order
            self,
            role: Role | str,
            parts: ContentLike = (),
            name: str | None = None,
            id: str = "",
            metadata: Mapping[str, Any] | None = EMPTY,
            extras: Mapping[str, Any] = EMPTY,
            origin: Origin | None = None,
            usage: Usage | None = None,
            finish: FinishReason | None = None,
            created_at: float | None = None,
        ) -> None: ...

    def _take_content(self) -> None:
        """Whatever people give as content becomes the parts."""
        force_setattr(self, "parts", parts_from(self.parts))
        own_tuple(self, "parts", _PART_KINDS)

    def check_made(self) -> None:
        """Raise where people could not have meant this: nothing said, or by the wrong role."""
        for part in self.parts:
            if part.__class__ not in _CHECKED:
                part.check()
        _check_parts(self.role, self.parts, self.parts)
        given = (self.name, self.origin, self.usage, self.finish, self.created_at)
        own_id = _id_slot.__get__(self)  # not `self.id`, which would assign one
        if given != _NOTHING or own_id != "" or self.extras is not EMPTY:
            _check_fields({**dict(zip(_REPORT, given, strict=True)), "id": own_id,
                           "extras": self.extras})  # fmt: skip

    # --- making one

    @classmethod
    def system(cls, *content: ContentLike, **fields: Any) -> Self:
        """Instructions for the model."""
        return cls._made(_SYSTEM, content, fields)

    @classmethod
    def developer(cls, *content: ContentLike, **fields: Any) -> Self:
        """Instructions for the model, by the application's developer."""
        return cls._made(_DEVELOPER, content, fields)

    @classmethod
    def user(cls, *content: ContentLike, **fields: Any) -> Self:
        """What the user says: text, media, or both. `""` is content, None is not."""
        if not fields and len(content) == 1 and content[0].__class__ is str and cls is Message:
            return make_message(_USER, (Text(content[0]),))  # type: ignore[return-value]  # the usual message, at once
        return cls._made(_USER, content, fields)

    @classmethod
    def assistant(
        cls, *content: ContentLike | None, tool_calls: Iterable[ToolCall] = (), **fields: Any
    ) -> Self:
        """What the model says and the tools it calls; one of the two must be there."""
        if not (fields or tool_calls) and len(content) == 1 and content[0].__class__ is str:
            return cls._made(_ASSISTANT, content, fields)
        if None in content:
            content = tuple(item for item in content if item is not None)
        return cls._made(_ASSISTANT, (*content, *tool_calls) if tool_calls else content, fields)

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
            make = ToolResult.error if is_error else ToolResult.success
            results = (make(*results, tool_name=tool_name),)  # type: ignore[arg-type]  # checked there
        return cls._made(_TOOL, results, fields)

    @classmethod
    def _made(cls, role: Role, content: tuple[Any, ...], fields: dict[str, Any]) -> Self:
        make: Callable[..., Self] = _makers.get(cls) or unchecked(cls)
        if len(content) == 1 and content[0].__class__ is str and not fields and role is not _TOOL:
            return make(role, (Text(content[0]),))  # most messages are this
        made: list[AnyPart] = []
        for item in content:
            kind = item.__class__
            if kind is str:
                made.append(Text(item))
            elif kind in _CHECKED:
                made.append(item)
            else:
                made += _parts_of(item)
        parts = tuple(made)
        _check_parts(role, parts, parts)
        if fields:
            _check_fields(fields)
        return make(role, parts, **fields)

    @classmethod
    def empty(cls, role: Role | str = _USER) -> Self:
        """A message that says nothing."""
        return unchecked(cls)(Role.parse(role))

    @classmethod
    def from_any(cls, value: Any, role: Role | str | None = None) -> Self:
        """A message from whatever people have at hand.

        A text; a part; a list of either; another message, or an object with `to_message()`; a dict
        in any known shape or dialect; a pair of a role and a text, `("human", "Hi")`; JSON bytes;
        or a message object of a known library. Anything else raises: `from_input` takes any object
        by its text. `role`, if given, is the message's role whatever the input says.
        """
        kind = type(value)
        if issubclass(kind, Message):
            made = cls._own(value)
        elif issubclass(kind, (str, Part)):
            parts = parts_from(value)
            return unchecked(cls)(Role.parse(role) if role else inputs.role_of(parts), parts)
        elif inputs.is_plain(value):
            made = unchecked(cls)(value["role"], (Text(value["content"]),))
        else:
            made = cls._own(inputs.reader().message(value))
        return made.with_role(role) if role else made

    @classmethod
    def _own(cls, message: Message) -> Self:
        """The message itself, or as one of this class."""
        return message if isinstance(message, cls) else cls.from_dict(message.to_dict())

    @classmethod
    def from_input(cls, value: Any, role: Role | str = _USER) -> Self:
        """A message as it is, from `to_message()`, or from anything else by its text."""
        if callable(getattr(type(value), "to_message", None)) or isinstance(value, Message):
            return cls.from_any(value)
        return unchecked(cls)(Role.parse(role), (Text(text_of(value)),))

    @staticmethod
    def is_message(value: Any) -> bool:
        """Whether raw input is a dict that describes a message, rather than a part of one."""
        if not isinstance(value, Mapping):
            return False
        return is_message(value) or ("type" in value and inputs.reader().is_message(value))

    @staticmethod
    def becomes_composite(value: Any) -> bool:
        """Whether `from_any` of this input would be more than a plain text."""
        return value is not None and Message.from_any(value).is_composite

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """A message from a dict: canonical, OpenAI's, any of the seeds' shapes or any dialect's.

        Fields that nobody knows are kept as extras under `canonical`.
        """
        expect(data, Mapping, "a message dict")
        if inputs.is_foreign(data):
            return cls._own(inputs.reader().message(data))
        return inputs.own_message(data, cls)

    @classmethod
    def from_json(cls, raw: JsonText) -> Self:
        """The message in a document of ours, or in JSON of any shape that `from_any` takes."""
        try:
            return super().from_json(raw)
        except InvalidInputError as error:
            problem = str(error)
        read = inputs.from_json(raw, problem)
        if len(read) == 1:
            return cls._own(read[0])
        msg = "the JSON holds several messages, or none; Messages.from_json reads them"
        raise InvalidInputError(msg)

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
        written = None if shape == "canonical" else shapes.write(self, shape)
        if written is None:
            self.settle()
            written = thaw(msgspec.to_builtins(self))
            written.setdefault("parts", ())  # by which `from_dict` knows this shape
            if not metadata:
                written.pop("metadata", None)
        elif metadata and self.metadata:
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
        """What is said besides thinking and tool calls: the text where that is all, or parts.

        >>> call = ToolCall.create("call_1", "weather", {"city": "Basel"})
        >>> Message.assistant("One moment.", tool_calls=[call]).content
        'One moment.'
        """
        parts = self.content_parts
        if not parts:
            return None
        is_text = all(isinstance(part, Text) for part in parts) or _is_text_result(parts)
        return self.text if is_text else parts

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
        """The content as plain values: `""` for none, a text where that is all, or dicts."""
        parts = self.content_parts
        is_simple = len(parts) == 1 and (_is_plain_text(parts[0]) or _is_text_result(parts))
        return self.text if is_simple or not parts else [part_to_dict(part) for part in parts]

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
        """A copy with these fields changed; it is still the same message, with the same id.

        Only what changes is checked: a message that came off a wire may hold more than people may
        make, and stays editable.
        """
        if "id" not in changes:
            self.settle()
        if (
            self.origin is not None
            and self.origin.is_of_a_request
            and not _EDITS.isdisjoint(changes)
        ):
            changes.setdefault("origin", None)  # what a request brought is the editor's now
        _check_fields(changes, self.extras)
        made = super().replace(**changes)
        if "role" in changes and made.parts:
            _check_parts(made.role, made.parts, made.parts)
        if "parts" in changes:
            known = set(map(id, self.parts))
            new = tuple(part for part in made.parts if id(part) not in known)
            for part in new:
                if part.__class__ not in _CHECKED:
                    part.check()
            _check_parts(made.role, made.parts, new)
        return made

    def replace_unchecked(self, **changes: Any) -> Self:
        """As `replace`, without the checks: for readers, fitting and stores."""
        if "id" not in changes:
            self.settle()
        return super().replace_unchecked(**changes)

    def with_id(self, id: str) -> Self:
        """The same message under another id."""
        expect(id, str, "the id of a message")
        return self.replace(id=id)

    def with_role(self, role: Role | str) -> Self:
        """The message in another role; what the wire said of the old role's message is dropped."""
        return self.replace(role=Role.parse(role), extras=self._own_extras())

    def with_name(self, name: str | None) -> Self:
        """Said by a participant of that name."""
        return self.replace(name=name)

    def with_content(self, *content: ContentLike) -> Self:
        """Saying something else instead; tool calls and thinking go with the old content."""
        return self.with_parts(*content)  # type: ignore[arg-type]  # it takes content as well

    def with_parts(self, *parts: Part) -> Self:
        """With these parts instead."""
        checked = tuple(part for item in parts for part in _parts_of(item))
        return self.replace(parts=checked, extras=self._own_extras())

    def add_part(self, part: ContentLike) -> Self:
        """With one more part, or several, at the end."""
        return self.replace(parts=(*self.parts, *_parts_of(part)))

    def without_empty(self) -> Self:
        """Without the parts that say nothing."""
        said = tuple(part for part in self.parts if not part.is_empty)
        return self.replace_unchecked(parts=said)

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
        """As `with_field`, under its older name."""
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
        return own_extras(self.extras, dialect).get(key, default)

    def has_extra(self, key: str, *, dialect: str = _CANONICAL) -> bool:
        """Whether there is such an extra field."""
        return key in own_extras(self.extras, dialect)

    def with_extra(self, key: str, value: Any, *, dialect: str = _CANONICAL) -> Self:
        """With an extra field; one of a dialect is sent to that dialect's targets."""
        return self._with_extras_of(dialect, {**own_extras(self.extras, dialect), key: value})

    def without_extra(self, key: str, *, dialect: str = _CANONICAL) -> Self:
        """Without that extra field."""
        kept = {k: v for k, v in own_extras(self.extras, dialect).items() if k != key}
        return self._with_extras_of(dialect, kept)

    def _with_extras_of(self, dialect: str, fields: dict[str, Any]) -> Self:
        others = {name: value for name, value in self.extras.items() if name != dialect}
        return self.replace(extras={**others, dialect: fields} if fields else others)

    def _own_extras(self) -> Mapping[str, Any]:
        """Extras that no dialect gave: they survive a change of content."""
        own = own_extras(self.extras)
        return FrozenDict({_CANONICAL: own}) if own else EMPTY

    # --- comparing and showing

    def equal_ignoring_call_ids(self, other: object) -> bool:
        """As `==`, for messages that crossed providers: the ids of calls may differ.

        >>> Message.tool("call_1", "noon").equal_ignoring_call_ids(Message.tool("toolu_1", "noon"))
        True

        They must correspond one to one, within the message; see `Messages` for conversations.
        """
        return isinstance(other, Message) and comparison.equal_ignoring_call_ids([self], [other])

    def _said(self) -> tuple[Any, ...]:
        return (self.role, self.name, self.parts, self.metadata)

    def _repr_markdown_(self) -> str:
        """What was said, for notebooks."""
        from dragoman.model.markdown import markdown

        return markdown((self,))

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


def _check_fields(fields: dict[str, Any], known: Mapping[str, Any] = EMPTY) -> None:
    for name, value in fields.items():
        if value is not None and name in _FIELD_TYPES:
            expect(value, _FIELD_TYPES[name], f"Message.{name}")
    expect_number(fields.get("created_at"), "Message.created_at")
    if isinstance(extras := fields.get("extras"), Mapping):
        for name, of_dialect in extras.items():
            # A list is what readers note of a dialect's shapes; what is there already may stay.
            if (
                not isinstance(of_dialect, list)
                and known.get(name, msgspec.UNSET) is not of_dialect
            ):
                expect(of_dialect, Mapping, "the extras of a dialect")


def _check_parts(role: Role, parts: tuple[Any, ...], new: tuple[Any, ...]) -> None:
    """Raise where there are no parts, or new ones that this role does not say."""
    if not parts:
        is_answer = role is _ASSISTANT
        what = "an assistant" if is_answer else f"a {role}"
        needs = "content or tool calls" if is_answer else "content"
        msg = f"{what} message needs {needs}; the empty text will do"
        raise InvalidInputError(msg)
    if role is _TOOL:
        for part in new:
            if not isinstance(part, ToolResult) or not part.call_id:
                msg = "a tool message holds tool results, each with the id of its call"
                raise InvalidInputError(msg)
        return
    refused = ToolResult if role is _ASSISTANT else ToolCall
    for part in new:
        if part.__class__ is refused:
            what = (
                "tool results go into a tool message"
                if role is _ASSISTANT
                else (f"a {role} message can't call tools; only an assistant's can")
            )
            raise InvalidInputError(what)


def _is_plain_text(part: Part) -> bool:
    return isinstance(part, Text) and not part.citations and _CANONICAL not in part.extras


def _is_text_result(parts: tuple[Part, ...]) -> bool:
    """Whether this is one tool result, and nothing in it but text."""
    only = parts[0]
    if len(parts) > 1 or not isinstance(only, ToolResult):
        return False
    return isinstance(only.content, str) or all(isinstance(part, Text) for part in only.content)


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


make_message = unchecked(Message)
_makers: dict[type[Message], Any] = {Message: make_message}
"""What decoders, fitting and stores make, as it came; see `unchecked`."""

# The field's own descriptor gives way to one that assigns the id on first need: making a message
# then costs half, and a gateway, which never asks, pays nothing.
_id_lock = Lock()
_id_slot: Any = Message.__dict__["id"]
type.__setattr__(Message, "id", property(_read_id))
