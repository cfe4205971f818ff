"""Tool definitions. One object of the wire holds function declarations, server tools, or both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dragoman.model.requests import AnyTool
from dragoman.model.tools import ServerTool, ToolDefinition, make_definition
from dragoman.wire.gemini.schema import decode_schema, encode_schema, is_own, profiles_of
from dragoman.wire.gemini.trace import (
    NAME,
    ORIGIN,
    Trace,
    as_it_came,
    camel_case,
    is_array,
    is_object,
    noted,
    snake_names,
)
from dragoman.wire.gemini.writing import Writing
from dragoman.wire.tolerance import is_odd_tool, odd_tool, payload_of

_DECLARATIONS = "functionDeclarations"
_NAMES = snake_names("parametersJsonSchema", "responseJsonSchema")

Fitted = dict[int, dict[str, Any]]
"""By the identity of tools from elsewhere: what is written for their parameters."""

_LAYOUT = "tools"
"""The note that says how the tools were spread over the wire's objects, where that was not plain:
for each object the name of its declarations and their `count`, its `servers` and the `rest`."""


def decode_tools(wire: Any, trace: Trace) -> tuple[AnyTool, ...]:
    """The tools of a request, in order; declarations before server tools within an object."""
    if is_object(wire):
        trace.single("tools")
        wire = [wire]
    if not is_array(wire) or not wire:
        trace.fields["tools"] = wire
        return ()
    tools: list[AnyTool] = []
    layout = [_decode_tool(item, tools) for item in wire]
    if layout != [_entry_of(group) for group in _groups(tools)]:
        trace.note(_LAYOUT, layout)
    return tuple(tools)


def encode_tools(
    tools: Iterable[AnyTool], extras: Mapping[str, Any], writing: Writing
) -> list[dict[str, Any]]:
    """The wire's tool objects; tools that only others have are left out and recorded."""
    usable: list[AnyTool] = []
    fitted: Fitted = {}
    for index, tool in enumerate(tools):
        if _is_usable(tool, index, writing):
            usable.append(tool)
            _fit(tool, index, fitted, writing)
    layout = noted(extras, _LAYOUT)
    arranged = _arranged(usable, layout, fitted) if is_array(layout) else None
    if arranged is not None:
        return arranged
    written = [_encode_tool(group, _entry_of(group), fitted) for group in _groups(usable)]
    if written and isinstance(written[0], dict):
        written[0] = {**_unplaced(layout), **written[0]}
    return written


def _is_usable(tool: AnyTool, index: int, writing: Writing) -> bool:
    if isinstance(tool, ServerTool):
        problem = None if tool.dialect == NAME else "a tool that only another provider runs"
    else:
        problem = "a tool that takes free text" if tool.kind == "custom" else None
    if problem is not None:
        writing.lose(f"tools[{index}]", problem)
        return False
    if tool.cache is not None:
        writing.lose(f"tools[{index}].cache", "tools have no breakpoints here")
    if isinstance(tool, ToolDefinition) and tool.strict and is_own(tool):
        writing.lose(f"tools[{index}].strict", "a tool can't be made strict by itself here")
    return True


def _fit(tool: AnyTool, index: int, fitted: Fitted, writing: Writing) -> None:
    """Note the schema that is taken here for a tool from elsewhere; others are as they came."""
    if isinstance(tool, ServerTool) or tool.parameters is None or is_own(tool):
        return
    schema, _ = writing.schemas.tool(tool, f"tools[{index}]", profiles_of(writing.target))
    if writing.target.takes_json_schema:
        fitted[id(tool)] = {"parametersJsonSchema": schema}
    elif schema.get("properties"):
        fitted[id(tool)] = {"parameters": encode_schema(schema, "upper")}
    else:  # "should be non-empty for OBJECT type": refused while there was no other form
        fitted[id(tool)] = {}


def _decode_tool(wire: Any, tools: list[AnyTool]) -> dict[str, Any]:
    """Append what an object holds to the tools; returns its entry in the layout."""
    entry: dict[str, Any] = {}
    key, declarations = _declarations(wire)
    if not is_object(wire) or not all(map(_is_declaration, declarations or ())):
        tools.append(odd_tool(wire, NAME))
        return _entry_of(tools[-1:])
    if declarations is not None:
        tools.extend(map(decode_declaration, declarations))
        entry |= {"declarations": key, "count": len(declarations)}
    others = {name: value for name, value in wire.items() if name != key or declarations is None}
    servers = [name for name, value in others.items() if is_object(value)]
    if others and not servers and not declarations:
        tools.append(odd_tool(wire, NAME))
        return _entry_of(tools[-1:])
    tools.extend(ServerTool(camel_case(name), NAME, others[name]) for name in servers)
    rest = {name: value for name, value in others.items() if name not in servers}
    return entry | ({"servers": servers} if servers else {}) | ({"rest": rest} if rest else {})


