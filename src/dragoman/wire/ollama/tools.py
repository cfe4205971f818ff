"""Tool definitions and tool calls. Calls are whole, with an object as arguments (W102)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from msgspec import UNSET, UnsetType

from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY, FrozenDict, freeze_mapping
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
from dragoman.wire.overlay import Overlay, overlay_of, with_overlay
from dragoman.wire.schemas import Profile, Profiles
from dragoman.wire.settings_rows import lose_tool_settings
from dragoman.wire.text_tools import TEXT_ARGUMENT
from dragoman.wire.tolerance import odd_tool, payload_of
from dragoman.wire.writing import Writing

# --- tool calls


def decode_call(wire: Any, reading: OllamaReading) -> AnyPart:
    """Decode one of `tool_calls`; a malformed one becomes an opaque part."""
    function = wire.get("function") if is_object(wire) else None
    if not is_object(function) or type(name := function.get("name")) is not str:
        return Opaque(NAME, wire, origin=reading.origin)
    arguments, wire_id = function.get("arguments"), wire.get("id")
    if not (arguments is None or isinstance(arguments, (dict, str))):
        return Opaque(NAME, wire, origin=reading.origin)
    has_id = type(wire_id) is str
    call_id, own_id = reading.calls.add_named_call(name, wire_id if has_id else None, arguments)
    reading.names[call_id] = name
    origin = None if own_id is UNSET else reading.origin  # whose id it is must be known
    extras = _call_extras(wire, function, has_id=has_id)
    if isinstance(arguments, str):  # refused by the server, but sent by many clients (W102)
        call = make_call(call_id, name, arguments, wire_id=own_id, origin=origin)
        return call.replace_unchecked(
            extras=_with_original_arguments(arguments, arguments_of(call), extras)
        )
    if arguments is None and "arguments" in function:
        extras = _with_original_arguments(None, EMPTY, extras)
    given = EMPTY if arguments is None else arguments
    return make_call(call_id, name, None, given, wire_id=own_id, origin=origin, extras=extras)


def arguments_of(call: ToolCall) -> Mapping[str, Any]:
    """The arguments as an object; text that is not a JSON object is wrapped in one."""
    return _object_for(call, call.object_arguments())


def _object_for(call: ToolCall, arguments: Mapping[str, Any] | None) -> Mapping[str, Any]:
    return {TEXT_ARGUMENT: call.raw_arguments} if arguments is None else arguments


def _with_original_arguments(
    theirs: Any, ours: Mapping[str, Any], extras: Mapping[str, Any]
) -> FrozenDict:
    """The extras plus the original form of the arguments."""
    wire, written = ({"function": {"arguments": given}} for given in (theirs, ours))
    return freeze_mapping({**extras, **overlay_of(wire, (), NAME, written)})


def _call_extras(
    wire: dict[str, Any], function: dict[str, Any], *, has_id: bool
) -> Mapping[str, Any]:
    if len(function) == 2 and len(wire) == 1 + has_id and "arguments" in function:  # noqa: PLR2004 - with the name
        return EMPTY
    index = function.get("index")
    is_plain = len(function) == 3 and len(wire) == 2 and "arguments" in function  # noqa: PLR2004
    if is_plain and has_id and type(index) is int:  # as the server sends it
        return _index_extras(index)
    known = {"id", "function"} if has_id else {"function"}
    inner = {key: value for key, value in function.items() if key not in ("name", "arguments")}
    outer = {key: value for key, value in wire.items() if key not in known}
    if inner:
        outer["function"] = inner
    kept = Overlay(NAME, outer)
    if "arguments" not in function:
        kept.absent(("function", "arguments"), {})
    return kept.extras()


@lru_cache(maxsize=64)
def _index_extras(index: int) -> Mapping[str, Any]:
    """The extras of a call with an index in its turn. Cached: nearly all indexes are small."""
    return freeze_mapping({NAME: {"function": {"index": index}}}, "the wire")


def encode_call(call: ToolCall, writing: OllamaWriting, number: int) -> dict[str, Any] | None:
    """Encode a call; None with a loss if it was truncated, or a client would run it (I7)."""
    writing.lose_unsupported(call)
    wire_id = _encode_id(call, writing)
    arguments = call.object_arguments()
    function: dict[str, Any] = {"name": call.name, "arguments": _object_for(call, arguments)}
    if writing.is_response and not is_own(writing.origin):
        function = {"index": number, **function}
    body: dict[str, Any] = {} if wire_id is None else {"id": wire_id}
    body["function"] = function
    if call.extras is not EMPTY:
        body = with_overlay(body, call.extras, NAME)
        function = body["function"]
    is_object = isinstance(function.get("arguments"), Mapping)  # or as it came
    if is_object and is_left_out(call, arguments, writing):
        return None
    if is_object and arguments is None:
        writing.repair_here("I6", "retyped", NOT_AN_OBJECT)
    return body


def _encode_id(call: ToolCall, writing: OllamaWriting) -> str | None:
    """The id of a call on the wire, also used by its result.

    Older servers assign none: their calls are sent back without (W103).
    """
    wire_id = call.wire_id
    found = call.id if isinstance(wire_id, UnsetType) or not writing.is_own(call) else wire_id
    writing.wire_ids[call.id] = found
    writing.names[call.id] = call.name
    return found


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
