"""Tool definitions and tool choice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import sub
from typing import Any, Literal

from dragoman.model.frozen import EMPTY, thaw
from dragoman.model.requests import AnyTool, Request
from dragoman.model.tools import ServerTool, ToolChoice, ToolDefinition, make_definition
from dragoman.wire.anthropic.dialect import NAME, ORIGIN, Block, is_own
from dragoman.wire.anthropic.tables import CACHE, read_cache, write_cache
from dragoman.wire.anthropic.tools_provider import callers, callers_wire
from dragoman.wire.call_ids import CallIds
from dragoman.wire.known_tools import KnownTools
from dragoman.wire.overlay import overlay_of, with_overlay
from dragoman.wire.overlay_edits import Places, with_digests, without_edited
from dragoman.wire.reading import Reading
from dragoman.wire.rows import FLAG, OBJECT, TEXTS, Row, Shape
from dragoman.wire.schemas import PLAIN, Projection, Weight, projected
from dragoman.wire.schemas.profiles import ANNOTATIONS, CORE, FORMATS, REFERENCES, SCALARS, Profile
from dragoman.wire.schemas.request_schemas import Profiles
from dragoman.wire.settings_table import flag, text
from dragoman.wire.target import Target
from dragoman.wire.tolerance import is_odd_tool, odd_tool, payload_of
from dragoman.wire.tool_offers import ToolChange, ToolOffers
from dragoman.wire.violations import field
from dragoman.wire.writing import Writing

_CHOICE: Places = {"name": "", "disable_parallel_tool_use": ""}
MODES: dict[str, Literal["auto", "none", "required", "named"]] = {
    "auto": "auto",
    "any": "required",
    "tool": "named",
    "none": "none",
}
_KINDS = {mode: kind for kind, mode in MODES.items()}
_CUSTOM = "custom"  # the optional type of a client tool


# --- tool definitions


def decode_tools(wire: Any) -> tuple[AnyTool, ...]:
    """Decode the tools of a request; anything but a list stays in the extras."""
    return known_tools.read(wire) if isinstance(wire, list) else ()


def encode_tools(request: Request, body: Block, writing: Writing) -> list[Any]:
    """Encode the tools of a request; `body` holds its other fields."""
    tools = permitted_tools(request.tools, request.tool_choice)
    limits = StrictSchemaLimits(tools.values(), body)
    return [
        wire for index, tool in tools.items() for wire in _encode_tool(tool, index, limits, writing)
    ]


def permitted_tools(tools: tuple[AnyTool, ...], choice: ToolChoice | None) -> dict[int, AnyTool]:
    """The tools to send, by index: all, or those that the tool choice allows."""
    numbered = dict(enumerate(tools))
    if choice is None or choice.mode != "allowed":
        return numbered
    names = frozenset(choice.names)
    return {index: tool for index, tool in numbered.items() if tool.name in names}


def _decode_tool(wire: Any) -> AnyTool:
    """Decode a client tool, or a built-in tool, which has a type."""
    kind = wire.get("type") if isinstance(wire, dict) else None
    if isinstance(kind, str) and kind != _CUSTOM:
        return _decode_server_tool(wire, kind)
    name = wire.get("name") if isinstance(wire, dict) and kind in (None, _CUSTOM) else None
    if type(name) is not str:
        return odd_tool(wire, NAME)
    return TOOL.read(wire, _READING)  # type: ignore[return-value]  # it has a name


def _made_tool(name: str, **fields: Any) -> ToolDefinition:
    return make_definition(name, origin=ORIGIN, **fields)


_CALLERS = TEXTS._replace(read=callers, write=callers_wire, exact=False)
TOOL = Shape(
    NAME, None, ToolDefinition,
    Row("name", "name", is_required=True), Row("description", "description"),
    Row("input_schema", "parameters", OBJECT), Row("strict", "strict", FLAG), CACHE,
    Row("defer_loading", "defer_loading", FLAG),
    Row("allowed_callers", "allowed_callers", _CALLERS),
    make=_made_tool,
)  # fmt: skip
_READING = Reading(ORIGIN, CallIds())
known_tools = KnownTools(_decode_tool)


def _encode_tool(
    tool: AnyTool, index: int, limits: StrictSchemaLimits, writing: Writing
) -> list[Any]:
    """Encode a tool, as a list; empty for another provider's built-in tool."""
    if isinstance(tool, ToolDefinition):
        wire = TOOL.body(tool, writing)
        if tool.output_schema is not None:
            writing.lose(f"tools[{index}].output_schema", "this setting is not supported")
        if not is_own(tool.origin) or tool.kind == "custom":
            _encode_foreign(tool, wire, f"tools[{index}]", limits, writing)
        return [with_overlay(wire, tool.extras, NAME)]
    if tool.dialect == NAME:
        return [_encode_server_tool(tool)]
    writing.lose(f"tools[{index}]", "another provider's built-in tool is left out")
    return []


