"""Calls and outputs of client and built-in tools, paired by `call_id` (W20)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from msgspec import UNSET, UnsetType

from dragoman.errors import InvalidInputError
from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY
from dragoman.model.jsontext import dumps, loads
from dragoman.model.media import Image
from dragoman.model.parts import Opaque, Origin, Part, ServerToolCall, ServerToolResult, Text
from dragoman.model.tools import ResultPart, ToolCall, ToolResult, make_call, make_result
from dragoman.wire.digests import sha256
from dragoman.wire.fitting.tools import is_blank
from dragoman.wire.openai_responses.content import (
    NOT_SUPPORTED,
    decode_input,
    encode_input,
    is_plain,
    lose_citations,
)
from dragoman.wire.openai_responses.content_forms import (
    CONTINUES,
    continues_item,
    decode_form,
    decode_id,
    encode_form,
    formed,
    without,
)
from dragoman.wire.openai_responses.dialect import NAME, ORIGIN
from dragoman.wire.overlay import spelled, with_guesses
from dragoman.wire.reading import Reading
from dragoman.wire.target import Target
from dragoman.wire.writing import Writing

Kind = Literal["function", "custom"]


class ItemTypes(NamedTuple):
    """The item types for a kind of tool, and the field with the input of a call."""

    call: str
    text: str
    output: str


TYPES: dict[Kind, ItemTypes] = {
    "function": ItemTypes("function_call", "arguments", "function_call_output"),
    "custom": ItemTypes("custom_tool_call", "input", "custom_tool_call_output"),
}
_KINDS: dict[str, Kind] = {name: kind for kind, names in TYPES.items() for name in names}
_BARE_CALL, _BARE_OUTPUT = 4, 3  # number of fields of an item without optional ones
_COMPLETED: Mapping[str, Any] = {"status": "completed"}
# W31: outputs have no error field, and those of custom tools not even a status.
_FAILED: dict[Kind, Mapping[str, Any]] = {"function": {"status": "incomplete"}, "custom": EMPTY}


def decode_call(wire: dict[str, Any], reading: Reading) -> ToolCall | None:
    """Decode a `function_call` or `custom_tool_call` item; None if it is malformed."""
    kind = _KINDS[wire["type"]]
    key = TYPES[kind].text
    name, raw, wire_id = wire.get("name"), wire.get(key, ""), wire.get("call_id")
    if type(name) is not str or type(raw) is not str:
        return None
    wire_id = wire_id if type(wire_id) is str else None
    call_id, kept = reading.calls.add_call(name, wire_id, raw)
    origin = None
    if kept is not UNSET:
        origin = ORIGIN  # the original id is only for this dialect
    elif kind == "function" and is_blank(raw):
        origin = reading.origin  # so that missing arguments are restored unchanged
    if wire_id is not None and kept is UNSET and len(wire) == _BARE_CALL and key in wire:
        return make_call(
            call_id, name, raw, kind=kind, origin=origin
        )  # shortcut: the most common form
    optional = without(wire, "type", "name", key)
    item_id = decode_id(wire, optional)
    if wire_id is not None:
        del optional["call_id"]
    extras = decode_form(optional, EMPTY if item_id is None else _COMPLETED)
    if key not in wire:
        extras, origin = with_guesses(extras, NAME, [[[key], ""]]), ORIGIN
    return make_call(
        call_id,
        name,
        raw,
        kind=kind,
        wire_id=kept,
        item_id=item_id,
        origin=origin,
        extras=extras,
    )


def wire_id_of(call: ToolCall, target: Target) -> str | None:
    """The original wire id, if this target created it and would accept it (W22)."""
    had = call.wire_id
    if isinstance(had, UnsetType) or (had and not target.ids.accepts(had)):
        return call.id
    return call.id if had is None and target.state.verifies_items else had


def plain_call(call: ToolCall) -> dict[str, Any] | None:
    """Encode a call with only id, name and arguments; None if there may be more to it.

    The caller has checked that it has no extras, cache hint or item id.
    """
    raw = call.raw
    if (
        raw is None
        or is_blank(raw)
        or call.kind != "function"
        or call.wire_id is not UNSET
        or call.signature is not None
    ):
        return None
    return {"type": "function_call", "name": call.name, "arguments": raw, "call_id": call.id}


def encode_call(call: ToolCall, item_id: str | None, wire_id: str | None) -> dict[str, Any]:
    """Encode a call as an item."""
    wire_type, key, _ = TYPES[call.kind]
    body: dict[str, Any] = {"type": wire_type, "name": call.name, key: call.raw_arguments}
    if wire_id is not None:
        body["call_id"] = wire_id
    if item_id is not None:
        body["id"] = item_id
    formed(body, call.extras, EMPTY if item_id is None else _COMPLETED)
    return spelled(body, call.extras, NAME) if call.extras else body


def decode_output(wire: dict[str, Any], reading: Reading) -> ToolResult | None:
    """Decode a `function_call_output` or `custom_tool_call_output`; None if it is malformed."""
    content, wire_id = _decode_content(wire.get("output")), wire.get("call_id")
    wire_id = wire_id if type(wire_id) is str else None
    if content is None or (call_id := reading.calls.answer(wire_id)) is None:
        return None
    kind = _KINDS[wire["type"]]
    if wire_id is not None and len(wire) == _BARE_OUTPUT:
        return make_result(call_id, content, kind=kind)  # shortcut: the most common form
    optional = without(wire, "type", "output", "" if wire_id is None else "call_id")
    failed = optional.get("status") == "incomplete"
    return make_result(
        call_id,
        content,
        kind=kind,
        is_error=True if failed else None,
        item_id=decode_id(wire, optional),
        extras=decode_form(optional, _FAILED[kind] if failed else EMPTY),
    )


def _decode_content(wire: Any) -> str | tuple[ResultPart, ...] | None:
    if type(wire) is str:
        return wire
    if not isinstance(wire, list):
        return None
    parts = tuple(decode_input(part) or Opaque(NAME, part, origin=ORIGIN) for part in wire)
    if len(parts) == 1 and isinstance(text := parts[0], Text) and is_plain(text):
        return text.text
    return parts


def plain_output(result: ToolResult) -> dict[str, Any] | None:
    """Encode a result that is only a text; None if there may be more, as in `plain_call`."""
    content = result.content
    if type(content) is not str or not content or result.kind != "function" or result.is_error:
        return None
    return {"type": "function_call_output", "output": content, "call_id": result.call_id}


def encode_output(
    result: ToolResult, item_id: str | None, kind: Kind, writing: Writing
) -> dict[str, Any]:
    """The item of a result."""
    body: dict[str, Any] = {"type": TYPES[kind].output, "output": _encode_content(result, writing)}
    if (wire_id := writing.wire_ids.get(result.call_id, result.call_id)) is not None:
        body["call_id"] = wire_id
    if item_id is not None:
        body["id"] = item_id
    form = encode_form(result.extras, EMPTY)
    if result.is_error:
        body |= _FAILED[kind]
    elif _FAILED[kind].items() <= form.items():
        form = {key: form[key] for key in form if key not in _FAILED[kind]}
    return {**form, **body}


def is_custom_output(item: Mapping[str, Any]) -> bool:
    """Whether an item is an output of a custom tool."""
    return bool(item["type"] == TYPES["custom"].output)


def _encode_content(result: ToolResult, writing: Writing) -> str | list[Any]:
    content = result.content
    if isinstance(content, str) or (len(content) == 1 and is_plain(content[0])):
        return result.text
    encoded: list[Any] = []
    for index, part in enumerate(content):
        writing.item = index
        if isinstance(part, Opaque) and part.dialect == NAME:
            encoded.append(part.payload)
        elif (body := encode_input(part)) is not None:
            encoded.append(body)
        else:
            writing.lose_here(NOT_SUPPORTED)
        if type(part) is Text:
            lose_citations(part, writing)
    writing.item = None
    return encoded


# --- property names in a call's arguments: at most 256 characters (W39)
#
# A model that repeats itself may have written a longer one. The call stays in the history, so the
# name is truncated, with a hash of the whole name at its end.

MAX_NAME_LENGTH = 256
_HASH = 8


def has_long_names(arguments: str) -> bool:
    """Whether any property name in the arguments is too long."""
    if len(arguments) <= MAX_NAME_LENGTH:  # the most common case
        return False
    pending = [_parsed(arguments)]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            if any(len(name) > MAX_NAME_LENGTH for name in node):
                return True
            pending += node.values()
        elif isinstance(node, list):
            pending += node
    return False


def with_short_names(arguments: str) -> str:
    """The arguments with long names truncated."""
    return dumps(_shortened(_parsed(arguments))).decode("utf-8")


def _parsed(arguments: str) -> Any:
    try:
        return loads(arguments)
    except InvalidInputError:
        return None


def _shortened(node: Any) -> Any:
    if isinstance(node, dict):
        return {_short(name): _shortened(value) for name, value in node.items()}
    return [_shortened(item) for item in node] if isinstance(node, list) else node


def _short(name: str) -> str:
    if len(name) <= MAX_NAME_LENGTH:
        return name
    mark = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH]
    return f"{name[: MAX_NAME_LENGTH - _HASH - 1]}_{mark}"


# --- items of built-in tools: web search, code interpreter, MCP, shell and so on
#
# Every `<name>_call` is a call, known or not, and every `<name>_call_output` a result: their fields
# are the call's input or the result's content. A result inside the call's item becomes a separate
# part with the same `item_id`; a generated image becomes an `Image`.

_CALL, _OUTPUT = "_call", "_call_output"
# Types of calls and results that don't follow the pattern.
_ODD_CALLS = frozenset({"program", "mcp_list_tools", "mcp_approval_request"})
_ODD_RESULTS = {"tool_search_output": "tool_search", "program_output": "program"}
_ODD_RESULT_TYPES = {name: wire_type for wire_type, name in _ODD_RESULTS.items()}
# Fields with the result in the item of a call.
_RESULT_KEYS = {"file_search": "results", "code_interpreter": "outputs", "mcp": "output"}
_IMAGE_GENERATION = "image_generation"
IMAGE_CALL = f"{_IMAGE_GENERATION}_call"
# Calls that name an MCP server.
_WITH_SERVER = frozenset({"mcp", "mcp_list_tools", "mcp_approval_request"})
_SERVER = "server_label"
MCP = "mcp"
_FAILED_STATUS: Mapping[str, Any] = {"status": "failed"}


def has_server(name: str) -> bool:
    """Whether calls of that name have an MCP server."""
    return name in _WITH_SERVER


def is_inside_call(part: Part) -> bool:
    """Whether a result is in the item of its call."""
    return isinstance(part, ServerToolResult) and part.name in _RESULT_KEYS


def is_call(wire_type: str) -> bool:
    """Whether items of that type are calls."""
    return wire_type.endswith(_CALL) or wire_type in _ODD_CALLS


def is_result(wire_type: str) -> bool:
    """Whether items of that type are results."""
    return wire_type.endswith(_OUTPUT) or wire_type in _ODD_RESULTS


def is_client_result(wire: dict[str, Any]) -> bool:
    """Whether a result is from the client, so that it ends the model's turn."""
    kind: str = wire["type"]
    if kind == "tool_search_output":
        return bool(wire.get("execution") == "client")
    if kind == "shell_call_output":
        return "id" not in wire  # outputs of the hosted shell have an id
    return kind != "program_output"


