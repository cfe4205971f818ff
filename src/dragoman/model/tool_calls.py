"""Tool calls, deltas of streamed tool calls, and tool results."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar, overload

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import force_setattr

from dragoman.errors import InvalidInputError
from dragoman.model.frozen import EMPTY, MAX_DEPTH, FrozenDict, freeze_mapping
from dragoman.model.ids import new_id
from dragoman.model.jsontext import JsonText, convert, dumps, loads
from dragoman.model.media import Audio, File, Image, Video
from dragoman.model.parts import CacheHint, Opaque, Origin, Part, Refusal, Text
from dragoman.model.value import (
    Checked,
    CheckedName,
    Value,
    expect,
    expect_fields,
    name_shown,
    own,
    own_mapping,
    own_tuple,
    unchecked,
)

T = TypeVar("T")
D = TypeVar("D")

_is_portable = re.compile(r"[A-Za-z0-9_]{1,64}", re.ASCII).fullmatch
_is_name = re.compile(r"[A-Za-z0-9_.:-]{1,128}", re.ASCII).fullmatch
_decode_object = msgspec.json.Decoder(dict[str, Any]).decode

_KINDS = ("function", "custom")

ResultPart = Text | Image | Audio | Video | File | Refusal | Opaque
"""The parts that a tool result's content may consist of."""
_RESULT_PARTS = (Text, Image, Audio, Video, File, Refusal, Opaque)


def check_tool_name(name: object, what: str, *, portable: bool = True) -> None:
    """Raises unless a name has 1 to 64 letters, digits and underscores.

    Every system takes such names. Unless it must be `portable`, a name may have up to 128
    characters, and dots, colons and hyphens too.
    """
    expect(name, str, what)
    if not name:
        msg = f"{what} must not be empty"
        raise InvalidInputError(msg)
    if not (_is_portable if portable else _is_name)(str(name)):
        msg = f"{what} may only contain letters, digits and the characters _ . : -, up to 128"
        if portable:
            msg = (
                f"{what} may only contain letters, digits and underscores, up to 64, to be portable"
                " to every system; portable=False allows dots, colons and hyphens, and 128"
                " characters"
            )
        raise InvalidInputError(msg)


_ARGUMENTS = frozenset({"raw", "input", "kind"})
_BOTH = "a tool call takes its arguments as text or as a mapping, not both"
_CALL_OF_RESULT = "the call id of a tool result"


def _check_call_id(id: object, what: str) -> None:
    if id.__class__ is str and id:
        return
    expect(id, str, what)
    if not id:
        msg = f"{what} must not be empty; it links a call to its result"
        raise InvalidInputError(msg)


