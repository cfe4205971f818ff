"""Tool definitions and tool choice: what a request tells the model about its tools."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, Self

from msgspec import UNSET, Raw, UnsetType
from msgspec.structs import force_setattr

from dragoman.errors import InvalidInputError
from dragoman.model.frozen import EMPTY, FrozenDict, freeze_mapping
from dragoman.model.jsontext import JsonText, loads
from dragoman.model.parts import CacheHint, Origin
from dragoman.model.tool_calls import ToolCall, check_tool_name
from dragoman.model.value import (
    CheckedName,
    Value,
    expect,
    expect_fields,
    name_shown,
    own_mapping,
    own_tuple,
    shallow_copy,
    unchecked,
)

if TYPE_CHECKING:
    from dragoman.model.validation.problems import Problem

_KINDS = ("function", "custom")
_MODES = ("auto", "none", "required", "named", "allowed")


class ToolDefinition(Value, frozen=True, tag_field="type", tag="tool", metaclass=CheckedName):
    """A tool that the model may call.

    Definitions made by hand are validated. Decoded ones keep their names and gaps; names that a
    target rejects are replaced by aliases in the request.
    """

    name: str
    """Letters, digits and underscores, up to 64: such names are portable to every system. With
    `portable=False`, up to 128 characters, with dots, colons and hyphens."""
    description: str | None = None
    """What the tool does; the model chooses tools by it."""
    parameters: Mapping[str, Any] | None = None
    """JSON Schema of the arguments; `None` for a custom tool, or if the wire had none."""
    strict: bool | UnsetType | None = UNSET
    """Whether the provider must enforce the schema; `None` means the provider's default."""
    kind: Literal["function", "custom"] = "function"
    format: Mapping[str, Any] | None = None
    """The grammar of a custom tool's input."""
    cache: CacheHint | None = None
    origin: Origin | None = None
    extras: Mapping[str, Any] = EMPTY
    defer_loading: bool | None = None
    """Whether the model sees the tool only after a tool search has found it."""
    allowed_callers: tuple[str, ...] = ()
    """Who may call it: the model itself (`direct`), or code that the provider runs."""
    output_schema: Mapping[str, Any] | None = None
    """JSON Schema of the result."""

    if TYPE_CHECKING:  # the constructor accepts `portable`, which is not a field

        def __init__(  # noqa: PLR0913, PLR0917 - the fields in their order
            self,
            name: str,
            description: str | None = None,
            parameters: Mapping[str, Any] | None = None,
            strict: bool | UnsetType | None = UNSET,  # noqa: FBT001 - as the field
            kind: Literal["function", "custom"] = "function",
            format: Mapping[str, Any] | None = None,  # noqa: A002 - the field's name
            cache: CacheHint | None = None,
            origin: Origin | None = None,
            extras: Mapping[str, Any] = EMPTY,
            defer_loading: bool | None = None,  # noqa: FBT001 - as the field
            allowed_callers: tuple[str, ...] = (),
            output_schema: Mapping[str, Any] | None = None,
            *,
            portable: bool = True,
        ) -> None: ...

    def settle(self) -> None:
        """Freezes a schema that is still text."""
        self.parameters  # noqa: B018 - done when it is read

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

    def check_made(self, portable: bool = True) -> None:  # noqa: FBT001, FBT002 - as of a call
        """Raises if name, description or schema is invalid; closes the schema of a strict tool."""
        check_tool_name(self.name, "the name of a tool", portable=portable)
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
            msg = "the description of a tool must not be empty; the model chooses tools by it"
            raise InvalidInputError(msg)
        if len(self.description) > _LONG:
            _warn_of_length(len(self.description))

    def _check_parameters(self) -> None:
        """Raises unless the parameters are the JSON Schema of an object; closes a strict tool's.

        A strict tool gets `additionalProperties: false` if the schema does not set it; a schema
        that allows additional properties contradicts `strict`.
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
                "the parameters of a strict tool must not allow additionalProperties; remove that,"
                " or pass strict=False"
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
        portable: bool = True,
    ) -> ToolDefinition:
        """Creates a tool; without parameters, it takes no arguments.

        >>> ToolDefinition.create("now", "The current time.").parameters
        {'type': 'object', 'properties': {}, 'additionalProperties': False}

        A strict tool accepts no arguments that its schema does not list.
        """
        schema = _NO_PARAMETERS if parameters is None else parameters
        return cls(name, description, schema, strict, portable=portable)

    @classmethod
    def _from_plain(cls, raw: JsonText) -> Self | None:
        """Reads a plain object of these fields.

        >>> ToolDefinition.from_json('{"name": "now", "description": "The time.",'
        ...                          ' "parameters": {"type": "object", "properties": {}}}').strict
        True
        """
        plain = loads(raw)
        if not isinstance(plain, dict) or "name" not in plain:
            return None
        if not plain.keys() <= {*cls.__struct_fields__}:
            fields = ", ".join(cls.__struct_fields__)
            msg = f"the JSON of a tool has a field that is not one of {fields}"
            raise InvalidInputError(msg)
        return cls(**plain, portable=False)

    def replace(self, *, portable: bool = True, **changes: Any) -> Self:
        """Returns a copy with these fields changed; only these are validated."""
        made = super().replace(**changes)
        if "name" in changes:
            check_tool_name(made.name, "the name of a tool", portable=portable)
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
        portable: bool = True,
    ) -> ToolDefinition:
        """Creates a tool whose arguments are the fields of a type.

        The type may be a dataclass, TypedDict, NamedTuple, msgspec Struct or pydantic model. Name
        and description default to those of the type. The tool is strict unless the type allows
        additional fields (pydantic's `extra="allow"`).
        """
        from dragoman.model.functions.schema import schema_for

        name = str(getattr(kind, "__name__", kind)) if name is None else name
        schema = schema_for(kind, closed=strict is not False)
        if strict is None:
            strict = not schema.get("additionalProperties")
        own = schema.pop("description", None) if description is None else description
        own = _described(own, name, "the type")
        return cls.create(name, own, schema, strict=strict, portable=portable)

    @classmethod
    def from_function(
        cls,
        function: Callable[..., Any],
        name: str | None = None,
        description: str | None = None,
        *,
        strict: bool = True,
        portable: bool = True,
    ) -> ToolDefinition:
        """Creates a tool whose arguments are the parameters of a function.

        Types come from the annotations, descriptions from the docstring (Google, NumPy or Sphinx
        style) or from `Annotated[int, "How many."]`. See also `@tool`.
        """
        from dragoman.model.functions.signatures import signature_of

        signature = signature_of(function)
        name = signature.name if name is None else name
        own = signature.description if description is None else description
        own = _described(own, name, "the function")
        schema = signature.schema(closed=strict)
        return cls.create(name, own, schema, strict=strict, portable=portable)

    def problems(self, call: ToolCall) -> list[Problem]:
        """Validates a call of this tool; returns an empty list if the arguments match the schema.

        >>> schema = {"type": "object", "properties": {"days": {"type": "integer"}}}
        >>> forecast = ToolDefinition.create("forecast", "The weather.", schema)
        >>> [str(each) for each in forecast.problems(ToolCall("c", "forecast", '{"days": "3"}'))]
        ['$.days: expected an integer, got string']
        """
        from dragoman.model.validation.problems import Problem, problems

        if self.kind == "custom":
            return []
        if call.kind == "custom" or not call.has_valid_arguments:
            return [Problem("$", "a JSON object", "text that is not an object", "type")]
        return problems(self.parameters, call.arguments)

    def check_arguments(self, arguments: Mapping[str, Any]) -> None:
        """Raises if the arguments don't match the schema; the message is suitable for a model.

        It names the path, the expected type and the actual type, never the value.
        """
        from dragoman.model.validation.problems import in_sentences, problems

        expect(arguments, Mapping, f"the arguments of `{self.name}`")
        found = problems(self.parameters, arguments)
        if found:
            msg = f"the arguments don't match `{self.name}`: {in_sentences(found)}"
            raise InvalidInputError(msg)

    def _compared_fields(self) -> tuple[Any, ...]:
        return (self.name, self.description, self.parameters, self.strict, self.kind, self.format,
                self.defer_loading, self.allowed_callers, self.output_schema)  # fmt: skip

    def _sizes(self) -> Iterator[str]:
        yield from name_shown(self.name)
        yield self.kind
        yield f"{len((self.parameters or EMPTY).get('properties') or ())} parameters"


class LongDescriptionWarning(UserWarning):
    """A tool's description is longer than some providers accept."""


_LONG = 1_024
_NO_PARAMETERS = freeze_mapping({"type": "object", "properties": {}})
# With one of these, parts of the schema define further properties, which closing it would forbid.
_OPENERS = frozenset({"allOf", "anyOf", "oneOf", "$ref", "if"})


@cache
def _schema_check() -> Callable[[Any, str], None]:
    """Imported with the first definition: most programs that read messages create none."""
    from dragoman.model.validation.metaschema import check_schema

    return check_schema


def _warn_of_length(length: int) -> None:
    import inspect
    import warnings

    depth, frame = 1, inspect.currentframe()
    while frame and str(frame.f_globals.get("__name__")).startswith("dragoman."):
        depth, frame = depth + 1, frame.f_back  # skip our own frames
    msg = f"the description of a tool has {length} characters; some providers accept only {_LONG}"
    warnings.warn(msg, LongDescriptionWarning, stacklevel=depth)


def _described(description: str | None, name: str, what: str) -> str:
    if description:
        return description
    msg = f"the tool `{name}` has no description; add a docstring to {what}, or pass description="
    raise InvalidInputError(msg)


make_definition = unchecked(ToolDefinition)
"""A constructor without validation, for decoders, fitting and stores; see `unchecked`."""


class _Parameters:
    """The descriptor of a definition's schema: text until somebody looks, then frozen."""

    __slots__ = ("_slot",)

    def __init__(self, slot: Any) -> None:
        self._slot = slot

    def __get__(self, tool: ToolDefinition | None, _kind: object = None) -> Any:
        if tool is None:
            return self
        found = self._slot.__get__(tool)
        if found.__class__ is Raw:
            found = freeze_mapping(loads(memoryview(found)))
            self._slot.__set__(tool, found)  # another thread's is equal
        return found

    def __set__(self, tool: ToolDefinition, value: Any) -> None:
        self._slot.__set__(tool, value)


_parameters: Any = ToolDefinition.__dict__["parameters"]
type.__setattr__(ToolDefinition, "parameters", _Parameters(_parameters))


def with_schema_text(blank: ToolDefinition, name: str, about: str | None, schema: Raw) -> Any:
    """A copy of a definition with another name, description and schema, whose JSON is an object.

    For decoders, which vouch that the text can be frozen: that is only done if somebody looks.
    """
    made = shallow_copy(blank)
    force_setattr(made, "name", name)
    force_setattr(made, "description", about)
    _parameters.__set__(made, schema)
    return made


def schema_text(tool: ToolDefinition) -> Raw | None:
    """The schema as it came, if nobody has looked at it yet."""
    found = _parameters.__get__(tool)
    return found if found.__class__ is Raw else None


class ServerTool(Value, frozen=True, tag_field="type", tag="server_tool"):
    """A provider-specific tool in its wire form; see `dragoman.tools` for the common ones."""

    name: str
    """The tool's type on the wire, such as `web_search_20250305`."""
    dialect: str
    payload: Mapping[str, Any] = EMPTY
    """Its settings in wire form."""
    cache: CacheHint | None = None

    def __post_init__(self) -> None:
        expect(self.name, str, "ServerTool.name")
        expect(self.dialect, str, "ServerTool.dialect")
        own_mapping(self, "payload")


class ToolChoice(Value, frozen=True):
    """Whether the model must call tools, and which."""

    mode: Literal["auto", "none", "required", "named", "allowed"] = "auto"
    names: tuple[str, ...] = ()
    """The tool for `named`, or the permitted tools for `allowed`."""
    parallel: bool | None = None
    """Whether the model may make several calls in one turn; `None` means the provider's default."""
    extras: Mapping[str, Any] = EMPTY
    is_required: bool = False
    """For `allowed`: whether one of the tools must be called."""

    def __post_init__(self) -> None:
        own_tuple(self, "names", str)
        own_mapping(self, "extras")
        if self.mode not in _MODES:
            msg = "ToolChoice.mode must be auto, none, required, named or allowed"
            raise InvalidInputError(msg)
        if self.mode == "named" and len(self.names) != 1:
            msg = "ToolChoice('named') needs exactly one tool name"
            raise InvalidInputError(msg)

    def _compared_fields(self) -> tuple[Any, ...]:
        return (self.mode, self.names, self.parallel, self.is_required)

    def _sizes(self) -> Iterator[str]:
        yield self.mode
