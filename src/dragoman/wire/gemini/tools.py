"""Tool definitions, their schemas, and the choice among them (`toolConfig`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from dragoman.model.frozen import EMPTY, FrozenDict, freeze_mapping
from dragoman.model.requests import AnyTool, Output
from dragoman.model.tools import ServerTool, ToolChoice, ToolDefinition, make_definition
from dragoman.wire.gemini.dialect import NAME, ORIGIN, Writing, camel_case, snake_names
from dragoman.wire.gemini.tools_schemas import GEMINI_JSON_SCHEMA, GEMINI_OUTPUT, GEMINI_PARAMETERS
from dragoman.wire.json_values import is_list, is_object
from dragoman.wire.overlay import Overlay, note_of, with_note, with_overlay
from dragoman.wire.schemas import Profiles
from dragoman.wire.settings_table import texts
from dragoman.wire.target import Target
from dragoman.wire.tolerance import is_odd_tool, odd_tool, payload_of

# --- the API's two ways to write a schema: OpenAPI's (`parameters`) and JSON Schema itself
#
# The model holds JSON Schema. OpenAPI's differs in the case of types (`STRING`) and in `nullable`
# (W91); where a schema can't be converted there and back, it is kept as it came.

Form = Literal["upper", "lower", "number", "verbatim"]
"""How an OpenAPI schema was written: which case its types were in, by their numbers, or neither."""

_IN_ORDER = ("string", "number", "integer", "boolean", "array", "object", "null")
"""The types in the order of the API's own numbers for them, which begin with 1."""
_TYPES = frozenset(_IN_ORDER)
_UPPER = {name.upper(): name for name in _TYPES}
_NUMBERS = {name: number for number, name in enumerate(_IN_ORDER, 1)}
_TYPE_NAMES = {number: name for name, number in _NUMBERS.items()}
_FORMS: tuple[Form, ...] = ("upper", "lower", "number")
_JSON_SCHEMA = Profiles(GEMINI_JSON_SCHEMA, GEMINI_JSON_SCHEMA)
_OUTPUT = Profiles(GEMINI_OUTPUT, GEMINI_OUTPUT)
_OPENAPI = Profiles(GEMINI_PARAMETERS, GEMINI_PARAMETERS)
_OF_SCHEMAS = frozenset({"properties", "$defs", "defs"})
_LISTS_OF_SCHEMAS = frozenset({"anyOf", "allOf", "oneOf", "prefixItems"})
_SCHEMAS = frozenset({"items", "additionalProperties"})
_PAIR = 2


def is_own(holder: ToolDefinition | Output) -> bool:
    """Whether a schema is spelled as this dialect does."""
    origin = holder.origin
    is_ours = origin is not None and origin.dialect == NAME
    return is_ours or note_of(holder.extras, NAME, "openapi") is not None


def profiles_of(target: Target, *, is_output: bool = False) -> Profiles:
    """What is taken of a schema from elsewhere."""
    if not target.schemas.takes_json_schema:
        return _OPENAPI
    return _OUTPUT if is_output else _JSON_SCHEMA


OPENAPI = with_note(EMPTY, NAME, "openapi", "upper")
"""The extras of a schema that is to be written in OpenAPI's form."""


def decode_schema(wire: Mapping[str, Any]) -> tuple[FrozenDict, Form]:
    """The JSON Schema that an OpenAPI schema stands for, and how to write that schema again."""
    frozen = freeze_mapping(wire, "a schema")  # which also bounds its depth
    schema = freeze_mapping(_to_json_schema(frozen), "a schema")
    for form in _FORMS:
        if _to_openapi(schema, form) == frozen:
            return schema, form
    return frozen, "verbatim"


def encode_schema(schema: Mapping[str, Any], form: str) -> Mapping[str, Any]:
    """The OpenAPI schema, written in that form."""
    return schema if form == "verbatim" else _to_openapi(schema, form)


