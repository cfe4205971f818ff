"""Definitions of tools, also in their old form (`functions`), and searching the web."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.errors import WireError
from dragoman.model.requests import AnyTool
from dragoman.model.tools import ServerTool, ToolDefinition
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

WEB_SEARCH = "web_search_options"
"""The name of the server's own search, which is a field of the request and not in its tools."""


def decode_tools(wire: dict[str, Any], used: set[str]) -> tuple[AnyTool, ...]:
    """The tools of a request; the fields they take are added to `used`."""
    tools: list[AnyTool] = []
    listed = wire.get("tools")
    if is_list(listed) and listed:
        used.add("tools")
        tools += [_decode_tool(tool, index) for index, tool in enumerate(listed)]
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
            field = "functions" if "functions" in words_of(tool.extras) else "tools"
            body.setdefault(field, []).append(_encode_tool(tool, field, out, path))
        elif tool.dialect != NAME:
            out.lose(path, "a tool that another provider runs can't be asked for here")
        elif tool.name == WEB_SEARCH and WEB_SEARCH not in body:
            body[WEB_SEARCH] = tool.payload
        else:
            body.setdefault("tools", []).append(tool.payload)


def _decode_tool(wire: Any, index: int) -> AnyTool:
    """A tool of a known kind; others are the server's own, carried whole."""
    if not is_object(wire):
        msg = f"tools[{index}] is no object"
        raise WireError(msg, dialect=NAME, path=f"tools[{index}]")
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
    return ToolDefinition(**fields, origin=OWN)


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
        tools.append(ToolDefinition(**fields, origin=OWN, extras=extras))
    return tools


def _encode_tool(tool: ToolDefinition, field: str, out: Outgoing, path: str) -> dict[str, Any]:
    inner = _encode_definition(tool, out, path)
    if field == "functions":
        return laid(inner, tool.extras)
    body: dict[str, Any] = {"type": tool.kind, tool.kind: inner}
    if "-type" in words_of(tool.extras):
        del body["type"]
    encode_cache(body, tool, out, path)
    return laid(body, tool.extras)


def _encode_definition(tool: ToolDefinition, out: Outgoing, path: str) -> dict[str, Any]:
    body: dict[str, Any] = {"name": tool.name}
    names = ("description", "parameters", "format") if is_own(tool.origin) else _fields_of(tool)
    for name in names:
        if (value := getattr(tool, name)) is not None:
            body[name] = value
    if not is_own(tool.origin) and "format" in body:
        body["format"] = _encode_format(body["format"])
    if isinstance(tool.strict, bool) and (tool.kind == "function" or is_own(tool.origin)):
        # A schema outside the strict subset fails the whole request (W14).
        is_fine = not out.target.checks_strict_schemas or is_strict(tool.parameters)
        if is_own(tool.origin) or not tool.strict or is_fine:
            body["strict"] = tool.strict
        else:
            out.lose(f"{path}.strict", "the schema is not of the strict form (W14)")
    return body


def _encode_format(form: Mapping[str, Any]) -> Mapping[str, Any]:
    """The format of a custom tool's text; a grammar stands in an object of its own here."""
    if form.get("type") != "grammar" or "grammar" in form:
        return form
    return {"type": "grammar", "grammar": {k: v for k, v in form.items() if k != "type"}}


def _fields_of(tool: ToolDefinition) -> tuple[str, ...]:
    kind = "format" if tool.kind == "custom" else "parameters"
    return ("description", kind)


def is_strict(schema: Any) -> bool:
    """Whether every object in a schema is closed and requires all its properties (W14)."""
    if is_list(schema):
        return all(map(is_strict, schema))
    if not is_object(schema):
        return True
    if "properties" in schema or schema.get("type") == "object":
        properties, required = schema.get("properties", {}), schema.get("required", [])
        if schema.get("additionalProperties") is not False or not is_object(properties):
            return False
        if not is_list(required) or any(name not in required for name in properties):
            return False
    return all(map(is_strict, schema.values()))
