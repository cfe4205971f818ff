"""Thinking, calls and results of tools, and the readers and writers of all block types."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from msgspec import UNSET

from dragoman.model.content import AnyPart
from dragoman.model.jsontext import dumps
from dragoman.model.parts import Opaque, ServerToolCall, ServerToolResult, Thinking
from dragoman.model.tools import ResultPart, ToolCall, ToolResult, make_call, make_result
from dragoman.wire.anthropic.content_blocks import (
    CACHE,
    RESULT_DECODERS,
    RESULT_ENCODERS,
    Decoders,
    Encoders,
    decode_content,
    decode_opaque,
    decode_unknown,
    encode_content,
    encoder_of,
    text_or_blocks,
    without_signature,
)
from dragoman.wire.anthropic.dialect import NAME, Block
from dragoman.wire.cut_calls import is_left_out
from dragoman.wire.envelope import PREFIX
from dragoman.wire.overlay import with_guesses
from dragoman.wire.reading import Reading
from dragoman.wire.rows import Row, Shape, anything, mapping
from dragoman.wire.settings_table import flag
from dragoman.wire.shown_calls import MARK
from dragoman.wire.tolerance import Form, readable_answer, with_original
from dragoman.wire.writing import Writing

_FORM = Form(NAME, {})

TEXT_ARGUMENT = "input"
"""The argument that holds arguments that are not a JSON object (W45, I6)."""
NOT_AN_OBJECT = f"arguments that are not a JSON object are sent as text, in {TEXT_ARGUMENT!r}"
_needed = partial(Row, is_required=True)
_NAME = _needed("name", "name")
_input = partial(_needed, "input", "input", mapping, delta="input_json_delta", grows="partial_json")


def _read_sealed(value: Any, reading: Reading) -> str | None:
    """Decode an id, a signature or sealed data; other providers' are in an envelope or marked."""
    if type(value) is not str:
        return None
    if value.startswith(PREFIX) or MARK in value:
        reading.has_envelopes = True
    return value


# --- calls of client tools


def _made_call(reading: Reading, name: str, wire_id: str | None = None, **fields: Any) -> ToolCall:
    call_id, kept = reading.calls.add_call(name, wire_id, fields["input"])
    origin = None if kept is UNSET else reading.origin  # whose id it is must be known
    return make_call(call_id, name, wire_id=kept, origin=origin, **fields)


def _may_send_call(call: ToolCall, writing: Writing) -> bool:
    """Whether a call was not cut off (I7)."""
    if writing.is_response and is_left_out(call, call.object_arguments(), writing):
        return False
    return without_signature(call, writing)


def _write_id(call: ToolCall, writing: Writing) -> str:
    if call.wire_id is UNSET or call.wire_id is None or not writing.is_own(call):
        return call.id
    writing.wire_ids[call.id] = call.wire_id
    return call.wire_id


def _write_arguments(call: ToolCall, writing: Writing) -> Mapping[str, Any]:
    arguments = call.object_arguments()
    if arguments is not None:
        return arguments
    writing.repair_here("I6", "retyped", NOT_AN_OBJECT)
    return {TEXT_ARGUMENT: call.raw_arguments}


_UNNUMBERED = (_NAME, _input(write=_write_arguments, takes_owner=True), CACHE)
_ID = _needed("id", "wire_id", write=_write_id, takes_owner=True)
_call = partial(Shape, NAME, "tool_use", ToolCall, make=_made_call, allows=_may_send_call)
CALL, _CALL_WITHOUT_ID = _call(_ID, *_UNNUMBERED), _call(*_UNNUMBERED)


def _decode_call(block: Block, reading: Reading) -> ToolCall | Opaque:
    return (CALL if block.get("id") is not None else _CALL_WITHOUT_ID).read(block, reading)


# --- results of client tools


def _made_result(
    _reading: Reading, call_id: str, content: str | tuple[ResultPart, ...] = (), **more: Any
) -> ToolResult:
    """Missing content is an empty tuple, which differs from an empty text."""
    return make_result(call_id, content, **more)


def _read_call_id(wire_id: Any, reading: Reading) -> str | None:
    return (reading.calls.answer(wire_id) or "") if type(wire_id) is str else None


def _write_call_id(call_id: str, writing: Writing) -> str | None:
    return writing.wire_ids.get(call_id, call_id) if writing.wire_ids else call_id