def _to_json_schema(wire: Mapping[str, Any]) -> dict[str, Any]:
    schema = {key: _within(key, value, _to_json_schema) for key, value in wire.items()}
    kind = schema.get("type")
    if type(kind) is int:
        kind = _TYPE_NAMES.get(kind)
    if isinstance(kind, str):
        schema["type"] = kind = _UPPER.get(kind, kind)
        if schema.get("nullable") is True and kind in _TYPES:
            del schema["nullable"]
            schema["type"] = [kind, "null"]
    return schema


def _to_openapi(schema: Mapping[str, Any], form: str) -> dict[str, Any]:
    def convert(inner: Mapping[str, Any]) -> dict[str, Any]:
        return _to_openapi(inner, form)

    wire = {key: _within(key, value, convert) for key, value in schema.items()}
    kind = wire.get("type")
    if is_list(kind) and len(kind) == _PAIR and kind[1] == "null" and isinstance(kind[0], str):
        kind = kind[0]
        wire["nullable"] = True
    if isinstance(kind, str):
        wire["type"] = _written(kind, form)
    return wire


def _written(kind: str, form: str) -> str | int:
    if form == "lower" or kind not in _TYPES:
        return kind
    return kind.upper() if form == "upper" else _NUMBERS[kind]


def _within(key: str, value: Any, convert: Callable[[Mapping[str, Any]], dict[str, Any]]) -> Any:
    """A keyword's value with the schemas in it converted."""
    if key in _SCHEMAS and is_object(value):
        return convert(value)
    if key in _LISTS_OF_SCHEMAS and is_list(value):
        return [convert(item) if is_object(item) else item for item in value]
    if key in _OF_SCHEMAS and is_object(value):
        return {name: convert(item) if is_object(item) else item for name, item in value.items()}
    return value


# --- definitions

_DECLARATIONS = "functionDeclarations"
_MCP = "mcpServers"  # a list, of which each is a tool
_NAMES = snake_names("parametersJsonSchema", "responseJsonSchema")

_LAYOUT = "tools"
"""The note that says how the tools were spread over the wire's objects, where that was not plain:
for each object the name of its declarations and their `count`, its `servers` and the `rest`."""


def decode_tools(wire: Any, kept: Overlay) -> tuple[AnyTool, ...]:
    """The tools of a request, in order; declarations before server tools within an object."""
    if is_object(wire):
        kept.single("tools")
        wire = [wire]
    if not is_list(wire) or not wire:
        kept.fields["tools"] = wire
        return ()
    tools: list[AnyTool] = []
    layout = [_decode_tool(item, tools) for item in wire]
    if layout != [_entry_of(group) for group in _groups(tools)]:
        kept.note(_LAYOUT, layout)
    return tuple(tools)


def encode_tools(
    tools: Iterable[AnyTool], extras: Mapping[str, Any], writing: Writing
) -> list[dict[str, Any]]:
    """The wire's tool objects; tools that only others have are left out and recorded."""
    usable = [
        _fitted(tool, index, writing)
        for index, tool in enumerate(tools)
        if _is_usable(tool, index, writing)
    ]
    layout = note_of(extras, NAME, _LAYOUT)
    arranged = _arranged(usable, layout) if is_list(layout) else None
    if arranged is not None:
        return arranged
    written = [_encode_tool(group, _entry_of(group)) for group in _groups(usable)]
    if written and isinstance(written[0], dict):
        written[0] = {**_unplaced(layout), **written[0]}
    return written


def _is_usable(tool: AnyTool, index: int, writing: Writing) -> bool:
    if isinstance(tool, ServerTool) and tool.dialect != NAME:
        writing.lose(f"tools[{index}]", "a tool that only another provider runs")
        return False
    if tool.cache is not None:
        writing.lose(f"tools[{index}].cache", "tools have no breakpoints here")
    if isinstance(tool, ToolDefinition) and tool.strict and is_own(tool):
        writing.lose(f"tools[{index}].strict", "a tool can't be made strict by itself here")
    return True


