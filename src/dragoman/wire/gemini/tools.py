"""Tool definitions and their schemas."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from msgspec.structs import replace

from dragoman.model.frozen import EMPTY, FrozenDict, freeze_mapping
from dragoman.model.requests import AnyTool, Output
from dragoman.model.tools import ServerTool, ToolDefinition, make_definition
from dragoman.wire.call_ids import CallIds
from dragoman.wire.gemini.dialect import NAME, ORIGIN, Writing, camel_case
from dragoman.wire.json_values import is_list, is_object
from dragoman.wire.overlay import Overlay, note_of, with_note
from dragoman.wire.reading import Reading
from dragoman.wire.rows import OBJECT, SILENT, Row, Shape, Value
from dragoman.wire.schemas import Profiles
from dragoman.wire.schemas.profiles import BOUNDS, CORE, REFERENCES, Profile
from dragoman.wire.target import Target
from dragoman.wire.tolerance import is_odd_tool, odd_tool, payload_of

# --- the API's two schema formats: OpenAPI (`parameters`) and JSON Schema
#
# Our model holds JSON Schema. OpenAPI differs in the case of types (`STRING`) and in `nullable`
# (W91). A schema that does not survive the round trip is kept verbatim.

GEMINI_PARAMETERS = Profile(
    name="gemini-parameters",
    keywords=CORE
    | BOUNDS
    | {"nullable", "maxItems", "minLength", "maxLength", "pattern", "format", "default", "example"}
    | {"minProperties", "maxProperties", "propertyOrdering", "property_ordering"},
    # "only 'enum' and 'date-time' are supported for STRING type"
    formats=frozenset({"enum", "date-time", "float", "double", "int32", "int64"}),
    literals=frozenset({"string"}),
    any_types=("string", "number", "boolean", "object"),
    refused_at_root=frozenset({"anyOf", "enum", "const"}),
    cycles="cut",
    union_siblings=frozenset(),  # W92
    needs_type=True,
    needs_items=True,
    has_single_types=True,
    defines_required=True,
    refuses_empty_literal=True,
)
"""The OpenAPI subset (`parameters`, `responseSchema`): W90 to W94. Types are in lower case."""

GEMINI_JSON_SCHEMA = Profile(
    name="gemini-json-schema",
    keywords=CORE
    | REFERENCES
    | BOUNDS
    | {"$id", "$anchor", "$schema", "format", "prefixItems", "maxItems"}
    | {"additionalProperties", "propertyOrdering", "default"},
    literals=frozenset({"string", "number", "integer"}),
    refused_at_root=frozenset({"anyOf", "oneOf", "enum", "const"}),
    cycles="optional",
    reference_siblings=frozenset({"$id", "$anchor", "$defs", "$schema"}),
)
"""`parametersJsonSchema` and `responseJsonSchema`: other keywords are ignored, and
`oneOf` is treated as `anyOf`."""

GEMINI_OUTPUT = replace(
    GEMINI_JSON_SCHEMA,
    name="gemini-output",
    has_object_root=False,
    refused_at_root=frozenset(),
)
"""`responseJsonSchema`, which may be of any type."""

Form = Literal["upper", "lower", "number", "verbatim"]
"""The form of an OpenAPI schema: types in upper or lower case, as enum numbers, or verbatim."""

_TYPES_BY_NUMBER = ("string", "number", "integer", "boolean", "array", "object", "null")
"""The types in the order of the API's enum numbers, which begin with 1."""
_TYPES = frozenset(_TYPES_BY_NUMBER)
_UPPER = {name.upper(): name for name in _TYPES}
_NUMBERS = {name: number for number, name in enumerate(_TYPES_BY_NUMBER, 1)}
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
    """Whether a schema was decoded from this dialect."""
    origin = holder.origin
    is_ours = origin is not None and origin.dialect == NAME
    return is_ours or note_of(holder.extras, NAME, "openapi") is not None


def profiles_of(target: Target, *, is_output: bool = False) -> Profiles:
    """The schema profiles for other dialects' schemas."""
    if not target.schemas.takes_json_schema:
        return _OPENAPI
    return _OUTPUT if is_output else _JSON_SCHEMA


OPENAPI = with_note(EMPTY, NAME, "openapi", "upper")
"""The extras of a schema to be encoded in OpenAPI format."""


