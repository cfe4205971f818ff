"""`Message`: one message of a conversation."""

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
from dragoman.model.message_checks import (
    check_fields,
    check_parts,
    checked_parts,
    is_plain_text,
    is_text_result,
)
from dragoman.model.parts import Origin, Part, Refusal, Text, Thinking, own_extras
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolResult
from dragoman.model.usage import FinishReason, Usage
from dragoman.model.value import (
    Checked,
    Value,
    expect,
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
_EDITS = frozenset({"parts", "role"})
_CHECKED = frozenset({ToolCall, ToolResult})  # these validate themselves on construction
_PART_KINDS = get_args(AnyPart)
_PART_TYPES = frozenset(_PART_KINDS)
_SYSTEM, _DEVELOPER, _USER = Role.SYSTEM, Role.DEVELOPER, Role.USER
_ASSISTANT, _TOOL = Role.ASSISTANT, Role.TOOL  # an enum member costs 200 ns to look up in 3.11


@runtime_checkable
class ProvidesMessage(Protocol):
    """An object that can be converted to a `Message`."""

    def to_message(self) -> Message:
        """Returns the message."""
        ...


class Message(Value, frozen=True, metaclass=Checked):
    """One message: a role and its content as a tuple of parts. Immutable.

    >>> Message.user("What is in this picture?", Image.from_url("https://example.com/cat.png"))
    Message(user, Text(24 chars), Image(url))

    `==` compares role, name, parts and metadata, with tool arguments by value. It ignores ids,
    times, usage, origin and extras; `identical` compares everything.
    """

    schema_excludes: ClassVar[frozenset[str]] = frozenset(
        {"id", "metadata", "extras", "origin", "usage", "finish", "created_at"}
    )

    role: Role
    """Who sent the message."""
    parts: tuple[AnyPart, ...] = ()
    """The content: text, media, thinking, tool calls and results. The constructor also takes a
    string, a part, a dict, or a list of these."""
    name: str | None = None
    """The name of the participant, where several share a role."""
    id: str = ""
    """Unique and sortable by time; assigned when first read."""
    metadata: Mapping[str, Any] = EMPTY
    """Application data; stored with the message, never sent to a provider."""
    extras: Mapping[str, Any] = EMPTY
    """Wire fields that no other field covers, keyed by dialect."""
    origin: Origin | None = None
    """The dialect, provider and model that the message came from."""
    usage: Usage | None = None
    """Tokens used by the response that this message was part of."""
    finish: FinishReason | None = None
    """Why the model stopped."""
    created_at: float | None = None
    """Unix time, in seconds."""

    def __post_init__(self) -> None:
        # Runs for every message that is made or decoded: the checks are ordered for speed.
        if self.role.__class__ is not Role:
            force_setattr(self, "role", Role.parse(self.role))
        if self.parts.__class__ is not tuple:
            self._take_content()  # `Message("user", "Hello")`
        for part in self.parts:
            if type(part) is Text:
                if part.text.__class__ is not str:  # a decoder bug must not corrupt the history
                    part.check()
            elif part.__class__ not in _PART_TYPES:
                self._take_content()
        if self.metadata is not EMPTY:
            own_mapping(self, "metadata")
        if self.extras.__class__ is not FrozenDict:
            own_mapping(self, "extras")

    if TYPE_CHECKING:  # the constructor accepts more types than the fields hold

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
        """Converts content given to the constructor to parts."""
        given: Any = self.parts
        if given.__class__ in _PART_TYPES:
            force_setattr(self, "parts", (given,))
        else:
            force_setattr(self, "parts", parts_from(given))
            own_tuple(self, "parts", _PART_KINDS)

    def check_made(self) -> None:
        """Raises if a hand-made message has no content, or parts not allowed for its role."""
        for part in self.parts:
            if part.__class__ not in _CHECKED:
                part.check()
        check_parts(self.role, self.parts, self.parts)
        own_id = _id_slot.__get__(self)  # not `self.id`, which would assign an id
        if (  # one by one: hardly ever is any of them set
            own_id != "" or self.extras is not EMPTY or self.name is not None
            or self.origin is not None or self.usage is not None
            or self.finish is not None or self.created_at is not None
        ):  # fmt: skip
            report = {name: getattr(self, name) for name in _REPORT}
            check_fields({**report, "id": own_id, "extras": self.extras})

    # --- constructors

    @classmethod
    def system(cls, *content: ContentLike, **fields: Any) -> Self:
        """Creates a system message: instructions for the model."""
        return cls._made(_SYSTEM, content, fields)

    @classmethod
    def developer(cls, *content: ContentLike, **fields: Any) -> Self:
        """Creates a developer message: instructions by the application's developer."""
        return cls._made(_DEVELOPER, content, fields)

    @classmethod
    def user(cls, *content: ContentLike, **fields: Any) -> Self:
        """Creates a user message from text, media or both. `""` is valid content, `None` is not."""
        if not fields and len(content) == 1 and content[0].__class__ is str and cls is Message:
            return make_message(_USER, (Text(content[0]),))  # type: ignore[return-value]
        return cls._made(_USER, content, fields)

    @classmethod
    def assistant(
        cls, *content: ContentLike | None, tool_calls: Iterable[ToolCall] = (), **fields: Any
    ) -> Self:
        """Creates an assistant message; it needs content or tool calls, or both."""
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
        """Creates a tool message from tool results, or from a call id and its result as text.

        >>> Message.tool("call_1", "sunny") == Message.tool(ToolResult.success("call_1", "sunny"))
        True
        """
        if results and not isinstance(results[0], ToolResult):
            if len(results) != 2:  # noqa: PLR2004 - an id and a result
                msg = "Message.tool takes tool results, or a call id and the result text"
                raise InvalidInputError(msg)
            make = ToolResult.error if is_error else ToolResult.success
            results = (make(*results, tool_name=tool_name),)  # type: ignore[arg-type]  # checked there
            if not fields:
                return cls.unchecked(_TOOL, results)  # type: ignore[no-any-return]  # made by this class
        return cls._made(_TOOL, results, fields)

    @classmethod
    def _made(cls, role: Role, content: tuple[Any, ...], fields: dict[str, Any]) -> Self:
        make: Callable[..., Self] = cls.unchecked
        if len(content) == 1 and content[0].__class__ is str and not fields and role is not _TOOL:
            return make(role, (Text(content[0]),))  # the most frequent case
        made: list[AnyPart] = []
        for item in content:
            kind = item.__class__
            if kind is str:
                made.append(Text(item))
            elif kind in _CHECKED:
                made.append(item)
            else:
                made += checked_parts(item)
        parts = tuple(made)
        check_parts(role, parts, parts)
        if fields:
            check_fields(fields)
        return make(role, parts, **fields)

    @classmethod
    def empty(cls, role: Role | str = _USER) -> Self:
        """Creates a message without parts."""
        return unchecked(cls)(Role.parse(role))

    @classmethod
    def from_any(cls, value: Any, role: Role | str | None = None) -> Self:
        """Converts common input types to a message.

        Accepts a text; a part; a list of either; a message, or an object with `to_message()`; a
        dict in any known shape or dialect; a pair of role and text such as `("human", "Hi")`; JSON
        bytes; or a message object of a supported library. Any other type raises
        `InvalidInputError`; `from_input` converts any object to text. `role`, if given, overrides
        the role of the input.
        """
        kind = type(value)
        if issubclass(kind, Message):
            made = cls._own(value)
        elif issubclass(kind, (str, Part)):
            parts = parts_from(value)
            return unchecked(cls)(Role.parse(role) if role else inputs.role_of(parts), parts)
        elif inputs.is_plain(value):
            made = cls.unchecked(value["role"], (Text(value["content"]),))
        else:
            made = cls._own(inputs.reader().message(value))
        return made.with_role(role) if role else made

    @classmethod
    def _own(cls, message: Message) -> Self:
        """The message itself, converted to this class if necessary."""
        return message if isinstance(message, cls) else cls.from_dict(message.to_dict())

    @classmethod
    def from_input(cls, value: Any, role: Role | str = _USER) -> Self:
        """Returns a message (or `to_message()`) as is; any other object becomes a text message."""
        if callable(getattr(type(value), "to_message", None)) or isinstance(value, Message):
            return cls.from_any(value)
        return unchecked(cls)(Role.parse(role), (Text(text_of(value)),))

    @staticmethod
    def is_message(value: Any) -> bool:
        """Whether the value is a dict that describes a message, rather than a content part."""
        if not isinstance(value, Mapping):
            return False
        return is_message(value) or ("type" in value and inputs.reader().is_message(value))

    @staticmethod
    def becomes_composite(value: Any) -> bool:
        """Whether `from_any` of this value would be more than a single plain text."""
        return value is not None and Message.from_any(value).is_composite

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Reads a message from a dict: any shape of `to_dict`, or any dialect.

        Unknown fields are kept in the extras, under `canonical`.
        """
        expect(data, Mapping, "a message dict")
        if inputs.is_foreign(data):
            return cls._own(inputs.reader().message(data))
        return inputs.own_message(data, cls)

    @classmethod
    def from_json(cls, raw: JsonText) -> Self:
        """Reads the output of `to_json`, or any JSON that `from_any` accepts."""
        try:
            return super().from_json(raw)
        except InvalidInputError as error:
            problem = str(error)
        read = inputs.from_json(raw, problem)
        if len(read) == 1:
            return cls._own(read[0])
        msg = "the JSON does not hold exactly one message; use Messages.from_json"
        raise InvalidInputError(msg)

    def to_dict(
        self, *, shape: shapes.Shape = "canonical", metadata: bool = True
    ) -> dict[str, Any]:
        """The message as plain data. `canonical` keeps everything; the other shapes are simpler.

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
            written.setdefault("parts", ())  # `from_dict` recognises the shape by this key
            if not metadata:
                written.pop("metadata", None)
        elif metadata and self.metadata:
            written["_metadata" if shape == "content" else "metadata"] = thaw(self.metadata)
        return written

    # --- id

    def settle(self) -> None:
        """Assigns the id, if that has not happened yet."""
        if not _id_slot.__get__(self):
            with _id_lock:  # two threads reading it first must get the same id
                if not _id_slot.__get__(self):
                    _id_slot.__set__(self, new_id())

    # --- content

    @property
    def kind(self) -> Kind:
        """The role, or `tool_call` for an assistant that calls tools, `tool_result` for results."""
        if self.role is _ASSISTANT:
            return "tool_call" if self.tool_calls else "assistant"
        return _KINDS[self.role]

    @property
    def text(self) -> str:
        """All text, including that of refusals and tool results.

        An assistant's text parts are fragments of one text and are concatenated. Those of other
        roles are joined by newlines.
        """
        return self.joined("" if self.role is _ASSISTANT else "\n")

    def joined(self, separator: str) -> str:
        """Like `text`, with this separator."""
        return separator.join(
            part.text for part in self.parts if isinstance(part, (Text, Refusal, ToolResult))
        )

    @property
    def content(self) -> str | tuple[Part, ...] | None:
        """The content apart from thinking and tool calls: a string if it is all text, else parts.

        >>> call = ToolCall.create("call_1", "weather", {"city": "Basel"})
        >>> Message.assistant("One moment.", tool_calls=[call]).content
        'One moment.'
        """
        parts = self.content_parts
        if not parts:
            return None
        is_text = all(isinstance(part, Text) for part in parts) or is_text_result(parts)
        return self.text if is_text else parts

    @property
    def content_parts(self) -> tuple[Part, ...]:
        """All parts except thinking and tool calls."""
        return tuple(part for part in self.parts if not isinstance(part, (Thinking, ToolCall)))

    @property
    def thinking(self) -> str:
        """The readable text of the model's reasoning, or `""`."""
        return "\n".join(
            part.text for part in self.parts if isinstance(part, Thinking) and part.text
        )

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The tool calls, in order."""
        return tuple(part for part in self.parts if isinstance(part, ToolCall))

    @property
    def tool_results(self) -> tuple[ToolResult, ...]:
        """The tool results, in order."""
        return tuple(part for part in self.parts if isinstance(part, ToolResult))

    @property
    def tool_call_id(self) -> str | None:
        """The call id of the tool result, if the message has exactly one."""
        results = self.tool_results
        return results[0].call_id if len(results) == 1 else None

    @property
    def media(self) -> tuple[Media, ...]:
        """Images, audio, video and files, in order."""
        return tuple(part for part in self.parts if isinstance(part, Media))

    @property
    def is_null(self) -> bool:
        """Whether there are no parts."""
        return not self.parts

    @property
    def is_empty(self) -> bool:
        """Whether every part is empty and there is no metadata."""
        return not self.metadata and all(part.is_empty for part in self.parts)

    @property
    def is_simple(self) -> bool:
        """Whether it is a single plain text."""
        return len(self.parts) == 1 and is_plain_text(self.parts[0])

    @property
    def is_composite(self) -> bool:
        """Whether it is more than a single plain text (or a single text result)."""
        return bool(self.parts) and not (
            self.is_simple
            or (len(self.parts) == 1 and isinstance(self.parts[0], ToolResult)
                and isinstance(self.parts[0].content, str))
        )  # fmt: skip

    def field(self, key: str, default: Any = None) -> Any:
        """A field by name: one of the message's own, a derived one such as `text`, or an extra."""
        if key in self.__struct_fields__ or key in _DERIVED:
            value = getattr(self, key)
            return default if value is None else value
        return self.extra(key, default)

    def normalized(self) -> str | list[dict[str, Any]]:
        """The content as plain data: `""` if empty, a string if plain text, otherwise dicts."""
        parts = self.content_parts
        is_simple = len(parts) == 1 and (is_plain_text(parts[0]) or is_text_result(parts))
        return self.text if is_simple or not parts else [part_to_dict(part) for part in parts]

    def preview(self, length: int = 50) -> str:
        """The beginning of the text, shortened to `length` characters."""
        text = self.text
        return text if len(text) <= length else text[: max(length - 1, 0)] + "…"

    def origin_of(self, part: Part) -> Origin | None:
        """The origin of a part: its own, or that of the message."""
        return part.origin if part.origin is not None else self.origin

    def __str__(self) -> str:
        return self.text

    # --- modified copies

    def replace(self, **changes: Any) -> Self:
        """Returns a copy with these fields changed and the same id.

        Only the changed fields are validated, so a decoded message stays editable even where it
        would not be allowed as a new one.
        """
        if "id" not in changes:
            self.settle()
        if (
            self.origin is not None
            and self.origin.is_of_a_request
            and not _EDITS.isdisjoint(changes)
        ):
            changes.setdefault("origin", None)  # an edited message no longer comes from the request
        check_fields(changes, self.extras)
        made = super().replace(**changes)
        if "role" in changes and made.parts:
            check_parts(made.role, made.parts, made.parts)
        if "parts" in changes:
            known = set(map(id, self.parts))
            new = tuple(part for part in made.parts if id(part) not in known)
            for part in new:
                if part.__class__ not in _CHECKED:
                    part.check()
            check_parts(made.role, made.parts, new)
        return made

    def replace_unchecked(self, **changes: Any) -> Self:
        """Like `replace`, without validation: for decoders, fitting and stores."""
        if "id" not in changes:
            self.settle()
        return super().replace_unchecked(**changes)

    def with_id(self, id: str) -> Self:
        """Returns a copy with another id."""
        expect(id, str, "the id of a message")
        return self.replace(id=id)

    def with_role(self, role: Role | str) -> Self:
        """Returns a copy with another role, without the extras of dialects."""
        return self.replace(role=Role.parse(role), extras=self._own_extras())

    def with_name(self, name: str | None) -> Self:
        """Returns a copy with another participant name."""
        return self.replace(name=name)

    def with_content(self, *content: ContentLike) -> Self:
        """Returns a copy with other content; tool calls and thinking are replaced too."""
        return self.with_parts(*content)  # type: ignore[arg-type]  # it takes content as well

    def with_parts(self, *parts: Part) -> Self:
        """Returns a copy with these parts."""
        checked = tuple(part for item in parts for part in checked_parts(item))
        return self.replace(parts=checked, extras=self._own_extras())

    def add_part(self, part: ContentLike) -> Self:
        """Returns a copy with content added at the end."""
        return self.replace(parts=(*self.parts, *checked_parts(part)))

    def without_empty(self) -> Self:
        """Returns a copy without empty parts."""
        said = tuple(part for part in self.parts if not part.is_empty)
        return self.replace_unchecked(parts=said)

    def add_content_from(self, other: Message) -> Self:
        """Returns a copy with another message's parts added; each part keeps its origin."""
        expect(other, Message, "the source of the content")
        mine, theirs = self.parts_with_origin(), other.parts_with_origin()
        return self.replace(parts=(*mine, *theirs))

    def parts_with_origin(self) -> tuple[AnyPart, ...]:
        """The parts, each with an explicit origin, so that they can be moved to another message."""
        if self.origin is None:
            return self.parts
        return tuple(
            part if part.origin is not None else part.replace(origin=self.origin)
            for part in self.parts
        )

    def with_field(self, key: str, value: Any) -> Self:
        """Returns a copy with a field set on the last part; see `Part.with_field`."""
        if not self.parts:
            msg = "can't set a field: the message has no parts"
            raise InvalidInputError(msg)
        return self.replace(parts=(*self.parts[:-1], self.parts[-1].with_field(key, value)))

    def append_field(self, key: str, value: Any) -> Self:
        """An alias of `with_field`."""
        return self.with_field(key, value)

    def with_image(self, image: Image | str, *, detail: str | None = None) -> Self:
        """Returns a copy with an image added, given as an `Image`, a URL or a data URL."""
        return self.add_part(
            image if isinstance(image, Image) else Image.from_url(image, detail=detail)
        )

    def with_audio(self, audio: Audio | str, audio_format: str = "wav") -> Self:
        """Returns a copy with audio added, given as an `Audio` or as base64 and its format."""
        return self.add_part(
            audio if isinstance(audio, Audio) else Audio.from_format(audio, audio_format)
        )

    def with_metadata(self, key: str, value: Any) -> Self:
        """Returns a copy with a metadata entry set."""
        return self.replace(metadata={**self.metadata, key: value})

    def without_metadata(self, key: str) -> Self:
        """Returns a copy without a metadata entry."""
        return self.replace(metadata={k: v for k, v in self.metadata.items() if k != key})

    # --- extras

    def extra(self, key: str, default: Any = None, *, dialect: str = _CANONICAL) -> Any:
        """An extra field, of the canonical form or of a dialect."""
        return own_extras(self.extras, dialect).get(key, default)

    def has_extra(self, key: str, *, dialect: str = _CANONICAL) -> bool:
        """Whether this extra field is present."""
        return key in own_extras(self.extras, dialect)

    def with_extra(self, key: str, value: Any, *, dialect: str = _CANONICAL) -> Self:
        """Returns a copy with an extra field; those of a dialect are sent in that dialect only."""
        return self._with_extras_of(dialect, {**own_extras(self.extras, dialect), key: value})

    def without_extra(self, key: str, *, dialect: str = _CANONICAL) -> Self:
        """Returns a copy without an extra field."""
        kept = {k: v for k, v in own_extras(self.extras, dialect).items() if k != key}
        return self._with_extras_of(dialect, kept)

    def _with_extras_of(self, dialect: str, fields: dict[str, Any]) -> Self:
        others = {name: value for name, value in self.extras.items() if name != dialect}
        return self.replace(extras={**others, dialect: fields} if fields else others)

    def _own_extras(self) -> Mapping[str, Any]:
        """The canonical extras: unlike those of a dialect, they survive a change of content."""
        own = own_extras(self.extras)
        return FrozenDict({_CANONICAL: own}) if own else EMPTY

    # --- comparison and display

    def equal_ignoring_call_ids(self, other: object) -> bool:
        """Compares like `==`, but lets tool call ids differ, as they do across providers.

        >>> Message.tool("call_1", "noon").equal_ignoring_call_ids(Message.tool("toolu_1", "noon"))
        True

        The ids must correspond one to one; see also `Messages.equal_ignoring_call_ids`.
        """
        return isinstance(other, Message) and comparison.equal_ignoring_call_ids([self], [other])

    def _compared_fields(self) -> tuple[Any, ...]:
        return (self.role, self.name, self.parts, self.metadata)

    def _repr_markdown_(self) -> str:
        """The message as Markdown, for notebooks."""
        from dragoman.model.markdown import markdown

        return markdown((self,))

    def _sizes(self) -> Iterator[str]:
        yield self.role.value
        yield from (repr(part) for part in self.parts)


def settle_all(messages: Collection[Message]) -> None:
    """Assigns the ids of all messages that have none yet."""
    if not all(map(_id_slot.__get__, messages)):
        for message in messages:
            message.settle()


def assigned_id(message: Message) -> str | None:
    """The message's id, or `None` if none has been assigned yet; does not assign one."""
    found: str = _id_slot.__get__(message)
    return found or None


def _read_id(message: Message) -> str:
    """Returns the id, and assigns it on first access; most messages never need one."""
    found: str = _id_slot.__get__(message)
    if not found:
        message.settle()
        found = _id_slot.__get__(message)
    return found


make_message = unchecked(Message)
"""Constructors without validation, for decoders, fitting and stores; see `unchecked`."""

# Replace the field's descriptor with one that assigns the id on first access. This halves the cost
# of creating a message, and a gateway, which never reads ids, pays nothing.
_id_lock = Lock()
_id_slot: Any = Message.__dict__["id"]
type.__setattr__(Message, "id", property(_read_id))