def _fitted(tool: AnyTool, index: int, writing: Writing) -> AnyTool:
    """A tool from elsewhere with the schema that is taken here; others are as they came."""
    path = f"tools[{index}]"
    if isinstance(tool, ServerTool) or (is_own(tool) and tool.kind != "custom"):
        return tool
    if tool.kind == "custom":
        schema = writing.schemas.text_tool(tool, path)
    elif tool.parameters is None:
        return tool
    else:
        schema, _ = writing.schemas.tool(tool, path, profiles_of(writing.target))
    if writing.target.schemas.takes_json_schema:
        return tool.replace_unchecked(parameters=schema)
    # "should be non-empty for OBJECT type": refused while there was no other form
    parameters = schema if schema.get("properties") else None
    extras = with_note(tool.extras, NAME, "openapi", "upper")
    return tool.replace_unchecked(parameters=parameters, extras=extras)


def _decode_tool(wire: Any, tools: list[AnyTool]) -> dict[str, Any]:
    """Append what an object holds to the tools; returns its entry in the layout."""
    others = dict(wire) if is_object(wire) else {}
    key = _DECLARATIONS if _DECLARATIONS in others else "function_declarations"
    declared = others.pop(key) if is_list(others.get(key)) else None
    servers = [each for name, value in others.items() for each in _servers(name, value)]
    is_odd = not is_object(wire) or not all(map(_is_declaration, declared or ()))
    if is_odd or (others and not servers and not declared):
        tools.append(odd_tool(wire, NAME))
        return _entry_of(tools[-1:])
    tools.extend(map(decode_declaration, declared or ()))
    tools.extend(ServerTool(camel_case(name), NAME, payload) for name, payload in servers)
    entry = {} if declared is None else {"declarations": key, "count": len(declared)}
    names = [name for name, _ in servers]
    rest = {name: value for name, value in others.items() if name not in names}
    return entry | ({"servers": names} if names else {}) | ({"rest": rest} if rest else {})


def _servers(name: str, value: Any) -> list[tuple[str, dict[str, Any]]]:
    """The tools of Google's in a field: one, or as many as there are MCP servers."""
    if is_object(value):
        return [] if camel_case(name) == _MCP else [(name, value)]
    if camel_case(name) == _MCP and is_list(value) and all(map(is_object, value)):
        return [(name, server) for server in value]
    return []


def _is_declaration(wire: Any) -> bool:
    return is_object(wire) and type(wire.get("name")) is str


def _encode_tool(tools: list[AnyTool], entry: Mapping[str, Any]) -> Any:
    """The object that holds these tools, laid out as the entry says."""
    if tools and isinstance(tools[0], ServerTool) and is_odd_tool(tools[0]):
        return payload_of(tools[0])
    rest = entry.get("rest")
    body: dict[str, Any] = dict(rest) if is_object(rest) else {}
    if "declarations" in entry:
        body[str(entry["declarations"])] = [
            encode_declaration(tool) for tool in tools if isinstance(tool, ToolDefinition)
        ]
    servers = [tool for tool in tools if isinstance(tool, ServerTool)]
    for name, tool in zip(entry.get("servers", ()), servers, strict=True):
        if camel_case(name) == _MCP:
            body.setdefault(name, []).append(tool.payload)
        else:
            body[name] = tool.payload
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


def _arranged(tools: list[AnyTool], layout: list[Any]) -> list[dict[str, Any]] | None:
    """The tools in the layout they came in; None where they are no longer the same tools."""
    written: list[dict[str, Any]] = []
    start = 0
    for entry in layout:
        if not is_object(entry):
            return None
        servers = entry.get("servers", [])
        count = entry.get("count", 0)
        if not is_list(servers) or type(count) is not int or count < 0:
            return None
        group = tools[start : start + count + len(servers)]
        expected = [None] * count + [camel_case(str(name)) for name in servers]
        if [_server_name(tool) for tool in group] != expected:
            return None
        written.append(_encode_tool(group, entry))
        start += len(group)
    return written if start == len(tools) else None


def _unplaced(layout: Any) -> dict[str, Any]:
    """What nobody knows in the objects of a layout that holds no longer."""
    found = [entry.get("rest") for entry in layout if is_object(entry)] if is_list(layout) else []
    fields = [item for rest in found if is_object(rest) for item in rest.items()]
    return {key: value for key, value in fields if value is not None}


