"""Tool definitions (flat, not nested: W36) and tool choice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from dragoman.model.frozen import EMPTY
from dragoman.model.requests import AnyTool
from dragoman.model.tools import ServerTool, ToolChoice, ToolDefinition, make_definition
from dragoman.wire.known_tools import KnownTools
from dragoman.wire.openai_responses.content_forms import (
    decode_form,
    encode_form,
    formed,
    present,
    taken,
    without,
)
from dragoman.wire.openai_responses.dialect import NAME, ORIGIN
from dragoman.wire.openai_strict_schemas import openai_profiles
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

_FIELDS: dict[str, dict[str, type]] = {
    "function": {"description": str, "parameters": dict, "strict": bool},
    "custom": {"description": str, "format": dict},
}
"""Fields of tool definitions by kind, besides the name."""


def decode_tools(wire: list[Any]) -> tuple[AnyTool, ...]:
    """Decode the tools of a request."""
    return _known.read(wire)


def _decode_tool(wire: Any) -> AnyTool:
    if not isinstance(wire, dict) or type(kind := wire.get("type")) is not str:
        return odd_tool(wire, NAME)
    fields = without(wire, "type")
    if kind not in _FIELDS or type(fields.get("name")) is not str:
        return ServerTool(kind, NAME, fields)
    name = fields.pop("name")
    found: dict[str, Any] = {key: taken(fields, key, type_) for key, type_ in _FIELDS[kind].items()}
    found["kind"] = (
        "function" if kind == "function" else "custom"
    )  # always one of our constants: defaults aren't stored
    return make_definition(name, **found, origin=ORIGIN, extras=decode_form(fields, EMPTY))


_known = KnownTools(_decode_tool)


def encode_tools(tools: Sequence[AnyTool], writing: Writing) -> list[Any]:
    """Encode the tools of a request; other providers' built-in tools are left out."""
    encoded: list[Any] = []
    for index, tool in enumerate(tools):
        if tool.cache is not None:
            writing.lose(f"tools[{index}].cache", "cache hints are not supported on tools")
        if isinstance(tool, ToolDefinition):
            body = _encode_definition(tool)
            if tool.kind == "function" and not is_own(tool):
                # W16: the default of `strict` is true in this dialect and false in all others.
                profiles = openai_profiles(writing.target)
                made = writing.schemas.tool(tool, f"tools[{index}]", profiles)
                body["parameters"], body["strict"] = made
            encoded.append(body)
        elif tool.dialect == NAME:
            is_odd = is_odd_tool(tool)
            encoded.append(payload_of(tool) if is_odd else {"type": tool.name, **tool.payload})
        else:
            writing.lose(f"tools[{index}]", "another provider's built-in tool is left out")
    return encoded


def is_own(tool: ToolDefinition) -> bool:
    """Whether a tool was decoded from this dialect."""
    return tool.origin is not None and tool.origin.dialect == NAME


def _encode_definition(tool: ToolDefinition) -> dict[str, Any]:
    fields = {key: getattr(tool, key) for key in ("name", *_FIELDS[tool.kind])}
    if fields.get("format") is not None and not is_own(tool):
        fields["format"] = _encode_format(fields["format"])
    return formed({"type": tool.kind, **present(fields)}, tool.extras, EMPTY)


def _encode_format(form: Mapping[str, Any]) -> Mapping[str, Any]:
    """Encode the input format of a custom tool; Chat has a grammar in a nested object."""
    grammar = form.get("grammar")
    return {"type": "grammar", **grammar} if isinstance(grammar, Mapping) else form


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
    return ToolChoice("named", (name,), extras=decode_form(without(wire, "type", key), EMPTY))


def _decode_allowed(wire: dict[str, Any]) -> ToolChoice | None:
    tools = wire.get("tools")
    if not isinstance(tools, list):
        return None
    names = tuple(name for name in map(_name, tools) if name is not None)
    if len(names) < len(tools):
        return None
    must = wire.get("mode") == "required"
    extras = decode_form(without(wire, "type", "tools"), _MUST if must else _ANY)
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
        return {**_references(choice.names, tools)[0], **encode_form(choice.extras, EMPTY)}
    if choice.mode == "allowed":
        references = _references(choice.names, tools)
        form = dict(encode_form(choice.extras, _ANY))
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
