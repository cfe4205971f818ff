"""Rules for requests to Anthropic's Messages API: fields, images, tools, strict schemas."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from itertools import chain
from typing import Any

from dragoman.model.media import sniff_base64
from dragoman.wire.anthropic.dialect import RANGES, TARGET
from dragoman.wire.anthropic.rules_turns import CLAUDE, THINKING, View, rule
from dragoman.wire.anthropic.settings import SETTINGS
from dragoman.wire.anthropic.tables import BLOCKS
from dragoman.wire.anthropic.tools import (
    MAX_OPTIONAL,
    MAX_STRICT_TOOLS,
    MAX_UNIONS,
    MODES,
    TOOL,
    output_schema,
)
from dragoman.wire.rows import Shape
from dragoman.wire.settings_rows import Settings
from dragoman.wire.shared_rules import (
    missing_model,
    orphaned_choice,
    out_of_range,
    unlisted_model,
)
from dragoman.wire.violations import (
    Found,
    Object,
    Placed,
    Rulebook,
    field,
    listed,
    subschemas,
    texts_in,
)

# --- fields

_ID = re.compile(r"[a-zA-Z0-9_-]+")
_IN_RESULTS = ("text", "image", "document", "search_result", "tool_reference", "browser_state")
_COMBINATORS = ("oneOf", "allOf", "anyOf")


@rule("error", "S")
def shape_fields(view: View) -> Found:
    """Fields are of the types that the rows give them."""
    yield from _misfits(SETTINGS, view.body)
    if view.body.get("model") == "":
        yield "model", "must not be empty"
    for path, tool in view.tools:
        if tool.get("type") in (None, "custom"):
            yield from _misfits(TOOL, tool, path)
    for path, block in view.every:
        shape = BLOCKS.shape_of(block)
        if shape is not None:
            yield from _misfits(shape, block, path)


def _misfits(shape: Shape[Any] | Settings, wire: Object, path: str = "") -> Found:
    yield from ((f"{path}.{name}".lstrip("."), message) for name, message in shape.misfits(wire))


@rule("warning", "S")
def shape_model_is_named(view: View) -> Found:
    """A model is given, unless the path has it."""
    if not view.target.host.names_model_in_path:
        yield from missing_model(view.body, view.target)


@rule("warning", "ST", CLAUDE[:1])
def shape_model_is_listed(view: View) -> Found:
    """The model is in the provider's list, if the target has that list."""
    yield from unlisted_model(view.body, view.target)


@rule("error", "ST", CLAUDE)
def shape_temperature(view: View) -> Found:
    """The temperature is from 0 to 1."""
    yield from out_of_range(view.body, RANGES)


@rule("error", "T", CLAUDE)
def limit_strict_schemas(view: View) -> Found:
    """Strict tools and the output schema are compiled together, within limits."""
    strict = [tool for _, tool in view.tools if tool.get("strict") is True]
    place, answer = output_schema(view.body)
    schemas = [*(tool.get("input_schema") for tool in strict), answer]
    nodes = [node for schema in schemas for node in subschemas(schema)]
    if len(strict) > MAX_STRICT_TOOLS:
        yield "tools", f"{len(strict)} tools are strict; the maximum is {MAX_STRICT_TOOLS}"
    path = "tools" if strict else place
    if (optional := sum(map(_optional, nodes))) > MAX_OPTIONAL:
        yield (
            path,
            f"strict schemas have {optional} optional properties; the maximum is {MAX_OPTIONAL}",
        )
    if (unions := sum(map(_is_union, nodes))) > MAX_UNIONS:
        yield path, f"strict schemas have {unions} union properties; the maximum is {MAX_UNIONS}"


@rule("error", "SE", CLAUDE, "ids.pattern", "ids.max_length")
def w44_ids_are_plain(view: View) -> Found:
    """Call ids consist of letters, digits, `_` and `-`."""
    for kind, key in (("tool_use", "id"), ("tool_result", "tool_use_id")):
        for path, block in view.of_type(kind):
            value = block.get(key)
            if not (isinstance(value, str) and _ID.fullmatch(value)):
                yield f"{path}.{key}", "ids may only contain letters, digits, _ and -"


