"""Definitions of tools, and the choice among them, also in their old form (`functions`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from dragoman.model.frozen import FrozenDict
from dragoman.model.requests import AnyTool
from dragoman.model.tools import ServerTool, ToolChoice, ToolDefinition, make_definition
from dragoman.wire.json_values import is_list, is_object
from dragoman.wire.openai_chat.content import decode_cache, encode_cache
from dragoman.wire.openai_chat.dialect import NAME, OWN, is_own
from dragoman.wire.openai_strict_schemas import openai_profiles
from dragoman.wire.overlay import extras_of, overlay_of, with_overlay, words_of
from dragoman.wire.target import Target
from dragoman.wire.tolerance import odd_tool, payload_of
from dragoman.wire.writing import Writing

WEB_SEARCH = "web_search_options"
"""The name of the server's own search, which is a field of the request and not in its tools."""


def decode_tools(wire: dict[str, Any], used: set[str]) -> tuple[AnyTool, ...]:
    """The tools of a request; the fields they take are added to `used`."""
    tools: list[AnyTool] = []
    listed = wire.get("tools")
    if is_list(listed) and listed:
        used.add("tools")
        tools += [_decode_tool(tool) for tool in listed]
    functions = _decode_functions(wire.get("functions"))
    if functions:
        used.add("functions")
        tools += functions
    search = wire.get(WEB_SEARCH)
    if is_object(search):
        used.add(WEB_SEARCH)
        tools.append(ServerTool(WEB_SEARCH, NAME, search))
    return tuple(tools)


def encode_tools(tools: tuple[AnyTool, ...], body: dict[str, Any], writing: Writing) -> None:
    """Write tools where the wire has them."""
    for index, tool in enumerate(tools):
        path = f"tools[{index}]"
        if isinstance(tool, ToolDefinition):
            is_old = "functions" in words_of(tool.extras, NAME) and tool.kind == "function"
            field = "functions" if is_old else "tools"
            body.setdefault(field, []).append(_encode_tool(tool, field, writing, path))
        elif tool.dialect != NAME:
            writing.lose(path, "a tool that another provider runs can't be asked for here")
        elif tool.name == WEB_SEARCH and WEB_SEARCH not in body:
            body[WEB_SEARCH] = tool.payload
        else:
            body.setdefault("tools", []).append(payload_of(tool))
        if isinstance(tool, ServerTool) and tool.cache is not None:
            writing.lose(f"{path}.cache", "the provider's own tools have no breakpoints here")


def _decode_tool(wire: Any) -> AnyTool:
    """A tool of a known kind; others are the server's own, carried whole."""
    if not is_object(wire):
        return odd_tool(wire, NAME)
    kind = wire.get("type")
    key = "function" if kind is None else kind
    inner = wire.get(key) if key in ("function", "custom") else None
    if not is_object(inner) or not isinstance(inner.get("name"), str):
        return ServerTool(kind if isinstance(kind, str) else "", NAME, wire)
    fields, left = _decode_definition(inner)
    cache, field = decode_cache(wire)
    words, known = (["-type"], {key}) if kind is None else (list[str](), {"type", key})
    if field:
        known.add(field)
        words.append(field)
    outer = {name: value for name, value in wire.items() if name not in known}
    if left:
        outer[key] = left
    fields |= {"kind": key, "cache": cache, "extras": extras_of(outer, NAME, words)}
    return make_definition(**fields, origin=OWN)


