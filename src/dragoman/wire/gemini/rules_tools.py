"""Rules for function declarations, calls, responses, schemas and settings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from dragoman.wire.gemini.dialect import RANGES, camel_case
from dragoman.wire.gemini.rules_view import View, object_in, objects_in, spelled, value_of
from dragoman.wire.gemini.settings import SETTINGS
from dragoman.wire.gemini.tables import holds_references
from dragoman.wire.rows import NUMBER, WHOLE
from dragoman.wire.shared_rules import out_of_range
from dragoman.wire.violations import Found, Object, Rules, subschemas, texts_in, word

GOOGLE = ("google", "vertex")
rule = Rules[View]()
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}", re.ASCII)
_PARAMETER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}", re.ASCII)
_KEYWORDS = frozenset({
    "additionalProperties", "anyOf", "default", "defs", "description", "enum", "example", "format",
    "items", "maxItems", "maxLength", "maxProperties", "maximum", "minItems", "minLength",
    "minProperties", "minimum", "nullable", "pattern", "properties", "propertyOrdering", "ref",
    "required", "title", "type",
})  # fmt: skip
"""The keywords of the API's own schema format, according to the SDK."""
_REFERENCES = frozenset({"$ref", "$defs"})  # now mostly accepted (W93)
_BESIDE_REFERENCES = frozenset({"$ref", "ref", "$defs", "defs", "description", "default"})
_NUMBERS = (WHOLE.about, NUMBER.about)
_MODES = ("MODE_UNSPECIFIED", "AUTO", "ANY", "NONE", "VALIDATED")
_NAMING_MODES = ("ANY", "VALIDATED")


@rule("error", "ST", GOOGLE)
def shape_temperature(view: View) -> Found:
    """The temperature is from 0 to 2."""
    yield from out_of_range(view.config, RANGES, f"{view.config_path}.")


@rule("error", "S")
def shape_fields(view: View) -> Found:
    """Settings are of the types of their rows; in Google's JSON, a number may be a string."""
    for row in SETTINGS.rows:
        value: Any = view.body
        path: list[str] = []
        for step in row.wire.split("."):
            path.append(spelled(value, step) if isinstance(value, Mapping) else step)
            value = value.get(path[-1]) if isinstance(value, Mapping) else None
        if value is not None and not row.value.passes(value):
            is_text = isinstance(value, str) and value.replace(".", "", 1).isdecimal()
            if not (is_text and row.value.about in _NUMBERS):
                yield ".".join(path), f"must be {row.value.about}"


@rule("error", "S")
def shape_thinking(view: View) -> Found:
    """Thinking has a budget or a level, not both."""
    thinking = object_in(view.config, "thinkingConfig")
    if None not in (value_of(thinking, "thinkingBudget"), value_of(thinking, "thinkingLevel")):
        path = f"{view.config_path}.{spelled(view.config, 'thinkingConfig')}"
        yield path, "a budget and a level can't be combined"


@rule("error", "S")
def w89_names_are_plain(view: View) -> Found:
    """Names begin with a letter or `_`, followed by letters, digits, `_`, `.`, `:` and `-`."""
    for path, named in (*view.declarations, *view.calls(), *view.responses()):
        name = named.get("name")
        if isinstance(name, str) and not _NAME.fullmatch(name):
            yield (
                f"{path}.name",
                "must have up to 128 letters, digits, _ . : and -, beginning with a letter or _",
            )


@rule("warning", "S")
def w89_parameters_have_plain_names(view: View) -> Found:
    """Parameter names have letters, digits and `_`; no refusal has been recorded."""
    for path, schema in (*_schemas(view), *_json_schemas(view)):
        names = [str(name) for node in subschemas(schema) for name in object_in(node, "properties")]
        if not all(map(_PARAMETER.fullmatch, names)):
            yield path, "parameter names can have up to 64 letters, digits and _"


