"""What Anthropic's API demands of blocks, images, tools, strict schemas and settings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from itertools import chain

from dragoman.model.media import sniff_base64
from dragoman.wire.anthropic.rules_view import THINKING, View
from dragoman.wire.anthropic.tools_schemas import MAX_OPTIONAL, MAX_STRICT_TOOLS, MAX_UNIONS
from dragoman.wire.shared_rules import missing_model, unlisted_model, wrong_model
from dragoman.wire.violations import (
    Found,
    Object,
    Placed,
    field,
    is_number,
    listed,
    subschemas,
    texts_in,
)

_ID = re.compile(r"[a-zA-Z0-9_-]+")
_IN_RESULTS = ("text", "image", "document", "search_result", "tool_reference", "browser_state")
_CHOICES = ("auto", "any", "tool", "none")
_COMBINATORS = ("oneOf", "allOf", "anyOf")


def shape_temperature(view: View) -> Found:
    """The temperature goes from 0 to 1."""
    value = view.body.get("temperature")
    if value is not None and not (is_number(value) and 0 <= value <= 1):
        yield "temperature", "must be a number from 0 to 1"


def limit_strict_schemas(view: View) -> Found:
    """Strict tools and the answer's schema are compiled together, and there is a limit to that."""
    strict = [tool for _, tool in view.tools if tool.get("strict") is True]
    place, answer = view.output_schema
    schemas = [*(tool.get("input_schema") for tool in strict), answer]
    nodes = [node for schema in schemas for node in subschemas(schema)]
    if len(strict) > MAX_STRICT_TOOLS:
        yield "tools", f"{len(strict)} tools are strict, {MAX_STRICT_TOOLS} are allowed"
    path = "tools" if strict else place
    if (optional := sum(map(_optional, nodes))) > MAX_OPTIONAL:
        yield path, f"{optional} properties of strict schemas are optional, {MAX_OPTIONAL} may be"
    if (unions := sum(map(_is_union, nodes))) > MAX_UNIONS:
        yield path, f"{unions} properties of strict schemas are unions, {MAX_UNIONS} may be"


def w44_ids_are_plain(view: View) -> Found:
    """Ids of calls are made of letters, digits, `_` and `-`."""
    for kind, key in (("tool_use", "id"), ("tool_result", "tool_use_id")):
        for path, block in view.of_type(kind):
            value = block.get(key)
            if not (isinstance(value, str) and _ID.fullmatch(value)):
                yield f"{path}.{key}", "an id has letters, digits, _ and - only"


def w45_input_is_an_object(view: View) -> Found:
    """Arguments are an object, not its text."""
    for path, block in view.of_type("tool_use"):
        if not isinstance(block.get("input"), Mapping):
            yield f"{path}.input", "the input of a call must be an object"


def shape_model(view: View) -> Found:
    """The model is a name."""
    yield from wrong_model(view.body)


def shape_model_is_named(view: View) -> Found:
    """And there is one, unless the path has it."""
    if not view.target.host.names_model_in_path:
        yield from missing_model(view.body, view.target)


def shape_model_is_listed(view: View) -> Found:
    """And its maker lists it, where the target knows the list."""
    yield from unlisted_model(view.body, view.target)


def w50_max_tokens_is_given(view: View) -> Found:
    """The number of tokens to write at most is required."""
    value = view.body.get("max_tokens")
    if not view.counts_tokens and (type(value) is not int or value < 0):
        yield "max_tokens", "max_tokens is required, an integer"


def w60_four_cache_markers(view: View) -> Found:
    """At most four blocks end a cached prefix, and thinking is not among them."""
    most = view.target.cache.max_hints
    marked = [path for path, wire in _markable(view) if wire.get("cache_control") is not None]
    if most is not None and len(marked) > most:
        yield marked[most], f"{len(marked)} blocks have cache_control, {most} are allowed"
    for path, block in view.blocks:
        if block.get("type") in THINKING and block.get("cache_control") is not None:
            yield path, "a thinking block can't have cache_control"


def w61_cache_ttl_is_known(view: View) -> Found:
    """How long to cache is Anthropic's own setting (the target says who refuses it)."""
    if not view.target.cache.takes_ttl:
        for path, wire in _markable(view):
            if "ttl" in field(wire, "cache_control"):
                yield f"{path}.cache_control.ttl", "this host does not know ttl"


def w62_input_schemas_are_objects(view: View) -> Found:
    """The root of a tool's schema is an object and no combination."""
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


def w63_history_needs_its_tools(view: View) -> Found:
    """Calls in the history need tools beside them (the target says where)."""
    is_needed = view.target.tools.must_be_declared and not view.tools
    if is_needed and any(view.of_type("tool_use", "tool_result")):
        yield "tools", "tools must be given while the history has calls"