def _decode_definition(wire: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The fields of a definition, and those that are left over."""
    kinds = {"name": str, "description": str, "parameters": dict, "strict": bool, "format": dict}
    fields = {name: wire[name] for name, kind in kinds.items() if isinstance(wire.get(name), kind)}
    return fields, {name: value for name, value in wire.items() if name not in fields}


def _decode_functions(wire: Any) -> list[ToolDefinition]:
    """The old `functions`; none where one of them is malformed, and all stay in the extras."""
    tools: list[ToolDefinition] = []
    for function in wire if is_list(wire) else ():
        if not is_object(function) or not isinstance(function.get("name"), str):
            return []
        fields, left = _decode_definition(function)
        extras = extras_of(left, NAME, ("functions",))
        tools.append(make_definition(**fields, origin=OWN, extras=extras))
    return tools


def _encode_tool(tool: ToolDefinition, field: str, writing: Writing, path: str) -> dict[str, Any]:
    inner = _encode_definition(tool, writing, path)
    if field == "functions":
        if tool.cache is not None:
            writing.lose(f"{path}.cache", "the old form of tools has no breakpoints")
        return with_overlay(inner, tool.extras, NAME)
    body: dict[str, Any] = {"type": tool.kind, tool.kind: inner}
    if "-type" in words_of(tool.extras, NAME) and tool.kind == "function":
        del body["type"]
    encode_cache(body, tool, writing, path)
    return with_overlay(body, tool.extras, NAME)


def _encode_definition(tool: ToolDefinition, writing: Writing, path: str) -> dict[str, Any]:
    body: dict[str, Any] = {"name": tool.name}
    if tool.description is not None:
        body["description"] = tool.description
    if not is_own(tool.origin):
        return body | _encode_foreign(tool, writing, path)
    for name in ("parameters", "format", "strict"):
        if (value := getattr(tool, name)) is not None:
            body[name] = value
    return body


def _encode_foreign(tool: ToolDefinition, writing: Writing, path: str) -> dict[str, Any]:
    """What a tool from elsewhere takes, as the target takes it."""
    if tool.kind == "custom":
        return {} if tool.format is None else {"format": _encode_format(tool.format)}
    if tool.parameters is None and tool.strict is not True:
        return {} if tool.strict is None else {"strict": False}
    # A schema outside the strict subset fails the whole request (W14).
    schema, is_strict = writing.schemas.tool(tool, path, openai_profiles(writing.target))
    body: dict[str, Any] = {"parameters": schema}
    if is_strict or tool.strict is False:
        body["strict"] = is_strict
    return body


def _encode_format(form: Mapping[str, Any]) -> Mapping[str, Any]:
    """The format of a custom tool's text; a grammar stands in an object of its own here."""
    if form.get("type") != "grammar" or "grammar" in form:
        return form
    return {"type": "grammar", "grammar": {k: v for k, v in form.items() if k != "type"}}


# --- whether and which tools must be called, also in the old form (`function_call`)

_Mode = Literal["auto", "none", "required", "named", "allowed"]
# "any" is Mistral's word for "required".
_MODES: dict[str, _Mode] = {
    "auto": "auto", "none": "none", "required": "required", "any": "required"
}  # fmt: skip


def decode_choice(wire: dict[str, Any], used: set[str]) -> ToolChoice | None:
    """The choice in a request; the fields it takes are added to `used`."""
    parallel = wire.get("parallel_tool_calls")
    if isinstance(parallel, bool):
        used.add("parallel_tool_calls")
    else:
        parallel = None
    decoders = {"tool_choice": _decode_tool_choice, "function_call": _decode_function_call}
    for key, decode in decoders.items():
        choice = decode(wire.get(key))
        if choice is not None:
            used.add(key)
            return choice if parallel is None else choice.replace(parallel=parallel)
    return None if parallel is None else ToolChoice(parallel=parallel)


def encode_choice(
    choice: ToolChoice, tools: tuple[AnyTool, ...], body: dict[str, Any], target: Target
) -> None:
    """Write a choice; `auto` happens anyway, so it is written only where the wire had it."""
    if choice.parallel is not None:
        body["parallel_tool_calls"] = choice.parallel
    words = words_of(choice.extras, NAME)
    if "function_call" in words and choice.mode in ("auto", "none", "named"):
        named = {"name": choice.names[0]} if choice.mode == "named" else choice.mode
        body["function_call"] = (
            with_overlay(named, choice.extras, NAME) if is_object(named) else named
        )
        return
    if choice.mode == "named":
        body["tool_choice"] = _named(choice.names[0], tools, words)
    elif choice.mode == "allowed":
        body["tool_choice"] = _allowed(choice.names, tools, is_required=choice.is_required)
    elif choice.mode != "auto" or "auto" in words:
        body["tool_choice"] = _word(choice.mode, words, target)
    if is_object(written := body.get("tool_choice")):
        spelled = with_overlay({"tool_choice": written}, choice.extras, NAME)
        body["tool_choice"] = spelled["tool_choice"]


def _word(mode: str, words: Any, target: Target) -> str:
    if mode != "required":
        return mode
    return target.tools.required_word or ("any" if "any" in words else mode)


def _decode_tool_choice(wire: Any) -> ToolChoice | None:
    if isinstance(wire, str) and wire in _MODES:
        words = (wire,) if wire in ("auto", "any") else ()
        return ToolChoice(_MODES[wire], extras=extras_of({}, NAME, words))
    if not is_object(wire):
        return None
    kind, name, allowed = wire.get("type"), _name_in(wire), wire.get("allowed_tools")
    if kind in ("function", "custom") and name is not None:
        extras = _choice_extras(wire, {"type": kind, kind: {"name": name}}, (kind,))
        return ToolChoice("named", (name,), extras=extras)
    listed = allowed.get("tools") if kind == "allowed_tools" and is_object(allowed) else None
    tools = listed if is_list(listed) else [None]
    names = tuple([found for tool in tools if (found := _name_in(tool)) is not None])
    if not is_object(allowed) or len(names) < len(tools):
        return None
    must = allowed.get("mode") == "required"
    extras = _choice_extras(wire, _allowed(names, (), is_required=must))
    return ToolChoice("allowed", names, extras=extras, is_required=must)


def _choice_extras(
    wire: dict[str, Any], rebuilt: dict[str, Any], words: tuple[str, ...] = ()
) -> FrozenDict:
    return overlay_of({"tool_choice": wire}, (), NAME, {"tool_choice": rebuilt}, words)


def _name_in(tool: Any) -> str | None:
    """The name of a tool that is referred to: it stands in the field of its type."""
    kind = tool.get("type") if is_object(tool) else None
    inner = tool.get(kind) if isinstance(kind, str) else None
    name = inner.get("name") if is_object(inner) else None
    return name if isinstance(name, str) else None


def _named(name: str, tools: tuple[AnyTool, ...], words: Any) -> dict[str, Any]:
    kind = next((word for word in ("function", "custom") if word in words), None)
    kind = kind or _kind_of(name, tools)
    return {"type": kind, kind: {"name": name}}


def _allowed(
    names: tuple[str, ...], tools: tuple[AnyTool, ...], *, is_required: bool
) -> dict[str, Any]:
    listed = [_named(name, tools, ()) for name in names]
    mode = "required" if is_required else "auto"
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": listed}}


def _kind_of(name: str, tools: tuple[AnyTool, ...]) -> str:
    for tool in tools:
        if isinstance(tool, ToolDefinition) and tool.name == name:
            return tool.kind
    return "function"


def _decode_function_call(wire: Any) -> ToolChoice | None:
    if wire in ("auto", "none"):
        return ToolChoice(_MODES[wire], extras=extras_of({}, NAME, ("function_call",)))
    name = wire.get("name") if is_object(wire) else None
    if not is_object(wire) or not isinstance(name, str):
        return None
    left = {key: value for key, value in wire.items() if key != "name"}
    return ToolChoice("named", (name,), extras=extras_of(left, NAME, ("function_call",)))
