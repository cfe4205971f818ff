"""Items of the provider's own tools: web search, code interpreter, MCP, shell and so on.

Every `<name>_call` is a call, known or not, and every `<name>_call_output` a result: their fields
are the call's input or the result's content. Where the wire puts the result into the call's own
item, it becomes a part of its own with the same `item_id`; a generated picture becomes an `Image`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY
from dragoman.model.media import Image
from dragoman.model.parts import Origin, Part, ServerToolCall, ServerToolResult
from dragoman.wire.openai_responses.forms import decode_form, decode_id, encode_form, formed

_CALL, _OUTPUT = "_call", "_call_output"
# Types that do not follow the pattern, as calls and as results.
_ODD_CALLS = frozenset({"program", "mcp_list_tools", "mcp_approval_request"})
_ODD_RESULTS = {"tool_search_output": "tool_search", "program_output": "program"}
_ODD_RESULT_TYPES = {name: wire_type for wire_type, name in _ODD_RESULTS.items()}
# Where a call's own item holds its result.
_RESULT_KEYS = {"file_search": "results", "code_interpreter": "outputs", "mcp": "output"}
_PICTURES = "image_generation"
# Those that name the MCP server that they are about.
_OF_SERVERS = frozenset({"mcp", "mcp_list_tools", "mcp_approval_request"})
_SERVER = "server_label"
MCP = "mcp"
_COMPLETED: Mapping[str, Any] = {"status": "completed"}
_FAILED: Mapping[str, Any] = {"status": "failed"}


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


def decode_server_call(wire: dict[str, Any], origin: Origin | None) -> list[AnyPart]:
    """The call in an item, and its result where it is there too."""
    fields = dict(wire)
    wire_type = fields.pop("type")
    name = wire_type if wire_type in _ODD_CALLS else wire_type.removesuffix(_CALL)
    item_id, call_id, optional = _decode_ids(wire, fields)
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


def decode_server_result(wire: dict[str, Any], origin: Origin | None) -> ServerToolResult:
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
        origin=origin,
        extras=decode_form(optional, _FAILED if failed else _COMPLETED),
    )


def encode_server_result(result: ServerToolResult) -> dict[str, Any]:
    """The item of a result."""
    wire_type = _ODD_RESULT_TYPES.get(result.name) or result.name + _OUTPUT
    body = _encode_fields(wire_type, result, result.content)
    form = dict(encode_form(result.extras, _COMPLETED))
    if result.is_error:
        form |= _FAILED
    elif form.get("status") == _FAILED["status"]:
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
