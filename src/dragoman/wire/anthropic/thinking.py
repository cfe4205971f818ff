"""Thinking blocks, signed or sealed."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from dragoman.model.parts import Opaque, Thinking
from dragoman.wire.anthropic.content import decode_opaque
from dragoman.wire.anthropic.context import NAME, Block, Decoding, Encoding, is_ours
from dragoman.wire.envelope import PREFIX
from dragoman.wire.overlay import laid_over, rest

_UNSIGNED = frozenset({"type", "thinking"})
_SIGNED = _UNSIGNED | {"signature"}
_REDACTED = frozenset({"type", "data"})
BESIDE_DATA = "a block is readable or sealed: what can be read of sealed thinking is left out"


def decode_thinking(block: Block, context: Decoding) -> Thinking | Opaque:
    """Readable thinking; some servers leave the signature out."""
    text, signature = block.get("thinking"), block.get("signature")
    if type(text) is not str:
        return decode_opaque(block, context)
    if type(signature) is not str:
        signature = None
    elif signature.startswith(PREFIX):
        context.has_envelopes = True
    extras = rest(block, _UNSIGNED if signature is None else _SIGNED, NAME)
    return Thinking(text, signature=signature, extras=extras, origin=context.origin)


def decode_redacted_thinking(block: Block, context: Decoding) -> Thinking | Opaque:
    """Thinking that only the provider can read; it must come back all the same (W57)."""
    data = block.get("data")
    if type(data) is not str:
        return decode_opaque(block, context)
    if data.startswith(PREFIX):
        context.has_envelopes = True
    extras = rest(block, _REDACTED, NAME)
    return Thinking("", data, "redacted", extras=extras, origin=context.origin)


def encode_thinking(part: Thinking, context: Encoding) -> Any:
    """A thinking block; W54: unsigned ones and those of others would be refused."""
    if context.unthinking is not None and context.message >= context.unthinking:
        context.lose("with thinking off, there is none in an answer to be gone on with")
        return UNSET
    origin = context.origin_of(part)
    is_sealed = part.signature is not None or part.data is not None
    if not (is_ours(origin) or (origin is None and is_sealed)):
        context.lose("thinking that this provider did not sign is left out")
        return UNSET
    if part.data is not None:
        if part.text or part.signature is not None:
            context.lose(BESIDE_DATA)
        return laid_over({"type": "redacted_thinking", "data": part.data}, part.extras, NAME)
    block: Block = {"type": "thinking", "thinking": part.text}
    if part.signature is not None:
        block["signature"] = part.signature
    return laid_over(block, part.extras, NAME)