@rule("error", "SE", CLAUDE, "sampling.needs_token_limit")
def w50_max_tokens_is_given(view: View) -> Found:
    """`max_tokens` is required."""
    value = view.body.get("max_tokens")
    if not view.counts_tokens and (value is None or (type(value) is int and value < 0)):
        yield "max_tokens", "max_tokens is required and must be an integer"


@rule("error", "E", CLAUDE, "cache.max_hints")
def w60_four_cache_markers(view: View) -> Found:
    """At most four blocks have `cache_control`, and no thinking block has it."""
    most = view.target.cache.max_hints
    marked = [path for path, wire in _markable(view) if wire.get("cache_control") is not None]
    if most is not None and len(marked) > most:
        yield marked[most], f"{len(marked)} blocks have cache_control; the maximum is {most}"
    for path, block in view.blocks:
        if block.get("type") in THINKING and block.get("cache_control") is not None:
            yield path, "a thinking block can't have cache_control"


@rule("warning", "R")
def w61_cache_ttl_is_known(view: View) -> Found:
    """The cache `ttl` is refused by some hosts (depending on the target)."""
    if not view.target.cache.takes_ttl:
        for path, wire in _markable(view):
            if "ttl" in field(wire, "cache_control"):
                yield f"{path}.cache_control.ttl", "this host does not support ttl"


@rule("error", "ET", CLAUDE)
def w62_input_schemas_are_objects(view: View) -> Found:
    """The root of a tool's schema is an object, without combinators."""
    for path, tool in view.tools:
        if tool.get("type") not in (None, "custom"):
            continue
        schema = tool.get("input_schema")
        root: Object = schema if isinstance(schema, Mapping) else {}
        if root.get("type") != "object":
            yield f"{path}.input_schema", "the root of a tool's schema must be of type object"
        for keyword in _COMBINATORS:
            if keyword in root:
                yield f"{path}.input_schema", f"{keyword} is not supported at the top level"


@rule("error", "ER", (), "tools.must_be_declared")
def w63_history_needs_its_tools(view: View) -> Found:
    """A request with calls in its history needs tools (depending on the target)."""
    is_needed = view.target.tools.must_be_declared and not view.tools
    if is_needed and any(view.of_type("tool_use", "tool_result")):
        yield "tools", "tools are required if the history contains calls"


@rule("error", "S")
def w64_results_hold_known_blocks(view: View) -> Found:
    """A result is a string, or blocks of certain types."""
    for path, block in view.of_type("tool_result"):
        for place, inner in listed(block, "content", path):
            if inner.get("type") not in _IN_RESULTS:
                yield place, f"a result can only contain blocks of type {', '.join(_IN_RESULTS)}"


@rule("warning", "R")
def w71_server_results_are_whole(view: View) -> Found:
    """Search results are sent back with their encrypted content, citations with their index."""
    for path, block in view.of_type("web_search_tool_result"):
        for place, result in listed(block, "content", path):
            if not result.get("encrypted_content"):
                yield place, "a search result must have its encrypted_content"
    for path, block in view.of_type("text"):
        for place, citation in listed(block, "citations", path):
            is_found = citation.get("type") == "web_search_result_location"
            if is_found and not citation.get("encrypted_index"):
                yield place, "a citation of a search result must have its encrypted_index"


@rule("error", "SR")
def w74_choices_are_known(view: View) -> Found:
    """`tool_choice` is an object of a known type, which also holds the parallel setting."""
    body = view.body
    choice = body.get("tool_choice")
    kind = field(body, "tool_choice").get("type")
    if choice is not None and (not isinstance(kind, str) or kind not in MODES):
        yield "tool_choice", f"must be an object whose type is one of {', '.join(MODES)}"
    if kind == "tool" and not isinstance(field(body, "tool_choice").get("name"), str):
        yield "tool_choice.name", "required if the type is tool"
    for key in ("disable_parallel_tool_use", "parallel_tool_calls"):
        if key in body:
            yield key, "not supported; set disable_parallel_tool_use in tool_choice"


@rule("error", "D", (), "tools.takes_forced_choice")
def w74_tools_can_be_forced(view: View) -> Found:
    """Some models can't be forced to call a tool (depending on the target)."""
    kind = field(view.body, "tool_choice").get("type")
    if kind in ("any", "tool") and not view.target.tools.takes_forced_choice:
        yield "tool_choice.type", "this model can't be forced to call a tool"


