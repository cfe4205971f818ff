"""The parts of a message: which function reads and which writes each kind of block."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import UNSET

from dragoman.model.content import AnyPart
from dragoman.model.parts import Part, ServerToolCall, ServerToolResult, Thinking
from dragoman.model.tools import ToolCall, ToolResult
from dragoman.wire.anthropic.content_blocks import (
    ENCODERS,
    decode_document,
    decode_image,
    decode_opaque,
    decode_redacted_thinking,
    decode_text,
    decode_thinking,
    decode_unknown,
    encode_thinking,
    encoder_of,
)
from dragoman.wire.anthropic.dialect import Block
from dragoman.wire.anthropic.tools_calls import (
    RESULT_SUFFIX,
    decode_mcp_tool_use,
    decode_server_tool_result,
    decode_server_tool_use,
    decode_tool_result,
    decode_tool_use,
    encode_server_tool_call,
    encode_server_tool_result,
    encode_tool_call,
    encode_tool_result,
)
from dragoman.wire.reading import Reading
from dragoman.wire.writing import Writing

_DECODERS: dict[str, Callable[[Block, Reading], AnyPart]] = {
    "text": decode_text,
    "image": decode_image,
    "document": decode_document,
    "tool_use": decode_tool_use,
    "tool_result": decode_tool_result,
    "thinking": decode_thinking,
    "redacted_thinking": decode_redacted_thinking,
    "server_tool_use": decode_server_tool_use,
    "mcp_tool_use": decode_mcp_tool_use,
}

_ENCODERS: dict[type[Part], Callable[[Any, Writing], Any]] = {
    **ENCODERS,
    ToolCall: encode_tool_call,
    ToolResult: encode_tool_result,
    Thinking: encode_thinking,
    ServerToolCall: encode_server_tool_call,
    ServerToolResult: encode_server_tool_result,
}


def decode_part(block: Any, reading: Reading) -> AnyPart:
    """A content block of any type; those that nobody knows are carried whole."""
    kind = block.get("type") if isinstance(block, dict) else None
    if type(kind) is not str:
        return decode_unknown(block, reading)
    decode = _DECODERS.get(kind)
    if decode is not None:
        return decode(block, reading)
    if kind.endswith(RESULT_SUFFIX):
        return decode_server_tool_result(block, reading)
    return decode_opaque(block, reading)


def encode_parts(parts: tuple[AnyPart, ...], writing: Writing, first: int = 0) -> list[Any]:
    """The content blocks of parts, without those that have no place here."""
    blocks: list[Any] = []
    for index, part in enumerate(parts, first):
        writing.part = index
        block = encoder_of(part, _ENCODERS)(part, writing)
        if block is not UNSET:
            blocks.append(block)
    return blocks