def _encode_foreign(
    tool: ToolDefinition, wire: Block, path: str, limits: StrictSchemaLimits, writing: Writing
) -> None:
    """Add the input schema of another dialect's tool, compiled for this dialect (W62)."""
    wire.pop("strict", None)
    if tool.kind == "custom":
        wire["input_schema"] = writing.schemas.text_tool(tool, path)
        return
    profiles = anthropic_profiles(writing.target)
    wire["input_schema"], is_strict = writing.schemas.tool(tool, path, profiles, limits.refusal)
    if is_strict:
        wire["strict"] = True


def _decode_server_tool(wire: Block, kind: str) -> ServerTool:
    control = wire.get("cache_control")
    cache = read_cache(control)
    known = (
        {"type"} if cache is None or control != write_cache(cache) else {"type", "cache_control"}
    )
    payload = {key: value for key, value in wire.items() if key not in known}
    return ServerTool(kind, NAME, payload, cache)


def _encode_server_tool(tool: ServerTool) -> Any:
    if is_odd_tool(tool):
        return payload_of(tool)
    wire: Block = {"type": tool.name, **tool.payload}
    if tool.cache is not None and "cache_control" not in wire:
        wire["cache_control"] = write_cache(tool.cache)
    return wire


# --- tool choice


def decode_tool_choice(wire: Any) -> ToolChoice | None:
    """Decode `tool_choice`; None if unknown (then it stays in the request's extras)."""
    kind = text(wire.get("type")) if isinstance(wire, dict) else None
    mode = MODES.get(kind or "")
    names = (wire["name"],) if mode == "named" and type(wire.get("name")) is str else ()
    if mode is None or (mode == "named" and not names):
        return None
    disabled = None if mode == "none" else flag(wire.get("disable_parallel_tool_use"))
    choice = ToolChoice(mode, names, None if disabled is None else not disabled)
    extras = overlay_of(wire, (), NAME, _tool_choice(choice))
    return with_digests(choice.replace(extras=extras), NAME, _CHOICE) if extras else choice


def encode_tool_choice(choice: ToolChoice) -> Block:
    """Encode `tool_choice`. `allowed` tools are expressed by sending no others (W74)."""
    return with_overlay(_tool_choice(choice), without_edited(choice, NAME, _CHOICE), NAME)


def _tool_choice(choice: ToolChoice) -> Block:
    mode = choice.mode
    if mode == "allowed":
        mode = "required" if choice.is_required else "auto"
    wire: Block = {"type": _KINDS[mode]}
    if mode == "named":
        wire["name"] = choice.names[0]
    if choice.parallel is not None and mode != "none":  # `none` has no further fields
        wire["disable_parallel_tool_use"] = not choice.parallel
    return wire


# --- JSON Schema dialects

ANTHROPIC = Profile(name="anthropic", refused_at_root=frozenset({"oneOf", "allOf", "anyOf"}))
"""For tools that are not strict (W62)."""

