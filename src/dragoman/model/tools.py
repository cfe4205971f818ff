"""Tool calls, their results, and the definitions of tools."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar, overload

from msgspec import UNSET, UnsetType
from msgspec.structs import force_setattr

from dragoman.errors import InvalidInputError
from dragoman.model.frozen import EMPTY, MAX_DEPTH, FrozenDict, freeze_mapping
from dragoman.model.ids import new_id
from dragoman.model.jsontext import convert, dumps, loads
from dragoman.model.media import Audio, File, Image, Video
from dragoman.model.parts import CacheHint, Opaque, Origin, Part, Refusal, Text
from dragoman.model.value import (
    Checked,
    Value,
    expect,
    expect_fields,
    name_shown,
    own,
    own_mapping,
    own_tuple,
    unchecked,
)

if TYPE_CHECKING:
    from dragoman.model.validation.problems import Problem

T = TypeVar("T")
D = TypeVar("D")

_is_name = re.compile(r"[A-Za-z0-9_]{1,64}", re.ASCII).fullmatch

_KINDS = ("function", "custom")
_MODES = ("auto", "none", "required", "named", "allowed")

ResultPart = Text | Image | Audio | Video | File | Refusal | Opaque
"""What a tool result's content may be made of."""
_RESULT_PARTS = (Text, Image, Audio, Video, File, Refusal, Opaque)


def check_tool_name(name: object, what: str) -> None:
    """The rule for names that people make: letters, digits and underscores, 1 to 64 of them."""
    if type(name) is str and _is_name(name):
        return
    expect(name, str, what)
    if not name:
        msg = f"{what} is empty"
        raise InvalidInputError(msg)
    if not _is_name(str(name)):
        msg = f"{what} may have letters, digits and underscores only, 64 at the most"
        raise InvalidInputError(msg)


_ARGUMENTS = frozenset({"raw", "input", "kind"})
_BOTH = "a tool call takes its arguments as a text or as a mapping, not as both"
_CALL_OF_RESULT = "the call id of a tool result"


def _check_call_id(id: object, what: str) -> None:
    if id.__class__ is str and id:
        return
    expect(id, str, what)
    if not id:
        msg = f"{what} is empty; it pairs the call with its result"
        raise InvalidInputError(msg)


