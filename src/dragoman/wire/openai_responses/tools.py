"""Tool definitions (flat, not nested: W36) and tool choice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from dragoman.model.parts import Opaque
from dragoman.model.requests import AnyTool
from dragoman.model.tools import ServerTool, ToolChoice, ToolDefinition, make_definition
from dragoman.wire.call_ids import CallIds
from dragoman.wire.known_tools import KnownTools
from dragoman.wire.openai_responses.dialect import NAME, ORIGIN
from dragoman.wire.openai_responses.forms import Formed, extras_in, form_of, without
from dragoman.wire.openai_rows import MAPPING
from dragoman.wire.openai_settings import callers, callers_wire
from dragoman.wire.openai_strict_schemas import openai_profiles
from dragoman.wire.reading import Reading
from dragoman.wire.rows import FLAG, LIST, OBJECT, SILENT, Row, Union, Value
from dragoman.wire.tolerance import is_odd_tool, odd_tool, payload_of
from dragoman.wire.writing import Writing

_MODES: dict[str, Literal["auto", "none", "required"]] = {
    "auto": "auto",
    "none": "none",
    "required": "required",
}
_ANY: Mapping[str, Any] = {"mode": "auto"}
_MUST: Mapping[str, Any] = {"mode": "required"}


# --- tool definitions


def _in_openai_s_form(form: Mapping[str, Any]) -> Mapping[str, Any]:
    """The input format of a custom tool; Chat has a grammar in a nested object."""
    grammar = form.get("grammar")
    return {"type": "grammar", **grammar} if isinstance(grammar, Mapping) else form


def _made(name: str, **fields: Any) -> ToolDefinition:
    return make_definition(name, origin=ORIGIN, **fields)


_SHARED = (
    Row("defer_loading", "defer_loading", FLAG),
    Row("allowed_callers", "allowed_callers", Value(LIST.test, callers, callers_wire)),
    Row("output_schema", "output_schema", MAPPING),
)


def _tool(kind: Literal["function", "custom"], *rows: Row) -> Formed[ToolDefinition]:
    return Formed(
        kind, ToolDefinition,
        Row("name", "name", is_required=True), Row("description", "description"), *rows, *_SHARED,
        make=_made, given={"kind": repr(kind)}, fits=lambda tool: tool.kind == kind,
    )  # fmt: skip


TOOLS = Union(
    NAME,
    _tool("function", Row("parameters", "parameters", OBJECT), Row("strict", "strict", FLAG)),
    _tool("custom", Row("format", "format", OBJECT)),
)
_READING = Reading(ORIGIN, CallIds())


def decode_tools(wire: list[Any]) -> tuple[AnyTool, ...]:
    """Decode the tools of a request."""
    return _known.read(wire)


def _decode_tool(wire: Any) -> AnyTool:
    if not isinstance(wire, dict) or type(kind := wire.get("type")) is not str:
        return odd_tool(wire, NAME)
    made = TOOLS.read(wire, _READING)
    return ServerTool(kind, NAME, without(wire, "type")) if type(made) is Opaque else made


_known = KnownTools(_decode_tool)


def encode_tools(tools: Sequence[AnyTool], writing: Writing) -> list[Any]:
    """Encode the tools of a request; other providers' built-in tools are left out."""
    encoded: list[Any] = []
    for index, tool in enumerate(tools):
        if tool.cache is not None:
            writing.lose(f"tools[{index}].cache", "cache hints are not supported on tools")
        if isinstance(tool, ToolDefinition):
            encoded.append(_encode_definition(tool, index, writing))
        elif tool.dialect == NAME:
            is_odd = is_odd_tool(tool)
            encoded.append(payload_of(tool) if is_odd else {"type": tool.name, **tool.payload})
        else:
            writing.lose(f"tools[{index}]", "another provider's built-in tool is left out")
    return encoded


def is_own(tool: ToolDefinition) -> bool:
    """Whether a tool was decoded from this dialect."""
    return tool.origin is not None and tool.origin.dialect == NAME