def w64_results_hold_known_blocks(view: View) -> Found:
    """A result is a text, or blocks of some types."""
    for path, block in view.of_type("tool_result"):
        content, is_error = block.get("content"), block.get("is_error")
        if content is not None and not isinstance(content, (str, list, tuple)):
            yield f"{path}.content", "a result must be a text or a list of blocks"
        for place, inner in listed(block, "content", path):
            if inner.get("type") not in _IN_RESULTS:
                yield place, f"a result can hold {', '.join(_IN_RESULTS)} only"
        if is_error is not None and not isinstance(is_error, bool):
            yield f"{path}.is_error", "is_error must be true or false"


def w71_server_results_are_whole(view: View) -> Found:
    """Search results go back with their encrypted content, and what cites them with its index."""
    for path, block in view.of_type("web_search_tool_result"):
        for place, result in listed(block, "content", path):
            if not result.get("encrypted_content"):
                yield place, "a search result needs its encrypted_content"
    for path, block in view.of_type("text"):
        for place, citation in listed(block, "citations", path):
            is_found = citation.get("type") == "web_search_result_location"
            if is_found and not citation.get("encrypted_index"):
                yield place, "a citation of a search result needs its encrypted_index"


def w74_choices_are_known(view: View) -> Found:
    """How tools are chosen; whether in parallel is said inside it."""
    body = view.body
    choice = body.get("tool_choice")
    kind = field(body, "tool_choice").get("type")
    if choice is not None and (not isinstance(kind, str) or kind not in _CHOICES):
        yield "tool_choice", f"must be an object whose type is one of {', '.join(_CHOICES)}"
    if kind == "tool" and not isinstance(field(body, "tool_choice").get("name"), str):
        yield "tool_choice.name", "the tool must be named"
    for key in ("disable_parallel_tool_use", "parallel_tool_calls"):
        if key in body:
            yield key, "goes into tool_choice, as disable_parallel_tool_use"


def w74_tools_can_be_forced(view: View) -> Found:
    """Some models refuse to be forced to call a tool (the target says which)."""
    kind = field(view.body, "tool_choice").get("type")
    if kind in ("any", "tool") and not view.target.tools.takes_forced_choice:
        yield "tool_choice.type", "this model can't be forced to call a tool"


def _markable(view: View) -> Iterator[Placed]:
    """What may end a cached prefix: tools, the system prompt, blocks and those in results."""
    yield from view.tools
    yield from listed(view.body, "system")
    for path, block in view.blocks:
        yield path, block
        if block.get("type") == "tool_result":
            yield from listed(block, "content", path)


def _optional(node: Object) -> int:
    named = texts_in(node.get("required"))
    return sum(key not in named for key in field(node, "properties"))


def _is_union(node: Object) -> bool:
    return isinstance(node.get("type"), (list, tuple)) or "anyOf" in node


# --- what Anthropic's API demands of images

_IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_MOST_CHARACTERS = 5 * 1024 * 1024


def w65_images_have_a_source(view: View) -> Found:
    """An image is base64 of a known type, without a data address around it, or an address."""
    for path, block in view.of_type("image"):
        if field(block, "source").get("type") not in ("base64", "url", "file"):
            yield f"{path}.source.type", "the source of an image is base64, url or file"
    for path, source in _inline(view):
        data = source.get("data")
        if source.get("media_type") not in _IMAGES:
            yield f"{path}.media_type", f"must be one of {', '.join(_IMAGES)}"
        if not isinstance(data, str) or data[:5].lower() == "data:":
            yield f"{path}.data", "must be base64, without data: before it"


def w65_images_are_of_their_type(view: View) -> Found:
    """The data begins as images of that type do, where it can be told."""
    for path, source in _inline(view):
        data, told = source.get("data"), source.get("media_type")
        found = sniff_base64(data) if isinstance(data, str) else None
        if found in _IMAGES and told in _IMAGES and found != told:
            yield f"{path}.media_type", "the data is an image of another type"


def w65_images_are_small(view: View) -> Found:
    """Images have at most 5 MB, as base64."""
    for path, source in _inline(view):
        data = source.get("data")
        if isinstance(data, str) and len(data) > _MOST_CHARACTERS:
            yield f"{path}.data", "an image has at most 5 MB, counted as base64"


def _inline(view: View) -> Iterator[Placed]:
    """The sources of images that hold their data."""
    for path, block in view.of_type("image"):
        source = field(block, "source")
        if source.get("type") == "base64":
            yield f"{path}.source", source


# --- what Anthropic's compiler of strict schemas refuses

_ROOT = "#"
_DEFINITIONS = ("$defs", "definitions")


def shape_strict_schemas_are_objects(view: View) -> Found:
    """A property of a strict tool is told by an object, not by true or false."""
    for path, schema in _strict(view):
        properties = [field(node, "properties").values() for node in subschemas(schema)]
        if not all(isinstance(one, Mapping) for one in chain.from_iterable(properties)):
            yield path, "every property in a strict schema must be an object"


def shape_strict_schemas_have_an_end(view: View) -> Found:
    """No definition of a strict tool refers back to itself."""
    for path, schema in _strict(view):
        if isinstance(schema, Mapping) and _is_circular(schema):
            yield path, "definitions in a strict schema must not refer to each other in a circle"


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