@rule("error", "E", GOOGLE)
def w90_keywords_are_known(view: View) -> Found:
    """The API's own schema format has few keywords; `parametersJsonSchema` accepts the others."""
    for path, node in _nodes(view):
        if any(camel_case(key) not in _KEYWORDS and key not in _REFERENCES for key in node):
            yield path, "unsupported JSON Schema keyword; use parametersJsonSchema"


@rule("error", "ER", GOOGLE)
def w91_types_are_single(view: View) -> Found:
    """A type is a single name; null is expressed by `nullable`."""
    for path, node in _nodes(view):
        if isinstance(node.get("type"), (list, tuple)):
            yield path, "must be a single type; use nullable for null"


@rule("warning", "E")
def w92_any_of_stands_alone(view: View) -> Found:
    """No other keywords are beside `anyOf`; only some models require it."""
    for path, node in _nodes(view):
        if value_of(node, "anyOf") is not None and len(node) > 1:
            yield path, "some models don't support other keywords beside anyOf"


@rule("warning", "R")
def w93_references_stand_alone(view: View) -> Found:
    """Only a description and a default are beside a reference."""
    for path, node in _nodes(view):
        has_reference = "$ref" in node or "ref" in node
        if has_reference and not _BESIDE_REFERENCES.issuperset(node):
            yield path, "only description and default are supported beside a reference"


@rule("error", "S")
def w93_there_is_one_schema(view: View) -> Found:
    """Parameters are given in only one format."""
    for path, declaration in view.declarations:
        if None not in (
            value_of(declaration, "parameters"),
            value_of(declaration, "parametersJsonSchema"),
        ):
            yield path, "parameters and parametersJsonSchema can't be combined"


@rule("error", "SE", GOOGLE)
def w94_enums_hold_strings(view: View) -> Found:
    """The values of an enum are non-empty strings."""
    for path, node in _nodes(view):
        values = node.get("enum")
        listed = values if isinstance(values, (list, tuple)) else ()
        if not all(isinstance(value, str) and value for value in listed):
            yield path, "enum values must be non-empty strings"


@rule("error", "SE", GOOGLE)
def w94_arrays_have_items(view: View) -> Found:
    """An array has `items`."""
    for path, node in _nodes(view):
        if word(node, "type").upper() == "ARRAY" and node.get("items") is None:
            yield path, "an array must have items"


@rule("error", "ER", GOOGLE, "schemas.refuses_json_with_tools")
def w97_json_or_tools(view: View) -> Found:
    """Some models don't support JSON output together with tools."""
    mime = value_of(view.config, "responseMimeType")
    has_tools = view.declarations or view.server_tools
    if view.target.schemas.refuses_json_with_tools and has_tools and mime == "application/json":
        path = f"{view.config_path}.{spelled(view.config, 'responseMimeType')}"
        yield path, "this model does not support tools together with JSON output"


@rule("error", "ER", GOOGLE, "tools.refuses_mixed")
def w97_functions_or_server_tools(view: View) -> Found:
    """Some models don't support built-in tools together with functions."""
    if view.target.tools.refuses_mixed and view.declarations:
        for path in view.server_tools:
            yield path, "this model does not support built-in tools together with functions"


@rule("error", "S")
def w99_modes_are_known(view: View) -> Found:
    """The mode of function calling is known."""
    mode = view.calling.get("mode")
    if mode is not None and not (isinstance(mode, str) and mode.upper() in _MODES):
        yield f"{view.calling_path}.mode", "must be AUTO, ANY, NONE or VALIDATED"


@rule("warning", "S")
def w99_names_go_with_their_modes(view: View) -> Found:
    """Allowed functions are only listed in modes that support them, and are declared."""
    key = spelled(view.calling, "allowedFunctionNames")
    names = view.calling.get(key)
    if not isinstance(names, (list, tuple)) or not names:
        return
    declared = texts_in([declaration.get("name") for _, declaration in view.declarations])
    if word(view.calling, "mode").upper() not in _NAMING_MODES:
        yield f"{view.calling_path}.{key}", "only supported with the modes ANY and VALIDATED"
    if not all(isinstance(name, str) and name in declared for name in names):
        yield f"{view.calling_path}.{key}", "contains a function that is not declared"


