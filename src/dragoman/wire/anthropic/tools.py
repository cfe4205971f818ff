"""Tool definitions and tool choice."""

from __future__ import annotations

from typing import Any, Literal

from dragoman.model.requests import AnyTool, Request
from dragoman.model.tools import ServerTool, ToolChoice, ToolDefinition, make_definition
from dragoman.wire.anthropic.dialect import NAME, ORIGIN, Block, is_own
from dragoman.wire.anthropic.tables import CACHE, read_cache, write_cache
from dragoman.wire.anthropic.tools_provider import callers, callers_wire
from dragoman.wire.anthropic.tools_schemas import StrictSchemaLimits, anthropic_profiles
from dragoman.wire.call_ids import CallIds
from dragoman.wire.known_tools import KnownTools
from dragoman.wire.overlay import overlay_of, with_overlay
from dragoman.wire.overlay_edits import Places, with_digests, without_edited
from dragoman.wire.reading import Reading
from dragoman.wire.rows import FLAG, OBJECT, TEXTS, Row, Shape, Value
from dragoman.wire.settings_table import flag, text
from dragoman.wire.tolerance import is_odd_tool, odd_tool, payload_of
from dragoman.wire.writing import Writing

_CHOICE: Places = {"name": "", "disable_parallel_tool_use": ""}
_MODES: dict[str, Literal["auto", "none", "required", "named"]] = {
    "auto": "auto",
    "any": "required",
    "tool": "named",
    "none": "none",
}
_KINDS = {mode: kind for kind, mode in _MODES.items()}
_CUSTOM = "custom"  # the optional type of a client tool


# --- tool definitions


def decode_tools(wire: Any) -> tuple[AnyTool, ...]:
    """Decode the tools of a request; anything but a list stays in the extras."""
    return _known.read(wire) if isinstance(wire, list) else ()


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


TOOL = Shape(
    NAME, None, ToolDefinition,
    Row("name", "name", is_required=True), Row("description", "description"),
    Row("input_schema", "parameters", OBJECT), Row("strict", "strict", FLAG), CACHE,
    Row("defer_loading", "defer_loading", FLAG),
    Row("allowed_callers", "allowed_callers", Value(TEXTS.test, callers, callers_wire)),
    make=_made_tool,
)  # fmt: skip
_READING = Reading(ORIGIN, CallIds())
_known = KnownTools(_decode_tool)


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
    mode = _MODES.get(kind or "")
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