def _usual_call(name: str) -> Mapping[str, Any]:
    return EMPTY if name in _ODD_CALLS else _COMPLETED


def decode_server_call(wire: dict[str, Any], reading: Reading) -> list[AnyPart]:
    """Decode the call in an item, and its result if the item has it."""
    fields = dict(wire)
    wire_type = fields.pop("type")
    name = wire_type if wire_type in _ODD_CALLS else wire_type.removesuffix(_CALL)
    item_id, call_id, optional = _decode_ids(wire, fields)
    origin = reading.origin
    result = None
    if item_id is not None or name == _IMAGE_GENERATION:
        result = _decode_result(name, item_id, call_id, fields, origin)
    if isinstance(result, Image) and item_id is None:
        result = result.replace_unchecked(extras=decode_form(EMPTY, EMPTY, CONTINUES))
    has_server = name in _WITH_SERVER and type(fields.get(_SERVER)) is str
    call = ServerToolCall(
        name,
        call_id,
        server=fields.pop(_SERVER) if has_server else None,
        input=fields,
        item_id=item_id,
        origin=origin,
        extras=decode_form(optional, _usual_call(name)),
    )
    return [call] if result is None else [call, result]


def encode_server_call(call: ServerToolCall, result: Part | None) -> dict[str, Any]:
    """Encode a call, with the result that belongs in the same item."""
    wire_type = call.name if call.name in _ODD_CALLS else call.name + _CALL
    body = _encode_fields(wire_type, call, call.input)
    if call.server is not None and has_server(call.name):
        body[_SERVER] = call.server
    formed(body, call.extras, _usual_call(call.name))
    if isinstance(result, Image):
        body["result"] = result.data
    elif isinstance(result, ServerToolResult):
        is_error = bool(result.is_error) and call.name == MCP
        body["error" if is_error else _RESULT_KEYS[call.name]] = result.content
    return body