def _server_name(tool: AnyTool) -> str | None:
    return tool.name if isinstance(tool, ServerTool) else None


def decode_declaration(wire: dict[str, Any]) -> ToolDefinition:
    """A function declaration."""
    kept = Overlay(NAME)
    fields = kept.renamed(wire, _NAMES)
    name, description = fields["name"], fields.get("description")
    schema, openapi = fields.get("parametersJsonSchema"), fields.get("parameters")
    if not is_object(schema):
        schema = None
        if is_object(openapi):
            schema, form = decode_schema(openapi)
            kept.note("openapi", form)
    tool = make_definition(
        name,
        description if type(description) is str else None,
        schema,
        origin=ORIGIN,
        extras=kept.extras(),
    )
    kept.compare(fields, encode_declaration(tool, as_came=False))
    return tool.replace(extras=kept.extras())


def encode_declaration(tool: ToolDefinition, *, as_came: bool = True) -> dict[str, Any]:
    """A function declaration; JSON Schema has its own field, which takes most of it (W93)."""
    body: dict[str, Any] = {"name": tool.name}
    if tool.description is not None:
        body["description"] = tool.description
    if tool.parameters is not None:
        form = note_of(tool.extras, NAME, "openapi")
        if isinstance(form, str):
            body["parameters"] = encode_schema(tool.parameters, form)
        else:
            body["parametersJsonSchema"] = tool.parameters
    return with_overlay(body, tool.extras, NAME) if as_came and tool.extras else body


# --- which tools the model may or must call: `toolConfig`

_CONFIG_NAMES = snake_names("functionCallingConfig")
_CALLING_NAMES = snake_names("allowedFunctionNames")
TOOL_CONFIG = {
    "functionCallingConfig": {"mode": "tool_choice", "allowedFunctionNames": "tool_choice"}
}
"""By the wire's field: the setting."""
# VALIDATED lets the model choose, and holds it to the schemas if it calls.
_CHOICES: dict[str, Literal["auto", "none", "required"]] = {
    "AUTO": "auto",
    "VALIDATED": "auto",
    "NONE": "none",
    "ANY": "required",
}
_MODES = {"auto": "AUTO", "none": "NONE", "required": "ANY", "named": "ANY", "allowed": "ANY"}


def decode_choice(wire: Any, kept: Overlay) -> ToolChoice | None:
    """The choice in a `toolConfig`; what else it says is kept."""
    if not is_object(wire):
        kept.fields["toolConfig"] = wire
        return None
    config = kept.renamed(wire, _CONFIG_NAMES, "toolConfig")
    calling = config.get("functionCallingConfig")
    choice = None
    if is_object(calling):
        path = ("toolConfig", "functionCallingConfig")
        calling = kept.renamed(calling, _CALLING_NAMES, *path)
        config = {**config, "functionCallingConfig": calling}
        choice = _decode_calling(calling)
    kept.compare(config, encode_choice(choice), "toolConfig")
    return choice


def encode_choice(choice: ToolChoice | None, writing: Writing | None = None) -> dict[str, Any]:
    """The `toolConfig` for a choice; empty where there is none (W99)."""
    if choice is None:
        return {}
    if writing is not None and choice.parallel is False:
        writing.lose("tool_choice.parallel", "parallel calls can't be turned off here")
    # Names go with ANY or VALIDATED only; the latter lets the model choose.
    is_free = choice.mode == "allowed" and not choice.is_required
    calling: dict[str, Any] = {"mode": "VALIDATED" if is_free else _MODES[choice.mode]}
    if choice.mode in {"named", "allowed"}:
        calling["allowedFunctionNames"] = list(choice.names)
    return {"functionCallingConfig": calling}


def _decode_calling(wire: dict[str, Any]) -> ToolChoice | None:
    mode, names = wire.get("mode"), texts(wire.get("allowedFunctionNames"))
    if type(mode) is not str or mode not in _CHOICES:
        return None
    if not names or mode == "NONE":
        return ToolChoice(_CHOICES[mode])
    if mode == "ANY" and len(names) == 1:
        return ToolChoice("named", names)
    return ToolChoice("allowed", names, is_required=mode == "ANY")