@rule("warning", "T")
def w99_choices_need_functions(view: View) -> Found:
    """Function calling is only configured with functions; Vertex and newer models don't mind."""
    if view.calling and not view.declarations:
        yield view.calling_path, "function calling is configured, but no functions are declared"


def _schemas(view: View) -> Iterator[tuple[str, object]]:
    """The schemas in the API's own format."""
    for path, declaration in view.declarations:
        for name in ("parameters", "response"):
            yield f"{path}.{name}", declaration.get(name)
    key = spelled(view.config, "responseSchema")
    yield f"{view.config_path}.{key}", view.config.get(key)


def _json_schemas(view: View) -> Iterator[tuple[str, object]]:
    for path, declaration in view.declarations:
        key = spelled(declaration, "parametersJsonSchema")
        yield f"{path}.{key}", declaration.get(key)


def _nodes(view: View) -> Iterator[tuple[str, Object]]:
    """All nested schemas, with the path of the outermost."""
    for path, schema in _schemas(view):
        for node in subschemas(schema):
            yield path, node
            for _, branch in objects_in(node, "anyOf") if "any_of" in node else ():
                yield from ((path, inner) for inner in subschemas(branch))


# --- rules for function calls and responses


@rule("error", "S")
def w80_arguments_are_an_object(view: View) -> Found:
    """The arguments of a call are an object, or missing."""
    for path, call in view.calls():
        args = call.get("args")
        if args is not None and not isinstance(args, Mapping):
            yield f"{path}.args", "must be an object"


@rule("error", "SR")
def w81_calls_and_responses_have_names(view: View) -> Found:
    """Calls and responses have names; ids are optional."""
    for path, named in (*view.calls(), *view.responses()):
        if not isinstance(named.get("name"), str) or not named["name"]:
            yield f"{path}.name", "the function name is required"


@rule("warning", "S")
def w81_ids_are_echoed(view: View) -> Found:
    """The id of a response is that of a call in the previous turn."""
    called: set[str] = set()
    for content in view.contents:
        ids = [object_in(part, "functionCall").get("id") for _, part in content.calls]
        called.update(value for value in ids if isinstance(value, str))
        for path, part in content.responses:
            value = object_in(part, "functionResponse").get("id")
            if isinstance(value, str) and value not in called:
                yield (
                    f"{path}.{spelled(part, 'functionResponse')}.id",
                    "no call of the previous turn has this id",
                )


@rule("error", "S")
def w82_responses_are_objects(view: View) -> Found:
    """The response of a function is an object."""
    for path, response in view.responses():
        if not isinstance(response.get("response"), Mapping):
            yield f"{path}.response", "must be an object"


@rule("error", "E", GOOGLE)
def w95_responses_hold_no_references(view: View) -> Found:
    """A response has no keys that look like references, except to its own media."""
    for path, response in view.responses():
        if holds_references(response.get("response"), _media_names(response)):
            yield f"{path}.response", "$ref and $defs would be interpreted as references"


@rule("warning", "R")
def w96_responses_hold_no_media(view: View) -> Found:
    """Older models don't support media in responses."""
    if view.target.media.in_results is False:
        for path, response in view.responses():
            if objects_in(response, "parts"):
                yield f"{path}.parts", "this model does not support media in a function response"


def _media_names(response: Object) -> set[str]:
    parts = [part for _, part in objects_in(response, "parts")]
    blobs = [object_in(part, kind) for part in parts for kind in ("inlineData", "fileData")]
    return {name for blob in blobs if isinstance(name := value_of(blob, "displayName"), str)}