class ToolCall(Part, frozen=True, tag="tool_call", gc=True, dict=True, metaclass=Checked):
    """The model asks for a tool to be run.

    Either `raw` (the model's own text, kept byte for byte) or `input` (where a wire has an object)
    is set; `raw_arguments` and `arguments` give both forms, each made at most once. What people
    make is checked; what decoders make is kept as it came.
    """

    schema_excludes: ClassVar[frozenset[str]] = Part.schema_excludes | {"wire_id"}

    id: str
    """Pairs the call with its result; unique within a conversation."""
    name: str
    raw: str | None = None
    input: Mapping[str, Any] | None = None
    kind: Literal["function", "custom"] = "function"
    wire_id: str | UnsetType | None = UNSET
    """The id that the wire had, where that is not `id`; None where it had none."""

    if TYPE_CHECKING:  # the constructor takes more than the fields hold

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
        """Arguments given as a mapping in the place of their text are the `input`."""
        given: object = self.raw
        expect(given, (str, Mapping), "the arguments of a tool call")
        if self.input is not None:
            raise InvalidInputError(_BOTH)
        force_setattr(self, "input", given)
        force_setattr(self, "raw", None)

    def check_made(self) -> None:
        """Raise where people could not have meant this: a call without id, name or arguments."""
        _check_call_id(self.id, "the id of a tool call")
        check_tool_name(self.name, "the name of a tool call")
        self.check()
        if self.raw is not None:
            self._check_arguments()

    def _check_arguments(self) -> None:
        if self.raw is None or self.kind == "custom":
            return
        if self.input is not None:
            raise InvalidInputError(_BOTH)
        self.arguments  # noqa: B018 - raises if the text is not an object

    def replace(self, **changes: Any) -> Self:
        """A copy with these fields changed; they alone are checked."""
        if "raw" in changes and "input" not in changes:
            changes["input"] = None  # the other form of the same arguments
        elif "input" in changes and "raw" not in changes:
            changes["raw"] = None
        made = super().replace(**changes)
        if "id" in changes:
            _check_call_id(made.id, "the id of a tool call")
        if "name" in changes:
            check_tool_name(made.name, "the name of a tool call")
        if not changes.keys().isdisjoint(_ARGUMENTS):
            made._check_arguments()
        return made

    def check(self) -> None:
        """As every part; the kind must be a known one, and a custom call has a text."""
        if self.kind not in _KINDS:
            msg = "ToolCall.kind must be function or custom"
            raise InvalidInputError(msg)
        if self.kind == "custom":
            expect(self.raw, str, "ToolCall.raw of a custom call")
        if self.wire_id is not UNSET:
            expect_fields(self, wire_id=str)
        Part.check(self)

    @classmethod
    def create(
        cls,
        id: str | None,
        name: str,
        arguments: Mapping[str, Any] | str | None = None,
        *,
        kind: Literal["function", "custom"] = "function",
    ) -> ToolCall:
        """A call made by hand, checked: name, id, and arguments that are a JSON object.

        >>> ToolCall.create("call_1", "weather", {"city": "Basel"}).raw_arguments
        '{"city":"Basel"}'

        Without an id one is made. A `custom` tool takes any text.
        """
        if id is None:
            id = new_id("call_")
        if kind != "function" or arguments.__class__ is str:
            return cls(id, name, arguments, None, kind)
        # The same checks without the detour: most calls that people make are this.
        _check_call_id(id, "the id of a tool call")
        check_tool_name(name, "the name of a tool call")
        make = make_call if cls is ToolCall else unchecked(cls)
        return make(id, name, None, freeze_mapping(arguments, "the arguments of a tool call"))

    @cached_property
    def _parsed(self) -> FrozenDict | None:
        """The arguments, or None where the text is not a JSON object."""
        if self.input is not None:
            return freeze_mapping(self.input)
        if self.raw is None or not self.raw.strip():
            return EMPTY  # a tool without parameters: I6
        try:
            parsed = loads(self.raw)
            return freeze_mapping(parsed) if isinstance(parsed, dict) else None
        except InvalidInputError:
            return None

    def object_arguments(self) -> Mapping[str, Any] | None:
        """The arguments of a function call for a wire that has an object; None where they are none.

        As `arguments`, but nothing is kept: a writer asks once, and freezing costs as much as
        parsing.
        """
        raw = self.raw
        if raw is None or self.kind == "custom":
            return None if self.kind == "custom" else self._parsed
        if not raw or raw.isspace():
            return EMPTY
        if len(raw) > MAX_DEPTH and raw.count("{") + raw.count("[") > MAX_DEPTH:
            return self._parsed  # it may be nested too deeply
        try:
            parsed = loads(raw)
        except InvalidInputError:
            return None
        return parsed if isinstance(parsed, dict) else None

    @property
    def has_valid_arguments(self) -> bool:
        """Whether the arguments are an object, or the tool is custom and takes any text."""
        return self.kind == "custom" or self._parsed is not None

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The arguments as a mapping, parsed once; raises where the text is not an object."""
        if self._parsed is None or self.kind == "custom":
            msg = "the arguments of this tool call are not a JSON object; see raw_arguments"
            raise InvalidInputError(msg)
        return self._parsed

    @cached_property
    def raw_arguments(self) -> str:
        """The arguments as text: what the model wrote, or the object as compact JSON."""
        return self.raw if self.raw is not None else dumps(self.input).decode("utf-8")

    @overload
    def argument(self, name: str) -> Any: ...
    @overload
    def argument(self, name: str, kind: type[T]) -> T | None: ...
    @overload
    def argument(self, name: str, kind: type[T], default: D) -> T | D: ...
    def argument(self, name: str, kind: Any = Any, default: Any = None) -> Any:
        """One argument as that type, or the default where it is absent.

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
        """All arguments as a type: a dataclass, TypedDict, NamedTuple, Struct or pydantic model."""
        from dragoman.model.functions.reading import read_as

        read: T = read_as(kind, self.arguments, "the tool call's arguments")
        return read

    def _said(self) -> tuple[Any, ...]:
        if self.kind == "custom" or self._parsed is None:
            # Free text: each of its characters counts.
            return (self.id, self.name, self.kind, self.raw)
        return (self.id, self.name, self.kind, self._parsed)

    def _sizes(self) -> Iterator[str]:
        yield from name_shown(self.name)
        yield from name_shown(self.id)
        size = len(self.raw) if self.raw is not None else len(self.input or ())
        yield f"{size} {'chars' if self.raw is not None else 'arguments'}"