@rule("warning", "R")
def w121_choices_need_tools(view: View) -> Found:
    """A tool choice comes with tools."""
    yield from orphaned_choice(view.body, "tool_choice")


def _markable(view: View) -> Iterator[Placed]:
    """Everything that may have `cache_control`: tools, system blocks, blocks also in results."""
    yield from view.tools
    yield from listed(view.body, "system")
    yield from view.every


def _optional(node: Object) -> int:
    named = texts_in(node.get("required"))
    return sum(key not in named for key in field(node, "properties"))


def _is_union(node: Object) -> bool:
    return isinstance(node.get("type"), (list, tuple)) or "anyOf" in node


# --- rules for images

_IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_MAX_CHARACTERS = 5 * 1024 * 1024


@rule("error", "S")
def w65_images_have_a_source(view: View) -> Found:
    """An image is base64 of a known type (no data URL), a URL, or a file."""
    for path, block in view.of_type("image"):
        if field(block, "source").get("type") not in ("base64", "url", "file"):
            yield f"{path}.source.type", "must be base64, url or file"
    for path, source in _inline(view):
        data = source.get("data")
        if source.get("media_type") not in _IMAGES:
            yield f"{path}.media_type", f"must be one of {', '.join(_IMAGES)}"
        if not isinstance(data, str) or data[:5].lower() == "data:":
            yield f"{path}.data", "must be plain base64, without a data: prefix"


@rule("error", "E", CLAUDE)
def w65_images_are_of_their_type(view: View) -> Found:
    """The data matches the declared type, if it can be detected."""
    for path, source in _inline(view):
        data, declared = source.get("data"), source.get("media_type")
        found = sniff_base64(data) if isinstance(data, str) else None
        if found in _IMAGES and declared in _IMAGES and found != declared:
            yield f"{path}.media_type", "does not match the type of the data"


@rule("warning", "R")
def w65_images_are_small(view: View) -> Found:
    """Images are at most 5 MB as base64."""
    for path, source in _inline(view):
        data = source.get("data")
        if isinstance(data, str) and len(data) > _MAX_CHARACTERS:
            yield f"{path}.data", "an image can be at most 5 MB, measured as base64"


def _inline(view: View) -> Iterator[Placed]:
    """The sources of base64 images."""
    for path, block in view.of_type("image"):
        source = field(block, "source")
        if source.get("type") == "base64":
            yield f"{path}.source", source


# --- rules for strict schemas

_ROOT = "#"
_DEFINITIONS = ("$defs", "definitions")


@rule("error", "T", CLAUDE)
def shape_strict_schemas_are_objects(view: View) -> Found:
    """Property schemas of strict tools are objects, not booleans."""
    for path, schema in _strict(view):
        properties = [field(node, "properties").values() for node in subschemas(schema)]
        if not all(isinstance(one, Mapping) for one in chain.from_iterable(properties)):
            yield path, "every property of a strict schema must have an object as its schema"


@rule("error", "T", CLAUDE)
def shape_strict_schemas_have_an_end(view: View) -> Found:
    """Strict schemas are not recursive."""
    for path, schema in _strict(view):
        if isinstance(schema, Mapping) and _is_circular(schema):
            yield path, "definitions in a strict schema must not be recursive"


def _strict(view: View) -> list[tuple[str, object]]:
    return [
        (f"{path}.input_schema", tool.get("input_schema"))
        for path, tool in view.tools
        if tool.get("strict") is True and view.target.schemas.checks_strict
    ]


def _is_circular(schema: Object) -> bool:
    if _ROOT in _references(schema):
        return True
    definitions = {
        f"#/{place}/{name}": _references(definition)
        for place in _DEFINITIONS
        for name, definition in field(schema, place).items()
    }
    try:
        TopologicalSorter(definitions).prepare()
    except CycleError:
        return True
    return False


def _references(schema: object) -> list[str]:
    found = (node.get("$ref") for node in subschemas(schema))
    return [reference for reference in found if isinstance(reference, str)]


RULES = sorted(rule, key=lambda each: each.place)
RULEBOOK = Rulebook(
    RULES, lambda body, target, path, headers: View(body, target or TARGET, path, headers)
)
