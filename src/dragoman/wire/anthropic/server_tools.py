"""Calls and results of tools that the provider runs itself, MCP servers' among them."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from dragoman.model.parts import Opaque, ServerToolCall, ServerToolResult
from dragoman.wire.anthropic.content import decode_opaque
from dragoman.wire.anthropic.context import Block, Decoding, Encoding
from dragoman.wire.anthropic.fields import decode_rest, encode_rest

RESULT_SUFFIX = "_tool_result"
"""What the types of all results end in: `web_search_tool_result`, `mcp_tool_result`, …"""

_CALL = frozenset({"type", "id", "name", "input"})
_MCP_CALL = _CALL | {"server_name"}
_MCP = "mcp"


def decode_server_tool_use(block: Block, context: Decoding) -> ServerToolCall | Opaque:
    """A call of a tool that runs at the provider's."""
    return _decode_call(block, None, context)


def decode_mcp_tool_use(block: Block, context: Decoding) -> ServerToolCall | Opaque:
    """A call of an MCP server's tool."""
    server = block.get("server_name")
    return (
        _decode_call(block, server, context)
        if type(server) is str
        else decode_opaque(block, context)
    )


def _decode_call(block: Block, server: str | None, context: Decoding) -> ServerToolCall | Opaque:
    call_id, name, arguments = block.get("id"), block.get("name"), block.get("input")
    if type(call_id) is not str or type(name) is not str or not isinstance(arguments, dict):
        return decode_opaque(block, context)
    cache, extras = decode_rest(block, _CALL if server is None else _MCP_CALL)
    return ServerToolCall(
        name, call_id, arguments, server, cache=cache, extras=extras, origin=context.origin
    )


def encode_server_tool_call(call: ServerToolCall, context: Encoding) -> Any:
    """A `server_tool_use` or `mcp_tool_use` block; W71: only the provider's own go back."""
    if context.is_foreign(call) or call.call_id is None:
        context.lose("a call of another provider's own tool is left out")
        return UNSET
    arguments = call.input if isinstance(call.input, dict) else {}
    block = {"type": "server_tool_use", "id": call.call_id, "name": call.name, "input": arguments}
    if call.server is not None:
        block |= {"type": "mcp_tool_use", "server_name": call.server}
    return encode_rest(block, call)


def decode_server_tool_result(block: Block, context: Decoding) -> ServerToolResult | Opaque:
    """What such a tool returned, whole: much of it is sealed."""
    call_id, content = block.get("tool_use_id"), block.get("content")
    if type(call_id) is not str:
        return decode_opaque(block, context)
    name = str(block["type"]).removesuffix(RESULT_SUFFIX)
    known = {"type", "tool_use_id"}
    if content is not None:
        known.add("content")
    is_error: bool | None = None
    if name != _MCP:
        is_error = _is_error(content)
    elif type(block.get("is_error")) is bool:
        is_error = block["is_error"]
        known.add("is_error")
    cache, extras = decode_rest(block, known)
    return ServerToolResult(
        name, call_id, content, is_error, cache=cache, extras=extras, origin=context.origin
    )


def encode_server_tool_result(result: ServerToolResult, context: Encoding) -> Any:
    """The result block of the tool's own type."""
    if context.is_foreign(result) or result.call_id is None:
        context.lose("the result of another provider's own tool is left out")
        return UNSET
    block: Block = {"type": result.name + RESULT_SUFFIX, "tool_use_id": result.call_id}
    if result.content is not None:
        block["content"] = result.content
    if result.name == _MCP and result.is_error is not None:
        block["is_error"] = result.is_error
    elif bool(result.is_error) is not bool(_is_error(result.content)):
        context.lose("whether it failed is told by its content here", ".is_error")
    return encode_rest(block, result)


def _is_error(content: Any) -> bool | None:
    """Whether the content is one of the error objects, which all end alike."""
    kind = content.get("type") if isinstance(content, dict) else None
    return True if type(kind) is str and kind.endswith("_error") else None