def _declarations(wire: Any) -> tuple[str, list[Any] | None]:
    """The field of the declarations in an object, and the declarations."""
    key = _DECLARATIONS
    if is_object(wire) and key not in wire:
        key = "function_declarations"
    found = wire.get(key) if is_object(wire) else None
    return key, found if is_array(found) else None


def _is_declaration(wire: Any) -> bool:
    return is_object(wire) and type(wire.get("name")) is str


def _encode_tool(tools: list[AnyTool], entry: Mapping[str, Any], fitted: Fitted) -> Any:
    """The object that holds these tools, laid out as the entry says."""
    if tools and isinstance(tools[0], ServerTool) and is_odd_tool(tools[0]):
        return payload_of(tools[0])
    rest = entry.get("rest")
    body: dict[str, Any] = dict(rest) if is_object(rest) else {}
    if "declarations" in entry:
        body[str(entry["declarations"])] = [
            encode_declaration(tool, fitted.get(id(tool)))
            for tool in tools
            if isinstance(tool, ToolDefinition)
        ]
    servers = [tool for tool in tools if isinstance(tool, ServerTool)]
    body.update(zip(entry.get("servers", ()), (tool.payload for tool in servers), strict=True))
    return body


def _groups(tools: list[AnyTool]) -> list[list[AnyTool]]:
    """How we spread tools over objects: declarations that follow each other share one."""
    groups: list[list[AnyTool]] = []
    for tool in tools:
        is_declaration = isinstance(tool, ToolDefinition)
        if is_declaration and groups and isinstance(groups[-1][0], ToolDefinition):
            groups[-1].append(tool)
        else:
            groups.append([tool])
    return groups


def _entry_of(group: list[AnyTool]) -> dict[str, Any]:
    servers = [tool.name for tool in group if isinstance(tool, ServerTool)]
    return {"servers": servers} if servers else {"declarations": _DECLARATIONS, "count": len(group)}


def _arranged(
    tools: list[AnyTool], layout: list[Any], fitted: Fitted
) -> list[dict[str, Any]] | None:
    """The tools in the layout they came in; None where they are no longer the same tools."""
    written: list[dict[str, Any]] = []
    start = 0
    for entry in layout:
        if not is_object(entry):
            return None
        servers = entry.get("servers", [])
        count = entry.get("count", 0)
        if not is_array(servers) or type(count) is not int or count < 0:
            return None
        group = tools[start : start + count + len(servers)]
        expected = [None] * count + [camel_case(str(name)) for name in servers]
        if [_server_name(tool) for tool in group] != expected:
            return None
        written.append(_encode_tool(group, entry, fitted))
        start += len(group)
    return written if start == len(tools) else None


def _unplaced(layout: Any) -> dict[str, Any]:
    """What nobody knows in the objects of a layout that holds no longer."""
    found = [entry.get("rest") for entry in layout if is_object(entry)] if is_array(layout) else []
    fields = [item for rest in found if is_object(rest) for item in rest.items()]
    return {key: value for key, value in fields if value is not None}


def _server_name(tool: AnyTool) -> str | None:
    return tool.name if isinstance(tool, ServerTool) else None


def decode_declaration(wire: dict[str, Any]) -> ToolDefinition:
    """A function declaration."""
    trace = Trace()
    fields = trace.camel(wire, _NAMES)
    name, description = fields["name"], fields.get("description")
    schema, openapi = fields.get("parametersJsonSchema"), fields.get("parameters")
    if not is_object(schema):
        schema = None
        if is_object(openapi):
            schema, form = decode_schema(openapi)
            trace.note("openapi", form)
    tool = make_definition(
        name,
        description if type(description) is str else None,
        schema,
        origin=ORIGIN,
        extras=trace.extras(),
    )
    trace.compare(fields, encode_declaration(tool, as_came=False))
    return tool.replace(extras=trace.extras())


def encode_declaration(
    tool: ToolDefinition, fitted: Mapping[str, Any] | None = None, *, as_came: bool = True
) -> dict[str, Any]:
    """A function declaration; JSON Schema has its own field, which takes most of it (W93).

    `fitted`: the field and the schema of a tool from elsewhere.
    """
    body: dict[str, Any] = {"name": tool.name}
    if tool.description is not None:
        body["description"] = tool.description
    if fitted is not None:
        body |= fitted
    elif tool.parameters is not None:
        form = noted(tool.extras, "openapi")
        if isinstance(form, str):
            body["parameters"] = encode_schema(tool.parameters, form)
        else:
            body["parametersJsonSchema"] = tool.parameters
    return as_it_came(body, tool.extras) if as_came and tool.extras else body
