"""Calls and results of client tools, built-in tools and MCP servers."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from dragoman.model.frozen import EMPTY
from dragoman.model.jsontext import dumps
from dragoman.model.parts import Opaque, ServerToolCall, ServerToolResult
from dragoman.model.tools import ResultPart, ToolCall, ToolResult, make_call, make_result
from dragoman.wire.anthropic.content_blocks import (
    FOREIGN_SIGNATURE,
    Decoders,
    Encoders,
    decode_common_fields,
    decode_content,
    decode_opaque,
    encode_content,
    with_common_fields,
)
from dragoman.wire.anthropic.dialect import NAME, Block
from dragoman.wire.cut_calls import is_left_out
from dragoman.wire.overlay import with_guesses
from dragoman.wire.reading import Reading
from dragoman.wire.settings_table import flag
from dragoman.wire.shown_calls import MARK
from dragoman.wire.tolerance import Form, readable_answer
from dragoman.wire.writing import Writing

_CALL = frozenset({"type", "id", "name", "input"})
_CALL_WITHOUT_ID = _CALL - {"id"}
_RESULT = frozenset({"type", "tool_use_id", "content"})
# A shortcut for blocks with just these fields makes decoding a conversation a fifth faster.
_FORM = Form(NAME, {})

TEXT_ARGUMENT = "input"
"""The argument that holds arguments that are not a JSON object (W45, I6)."""
NOT_AN_OBJECT = f"arguments that are not a JSON object are sent as text, in {TEXT_ARGUMENT!r}"


def _decode_tool_use(block: Block, reading: Reading) -> ToolCall | Opaque:
    """Decode a call; opaque if it lacks a name or arguments."""
    name, arguments, wire_id = block.get("name"), block.get("input"), block.get("id")
    if (
        type(name) is not str
        or not isinstance(arguments, dict)
        or not (wire_id is None or type(wire_id) is str)
    ):
        return decode_opaque(block, reading)
    call_id, kept = reading.calls.add_call(name, wire_id, arguments)
    if wire_id is not None and kept is UNSET and len(block) == len(_CALL):
        return make_call(call_id, name, None, arguments)  # shortcut: the most common form
    cache, extras = decode_common_fields(block, _CALL if wire_id is not None else _CALL_WITHOUT_ID)
    origin = None if kept is UNSET else reading.origin  # whose id it is must be known
    return make_call(
        call_id, name, None, arguments, wire_id=kept, cache=cache, extras=extras, origin=origin
    )


def _encode_plain_call(call: ToolCall, writing: Writing) -> Block | None:
    """Like `_encode_tool_call`, for a call without other fields; None if there may be more."""
    if (
        call.wire_id is not UNSET
        or call.signature is not None
        or call.cache is not None
        or call.extras is not EMPTY
        or (arguments := call.object_arguments()) is None
        or (writing.is_cut_off and not arguments)
    ):
        return None
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments}


def _encode_tool_call(call: ToolCall, writing: Writing) -> Any:
    """Encode a `tool_use` block; nothing for a call that was cut off (I7)."""
    arguments = call.object_arguments()
    if is_left_out(call, arguments, writing):
        return UNSET
    if arguments is None:
        writing.repair_here("I6", "retyped", NOT_AN_OBJECT)
        arguments = {TEXT_ARGUMENT: call.raw_arguments}
    block: Block = {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments}
    if call.wire_id is not UNSET and writing.is_own(call):
        if call.wire_id is None:
            del block["id"]
        else:
            block["id"] = writing.wire_ids[call.id] = call.wire_id
    if call.signature is not None:
        writing.lose_here(FOREIGN_SIGNATURE)
    return with_common_fields(block, call)


def _decode_tool_result(block: Block, reading: Reading) -> ToolResult | Opaque:
    """Decode a result; opaque if it lacks a call id.

    Missing content is an empty tuple, which differs from an empty text.
    """
    wire_id: Any = block.get("tool_use_id")
    content: Any = block.get("content")
    is_text = type(content) is str
    if type(wire_id) is not str:
        return decode_opaque(block, reading)
    if not (is_text or content is None or isinstance(content, list)):
        made, guesses = readable_answer(block, _FORM)
        result = _decode_tool_result(made, reading)
        return result.replace(extras=with_guesses(result.extras, NAME, guesses))
    call_id = reading.calls.answer(wire_id) or ""
    if is_text and len(block) == len(_RESULT):
        return make_result(call_id, content)  # shortcut: the most common form
    inner: str | tuple[ResultPart, ...] = content if is_text else _decode_content(content, reading)
    known = {"type", "tool_use_id"}
    if inner != ():
        known.add("content")
    is_error = flag(block.get("is_error"))
    if is_error is not None:
        known.add("is_error")
    cache, extras = decode_common_fields(block, known)
    return make_result(call_id, inner, is_error=is_error, cache=cache, extras=extras)


def _encode_plain_result(result: ToolResult, writing: Writing) -> Block | None:
    """Like `_encode_tool_result`, for a result that is only a text; None if there may be more."""
    content = result.content
    if (
        type(content) is not str
        or not content
        or result.is_error is not None
        or result.cache is not None
        or result.extras is not EMPTY
        or writing.wire_ids
    ):
        return None
    return {"type": "tool_result", "tool_use_id": result.call_id, "content": content}


def _encode_tool_result(result: ToolResult, writing: Writing) -> Block:
    """Encode a `tool_result` block."""
    call_id = result.call_id
    block: Block = {
        "type": "tool_result",
        "tool_use_id": writing.wire_ids.get(call_id, call_id) if writing.wire_ids else call_id,
    }
    content = result.content
    if not content and result.data is not UNSET:
        block["content"] = dumps(result.data).decode("utf-8")
    elif isinstance(content, str):
        block["content"] = content
    elif content:
        block["content"] = encode_content(content, writing)
    if result.is_error is not None:
        block["is_error"] = result.is_error
    return with_common_fields(block, result)


def _decode_content(blocks: Any, reading: Reading) -> str | tuple[ResultPart, ...]:
    if not blocks:
        return ()
    if len(blocks) == 1 and isinstance(block := blocks[0], dict) and len(block) == 2:  # noqa: PLR2004 - type and text
        text = block.get("text")
        if type(text) is str and block.get("type") == "text":
            return text
    return tuple([decode_content(block, reading) for block in blocks])


# --- calls and results of server tools, including MCP servers

RESULT_SUFFIX = "_tool_result"
"""The ending of all result types: `web_search_tool_result`, `mcp_tool_result`, …"""

_MCP, _MCP_CALL = "mcp", "mcp_tool_use"
_REMOTE_CALL = _CALL | {"server_name"}


def _decode_server_call(block: Block, reading: Reading) -> ServerToolCall | Opaque:
    """Decode a call of a built-in tool or of an MCP server's tool."""
    call_id, name, arguments = block.get("id"), block.get("name"), block.get("input")
    is_remote = block["type"] == _MCP_CALL
    server = block.get("server_name") if is_remote else None
    if type(call_id) is not str or type(name) is not str or not isinstance(arguments, dict):
        return decode_opaque(block, reading)
    if is_remote and type(server) is not str:
        return decode_opaque(block, reading)
    if MARK in call_id:
        reading.has_envelopes = True
    cache, extras = decode_common_fields(block, _REMOTE_CALL if is_remote else _CALL)
    return ServerToolCall(
        name, call_id, arguments, server, cache=cache, extras=extras, origin=reading.origin
    )


