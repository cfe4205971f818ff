"""Tool definitions and tool calls. Calls are whole, with an object as arguments (W102)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET, UnsetType

from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY
from dragoman.model.parts import Opaque
from dragoman.model.requests import AnyTool, Request
from dragoman.model.tools import (
    ServerTool,
    ToolCall,
    ToolChoice,
    ToolDefinition,
    make_call,
    make_definition,
)
from dragoman.wire.cut_calls import is_left_out
from dragoman.wire.fitting.tools import NOT_AN_OBJECT, is_forced
from dragoman.wire.json_values import is_list, is_object
from dragoman.wire.known_tools import KnownTools
from dragoman.wire.ollama.dialect import NAME, ORIGIN, OllamaReading, OllamaWriting, is_own
from dragoman.wire.overlay import overlay_of, with_overlay
from dragoman.wire.rows import OBJECT, TEXT, Row, Shape, Value
from dragoman.wire.schemas import Profile, Profiles
from dragoman.wire.settings_rows import lose_tool_settings
from dragoman.wire.text_tools import TEXT_ARGUMENT
from dragoman.wire.tolerance import odd_tool, payload_of
from dragoman.wire.writing import Writing

# --- tool calls


def _read_function(function: dict[str, Any], _: OllamaReading) -> dict[str, Any] | None:
    """Arguments as text are refused by the server, but sent by many clients (W102)."""
    name, arguments = function.get("name"), function.get("arguments")
    is_known = type(name) is str and isinstance(arguments, dict | str | None)
    return {"name": name, "arguments": arguments} if is_known else None


def _write_function(call: ToolCall, _: OllamaWriting) -> dict[str, Any]:
    return {"name": call.name, "arguments": arguments_of(call)}


def _made_call(r: OllamaReading, name: str, arguments: Any, wire_id: str | None = None) -> ToolCall:
    call_id, own_id = r.calls.add_named_call(name, wire_id, arguments)
    r.names[call_id] = name
    origin = None if own_id is UNSET else r.origin  # whose id it is must be known
    if isinstance(arguments, str):
        return make_call(call_id, name, arguments, wire_id=own_id, origin=origin)
    return make_call(call_id, name, None, arguments or EMPTY, wire_id=own_id, origin=origin)


def _write_id(call: ToolCall, writing: OllamaWriting) -> str | None:
    """The id of a call; older servers assign none: their calls are sent back without (W103)."""
    wire_id = call.wire_id
    return call.id if isinstance(wire_id, UnsetType) or not writing.is_own(call) else wire_id


CALL = Shape(
    NAME, None, ToolCall,
    Row("id", "wire_id", TEXT._replace(write=_write_id, exact=True), takes_owner=True,
        reports=True),
    Row("function", "", Value(OBJECT.test, _read_function, _write_function), is_required=True,
        deep=True),
    make=_made_call, given={"r": "r"},
)  # fmt: skip


def decode_call(wire: Any, reading: OllamaReading) -> AnyPart:
    """Decode one of `tool_calls`; a malformed one becomes an opaque part."""
    if not is_object(wire):
        return Opaque(NAME, wire, origin=reading.origin)
    return CALL.read(wire, reading)


def arguments_of(call: ToolCall) -> Mapping[str, Any]:
    """The arguments as an object; text that is not a JSON object is wrapped in one."""
    arguments = call.object_arguments()
    return {TEXT_ARGUMENT: call.raw_arguments} if arguments is None else arguments


def encode_call(call: ToolCall, writing: OllamaWriting, number: int) -> dict[str, Any] | None:
    """Encode a call; None with a loss if it was truncated, or a client would run it (I7)."""
    writing.lose_unsupported(call)
    body, arguments = CALL.body(call, writing), call.object_arguments()
    writing.wire_ids[call.id] = body.get("id")  # as its result has it
    writing.names[call.id] = call.name
    if writing.is_response and not is_own(writing.origin):
        body["function"] = {"index": number, **body["function"]}
    body = with_overlay(body, call.extras, NAME)
    is_object = isinstance(body["function"].get("arguments"), Mapping)  # or as it came
    if is_object and is_left_out(call, arguments, writing):
        return None
    if is_object and arguments is None:
        writing.repair_here("I6", "retyped", NOT_AN_OBJECT)
    return body


# --- tool definitions

OLLAMA = Profile(
    name="ollama",
    keywords=frozenset({"type", "description", "enum", "anyOf", "properties", "required", "items"}),
    refused_at_root=frozenset({"anyOf", "enum"}),
    cycles="cut",
)
"""The server parses tools into typed structs; unknown keywords never reach the model."""
PROFILES = Profiles(OLLAMA, OLLAMA)
_KINDS = {"name": str, "description": str, "parameters": dict}


def decode_tools(wire: Any, known: set[str]) -> tuple[AnyTool, ...]:
    """Decode the tools of a request; an empty list stays in the extras."""
    if not is_list(wire) or not wire:
        return ()
    known.add("tools")
    return _known.read(wire)


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
    extras = overlay_of(outer, (), NAME, {"type": "function"})
    return make_definition(**fields, origin=ORIGIN, extras=extras)


_known = KnownTools(_decode_tool)


def encode_tools(request: Request, writing: Writing) -> list[Any]:
    """Encode the tools that may be called."""
    choice = request.tool_choice
    if choice is not None:
        _report_choice(choice, writing)
    permitted = None if choice is None else _permitted(choice)
    written: list[Any] = []
    for index, tool in enumerate(request.tools):
        path = f"tools[{index}]"
        if permitted is not None and tool.name not in permitted:
            writing.lose(path, "a tool that must not be called is left out")
        elif isinstance(tool, ToolDefinition):
            written.append(_encode_tool(tool, writing, path))
        elif tool.dialect == NAME:
            written.append(payload_of(tool))
            if tool.cache is not None:
                writing.lose(
                    f"{path}.cache",
                    "cache hints are not supported: the server caches prompts by itself",
                )
        else:
            writing.lose(path, "another provider's built-in tool is left out")
    return written


def _permitted(choice: ToolChoice) -> frozenset[str] | None:
    """The names of the tools that may be called; None for all."""
    if choice.mode == "none":
        return frozenset()
    return frozenset(choice.names) if choice.mode == "allowed" else None


def _report_choice(choice: ToolChoice, writing: Writing) -> None:
    if is_forced(choice):
        writing.lose("tool_choice", "forcing a tool call is not supported")
    if choice.parallel is not None:
        writing.lose("tool_choice.parallel", "parallel tool calls can't be switched on or off")


def _encode_tool(tool: ToolDefinition, writing: Writing, path: str) -> dict[str, Any]:
    function: dict[str, Any] = {"name": tool.name}
    if tool.description is not None:
        function["description"] = tool.description
    if is_own(tool.origin) and tool.kind == "function":
        if tool.parameters is not None:
            function["parameters"] = tool.parameters
    else:
        function["parameters"] = parameters = _encode_parameters(tool, writing, path)
        inner = parameters.get("description")
        if inner is not None and inner != tool.description:
            # The server's type for parameters has no description.
            known = "" if tool.description is None else f"{tool.description}\n\n"
            function["description"] = known + inner
        if tool.strict:
            writing.lose(f"{path}.strict", "strict tools are not supported")
    if tool.cache is not None:
        writing.lose(
            f"{path}.cache", "cache hints are not supported: the server caches prompts by itself"
        )
    lose_tool_settings(tool, path, writing)
    return with_overlay({"type": "function", "function": function}, tool.extras, NAME)


def _encode_parameters(tool: ToolDefinition, writing: Writing, path: str) -> Mapping[str, Any]:
    if tool.kind == "custom":
        return writing.schemas.text_tool(tool, path)
    schema, _ = writing.schemas.tool(tool, path, PROFILES)
    return schema