class ToolResult(Part, frozen=True, tag="tool_result", metaclass=Checked):
    """What a tool returned: text, or parts where there are media, or data where a wire has JSON."""

    call_id: str
    content: str | tuple[ResultPart, ...] = ""
    data: Any = UNSET
    """The result as JSON, where it came as JSON and not as text (Gemini); unset otherwise."""
    tool_name: str | None = None
    is_error: bool | None = None
    """None where the wire does not say; False unless given where people make the result."""
    kind: Literal["function", "custom"] = "function"
    """The kind of tool that was called; it counts where the call itself is with the provider."""

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
        """Raise unless it names its call; a result that does not say otherwise is no error."""
        _check_call_id(self.call_id, _CALL_OF_RESULT)
        self.check()
        if self.is_error is None:
            force_setattr(self, "is_error", False)  # noqa: FBT003 - the field's value

    def replace(self, **changes: Any) -> Self:
        """A copy with these fields changed; they alone are checked."""
        if changes.get("content") and "data" not in changes:
            changes["data"] = UNSET  # the other form of what the tool returned
        elif "data" in changes and "content" not in changes:
            content = self.content
            rest = "" if isinstance(content, str) else [p for p in content if type(p) is not Text]
            changes["content"] = rest  # the words for the old data
        made = super().replace(**changes)
        if "call_id" in changes:
            _check_call_id(made.call_id, _CALL_OF_RESULT)
        return made

    def check(self) -> None:
        """As every part; the kind must be a known one, and the parts of the content are checked."""
        if self.tool_name is not None or self.is_error.__class__ is not bool:
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
        """The result of a call that worked; the empty text is a result."""
        return cls._made(call_id, result, tool_name, is_error=False)

    @classmethod
    def error(cls, call_id: str, message: str, *, tool_name: str | None = None) -> ToolResult:
        """The result of a call that failed, with what the model should know about it."""
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
        if content.__class__ is not str:  # an ABC costs a microsecond to ask
            expect(content, (str, Iterable), "the content of a tool result (or the empty text)")
        parts = content if isinstance(content, str) else tuple(content)
        return cls(call_id, parts, UNSET, tool_name, is_error)

    @property
    def text(self) -> str:
        """The result as text: its text parts joined, or its data as JSON."""
        if isinstance(self.content, str):
            if not self.content and self.data is not UNSET:
                return dumps(self.data).decode("utf-8")
            return self.content
        return "\n".join(part.text for part in self.content if isinstance(part, (Text, Refusal)))

    @property
    def parts(self) -> tuple[ResultPart, ...]:
        """The content as parts, whichever way it is held."""
        return (Text(self.content),) if isinstance(self.content, str) else self.content

    def __str__(self) -> str:
        return self.text

    def _said(self) -> tuple[Any, ...]:
        content = self.content
        if type(content) is tuple and len(content) == 1 and type(content[0]) is Text:
            content = content[0].text  # one text part and a plain text say the same
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
    """A piece of a tool call out of a stream.

    Servers differ in what they send (W7, W8): the index may be missing, always 0, or drift; id
    and name mostly come with the first piece only. `MessageAccumulator` makes sense of them.
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


class ToolDefinition(Value, frozen=True, tag_field="type", tag="tool", metaclass=Checked):
    """A tool that the model may call.

    What people make is checked, whichever way they make it; what came off a
    wire keeps its name and its gaps, and is aliased for targets that would refuse them.
    """

    name: str
    description: str | None = None
    parameters: Mapping[str, Any] | None = None
    """JSON Schema of the arguments; None where the wire had none, or for a custom tool."""
    strict: bool | UnsetType | None = UNSET
    """Whether the provider must hold the model to the schema; None: as the provider likes."""
    kind: Literal["function", "custom"] = "function"
    format: Mapping[str, Any] | None = None
    """The grammar of a custom tool's text."""
    cache: CacheHint | None = None
    origin: Origin | None = None
    extras: Mapping[str, Any] = EMPTY
    defer_loading: bool | None = None
    """Whether the model sees it only after a search for tools has found it."""
    allowed_callers: tuple[str, ...] = ()
    """Who may call it: the model itself (`direct`), or code that the provider runs."""
    output_schema: Mapping[str, Any] | None = None
    """JSON Schema of what it returns."""

    def __post_init__(self) -> None:
        if self.name.__class__ is not str:
            expect(self.name, str, "ToolDefinition.name")
        if self.kind not in _KINDS:
            msg = "ToolDefinition.kind must be function or custom"
            raise InvalidInputError(msg)
        if self.parameters is not None:
            own_mapping(self, "parameters")
        if self.format is not None:
            own_mapping(self, "format")
        if self.extras is not EMPTY:
            own_mapping(self, "extras")
        if self.allowed_callers.__class__ is not tuple or self.allowed_callers:
            own_tuple(self, "allowed_callers", str)
        if self.output_schema is not None:
            own_mapping(self, "output_schema")
        if self.strict is UNSET:
            force_setattr(self, "strict", True if self.origin is None else None)

    def check_made(self) -> None:
        """Raise where its name, description or schema is not allowed; a strict schema is closed."""
        check_tool_name(self.name, "the name of a tool")
        self._check_description()
        self._check_parameters()
        if self.strict.__class__ is not bool or self.cache is not None or self.origin is not None:
            expect_fields(self, strict=bool, cache=CacheHint, origin=Origin)
        if self.defer_loading is not None:
            expect_fields(self, defer_loading=bool)

    def _check_description(self) -> None:
        if self.description.__class__ is not str:
            expect(self.description, str, "the description of a tool")
        if not self.description:
            msg = "the description of a tool is empty; the model chooses by it"
            raise InvalidInputError(msg)
        if len(self.description) > _LONG:
            _warn_of_length(len(self.description))

    def _check_parameters(self) -> None:
        """Raise unless the parameters are a JSON Schema of an object; close those of a strict tool.

        Where the schema leaves it open whether there may be more arguments, a strict tool takes
        none; where it says that there may, the two contradict each other.
        """
        if self.kind == "custom":
            return
        schema = self.parameters
        if schema is None or schema.get("type") != "object":
            msg = 'the parameters of a tool must be a JSON Schema with "type": "object"'
            raise InvalidInputError(msg)
        _schema_check()(schema, "the parameters of a tool")
        if self.strict is not True or schema.get("additionalProperties") is False:
            return
        if "additionalProperties" in schema:
            msg = (
                "the parameters of a strict tool allow additionalProperties; leave that out,"
                " or make the tool with strict=False"
            )
            raise InvalidInputError(msg)
        if _OPENERS.isdisjoint(schema):
            force_setattr(self, "parameters", FrozenDict({**schema, "additionalProperties": False}))

    @classmethod
    def create(
        cls,
        name: str,
        description: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        strict: bool = True,
    ) -> ToolDefinition:
        """A tool made by hand. Without parameters it takes none.

        >>> ToolDefinition.create("now", "The current time.").parameters
        {'type': 'object', 'properties': {}, 'additionalProperties': False}

        A strict tool takes no arguments that its schema does not list.
        """
        return cls(name, description, _NO_PARAMETERS if parameters is None else parameters, strict)

    def replace(self, **changes: Any) -> Self:
        """A copy with these fields changed; they alone are checked."""
        made = super().replace(**changes)
        if "name" in changes:
            check_tool_name(made.name, "the name of a tool")
        if "description" in changes:
            made._check_description()
        if not changes.keys().isdisjoint({"parameters", "strict", "kind"}):
            made._check_parameters()
        return made

    @classmethod
    def from_type(
        cls,
        kind: Any,
        name: str | None = None,
        description: str | None = None,
        *,
        strict: bool | None = None,
    ) -> ToolDefinition:
        """A tool whose arguments are the fields of a type.

        A dataclass, TypedDict, NamedTuple, msgspec Struct or pydantic model. Name and description
        are the type's own unless they are given. The tool is strict, unless the type itself takes
        fields that it does not list (pydantic's `extra="allow"`).
        """
        from dragoman.model.functions.schema import schema_for

        name = str(getattr(kind, "__name__", kind)) if name is None else name
        schema = schema_for(kind, closed=strict is not False)
        if strict is None:
            strict = not schema.get("additionalProperties")
        own = schema.pop("description", None) if description is None else description
        return cls.create(name, _described(own, name, "the type"), schema, strict=strict)

    @classmethod
    def from_function(
        cls,
        function: Callable[..., Any],
        name: str | None = None,
        description: str | None = None,
        *,
        strict: bool = True,
    ) -> ToolDefinition:
        """A tool whose arguments are the parameters of a function.

        Their types come from its annotations, their descriptions from its docstring (Google,
        NumPy or Sphinx style) or from `Annotated[int, "How many."]`. See also `@tool`.
        """
        from dragoman.model.functions.signatures import signature_of

        signature = signature_of(function)
        name = signature.name if name is None else name
        own = signature.description if description is None else description
        own = _described(own, name, "the function")
        return cls.create(name, own, signature.schema(closed=strict), strict=strict)

    def problems(self, call: ToolCall) -> list[Problem]:
        """What is wrong with a call of this tool; empty where its arguments fit the parameters.

        >>> schema = {"type": "object", "properties": {"days": {"type": "integer"}}}
        >>> forecast = ToolDefinition.create("forecast", "The weather.", schema)
        >>> [str(each) for each in forecast.problems(ToolCall("c", "forecast", '{"days": "3"}'))]
        ['$.days: expected an integer, got string']
        """
        from dragoman.model.validation.problems import Problem, problems

        if self.kind == "custom":
            return []
        if call.kind == "custom" or not call.has_valid_arguments:
            return [Problem("$", "a JSON object", "text that is none", "type")]
        return problems(self.parameters, call.arguments)

    def check_arguments(self, arguments: Mapping[str, Any]) -> None:
        """Raise where the arguments do not fit the parameters, in words that a model can act on.

        They tell the path, what is expected there, and the type that came; never the value.
        """
        from dragoman.model.validation.problems import in_sentences, problems

        expect(arguments, Mapping, f"the arguments of `{self.name}`")
        found = problems(self.parameters, arguments)
        if found:
            msg = f"the arguments do not fit `{self.name}`: {in_sentences(found)}"
            raise InvalidInputError(msg)

    def _said(self) -> tuple[Any, ...]:
        return (self.name, self.description, self.parameters, self.strict, self.kind, self.format,
                self.defer_loading, self.allowed_callers, self.output_schema)  # fmt: skip

    def _sizes(self) -> Iterator[str]:
        yield from name_shown(self.name)
        yield self.kind
        yield f"{len((self.parameters or EMPTY).get('properties') or ())} parameters"