def _encode_definition(tool: ToolDefinition, index: int, writing: Writing) -> dict[str, Any]:
    body: dict[str, Any] = TOOLS.write(tool, SILENT)
    if is_own(tool):
        return body
    if tool.kind == "custom" and "format" in body:
        body["format"] = _in_openai_s_form(body["format"])
    if tool.kind == "function":
        # W16: the default of `strict` is true in this dialect and false in all others.
        made = writing.schemas.tool(tool, f"tools[{index}]", openai_profiles(writing.target))
        body["parameters"], body["strict"] = made
    return body


# --- tool choice


def decode_choice(wire: Mapping[str, Any], tools: Sequence[AnyTool]) -> ToolChoice | None:
    """Decode the tool choice; None if we would not encode it the same way (then it is kept)."""
    parallel = wire.get("parallel_tool_calls")
    parallel = parallel if type(parallel) is bool else None
    chosen = wire.get("tool_choice")
    choice = None
    if type(chosen) is str and chosen in _MODES:
        choice = ToolChoice(_MODES[chosen])
    elif isinstance(chosen, dict):
        is_allowed = chosen.get("type") == "allowed_tools"
        choice = _decode_allowed(chosen) if is_allowed else _decode_named(chosen)
        if choice is not None and _encode_chosen(choice, tools) != chosen:
            choice = None
    if parallel is None:
        return choice
    return (choice or ToolChoice()).replace(parallel=parallel)


def _decode_named(wire: dict[str, Any]) -> ToolChoice | None:
    kind = wire.get("type")
    key = "name" if kind in ("function", "custom") else "type"
    if type(name := wire.get(key)) is not str:
        return None
    return ToolChoice("named", (name,), extras=extras_in(without(wire, "type", key)))


def _decode_allowed(wire: dict[str, Any]) -> ToolChoice | None:
    tools = wire.get("tools")
    if not isinstance(tools, list):
        return None
    names = tuple(name for name in map(_name, tools) if name is not None)
    if len(names) < len(tools):
        return None
    must = wire.get("mode") == "required"
    extras = extras_in(without(wire, "type", "tools"), _MUST if must else _ANY)
    return ToolChoice("allowed", names, extras=extras, is_required=must)


def _name(wire: Any) -> str | None:
    """The name of a tool in a reference: its name, its server, or its type."""
    if not isinstance(wire, dict):
        return None
    found = next((wire[key] for key in ("name", "server_label", "type") if key in wire), None)
    return found if type(found) is str else None


def encode_choice(choice: ToolChoice, tools: Sequence[AnyTool]) -> dict[str, Any]:
    """Encode the tool choice."""
    body: dict[str, Any] = {}
    if choice.mode != "auto" or choice.parallel is None:
        body["tool_choice"] = _encode_chosen(choice, tools)
    if choice.parallel is not None:
        body["parallel_tool_calls"] = choice.parallel
    return body


def _encode_chosen(choice: ToolChoice, tools: Sequence[AnyTool]) -> str | dict[str, Any]:
    if choice.mode == "named":
        return {**_references(choice.names, tools)[0], **form_of(choice.extras)}
    if choice.mode == "allowed":
        references = _references(choice.names, tools)
        form = dict(form_of(choice.extras, _ANY))
        if choice.is_required:
            form |= _MUST
        elif form.get("mode") == _MUST["mode"]:
            form |= _ANY
        return {"type": "allowed_tools", "tools": references, **form}
    return choice.mode


def _references(names: Sequence[str], tools: Sequence[AnyTool]) -> list[dict[str, Any]]:
    """References to tools by name: functions before built-in tools, then the first of a name."""
    defined: dict[str, dict[str, Any]] = {}
    built_in: dict[str, dict[str, Any]] = {}
    for tool in tools:
        if isinstance(tool, ToolDefinition):
            defined.setdefault(tool.name, {"type": tool.kind, "name": tool.name})
        else:
            if type(label := tool.payload.get("server_label")) is str:
                built_in.setdefault(label, {"type": tool.name, "server_label": label})
            built_in.setdefault(tool.name, {"type": tool.name})
    known = {**built_in, **defined}
    return [known.get(name) or {"type": "function", "name": name} for name in names]
