"""What a model is told of tools: their definitions, and which of them it is to call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, Self

from msgspec import UNSET, UnsetType
from msgspec.structs import force_setattr

from dragoman.errors import InvalidInputError
from dragoman.model.frozen import EMPTY, FrozenDict, freeze_mapping
from dragoman.model.parts import CacheHint, Origin
from dragoman.model.tool_calls import ToolCall, check_tool_name
from dragoman.model.value import (
    Checked,
    Value,
    expect,
    expect_fields,
    name_shown,
    own_mapping,
    own_tuple,
    unchecked,
)

if TYPE_CHECKING:
    from dragoman.model.validation.problems import Problem

_KINDS = ("function", "custom")
_MODES = ("auto", "none", "required", "named", "allowed")


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
