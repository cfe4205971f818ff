"""Items of built-in tools as rows: web search, code interpreter, MCP, shell and so on.

Every `<name>_call` is a call, known or not, and every `<name>_call_output` a result: their fields
are the call's input or the result's content. A result inside the call's item becomes a separate
part with the same `item_id`; a generated image becomes an `Image`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from dragoman.model.content import AnyPart
from dragoman.model.media import Image
from dragoman.model.parts import (
    Part,
    ServerToolCall,
    ServerToolResult,
)
from dragoman.wire.openai_responses.dialect import NAME
from dragoman.wire.openai_responses.forms import COMPLETED, Formed, without
from dragoman.wire.openai_responses.tables import (
    CONTINUES,
    INPUTS,
    ITEMS,
    NOT_SUPPORTED,
    OUTPUTS,
    THOUGHTS,
    ItemReading,
    continues_item,
    exactly,
    failed,
    needed,
    with_item,
)
from dragoman.wire.rows import TEXT, Row, Union, Value
from dragoman.wire.writing import Writing

_CALL, _OUTPUT = "_call", "_call_output"
_ODD_CALLS = frozenset({"program", "mcp_list_tools", "mcp_approval_request"})
_ODD_RESULTS = {"tool_search_output": "tool_search", "program_output": "program"}
"""Types that don't follow the pattern."""
_WITH_SERVER = frozenset({"mcp", "mcp_list_tools", "mcp_approval_request"})
"""Calls that name an MCP server."""
_INSIDE = {"file_search": "results", "code_interpreter": "outputs", "mcp": "output"}
"""The field with the result in the item of a call."""
_IMAGE_GENERATION, MCP = "image_generation", "mcp"
IMAGE_CALL = f"{_IMAGE_GENERATION}_call"


def is_call(tag: str) -> bool:
    """Whether items of that type are calls."""
    return tag.endswith(_CALL) or tag in _ODD_CALLS


def is_result(tag: str) -> bool:
    """Whether items of that type are results."""
    return tag.endswith(_OUTPUT) or tag in _ODD_RESULTS


def is_client_result(wire: Mapping[str, Any]) -> bool:
    """Whether a result is from the client, so that it ends the model's turn."""
    kind = wire["type"]
    if kind == "tool_search_output":
        return bool(wire.get("execution") == "client")
    if kind == "shell_call_output":
        return "id" not in wire  # outputs of the hosted shell have an id
    return bool(kind != "program_output")


def _made_item(kind: type[Any], name: str, call_id: str | None = None, item_id: str | None = None,
               **more: Any) -> Any:  # fmt: skip
    """A call is paired with its result by its call id or, without one, by its item id."""
    return kind(name, item_id if call_id is None else call_id, item_id=item_id, **more)


def _kind_of(suffix: str, odd: Mapping[str, str]) -> Value:
    named = {name: tag for tag, name in odd.items()}
    return exactly(TEXT.test, lambda tag: odd.get(tag) or tag.removesuffix(suffix),
                  lambda name: named.get(name) or name + suffix, "a type")  # fmt: skip


_ITS_ID = Row("id", "item_id", exactly(TEXT.test, None, lambda item_id: item_id, "an id"))
_ITS_CALL_ID = Row("call_id", "call_id", exactly(
    TEXT.test, lambda found, r: found if found != r.item_id else None,
    lambda part, _writing: None if part.call_id == part.item_id else part.call_id, "an id"),
    deep=True, takes_owner=True)  # fmt: skip


def _server(kind: type[Any], value: Value, rest: str, *rows: Row, **hooks: Any) -> Formed[Any]:
    return Formed(
        None, kind, needed("type", "name", value), _ITS_ID, _ITS_CALL_ID, *rows, rest=rest,
        in_form=("id", "status", "call_id"), make=partial(_made_item, kind), keeps_origin=True,
        usual=COMPLETED, fields=(rest, "server"), **hooks,
    )  # fmt: skip


