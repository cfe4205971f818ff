"""What Anthropic's API demands of blocks, tools and settings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from dragoman.wire.anthropic.allowance import MAX_OPTIONAL, MAX_STRICT_TOOLS, MAX_UNIONS
from dragoman.wire.anthropic.view import THINKING, View
from dragoman.wire.settingrules import missing_model, wrong_model
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
    if not view.target.model_in_path:
        yield from missing_model(view.body, view.target)


def w50_max_tokens_is_given(view: View) -> Found:
    """The number of tokens to write at most is required."""
    value = view.body.get("max_tokens")
    if not view.counts_tokens and (type(value) is not int or value < 0):
        yield "max_tokens", "max_tokens is required, an integer"


def w60_four_cache_markers(view: View) -> Found:
    """At most four blocks end a cached prefix, and thinking is not among them."""
    most = view.target.cache_markers
    marked = [path for path, wire in _markable(view) if wire.get("cache_control") is not None]
    if most is not None and len(marked) > most:
        yield marked[most], f"{len(marked)} blocks have cache_control, {most} are allowed"
    for path, block in view.blocks:
        if block.get("type") in THINKING and block.get("cache_control") is not None:
            yield path, "a thinking block can't have cache_control"


def w61_cache_ttl_is_known(view: View) -> Found:
    """How long to cache is Anthropic's own setting (the target says who refuses it)."""
    if not view.target.takes_cache_ttl:
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
    is_needed = view.target.needs_tools_for_history and not view.tools
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