def encode_image_item(image: Image, item_id: str | None) -> dict[str, Any]:
    """Encode an image of another dialect as an image generation item."""
    kind = (image.mime or "").removeprefix("image/")
    body = {"type": IMAGE_CALL, "id": item_id, "status": "completed", "result": image.data}
    return {**body, "output_format": kind} if kind else body


def _decode_result(
    name: str,
    item_id: str | None,
    call_id: str | None,
    fields: dict[str, Any],
    origin: Origin | None,
) -> AnyPart | None:
    """Remove the result from the fields of a call's item and decode it."""
    if name == _IMAGE_GENERATION and type(fields.get("result")) is str:
        image, kind = fields.pop("result"), fields.get("output_format")
        mime = f"image/{kind}" if type(kind) is str else None
        return Image(data=image, mime=mime, item_id=item_id, origin=origin)
    key = _RESULT_KEYS.get(name, "")
    if fields.get(key) is not None:
        content = fields.pop(key)
        return ServerToolResult(name, call_id, content, item_id=item_id, origin=origin)
    if name == "mcp" and fields.get("error") is not None:
        error = fields.pop("error")
        return ServerToolResult(name, call_id, error, is_error=True, item_id=item_id, origin=origin)
    return None


def belongs_to(part: Part, call: Part) -> bool:
    """Whether a part is the result that belongs in this call's item."""
    if not isinstance(call, ServerToolCall) or part.item_id != call.item_id:
        return False
    if part.item_id is None and not continues_item(part):
        return False
    if isinstance(part, ServerToolResult):
        return part.name == call.name and call.name in _RESULT_KEYS
    return isinstance(part, Image) and call.name == _IMAGE_GENERATION and part.data is not None