def _read_content(content: Any, reading: Reading) -> str | tuple[ResultPart, ...] | None:
    """Decode the content; an empty list is not read, since it is written as nothing."""
    said = text_or_blocks(content) if isinstance(content, list) else content
    if isinstance(said, list):
        return tuple([decode_content(block, reading) for block in said]) or None
    return said if type(said) is str else None


def _write_content(result: ToolResult, writing: Writing) -> str | list[Any] | None:
    content = result.content
    if not content and result.data is not UNSET:
        return dumps(result.data).decode("utf-8")
    if isinstance(content, str):
        return content
    return encode_content(content, writing) if content else None


RESULT = Shape(
    NAME, "tool_result", ToolResult,
    _needed("tool_use_id", "call_id", _read_call_id, _write_call_id),
    Row("content", "content", _read_content, _write_content, takes_owner=True),
    Row("is_error", "is_error", flag), CACHE,
    make=_made_result,
)  # fmt: skip


def _decode_result(block: Block, reading: Reading) -> ToolResult | Opaque:
    """Decode a result; one with content of another type is made readable."""
    content = block.get("content")
    is_fine = content is None or isinstance(content, (str, list))
    if is_fine or not isinstance(block.get("tool_use_id"), str):
        return RESULT.read(block, reading)
    made, guesses = readable_answer(block, _FORM)
    result = RESULT.read(made, reading)
    return result.replace(extras=with_guesses(result.extras, NAME, guesses))


# --- calls and results of server tools, including MCP servers

RESULT_SUFFIX = "_tool_result"
"""The ending of all result types: `web_search_tool_result`, `mcp_tool_result`, …"""
_MCP = "mcp"


def _write_input(arguments: Any, _writing: Writing) -> Any:
    return arguments if isinstance(arguments, dict) else {}


def _may_send_server_call(call: ServerToolCall, writing: Writing) -> bool:
    """Whether this provider made the call (W71)."""
    if not writing.is_foreign(call) and call.call_id is not None:
        return True
    writing.lose_here("a call of another provider's built-in tool is left out")
    return False


def _may_send_server_result(result: ServerToolResult, writing: Writing) -> bool:
    if writing.is_foreign(result) or result.call_id is None:
        writing.lose_here("the result of another provider's built-in tool is left out")
        return False
    is_told = result.name == _MCP and result.is_error is not None
    if not is_told and bool(result.is_error) is not bool(_is_error(result.content)):
        reason = "the error flag is not supported; the content tells whether it failed"
        writing.lose_here(reason, ".is_error")
    return True


def _is_error(content: Any) -> bool | None:
    """Whether the content is an error object, recognised by the ending of its type."""
    kind = content.get("type") if isinstance(content, dict) else None
    return True if type(kind) is str and kind.endswith("_error") else None


def _read_kind(kind: Any, _reading: Reading) -> str | None:
    return kind.removesuffix(RESULT_SUFFIX) if type(kind) is str else None


def _made_server_result(
    _reading: Reading, name: str, call_id: str, content: Any = None, **more: Any
) -> ServerToolResult:
    return ServerToolResult(name, call_id, content, _is_error(content), **more)


_SERVER_CALL = (_needed("id", "call_id", _read_sealed), _NAME, _input(write=_write_input))
_SERVER_RESULT = (_needed("tool_use_id", "call_id", _read_sealed),
                  Row("content", "content", anything))  # fmt: skip
_server_call = partial(Shape, NAME, origin="*", allows=_may_send_server_call)
_server_result = partial(Shape, NAME, origin="*", allows=_may_send_server_result)
SERVER_CALL = _server_call("server_tool_use", ServerToolCall, *_SERVER_CALL, CACHE)
MCP_CALL = _server_call(
    "mcp_tool_use", ServerToolCall, *_SERVER_CALL, _needed("server_name", "server"), CACHE
)
MCP_RESULT = _server_result(
    _MCP + RESULT_SUFFIX, ServerToolResult,
    *_SERVER_RESULT, Row("is_error", "is_error", flag), CACHE,
    fixed={"name": _MCP},
)  # fmt: skip
SERVER_RESULT = _server_result(
    None, ServerToolResult,
    _needed("type", "name", _read_kind, lambda name, _: name + RESULT_SUFFIX),
    *_SERVER_RESULT, CACHE,
    make=_made_server_result,
)  # fmt: skip
"""The result of a server tool, kept whole because much of it is encrypted."""


# --- thinking blocks: signed or redacted

