"""Definitions of tools. Whether one must be called can't be said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.model.requests import AnyTool, Request
from dragoman.model.tools import ServerTool, ToolChoice, ToolDefinition, make_definition
from dragoman.wire.ollama.calls import TEXT_ARGUMENT
from dragoman.wire.ollama.exchange import Outgoing
from dragoman.wire.ollama.spelling import NAME, OWN, is_list, is_object, is_own, kept, laid
from dragoman.wire.schemas import OLLAMA, Profiles
from dragoman.wire.tolerance import odd_tool, payload_of

_TEXT_PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {TEXT_ARGUMENT: {"type": "string"}},
    "required": [TEXT_ARGUMENT],
}
_PROFILES = Profiles(OLLAMA, OLLAMA)
_KINDS = {"name": str, "description": str, "parameters": dict}


def decode_tools(wire: Any, known: set[str]) -> tuple[AnyTool, ...]:
    """The tools of a request; an empty list stays in the extras."""
    if not is_list(wire) or not wire:
        return ()
    known.add("tools")
    return tuple([_decode_tool(tool) for tool in wire])


def _decode_tool(wire: Any) -> AnyTool:
    if not is_object(wire):
        return odd_tool(wire, NAME)
    function = wire.get("function")
    if not is_object(function) or not isinstance(function.get("name"), str):
        kind = wire.get("type")
        return ServerTool(kind if isinstance(kind, str) else "", NAME, wire)
    fields = {key: function[key] for key, kind in _KINDS.items()
              if isinstance(function.get(key), kind)}  # fmt: skip
    outer = {key: value for key, value in wire.items() if key != "function"}
    if inner := {key: value for key, value in function.items() if key not in fields}:
        outer["function"] = inner
    extras = kept(outer, (), {"type": "function"})
    return make_definition(**fields, origin=OWN, extras=extras)


def encode_tools(request: Request, out: Outgoing) -> list[Any]:
    """The tools to send: those that may be called."""
    choice = request.tool_choice
    if choice is not None:
        _note_choice(choice, out)
    written: list[Any] = []
    for index, tool in enumerate(request.tools):
        path = f"tools[{index}]"
        if choice is not None and not _is_permitted(tool, choice):
            out.lose(path, "a tool that must not be called can only be left out here")
        elif isinstance(tool, ToolDefinition):
            written.append(_encode_tool(tool, out, path))
        elif tool.dialect == NAME:
            written.append(payload_of(tool))
            if tool.cache is not None:
                out.lose(f"{path}.cache", "the server decides itself what it keeps of a prompt")
        else:
            out.lose(path, "a tool that only another provider runs")
    return written


def _is_permitted(tool: AnyTool, choice: ToolChoice) -> bool:
    if choice.mode == "none":
        return False
    return choice.mode != "allowed" or tool.name in choice.names


def _note_choice(choice: ToolChoice, out: Outgoing) -> None:
    if choice.mode in ("required", "named") or choice.is_required:
        out.lose("tool_choice", "a model can't be made to call a tool here")
    if choice.parallel is not None:
        out.lose("tool_choice.parallel", "how many calls a turn may have can't be said")


def _encode_tool(tool: ToolDefinition, out: Outgoing, path: str) -> dict[str, Any]:
    function: dict[str, Any] = {"name": tool.name}
    if tool.description is not None:
        function["description"] = tool.description
    if is_own(tool.origin) and tool.kind == "function":
        if tool.parameters is not None:
            function["parameters"] = tool.parameters
    else:
        function["parameters"] = parameters = _encode_parameters(tool, out, path)
        said = parameters.get("description")
        if said is not None and said != tool.description:
            # The server's type of parameters has no place for it.
            known = "" if tool.description is None else f"{tool.description}\n\n"
            function["description"] = known + said
        if tool.strict:
            out.lose(f"{path}.strict", "nobody holds the model to the schema here")
    if tool.cache is not None:
        out.lose(f"{path}.cache", "the server decides itself what it keeps of a prompt")
    return laid({"type": "function", "function": function}, tool.extras)


def _encode_parameters(tool: ToolDefinition, out: Outgoing, path: str) -> Mapping[str, Any]:
    if tool.kind == "custom":
        out.lose(path, f"a tool that takes text is sent as one that takes it as {TEXT_ARGUMENT!r}")
        return _TEXT_PARAMETERS
    schema, _ = out.schemas.tool(tool, path, _PROFILES)
    return schema