class LongDescriptionWarning(UserWarning):
    """A tool's description is longer than some providers take."""


_LONG = 1_024
_NO_PARAMETERS = freeze_mapping({"type": "object", "properties": {}})
# Where one of these is present, the schema says in parts what there may be, and closing it would
# forbid what those parts list.
_OPENERS = frozenset({"allOf", "anyOf", "oneOf", "$ref", "if"})


@cache
def _schema_check() -> Callable[[Any, str], None]:
    """Loaded when the first tool is made: most programs that read messages make none."""
    from dragoman.model.validation.metaschema import check_schema

    return check_schema


def _warn_of_length(length: int) -> None:
    import inspect
    import warnings

    depth, frame = 1, inspect.currentframe()
    while frame and str(frame.f_globals.get("__name__")).startswith("dragoman."):
        depth, frame = depth + 1, frame.f_back  # the line that is to blame is not ours
    msg = f"the description of a tool has {length} characters; some providers take {_LONG}"
    warnings.warn(msg, LongDescriptionWarning, stacklevel=depth)


def _described(description: str | None, name: str, what: str) -> str:
    if description:
        return description
    msg = f"the tool `{name}` has no description: give {what} a docstring, or pass one"
    raise InvalidInputError(msg)


make_call, make_result = unchecked(ToolCall), unchecked(ToolResult)
make_definition = unchecked(ToolDefinition)
"""What decoders, fitting and stores make, as it came; see `unchecked`."""


