"""Calls and outputs, paired on `call_id` (W20): of the developer's tools and built-in ones."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Literal, NamedTuple

from msgspec import UNSET, UnsetType

from dragoman.errors import InvalidInputError
from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY
from dragoman.model.jsontext import dumps, loads
from dragoman.model.media import Image
from dragoman.model.parts import Opaque, Origin, Part, ServerToolCall, ServerToolResult, Text
from dragoman.model.tools import ResultPart, ToolCall, ToolResult, make_call, make_result
from dragoman.wire.fitting.tools import is_blank
from dragoman.wire.openai_responses.content import (
    NO_PLACE,
    decode_input,
    encode_input,
    is_plain,
    lose_citations,
)
from dragoman.wire.openai_responses.content_forms import (
    decode_form,
    decode_id,
    encode_form,
    formed,
    without,
)
from dragoman.wire.openai_responses.dialect import NAME, ORIGIN
from dragoman.wire.reading import Reading
from dragoman.wire.target import Target
from dragoman.wire.writing import Writing

Kind = Literal["function", "custom"]


class ItemTypes(NamedTuple):
    """The types of the items for a kind of tool, and the field for what a call says."""

    call: str
    text: str
    output: str


TYPES: dict[Kind, ItemTypes] = {
    "function": ItemTypes("function_call", "arguments", "function_call_output"),
    "custom": ItemTypes("custom_tool_call", "input", "custom_tool_call_output"),
}
_KINDS: dict[str, Kind] = {name: kind for kind, names in TYPES.items() for name in names}
_BARE_CALL, _BARE_OUTPUT = 4, 3  # how many fields an item has that has no others
_COMPLETED: Mapping[str, Any] = {"status": "completed"}
# W31: there is no field for an error, and for custom tools not even a status.
_FAILED: dict[Kind, Mapping[str, Any]] = {"function": {"status": "incomplete"}, "custom": EMPTY}


def decode_call(wire: dict[str, Any], reading: Reading) -> ToolCall | None:
    """A `function_call` or `custom_tool_call` item; None where it is malformed."""
    kind = _KINDS[wire["type"]]
    key = TYPES[kind].text
    name, raw, wire_id = wire.get("name"), wire.get(key), wire.get("call_id")
    if type(name) is not str or type(raw) is not str:
        return None
    wire_id = wire_id if type(wire_id) is str else None
    call_id, kept = reading.calls.add_call(name, wire_id, raw)
    origin = None
    if kept is not UNSET:
        origin = ORIGIN  # the wire's own id is for this dialect only
    elif kind == "function" and is_blank(raw):
        origin = reading.origin  # one without any arguments is to come back as it was
    if wire_id is not None and kept is UNSET and len(wire) == _BARE_CALL:
        return make_call(call_id, name, raw, kind=kind, origin=origin)  # the same, and most are
    optional = without(wire, "type", "name", key)
    item_id = decode_id(wire, optional)
    if wire_id is not None:
        del optional["call_id"]
    return make_call(
        call_id,
        name,
        raw,
        kind=kind,
        wire_id=kept,
        item_id=item_id,
        origin=origin,
        extras=decode_form(optional, EMPTY if item_id is None else _COMPLETED),
    )


def wire_id_of(call: ToolCall, target: Target) -> str | None:
    """The id that the wire had, if this target made it and would take it again (W22)."""
    had = call.wire_id
    if isinstance(had, UnsetType) or (had and not target.ids.accepts(had)):
        return call.id
    return call.id if had is None and target.state.verifies_items else had


def plain_call(call: ToolCall) -> dict[str, Any] | None:
    """The item of a call of id, name and arguments; None where there may be more to it.

    That it has no extras, no cache hint and no item's id is known already.
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
    """The item of a call."""
    wire_type, key, _ = TYPES[call.kind]
    body: dict[str, Any] = {"type": wire_type, "name": call.name, key: call.raw_arguments}
    if wire_id is not None:
        body["call_id"] = wire_id
    if item_id is not None:
        body["id"] = item_id
    formed(body, call.extras, EMPTY if item_id is None else _COMPLETED)
    return body


def decode_output(wire: dict[str, Any], reading: Reading) -> ToolResult | None:
    """A `function_call_output` or `custom_tool_call_output` item; None where it is malformed."""
    content, wire_id = _decode_content(wire.get("output")), wire.get("call_id")
    wire_id = wire_id if type(wire_id) is str else None
    if content is None or (call_id := reading.calls.answer(wire_id)) is None:
        return None
    kind = _KINDS[wire["type"]]
    if wire_id is not None and len(wire) == _BARE_OUTPUT:
        return make_result(call_id, content, kind=kind)  # the same, and most are this
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
    """The item of a result that is a text; None, and what is known already, as in `plain_call`."""
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
    """Whether an item is the output of a custom tool."""
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
            writing.lose_here(NO_PLACE)
        if type(part) is Text:
            lose_citations(part, writing)
    writing.item = None
    return encoded


# --- names of properties in a call's arguments: 256 characters at the most (W39)
#
# A model that stutters may have written a longer one. The call stays in the history, so the name is
# cut there, with a hash of the whole in its place.

LONGEST = 256
_HASH = 8