_BESIDE_DATA = "a block is readable or redacted: the readable text of redacted thinking is left out"


def _may_send(part: Thinking, writing: Writing) -> bool:
    """Whether thinking is signed by this provider; other thinking would be refused (W54)."""
    is_sealed = part.signature is not None or part.data is not None
    if not (writing.is_own(part) or (is_sealed and not writing.is_foreign(part))):
        writing.lose_here("thinking not signed by this provider is left out")
        return False
    if part.data is not None and (part.text or part.signature is not None):
        writing.lose_here(_BESIDE_DATA)
    return True


_thinking = partial(Shape, NAME, origin="*", allows=_may_send)
THINKING = _thinking(
    "thinking", Thinking,
    _needed("thinking", "text", delta="thinking_delta", grows="thinking"),
    Row("signature", "signature", _read_sealed, delta="signature_delta", grows="signature"),
)  # fmt: skip
"""Some servers omit the signature."""
REDACTED = _thinking(
    "redacted_thinking", Thinking, _needed("data", "data", _read_sealed), fixed={"form": "redacted"}
)
"""Only the provider can read it; it must still be sent back (W57)."""


# --- all block types


def _encode_thinking(part: Thinking, writing: Writing) -> Any:
    return (THINKING if part.data is None else REDACTED).write(part, writing)


def _encode_call(call: ToolCall, writing: Writing) -> Any:
    has_id = call.wire_id is not None or not writing.is_own(call)
    return (CALL if has_id else _CALL_WITHOUT_ID).write(call, writing)


def _encode_server_call(call: ServerToolCall, writing: Writing) -> Any:
    return (SERVER_CALL if call.server is None else MCP_CALL).write(call, writing)


def _encode_server_result(result: ServerToolResult, writing: Writing) -> Any:
    return (MCP_RESULT if result.name == _MCP else SERVER_RESULT).write(result, writing)


_DECODERS: Decoders = {
    **RESULT_DECODERS,
    "tool_use": _decode_call,
    "tool_result": _decode_result,
    "thinking": THINKING.read,
    "redacted_thinking": REDACTED.read,
    "server_tool_use": SERVER_CALL.read,
    "mcp_tool_use": MCP_CALL.read,
    "mcp_tool_result": MCP_RESULT.read,
}

_TELLING = {"text": "text", "thinking": "thinking", "tool_use": "input"}
"""Types of blocks by the field that only they have."""

_ENCODERS: Encoders = {
    **RESULT_ENCODERS,
    Thinking: _encode_thinking,
    ToolCall: _encode_call,
    ToolResult: RESULT.write,
    ServerToolCall: _encode_server_call,
    ServerToolResult: _encode_server_result,
}


def decode_part(block: Any, reading: Reading) -> AnyPart:
    """Decode a content block of any type; unknown types become opaque parts."""
    kind = block.get("type") if isinstance(block, dict) else None
    if type(kind) is not str:
        return _decode_untyped(block, reading)
    decode = _DECODERS.get(kind)
    if decode is not None:
        part = decode(block, reading)
        if type(part) is Opaque and kind == "tool_use" and "input" not in block:
            return _decode_with(block, "input", {}, reading)
        return part
    if kind.endswith(RESULT_SUFFIX):
        return SERVER_RESULT.read(block, reading)
    return decode_opaque(block, reading)


def _decode_untyped(block: Any, reading: Reading) -> AnyPart:
    """Decode a block without a type, if its other fields tell what it is."""
    if isinstance(block, dict) and "type" not in block:
        for kind, field in _TELLING.items():
            if isinstance(block.get(field), (str, dict)):
                return _decode_with(block, "type", kind, reading)
    return decode_unknown(block, reading)


def _decode_with(block: Block, key: str, value: Any, reading: Reading) -> AnyPart:
    """Decode a block that lacks a field, as if it had this value."""
    part = decode_part({**block, key: value}, reading)
    if type(part) is Opaque:
        return decode_opaque(block, reading)
    return with_original(part, NAME, [[[key], value]])


def encode_parts(parts: tuple[AnyPart, ...], writing: Writing, first: int = 0) -> list[Any]:
    """Encode parts as content blocks; unsupported parts are left out."""
    blocks: list[Any] = []
    for writing.part, part in enumerate(parts, first):
        block = encoder_of(part, _ENCODERS)(part, writing)
        if block is not UNSET:
            blocks.append(block)
    return blocks