class ToolCall(Part, frozen=True, tag="tool_call", gc=True, dict=True, metaclass=CheckedName):
    """A call of a tool by the model.

    Either `raw` (the model's text, kept byte for byte) or `input` (where the wire has an object) is
    set; `raw_arguments` and `arguments` convert between the two and cache the result. Calls made by
    hand are validated; decoded ones are kept unchanged. Names made by hand must be portable to
    every system (1 to 64 letters, digits and underscores), or up to 128 characters, with dots,
    colons and hyphens, if `portable=False` is passed.
    """

    schema_excludes: ClassVar[frozenset[str]] = Part.schema_excludes | {"wire_id"}

    id: str
    """Links the call to its result; unique within a conversation."""
    name: str
    """The name of the tool."""
    raw: str | None = None
    """The arguments as text, if the wire had text. The constructor also takes a mapping."""
    input: Mapping[str, Any] | None = None
    """The arguments as an object, if the wire had an object."""
    kind: Literal["function", "custom"] = "function"
    """A `function` takes a JSON object, a `custom` tool takes any text."""
    wire_id: str | UnsetType | None = UNSET
    """The id on the wire, if it differs from `id`; `None` if the wire had none."""

    if TYPE_CHECKING:  # the constructor accepts more types than the fields hold

        def __init__(  # noqa: PLR0913 - the fields in their order
            self,
            id: str,
            name: str,
            raw: str | Mapping[str, Any] | None = None,
            input: Mapping[str, Any] | None = None,  # noqa: A002 - the field's name
            kind: Literal["function", "custom"] = "function",
            wire_id: str | UnsetType | None = UNSET,
            *,
            item_id: str | None = None,
            origin: Origin | None = None,
            cache: CacheHint | None = None,
            signature: str | None = None,
            extras: Mapping[str, Any] = EMPTY,
            portable: bool = True,
        ) -> None: ...

    def __post_init__(self) -> None:
        if self.id.__class__ is not str or self.name.__class__ is not str:
            expect(self.id, str, "ToolCall.id")
            expect(self.name, str, "ToolCall.name")
        if self.raw.__class__ is not str:
            if self.raw is not None:
                self._take_mapping()
            own_mapping(self, "input")
        elif self.input is not None:
            own_mapping(self, "input")
        if self.extras is not EMPTY:
            own_mapping(self, "extras")

    def _take_mapping(self) -> None:
        """Moves arguments given as a mapping from `raw` to `input`."""
        given: object = self.raw
        expect(given, (str, Mapping), "the arguments of a tool call")
        if self.input is not None:
            raise InvalidInputError(_BOTH)
        force_setattr(self, "input", given)
        force_setattr(self, "raw", None)

    def check_made(self, portable: bool = True) -> None:  # noqa: FBT001, FBT002 - by position, for speed
        """Raises if a call made by hand has an invalid id, name or arguments."""
        if not self.id:
            _check_call_id(self.id, "the id of a tool call")
        if not _is_portable(self.name):
            check_tool_name(self.name, "the name of a tool call", portable=portable)
        if (  # one by one: hardly ever is any of them set
            self.kind != "function" or self.wire_id is not UNSET or self.origin is not None
            or self.item_id is not None or self.cache is not None or self.signature is not None
        ):  # fmt: skip
            self.check()
        raw = self.raw
        if raw is None:
            return
        if self.kind == "function" and self.input is None:
            try:  # fills the cache of `_parsed`, whose own way there takes three times as long
                self.__dict__["_parsed"] = freeze_mapping(_decode_object(raw))  # pyright: ignore[reportIndexIssue]  # a dict, as of all instances
            except (msgspec.MsgspecError, ValueError, RecursionError):
                pass
            else:
                return
        self._check_arguments()

    def _check_arguments(self) -> None:
        if self.raw is None or self.kind == "custom":
            return
        if self.input is not None:
            raise InvalidInputError(_BOTH)
        self.arguments  # noqa: B018 - raises if the text is not a JSON object

    def replace(self, *, portable: bool = True, **changes: Any) -> Self:
        """Returns a copy with these fields changed; only these are validated."""
        if "raw" in changes and "input" not in changes:
            changes["input"] = None  # the other form of the arguments
        elif "input" in changes and "raw" not in changes:
            changes["raw"] = None
        made = super().replace(**changes)
        if "id" in changes:
            _check_call_id(made.id, "the id of a tool call")
        if "name" in changes:
            check_tool_name(made.name, "the name of a tool call", portable=portable)
        if not changes.keys().isdisjoint(_ARGUMENTS):
            made._check_arguments()
        return made

    def check(self) -> None:
        """Raises if a field has the wrong type, or a custom call has no text."""
        if self.kind not in _KINDS:
            msg = "ToolCall.kind must be function or custom"
            raise InvalidInputError(msg)
        if self.kind == "custom":
            expect(self.raw, str, "ToolCall.raw of a custom call")
        if self.wire_id is not UNSET:
            expect_fields(self, wire_id=str)
        Part.check(self)

    @classmethod
    def _from_plain(cls, raw: JsonText) -> Self | None:
        """Reads a plain object with an id, a name, and arguments as an object or as text.

        >>> ToolCall.from_json('{"id": "1", "name": "map", "arguments": {"city": "Mostar"}}').id
        '1'
        """
        from dragoman.model.call_shapes import plain_call

        call = plain_call(loads(raw))
        return call if isinstance(call, cls) else None

    @classmethod
    def create(
        cls,
        id: str | None,
        name: str,
        arguments: Mapping[str, Any] | str | None = None,
        *,
        kind: Literal["function", "custom"] = "function",
        portable: bool = True,
    ) -> ToolCall:
        """Creates a call with validated id, name and arguments.

        >>> ToolCall.create("call_1", "weather", {"city": "Basel"}).raw_arguments
        '{"city":"Basel"}'

        Without an id, one is generated. The arguments of a `custom` tool may be any text.
        """
        if id is None:
            id = new_id("call_")
        if kind != "function" or arguments.__class__ is str:
            return cls(id, name, arguments, None, kind, portable=portable)
        # The same checks on a faster path, for the most frequent case.
        _check_call_id(id, "the id of a tool call")
        check_tool_name(name, "the name of a tool call", portable=portable)
        make = make_call if cls is ToolCall else unchecked(cls)
        return make(id, name, None, freeze_mapping(arguments, "the arguments of a tool call"))

    @cached_property
    def _parsed(self) -> FrozenDict | None:
        """The arguments, or `None` if the text is not a JSON object."""
        if self.input is not None:
            return freeze_mapping(self.input)
        if self.raw is None or not self.raw.strip():
            return EMPTY  # a tool without parameters (I6)
        try:
            parsed = loads(self.raw)
            return freeze_mapping(parsed) if isinstance(parsed, dict) else None
        except InvalidInputError:
            return None

    def object_arguments(self) -> Mapping[str, Any] | None:
        """The arguments as an object, for encoders; `None` if they are not a JSON object.

        Unlike `arguments`, the result is neither frozen nor cached: an encoder needs it once, and
        freezing costs as much as parsing.
        """
        raw = self.raw
        if raw is None or self.kind == "custom":
            return None if self.kind == "custom" else self._parsed
        if not raw or raw.isspace():
            return EMPTY
        if len(raw) > MAX_DEPTH and raw.count("{") + raw.count("[") > MAX_DEPTH:
            return self._parsed  # may be nested too deeply
        try:
            parsed = loads(raw)
        except InvalidInputError:
            return None
        return parsed if isinstance(parsed, dict) else None

    @property
    def has_valid_arguments(self) -> bool:
        """Whether the arguments are a JSON object, or the tool is custom and takes any text."""
        return self.kind == "custom" or self._parsed is not None

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The arguments as a mapping; raises if the text is not a JSON object."""
        if self._parsed is None or self.kind == "custom":
            msg = "the arguments of this tool call are not a JSON object; see raw_arguments"
            raise InvalidInputError(msg)
        return self._parsed

    @cached_property
    def raw_arguments(self) -> str:
        """The arguments as text: as the model wrote them, or the object as compact JSON."""
        return self.raw if self.raw is not None else dumps(self.input).decode("utf-8")

    @overload
    def argument(self, name: str) -> Any: ...
    @overload
    def argument(self, name: str, kind: type[T]) -> T | None: ...
    @overload
    def argument(self, name: str, kind: type[T], default: D) -> T | D: ...
    def argument(self, name: str, kind: Any = Any, default: Any = None) -> Any:
        """One argument converted to a type, or the default if it is missing.

        >>> call = ToolCall.create("call_1", "weather", {"city": "Basel", "days": 3})
        >>> call.argument("days", int), call.argument("unit", str, "C")
        (3, 'C')
        """
        expect(name, str, "the name of an argument")
        if name not in self.arguments:
            return default
        value = self.arguments[name]
        return value if kind is Any else convert(value, kind)

    def arguments_as(self, kind: type[T]) -> T:
        """Converts the arguments to a dataclass, TypedDict, NamedTuple, Struct or pydantic type."""
        from dragoman.model.functions.reading import read_as

        read: T = read_as(kind, self.arguments, "the tool call's arguments")
        return read

    def _compared_fields(self) -> tuple[Any, ...]:
        if self.kind == "custom" or self._parsed is None:
            # Free text is compared verbatim.
            return (self.id, self.name, self.kind, self.raw)
        return (self.id, self.name, self.kind, self._parsed)

    def _sizes(self) -> Iterator[str]:
        yield from name_shown(self.name)
        yield from name_shown(self.id)
        size = len(self.raw) if self.raw is not None else len(self.input or ())
        yield f"{size} {'chars' if self.raw is not None else 'arguments'}"


class ToolResult(Part, frozen=True, tag="tool_result", metaclass=Checked):
    """The result of a tool call: text, parts (for media), or JSON data."""

    call_id: str
    """The id of the call."""
    content: str | tuple[ResultPart, ...] = ""
    """The result as text or parts."""
    data: Any = UNSET
    """The result as JSON, if the wire had JSON rather than text (Gemini); otherwise unset."""
    tool_name: str | None = None
    """The name of the tool, where the wire needs it."""
    is_error: bool | None = None
    """Whether the call failed; `None` if the wire does not tell. Defaults to `False` by hand."""
    kind: Literal["function", "custom"] = "function"
    """The kind of tool; needed where the call itself is stored by the provider."""

    def __post_init__(self) -> None:
        if self.call_id.__class__ is not str:
            expect(self.call_id, str, "ToolResult.call_id")
        if self.content.__class__ is not str:
            own_tuple(self, "content", _RESULT_PARTS)
        if self.data is not UNSET:
            own(self, "data")
        if self.extras is not EMPTY:
            own_mapping(self, "extras")

    def check_made(self) -> None:
        """Raises without a call id; sets `is_error` to `False` if it is not given."""
        if not self.call_id:
            _check_call_id(self.call_id, _CALL_OF_RESULT)
        self.check()
        if self.is_error is None:
            force_setattr(self, "is_error", False)  # noqa: FBT003 - the field's value

    @classmethod
    def _from_plain(cls, raw: JsonText) -> Self | None:
        """Reads a plain object with the id of the call, its result as text, and `is_error`.

        >>> ToolResult.from_json('{"tool_call_id": "1", "content": "Here."}').is_error
        False
        """
        from dragoman.model.call_shapes import plain_result

        result = plain_result(loads(raw))
        return result if isinstance(result, cls) else None

    def replace(self, **changes: Any) -> Self:
        """Returns a copy with these fields changed; only these are validated."""
        if changes.get("content") and "data" not in changes:
            changes["data"] = UNSET  # the other form of the result
        elif "data" in changes and "content" not in changes:
            content = self.content
            rest = "" if isinstance(content, str) else [p for p in content if type(p) is not Text]
            changes["content"] = rest  # drop the text form of the old data
        made = super().replace(**changes)
        if "call_id" in changes:
            _check_call_id(made.call_id, _CALL_OF_RESULT)
        return made

    def check(self) -> None:
        """Raises if a field or a part of the content has the wrong type."""
        if self.tool_name is not None or self.is_error is not None:
            expect_fields(self, tool_name=str, is_error=bool)
        if self.kind not in _KINDS:
            msg = "ToolResult.kind must be function or custom"
            raise InvalidInputError(msg)
        if not isinstance(self.content, str):
            for part in self.content:
                part.check()
        Part.check(self)

    @classmethod
    def success(
        cls, call_id: str, result: str | Iterable[ResultPart], *, tool_name: str | None = None
    ) -> ToolResult:
        """Creates the result of a successful call; an empty string is allowed."""
        return cls._made(call_id, result, tool_name, is_error=False)

    @classmethod
    def error(cls, call_id: str, message: str, *, tool_name: str | None = None) -> ToolResult:
        """Creates the result of a failed call, with an error message for the model."""
        return cls._made(call_id, message, tool_name, is_error=True)

    @classmethod
    def _made(
        cls,
        call_id: str,
        content: str | Iterable[ResultPart],
        tool_name: str | None,
        *,
        is_error: bool,
    ) -> ToolResult:
        if content.__class__ is str and tool_name is None:  # the most frequent case
            _check_call_id(call_id, _CALL_OF_RESULT)
            return cls.unchecked(call_id, content, UNSET, None, is_error)  # type: ignore[no-any-return]  # made by this class
        expect(content, (str, Iterable), "the content of a tool result (or the empty text)")
        parts = content if isinstance(content, str) else tuple(content)
        return cls(call_id, parts, UNSET, tool_name, is_error)

    @property
    def text(self) -> str:
        """The result as text: the text parts joined, or the data as JSON."""
        if isinstance(self.content, str):
            if not self.content and self.data is not UNSET:
                return dumps(self.data).decode("utf-8")
            return self.content
        return "\n".join(part.text for part in self.content if isinstance(part, (Text, Refusal)))

    @property
    def parts(self) -> tuple[ResultPart, ...]:
        """The content as parts, even if it is a string."""
        return (Text(self.content),) if isinstance(self.content, str) else self.content

    def __str__(self) -> str:
        return self.text

    def _compared_fields(self) -> tuple[Any, ...]:
        content = self.content
        if type(content) is tuple and len(content) == 1 and type(content[0]) is Text:
            content = content[0].text  # a single text part equals a plain string
        return (self.call_id, content, self.data, self.tool_name, bool(self.is_error))

    def _sizes(self) -> Iterator[str]:
        yield from name_shown(self.tool_name)
        yield from name_shown(self.call_id)
        yield "error" if self.is_error else "ok"
        if self.content or self.data is UNSET:
            yield f"{len(self.content)} {'chars' if isinstance(self.content, str) else 'parts'}"
        if self.data is not UNSET:
            has_fields = isinstance(self.data, (Mapping, list, tuple))
            yield f"data of {len(self.data)} fields" if has_fields else "data"


_NO_HEADS = (None, None, None)


class ToolCallDelta(Value, frozen=True, tag_field="type", tag="tool_call_delta"):
    """A fragment of a streamed tool call.

    Servers differ in what they send (W7, W8): the index may be missing, always 0, or change; id and
    name usually come with the first fragment only. `MessageAccumulator` handles all variants.
    """

    index: int | None = None
    id: str | None = None
    name: str | None = None
    arguments_delta: str | None = None
    choice: int = 0
    kind: Literal["function", "custom"] = "function"
    signature: str | None = None
    extras: Mapping[str, Any] = EMPTY

    def __post_init__(self) -> None:
        heads = (self.id, self.name, self.signature)
        if self.arguments_delta.__class__ is not str or heads != _NO_HEADS:
            expect_fields(self, id=str, name=str, arguments_delta=str, signature=str)
        if self.index.__class__ is not int:
            expect_fields(self, index=int)
        elif (self.index or 0) < 0:
            msg = "ToolCallDelta.index must not be negative"
            raise InvalidInputError(msg)
        if self.extras is not EMPTY:
            own_mapping(self, "extras")

    def _sizes(self) -> Iterator[str]:
        yield from name_shown(self.name)
        yield f"{len(self.arguments_delta or '')} chars"


make_call, make_result = unchecked(ToolCall), unchecked(ToolResult)
"""Constructors without validation, for decoders, fitting and stores; see `unchecked`."""