def decode_schema(wire: Mapping[str, Any]) -> tuple[FrozenDict, Form]:
    """Convert an OpenAPI schema to JSON Schema; also returns its form."""
    frozen = freeze_mapping(wire, "a schema")  # also limits its depth
    schema = freeze_mapping(_to_json_schema(frozen), "a schema")
    for form in _FORMS:
        if _to_openapi(schema, form) == frozen:
            return schema, form
    return frozen, "verbatim"


def encode_schema(schema: Mapping[str, Any], form: str) -> Mapping[str, Any]:
    """Convert a JSON Schema to an OpenAPI schema in the given form."""
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
    """The value of a keyword with its nested schemas converted."""
    if key in _SCHEMAS and is_object(value):
        return convert(value)
    if key in _LISTS_OF_SCHEMAS and is_list(value):
        return [convert(item) if is_object(item) else item for item in value]
    if key in _OF_SCHEMAS and is_object(value):
        return {name: convert(item) if is_object(item) else item for name, item in value.items()}
    return value


# --- tool definitions

_DECLARATIONS = "functionDeclarations"
_MCP = "mcpServers"  # a list, each entry of which is a tool

_NOTHING = (None, ())
_LAYOUT = "tools"
"""The note for an unusual grouping of tools into objects: for each object the name of its
declarations field and their `count`, its `servers` and the `rest`."""


def take_tools(body: dict[str, Any], kept: Overlay) -> tuple[AnyTool, ...]:
    """Decode the tools of a request, and take them out of the body.

    Within an object, declarations precede built-in tools.
    """
    wire = body.get("tools")
    if is_object(wire):
        kept.single("tools")
        wire = [wire]
    if not is_list(wire) or not wire:
        return ()
    del body["tools"]
    tools: list[AnyTool] = []
    layout = [_decode_tool(item, tools) for item in wire]
    if layout != [_entry_of(group) for group in _groups(tools)]:
        kept.note(_LAYOUT, layout)
    return tuple(tools)


def encode_tools(
    tools: Iterable[AnyTool], extras: Mapping[str, Any], writing: Writing
) -> list[dict[str, Any]]:
    """Encode the tools of a request; other providers' built-in tools are left out."""
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
        writing.lose(f"tools[{index}]", "another provider's built-in tool is left out")
        return False
    if tool.cache is not None:
        writing.lose(f"tools[{index}].cache", "cache hints are not supported on tools")
    if isinstance(tool, ToolDefinition) and tool.strict and is_own(tool):
        writing.lose(f"tools[{index}].strict", "strict mode is not supported for single tools")
    for name in ("defer_loading", "allowed_callers") if isinstance(tool, ToolDefinition) else ():
        if getattr(tool, name) not in _NOTHING:
            writing.lose(f"tools[{index}].{name}", "this setting is not supported")
    return True


def _fitted(tool: AnyTool, index: int, writing: Writing) -> AnyTool:
    """Another dialect's tool with its schema compiled for this dialect; own tools unchanged."""
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
    # "should be non-empty for OBJECT type": refused in the older format
    parameters = schema if schema.get("properties") else None
    extras = with_note(tool.extras, NAME, "openapi", "upper")
    return tool.replace_unchecked(parameters=parameters, extras=extras)


def _decode_tool(wire: Any, tools: list[AnyTool]) -> dict[str, Any]:
    """Decode a tool object into `tools`; returns its entry in the layout."""
    others = dict(wire) if is_object(wire) else {}
    key = _DECLARATIONS if _DECLARATIONS in others else "function_declarations"
    declared = others.pop(key) if is_list(others.get(key)) else None
    servers = [each for name, value in others.items() for each in _servers(name, value)]
    is_odd = not is_object(wire) or not all(map(_is_declaration, declared or ()))
    if is_odd or (others and not servers and not declared):
        tools.append(odd_tool(wire, NAME))
        return _entry_of(tools[-1:])
    tools.extend(map(_decode_declaration, declared or ()))
    tools.extend(ServerTool(camel_case(name), NAME, payload) for name, payload in servers)
    entry = {} if declared is None else {"declarations": key, "count": len(declared)}
    names = [name for name, _ in servers]
    rest = {name: value for name, value in others.items() if name not in names}
    return entry | ({"servers": names} if names else {}) | ({"rest": rest} if rest else {})