def has_long_names(arguments: str) -> bool:
    """Whether a property anywhere in the arguments has a name that is too long."""
    if len(arguments) <= LONGEST:  # most are
        return False
    pending = [_parsed(arguments)]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            if any(len(name) > LONGEST for name in node):
                return True
            pending += node.values()
        elif isinstance(node, list):
            pending += node
    return False


def with_short_names(arguments: str) -> str:
    """The arguments, with long names cut."""
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
    if len(name) <= LONGEST:
        return name
    mark = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH]
    return f"{name[: LONGEST - _HASH - 1]}_{mark}"


# --- items of the provider's own tools: web search, code interpreter, MCP, shell and so on
#
# Every `<name>_call` is a call, known or not, and every `<name>_call_output` a result: their fields
# are the call's input or the result's content. Where the wire puts the result into the call's own
# item, it becomes a part of its own with the same `item_id`; a generated picture becomes an
# `Image`.

_CALL, _OUTPUT = "_call", "_call_output"
# Types that do not follow the pattern, as calls and as results.
_ODD_CALLS = frozenset({"program", "mcp_list_tools", "mcp_approval_request"})
_ODD_RESULTS = {"tool_search_output": "tool_search", "program_output": "program"}
_ODD_RESULT_TYPES = {name: wire_type for wire_type, name in _ODD_RESULTS.items()}
# Where a call's own item holds its result.
_RESULT_KEYS = {"file_search": "results", "code_interpreter": "outputs", "mcp": "output"}
_PICTURES = "image_generation"
PICTURE = f"{_PICTURES}_call"
# Those that name the MCP server that they are about.
_OF_SERVERS = frozenset({"mcp", "mcp_list_tools", "mcp_approval_request"})
_SERVER = "server_label"
MCP = "mcp"
_FAILED_STATUS: Mapping[str, Any] = {"status": "failed"}


def has_server(name: str) -> bool:
    """Whether calls of that name say which MCP server they are about."""
    return name in _OF_SERVERS


def stands_in_its_call(part: Part) -> bool:
    """Whether a result has no item of its own: it is in that of its call."""
    return isinstance(part, ServerToolResult) and part.name in _RESULT_KEYS


def is_call(wire_type: str) -> bool:
    """Whether items of that type are calls."""
    return wire_type.endswith(_CALL) or wire_type in _ODD_CALLS


def is_result(wire_type: str) -> bool:
    """Whether items of that type are results."""
    return wire_type.endswith(_OUTPUT) or wire_type in _ODD_RESULTS


def is_answer(wire: dict[str, Any]) -> bool:
    """Whether a result comes from the client's side, which ends the model's turn."""
    kind: str = wire["type"]
    if kind == "tool_search_output":
        return bool(wire.get("execution") == "client")
    if kind == "shell_call_output":
        return "id" not in wire  # the provider's own shell gives its output an id
    return kind != "program_output"


def _usual_call(name: str) -> Mapping[str, Any]:
    return EMPTY if name in _ODD_CALLS else _COMPLETED


def decode_server_call(wire: dict[str, Any], reading: Reading) -> list[AnyPart]:
    """The call in an item, and its result where it is there too."""
    fields = dict(wire)
    wire_type = fields.pop("type")
    name = wire_type if wire_type in _ODD_CALLS else wire_type.removesuffix(_CALL)
    item_id, call_id, optional = _decode_ids(wire, fields)
    origin = reading.origin
    result = None if item_id is None else _decode_result(name, item_id, call_id, fields, origin)
    has_server = name in _OF_SERVERS and type(fields.get(_SERVER)) is str
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
    """The item of a call, with the result that belongs into it."""
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


def encode_picture(picture: Image, item_id: str | None) -> dict[str, Any]:
    """The item of a picture that no call of this dialect made."""
    kind = (picture.mime or "").removeprefix("image/")
    body = {"type": PICTURE, "id": item_id, "status": "completed", "result": picture.data}
    return {**body, "output_format": kind} if kind else body


def _decode_result(
    name: str, item_id: str, call_id: str | None, fields: dict[str, Any], origin: Origin | None
) -> AnyPart | None:
    """The result in a call's own item, taken out of its fields."""
    if name == _PICTURES and type(fields.get("result")) is str:
        picture, kind = fields.pop("result"), fields.get("output_format")
        mime = f"image/{kind}" if type(kind) is str else None
        return Image(data=picture, mime=mime, item_id=item_id, origin=origin)
    key = _RESULT_KEYS.get(name, "")
    if fields.get(key) is not None:
        content = fields.pop(key)
        return ServerToolResult(name, call_id, content, item_id=item_id, origin=origin)
    if name == "mcp" and fields.get("error") is not None:
        error = fields.pop("error")
        return ServerToolResult(name, call_id, error, is_error=True, item_id=item_id, origin=origin)
    return None


def belongs_to(part: Part, call: Part) -> bool:
    """Whether a part is the result that the wire keeps in this call's own item."""
    if not isinstance(call, ServerToolCall) or part.item_id != call.item_id or part.item_id is None:
        return False
    if isinstance(part, ServerToolResult):
        return part.name == call.name and call.name in _RESULT_KEYS
    return isinstance(part, Image) and call.name == _PICTURES and part.data is not None


def decode_server_result(wire: dict[str, Any], reading: Reading) -> ServerToolResult:
    """A result that is an item of its own."""
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
    """The item of a result."""
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
    """Item id, call id and optional fields, taken out of the item's fields.

    A call is paired with its result by its call id, or by its item's id where it has no other.
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