def _encode_server_tool_call(call: ServerToolCall, writing: Writing) -> Any:
    """Encode a `server_tool_use` or `mcp_tool_use` block of this provider (W71)."""
    if writing.is_foreign(call) or call.call_id is None:
        writing.lose_here("a call of another provider's built-in tool is left out")
        return UNSET
    arguments = call.input if isinstance(call.input, dict) else {}
    block = {"type": "server_tool_use", "id": call.call_id, "name": call.name, "input": arguments}
    if call.server is not None:
        block |= {"type": _MCP_CALL, "server_name": call.server}
    return with_common_fields(block, call)


def decode_server_tool_result(block: Block, reading: Reading) -> ServerToolResult | Opaque:
    """Decode the result of a server tool, kept whole because much of it is encrypted."""
    call_id, content = block.get("tool_use_id"), block.get("content")
    if type(call_id) is not str:
        return decode_opaque(block, reading)
    if MARK in call_id:
        reading.has_envelopes = True
    name = str(block["type"]).removesuffix(RESULT_SUFFIX)
    known = {"type", "tool_use_id"}
    if content is not None:
        known.add("content")
    is_error = flag(block.get("is_error")) if name == _MCP else _is_error(content)
    if name == _MCP and is_error is not None:
        known.add("is_error")
    cache, extras = decode_common_fields(block, known)
    return ServerToolResult(
        name, call_id, content, is_error, cache=cache, extras=extras, origin=reading.origin
    )


def _encode_server_tool_result(result: ServerToolResult, writing: Writing) -> Any:
    """Encode a server tool result as a block of the tool's type."""
    if writing.is_foreign(result) or result.call_id is None:
        writing.lose_here("the result of another provider's built-in tool is left out")
        return UNSET
    block: Block = {"type": result.name + RESULT_SUFFIX, "tool_use_id": result.call_id}
    if result.content is not None:
        block["content"] = result.content
    if result.name == _MCP and result.is_error is not None:
        block["is_error"] = result.is_error
    elif bool(result.is_error) is not bool(_is_error(result.content)):
        writing.lose_here(
            "the error flag is not supported; the content tells whether it failed", ".is_error"
        )
    return with_common_fields(block, result)


def _is_error(content: Any) -> bool | None:
    """Whether the content is an error object, recognised by the ending of its type."""
    kind = content.get("type") if isinstance(content, dict) else None
    return True if type(kind) is str and kind.endswith("_error") else None


CALL_DECODERS: Decoders = {
    "tool_use": _decode_tool_use,
    "tool_result": _decode_tool_result,
    "server_tool_use": _decode_server_call,
    _MCP_CALL: _decode_server_call,
}
CALL_ENCODERS: Encoders = {
    ToolCall: _encode_tool_call,
    ToolResult: _encode_tool_result,
    ServerToolCall: _encode_server_tool_call,
    ServerToolResult: _encode_server_tool_result,
}
PLAIN_ENCODERS: Encoders = {ToolCall: _encode_plain_call, ToolResult: _encode_plain_result}
"""Encoders for parts without optional fields; they return None for any other."""