class ServerTool(Value, frozen=True, tag_field="type", tag="server_tool"):
    """A provider's own tool that only it knows, as its wire has it; see `provider_tools`."""

    name: str
    """The wire's type of tool, such as `web_search_20250305`."""
    dialect: str
    payload: Mapping[str, Any] = EMPTY
    """Its settings as the wire has them."""
    cache: CacheHint | None = None

    def __post_init__(self) -> None:
        expect(self.name, str, "ServerTool.name")
        expect(self.dialect, str, "ServerTool.dialect")
        own_mapping(self, "payload")


class ToolChoice(Value, frozen=True):
    """Whether and which tools the model must call."""

    mode: Literal["auto", "none", "required", "named", "allowed"] = "auto"
    names: tuple[str, ...] = ()
    """The tool for `named`, the permitted ones for `allowed`."""
    parallel: bool | None = None
    """Whether several calls may come in one turn; None: as the provider likes."""
    extras: Mapping[str, Any] = EMPTY
    is_required: bool = False
    """For `allowed`: whether one of them must be called."""

    def __post_init__(self) -> None:
        own_tuple(self, "names", str)
        own_mapping(self, "extras")
        if self.mode not in _MODES:
            msg = "ToolChoice.mode must be auto, none, required, named or allowed"
            raise InvalidInputError(msg)
        if self.mode == "named" and len(self.names) != 1:
            msg = "ToolChoice('named') needs exactly one tool name"
            raise InvalidInputError(msg)

    def _said(self) -> tuple[Any, ...]:
        return (self.mode, self.names, self.parallel, self.is_required)

    def _sizes(self) -> Iterator[str]:
        yield self.mode
