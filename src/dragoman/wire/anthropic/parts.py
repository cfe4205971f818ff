"""The parts of a message: which function reads and which writes each kind of block."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import UNSET

from dragoman.model.content import AnyPart
from dragoman.model.parts import Part, ServerToolCall, ServerToolResult, Text, Thinking
from dragoman.model.tools import ToolCall, ToolResult
from dragoman.wire.anthropic import content
from dragoman.wire.anthropic.calls import (
    decode_tool_result,
    decode_tool_use,
    encode_tool_call,
    encode_tool_result,
)
from dragoman.wire.anthropic.context import Block, Decoding, Encoding
from dragoman.wire.anthropic.media import decode_document, decode_image
from dragoman.wire.anthropic.server_tools import (
    RESULT_SUFFIX,
    decode_mcp_tool_use,
    decode_server_tool_result,
    decode_server_tool_use,
    encode_server_tool_call,
    encode_server_tool_result,
)
from dragoman.wire.anthropic.thinking import (
    decode_redacted_thinking,
    decode_thinking,
    encode_thinking,
)

_DECODERS: dict[str, Callable[[Block, Decoding], AnyPart]] = {
    "text": content.decode_text,
    "image": decode_image,
    "document": decode_document,
    "tool_use": decode_tool_use,
    "tool_result": decode_tool_result,
    "thinking": decode_thinking,
    "redacted_thinking": decode_redacted_thinking,
    "server_tool_use": decode_server_tool_use,
    "mcp_tool_use": decode_mcp_tool_use,
}

_ENCODERS: dict[type[Part], Callable[[Any, Encoding], Any]] = {
    **content.ENCODERS,
    ToolCall: encode_tool_call,
    ToolResult: encode_tool_result,
    Thinking: encode_thinking,
    ServerToolCall: encode_server_tool_call,
    ServerToolResult: encode_server_tool_result,
}


def decode_part(block: Any, context: Decoding) -> AnyPart:
    """A content block of any type; those that nobody knows are carried whole."""
    kind = block.get("type") if isinstance(block, dict) else None
    if kind == "text" and len(block) == 2 and type(text := block.get("text")) is str:  # noqa: PLR2004 - these two
        return Text(text)  # most blocks are this
    if type(kind) is not str:
        return content.decode_unknown(block, context)
    decode = _DECODERS.get(kind)
    if decode is not None:
        return decode(block, context)
    if kind.endswith(RESULT_SUFFIX):
        return decode_server_tool_result(block, context)
    return content.decode_opaque(block, context)


def encode_parts(parts: tuple[AnyPart, ...], context: Encoding, first: int = 0) -> list[Any]:
    """The content blocks of parts, without those that have no place here."""
    blocks: list[Any] = []
    for index, part in enumerate(parts, first):
        kind = type(part)
        if kind is Text and content.is_plain(part):
            blocks.append({"type": "text", "text": part.text})  # type: ignore[union-attr]  # a Text
            continue
        context.part = index
        encode = _ENCODERS.get(kind) or content.encoder_of(part, _ENCODERS)
        block = encode(part, context)
        if block is not UNSET:
            blocks.append(block)
    return blocks