_of_tool = partial(_server, ServerToolCall, _kind_of(_CALL, {name: name for name in _ODD_CALLS}),
                   "input", reads_usual=f"w['type'] not in {sorted(_ODD_CALLS)}",
                   writes_usual=lambda call, _writing: call.name not in _ODD_CALLS)  # fmt: skip
_SERVER_CALL, _MCP_CALL = _of_tool(), _of_tool(Row("server_label", "server"))
SERVER_RESULT = _server(ServerToolResult, _kind_of(_OUTPUT, _ODD_RESULTS), "content",
                        failed("failed"))  # fmt: skip
PARTS = Union(
    NAME, *INPUTS.shapes, *OUTPUTS.shapes, *THOUGHTS.values(), *ITEMS.shapes, _SERVER_CALL,
    _MCP_CALL, SERVER_RESULT,
)  # fmt: skip
"""All kinds of parts."""


def decode_server_call(wire: dict[str, Any], reading: ItemReading) -> list[AnyPart]:
    """Decode the call in an item, and its result if the item has it."""
    name = wire["type"] if wire["type"] in _ODD_CALLS else wire["type"].removesuffix(_CALL)
    key = _key_of_result(name, wire, reading.item_id)
    shape = _MCP_CALL if name in _WITH_SERVER else _SERVER_CALL
    call: Any = shape.read(wire if key is None else without(wire, key), reading)
    if key is None:
        return [call]
    more: Any = {"item_id": reading.item_id, "origin": reading.origin}
    if name == _IMAGE_GENERATION:
        kind = wire.get("output_format")
        mime = f"image/{kind}" if type(kind) is str else None
        image = Image(data=wire[key], mime=mime, **more)
        return [call, image if reading.item_id else with_item(image, CONTINUES)]
    is_error = True if key == "error" else None
    return [call, ServerToolResult(name, call.call_id, wire[key], is_error=is_error, **more)]


def _key_of_result(name: str, wire: Mapping[str, Any], item_id: str | None) -> str | None:
    """The field of a call's item that holds its result, if it has one."""
    if name == _IMAGE_GENERATION:
        return "result" if type(wire.get("result")) is str else None
    keys = [_INSIDE.get(name, ""), "error" if name == MCP else ""] if item_id is not None else []
    return next((key for key in keys if wire.get(key) is not None), None)


def encode_server_call(
    call: ServerToolCall, result: Part | None, writing: Writing
) -> dict[str, Any]:
    """Encode a call, with the result that belongs in the same item."""
    has_server = call.name in _WITH_SERVER
    body: dict[str, Any] = (_MCP_CALL if has_server else _SERVER_CALL).write(call, writing)
    if call.server is not None and not has_server:
        writing.lose_field("server", NOT_SUPPORTED)
    if isinstance(result, Image):
        body["result"] = result.data
    elif isinstance(result, ServerToolResult):
        is_error = bool(result.is_error) and call.name == MCP
        body["error" if is_error else _INSIDE[call.name]] = result.content
    return body


def encode_image_item(image: Image, item_id: str | None) -> dict[str, Any]:
    """Encode an image of another dialect as an image generation item."""
    kind = (image.mime or "").removeprefix("image/")
    body = {"type": IMAGE_CALL, "id": item_id, "status": "completed", "result": image.data}
    return {**body, "output_format": kind} if kind else body


def is_inside_call(part: Part) -> bool:
    """Whether a result is in the item of its call."""
    return isinstance(part, ServerToolResult) and part.name in _INSIDE


def belongs_to(part: Part, call: Part) -> bool:
    """Whether a part is the result that belongs in this call's item."""
    if not isinstance(call, ServerToolCall) or part.item_id != call.item_id:
        return False
    if part.item_id is None and not continues_item(part):
        return False
    if isinstance(part, ServerToolResult):
        return part.name == call.name and is_inside_call(part)
    return isinstance(part, Image) and call.name == _IMAGE_GENERATION and part.data is not None