def _servers(name: str, value: Any) -> list[tuple[str, dict[str, Any]]]:
    """The built-in tools in a field: one, or one for each MCP server."""
    if is_object(value):
        return [] if camel_case(name) == _MCP else [(name, value)]
    if camel_case(name) == _MCP and is_list(value) and all(map(is_object, value)):
        return [(name, server) for server in value]
    return []


def _is_declaration(wire: Any) -> bool:
    return is_object(wire) and type(wire.get("name")) is str


def _encode_tool(tools: list[AnyTool], entry: Mapping[str, Any]) -> Any:
    """Encode tools as one object, according to its layout entry."""
    if tools and isinstance(tools[0], ServerTool) and is_odd_tool(tools[0]):
        return payload_of(tools[0])
    rest = entry.get("rest")
    body: dict[str, Any] = dict(rest) if is_object(rest) else {}
    if "declarations" in entry:
        body[str(entry["declarations"])] = [
            DECLARATION.write(tool, SILENT) for tool in tools if isinstance(tool, ToolDefinition)
        ]
    servers = [tool for tool in tools if isinstance(tool, ServerTool)]
    for name, tool in zip(entry.get("servers", ()), servers, strict=True):
        if camel_case(name) == _MCP:
            body.setdefault(name, []).append(tool.payload)
        else:
            body[name] = tool.payload
    return body


def _groups(tools: list[AnyTool]) -> list[list[AnyTool]]:
    """Our default grouping into objects: consecutive declarations share one."""
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
    """The tools in their original layout; None if the tools have changed."""
    written: list[dict[str, Any]] = []
    start = 0
    for entry in layout:
        if not is_object(entry):
            return None
        servers = entry.get("servers", [])
        count = entry.get("count", 0)
        if not is_list(servers) or type(count) is not int or not 0 <= count <= len(tools):
            return None
        group = tools[start : start + count + len(servers)]
        expected = [None] * count + [camel_case(name) for name in servers]
        if [_server_name(tool) for tool in group] != expected:
            return None
        written.append(_encode_tool(group, entry))
        start += len(group)
    return written if start == len(tools) else None


def _unplaced(layout: Any) -> dict[str, Any]:
    """The unknown fields of a layout that no longer applies."""
    found = [entry.get("rest") for entry in layout if is_object(entry)] if is_list(layout) else []
    fields = [item for rest in found if is_object(rest) for item in rest.items()]
    return {key: value for key, value in fields if value is not None}


def _server_name(tool: AnyTool) -> str | None:
    return tool.name if isinstance(tool, ServerTool) else None


def _read_openapi(wire: dict[str, Any]) -> dict[str, Any]:
    return {"openapi": decode_schema(wire)}


def _write_openapi(tool: ToolDefinition) -> Mapping[str, Any] | None:
    form = note_of(tool.extras, NAME, "openapi")
    is_openapi = isinstance(form, str) and tool.parameters is not None
    return encode_schema(tool.parameters or EMPTY, str(form)) if is_openapi else None


def _write_json_schema(tool: ToolDefinition) -> Mapping[str, Any] | None:
    """JSON Schema has a separate, more capable field (W93)."""
    form = note_of(tool.extras, NAME, "openapi")
    return None if isinstance(form, str) else tool.parameters


def _made_declaration(
    name: str,
    parameters: Mapping[str, Any] | None = None,
    openapi: tuple[FrozenDict, Form] | None = None,
    **fields: Any,
) -> ToolDefinition:
    extras = EMPTY
    if parameters is None and openapi is not None:
        parameters, form = openapi
        extras = with_note(EMPTY, NAME, "openapi", form)
    return make_definition(name, parameters=parameters, origin=ORIGIN, extras=extras, **fields)


DECLARATION = Shape(
    NAME, None, ToolDefinition,
    Row("name", "name", is_required=True), Row("description", "description"),
    Row("parametersJsonSchema", "parameters",
        OBJECT._replace(write=_write_json_schema, exact=True), takes_owner=True),
    Row("parameters", "", Value(OBJECT.test, _read_openapi, _write_openapi, "an OpenAPI schema")),
    Row("responseJsonSchema", "output_schema", OBJECT),
    make=_made_declaration, twins=True,
)  # fmt: skip
_READING = Reading(ORIGIN, CallIds())


def _decode_declaration(wire: dict[str, Any]) -> ToolDefinition:
    return DECLARATION.read(wire, _READING)  # type: ignore[return-value]  # it has a name
