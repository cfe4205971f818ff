"""Definitions of tools, also in their old form (`functions`), and searching the web."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.model.requests import AnyTool
from dragoman.model.tools import ServerTool, ToolDefinition, make_definition
from dragoman.wire.openai_chat.caching import decode_cache, encode_cache
from dragoman.wire.openai_chat.exchange import Outgoing
from dragoman.wire.openai_chat.spelling import (
    NAME,
    OWN,
    extras_of,
    is_list,
    is_object,
    is_own,
    laid,
    words_of,
)
from dragoman.wire.openai_chat.target import TARGET
from dragoman.wire.schemas import is_refused_strict, openai_profiles
from dragoman.wire.tolerance import odd_tool, payload_of

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


def encode_tools(tools: tuple[AnyTool, ...], body: dict[str, Any], out: Outgoing) -> None:
    """Write tools where the wire has them."""
    for index, tool in enumerate(tools):
        path = f"tools[{index}]"
        if isinstance(tool, ToolDefinition):
            is_old = "functions" in words_of(tool.extras) and tool.kind == "function"
            field = "functions" if is_old else "tools"
            body.setdefault(field, []).append(_encode_tool(tool, field, out, path))
        elif tool.dialect != NAME:
            out.lose(path, "a tool that another provider runs can't be asked for here")
        elif tool.name == WEB_SEARCH and WEB_SEARCH not in body:
            body[WEB_SEARCH] = tool.payload
        else:
            body.setdefault("tools", []).append(payload_of(tool))
        if isinstance(tool, ServerTool) and tool.cache is not None:
            out.lose(f"{path}.cache", "the provider's own tools have no breakpoints here")


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
    fields |= {"kind": key, "cache": cache, "extras": extras_of(outer, words)}
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
        extras = extras_of(left, ("functions",))
        tools.append(make_definition(**fields, origin=OWN, extras=extras))
    return tools


def _encode_tool(tool: ToolDefinition, field: str, out: Outgoing, path: str) -> dict[str, Any]:
    inner = _encode_definition(tool, out, path)
    if field == "functions":
        if tool.cache is not None:
            out.lose(f"{path}.cache", "the old form of tools has no breakpoints")
        return laid(inner, tool.extras)
    body: dict[str, Any] = {"type": tool.kind, tool.kind: inner}
    if "-type" in words_of(tool.extras) and tool.kind == "function":
        del body["type"]
    encode_cache(body, tool, out, path)
    return laid(body, tool.extras)


def _encode_definition(tool: ToolDefinition, out: Outgoing, path: str) -> dict[str, Any]:
    body: dict[str, Any] = {"name": tool.name}
    if tool.description is not None:
        body["description"] = tool.description
    is_ours = is_own(tool.origin)
    if is_ours and is_refused_strict(tool, out.target, TARGET):
        out.repair(f"{path}.parameters", "W14", "retyped", "the schema as strict mode takes it")
        is_ours = False
    if not is_ours:
        return body | _encode_foreign(tool, out, path)
    for name in ("parameters", "format", "strict"):
        if (value := getattr(tool, name)) is not None:
            body[name] = value
    return body


def _encode_foreign(tool: ToolDefinition, out: Outgoing, path: str) -> dict[str, Any]:
    """What a tool from elsewhere takes, as the target takes it."""
    if tool.kind == "custom":
        return {} if tool.format is None else {"format": _encode_format(tool.format)}
    if tool.parameters is None and tool.strict is not True:
        return {} if tool.strict is None else {"strict": False}
    # A schema outside the strict subset fails the whole request (W14).
    schema, is_strict = out.schemas.tool(tool, path, openai_profiles(out.target))
    body: dict[str, Any] = {"parameters": schema}
    if is_strict or tool.strict is False:
        body["strict"] = is_strict
    return body


def _encode_format(form: Mapping[str, Any]) -> Mapping[str, Any]:
    """The format of a custom tool's text; a grammar stands in an object of its own here."""
    if form.get("type") != "grammar" or "grammar" in form:
        return form
    return {"type": "grammar", "grammar": {k: v for k, v in form.items() if k != "type"}}
