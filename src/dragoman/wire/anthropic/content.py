"""Message content: thinking blocks, and the decoders and encoders of all block types."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from dragoman.model.content import AnyPart
from dragoman.model.parts import Opaque, Thinking
from dragoman.wire.anthropic.content_blocks import (
    RESULT_DECODERS,
    RESULT_ENCODERS,
    Decoders,
    Encoders,
    decode_opaque,
    decode_unknown,
    encoder_of,
)
from dragoman.wire.anthropic.dialect import NAME, Block
from dragoman.wire.anthropic.tools_calls import (
    CALL_DECODERS,
    CALL_ENCODERS,
    RESULT_SUFFIX,
    decode_server_tool_result,
)
from dragoman.wire.envelope import PREFIX
from dragoman.wire.overlay import overlay_of, with_overlay
from dragoman.wire.reading import Reading
from dragoman.wire.settings_table import text
from dragoman.wire.tolerance import with_original
from dragoman.wire.writing import Writing

# --- thinking blocks: signed or redacted

_UNSIGNED = frozenset({"type", "thinking"})
_SIGNED = _UNSIGNED | {"signature"}
_REDACTED = frozenset({"type", "data"})
_BESIDE_DATA = "a block is readable or redacted: the readable text of redacted thinking is left out"


def _decode_thinking(block: Block, reading: Reading) -> Thinking | Opaque:
    """Decode readable thinking; some servers omit the signature."""
    thinking, signature = block.get("thinking"), text(block.get("signature"))
    if type(thinking) is not str:
        return decode_opaque(block, reading)
    if signature is not None and signature.startswith(PREFIX):
        reading.has_envelopes = True
    extras = overlay_of(block, _UNSIGNED if signature is None else _SIGNED, NAME)
    return Thinking(thinking, signature=signature, extras=extras, origin=reading.origin)


def _decode_redacted_thinking(block: Block, reading: Reading) -> Thinking | Opaque:
    """Decode thinking that only the provider can read; it must still be sent back (W57)."""
    data = block.get("data")
    if type(data) is not str:
        return decode_opaque(block, reading)
    if data.startswith(PREFIX):
        reading.has_envelopes = True
    extras = overlay_of(block, _REDACTED, NAME)
    return Thinking("", data, "redacted", extras=extras, origin=reading.origin)


def _encode_thinking(part: Thinking, writing: Writing) -> Any:
    """Encode a thinking block. Unsigned thinking and other providers' would be refused (W54)."""
    is_sealed = part.signature is not None or part.data is not None
    if not (writing.is_own(part) or (is_sealed and not writing.is_foreign(part))):
        writing.lose_here("thinking not signed by this provider is left out")
        return UNSET
    if part.data is not None:
        if part.text or part.signature is not None:
            writing.lose_here(_BESIDE_DATA)
        return with_overlay({"type": "redacted_thinking", "data": part.data}, part.extras, NAME)
    block: Block = {"type": "thinking", "thinking": part.text}
    if part.signature is not None:
        block["signature"] = part.signature
    return with_overlay(block, part.extras, NAME)


# --- all block types

_DECODERS: Decoders = {
    **RESULT_DECODERS,
    **CALL_DECODERS,
    "thinking": _decode_thinking,
    "redacted_thinking": _decode_redacted_thinking,
}

_TELLING = {"text": "text", "thinking": "thinking", "tool_use": "input"}
"""Types of blocks by the field that only they have."""

_ENCODERS: Encoders = {
    **RESULT_ENCODERS,
    **CALL_ENCODERS,
    Thinking: _encode_thinking,
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
        return decode_server_tool_result(block, reading)
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