ANTHROPIC_STRICT = Profile(
    name="anthropic-strict",
    keywords=CORE | REFERENCES | {"definitions", "const", "additionalProperties", "format"},
    formats=FORMATS | {"uri"},
    literals=SCALARS,
    any_types=("string", "number", "boolean", "null"),
    refused_at_root=frozenset({"anyOf", "enum", "const"}),
    wraps_root=True,
    cycles="cut",  # "Circular reference detected in schema definitions"
    reference_siblings=frozenset(),
    union_siblings=ANNOTATIONS,
    needs_type=True,
    needs_items=True,
    is_closed=True,
    defines_required=True,
    max_min_items=1,
    max_optional=24,  # for all strict tools of a request together, like the unions
    max_unions=16,
)
"""For strict tools and output formats: what the vendor's SDK makes of a schema."""

ANTHROPICS = Profiles(ANTHROPIC_STRICT, ANTHROPIC)
_ANTHROPICS_OF_OTHERS = Profiles(ANTHROPIC, ANTHROPIC)


def anthropic_profiles(target: Target) -> Profiles:
    """The profiles for a target that speaks Anthropic's dialect."""
    return ANTHROPICS if target.schemas.checks_strict else _ANTHROPICS_OF_OTHERS


# --- limits on strict schemas in one request

MAX_STRICT_TOOLS = 20
MAX_OPTIONAL = ANTHROPIC_STRICT.max_optional or 0
MAX_UNIONS = ANTHROPIC_STRICT.max_unions or 0


def output_schema(body: Mapping[str, Any]) -> tuple[str, object]:
    """The output schema with its path; it was in another field originally."""
    place = "output_format"
    if field(field(body, "output_config"), "format").get("schema") is not None:
        body, place = field(body, "output_config"), "output_config.format"
    return f"{place}.schema", field(body, place.rpartition(".")[2]).get("schema")


class StrictSchemaLimits:
    """Tracks the limits on strict schemas, which apply to a request as a whole.

    What is sent in any case counts first: the output schema and this dialect's own strict tools.
    """

    __slots__ = ("_body", "_left", "_tools")

    def __init__(self, tools: Iterable[AnyTool], body: Block) -> None:
        self._tools, self._body = tools, body
        self._left: list[int] = []

    def refusal(self, made: Projection) -> str | None:
        """Why one more strict tool exceeds a limit; counts it and returns None if it does not."""
        if not self._left:
            self._left = [MAX_STRICT_TOOLS, MAX_OPTIONAL, MAX_UNIONS]
            self._reserve()
        tools, optional, unions = self._left
        if tools < 1:
            return f"a request can have at most {MAX_STRICT_TOOLS} strict tools"
        if made.weight.optional > optional:
            return f"strict schemas can have at most {MAX_OPTIONAL} optional properties in total"
        if made.weight.unions > unions:
            return f"strict schemas can have at most {MAX_UNIONS} unions in total"
        self._count(1, made.weight)
        return None

    def _reserve(self) -> None:
        _, answer = output_schema(self._body)
        if isinstance(answer, Mapping):
            self._count(0, projected(answer, PLAIN).weight)
        for tool in self._tools:
            if isinstance(tool, ToolDefinition) and tool.strict is True and is_own(tool.origin):
                self._count(1, projected(tool.parameters or EMPTY, PLAIN).weight)

    def _count(self, tools: int, weight: Weight) -> None:
        self._left = [*map(sub, self._left, (tools, weight.optional, weight.unions))]


# --- tools added or removed during a conversation


def _change(payload: Mapping[str, Any]) -> ToolChange | None:
    """Decode a block; None if unknown, or if it is about single tools of an MCP server."""
    kind, tool = payload.get("type"), payload.get("tool")
    if kind not in ("tool_addition", "tool_removal") or not isinstance(tool, Mapping):
        return None
    definition = tool.get("definition")
    if kind == "tool_addition" and isinstance(definition, Mapping):
        return ToolChange(decode_tools([thaw(definition)]))
    name = tool.get("name", tool.get("tool_name"))
    if tool.get("type") != "tool_reference" or type(name) is not str:
        return None
    return ToolChange(loaded=(name,)) if kind == "tool_addition" else ToolChange(removed=(name,))


OFFERS = ToolOffers(change=_change)