def decode_server_result(wire: dict[str, Any], reading: Reading) -> ServerToolResult:
    """Decode a result that is a separate item."""
    fields = dict(wire)
    wire_type = fields.pop("type")
    name = _ODD_RESULTS.get(wire_type) or wire_type.removesuffix(_OUTPUT)
    item_id, call_id, optional = _decode_ids(wire, fields)
    failed = optional.get("status") == "failed"
    return ServerToolResult(
        name,
        call_id,
        fields,
        is_error=True if failed else None,
        item_id=item_id,
        origin=reading.origin,
        extras=decode_form(optional, _FAILED_STATUS if failed else _COMPLETED),
    )


def encode_server_result(result: ServerToolResult) -> dict[str, Any]:
    """Encode a result as a separate item."""
    wire_type = _ODD_RESULT_TYPES.get(result.name) or result.name + _OUTPUT
    body = _encode_fields(wire_type, result, result.content)
    form = dict(encode_form(result.extras, _COMPLETED))
    if result.is_error:
        form |= _FAILED_STATUS
    elif form.get("status") == _FAILED_STATUS["status"]:
        form |= _COMPLETED
    return {**form, **body}


def _decode_ids(
    wire: dict[str, Any], fields: dict[str, Any]
) -> tuple[str | None, str | None, dict[str, Any]]:
    """Remove item id, call id and optional fields from the item's fields and return them.

    A call is paired with its result by its call id or, without one, by its item id.
    """
    item_id = decode_id(wire, fields)
    names = ("id", "status", "call_id")
    optional: dict[str, Any] = {key: fields.pop(key) for key in names if key in fields}
    call_id = optional.get("call_id")
    if type(call_id) is not str or call_id == item_id:
        return item_id, item_id, optional
    del optional["call_id"]
    return item_id, call_id, optional


def _encode_fields(
    wire_type: str, part: ServerToolCall | ServerToolResult, fields: Any
) -> dict[str, Any]:
    body: dict[str, Any] = dict(fields) if isinstance(fields, Mapping) else {}
    body["type"] = wire_type
    if part.item_id is not None:
        body["id"] = part.item_id
    if part.call_id is not None and part.call_id != part.item_id:
        body["call_id"] = part.call_id
    return body
