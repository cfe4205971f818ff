"""The blocks that may stand both in a message and inside a tool result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import UNSET

from dragoman.model.frozen import EMPTY
from dragoman.model.media import Audio, File, Image, Video
from dragoman.model.parts import Opaque, Part, Refusal, Text
from dragoman.model.tools import ResultPart
from dragoman.wire.anthropic.citations import decode_citations, encode_citations
from dragoman.wire.anthropic.context import NAME, Block, Decoding, Encoding
from dragoman.wire.anthropic.fields import decode_rest, encode_rest
from dragoman.wire.anthropic.media import decode_document, decode_image, encode_file, encode_image
from dragoman.wire.tolerance import bare_text

_TEXT = frozenset({"type", "text"})
FOREIGN_SIGNATURE = "another provider's signature has no place on it here"
_CITED_TEXT = _TEXT | {"citations"}


def decode_text(block: Block, context: Decoding) -> Text | Opaque:
    """A text and the sources it cites."""
    text = block.get("text")
    if type(text) is not str:
        return decode_opaque(block, context)
    if len(block) == len(_TEXT):
        return Text(text)
    citations = decode_citations(block.get("citations"))
    cache, extras = decode_rest(block, _CITED_TEXT if citations else _TEXT)
    origin = context.origin if citations else None  # they hold sealed references: W71
    return Text(text, citations, cache=cache, extras=extras, origin=origin)


def encode_text(part: Text, context: Encoding) -> Block:
    """A text block."""
    block: Block = {"type": "text", "text": part.text}
    if part.signature is not None:
        context.lose(FOREIGN_SIGNATURE)
    if part.citations:
        citations = encode_citations(part.citations, context)
        if citations:
            block["citations"] = citations
    return encode_rest(block, part)


def is_plain(part: Part) -> bool:
    """Whether a part is a text and nothing else."""
    return (
        type(part) is Text
        and part.extras is EMPTY
        and part.cache is None
        and part.signature is None
        and not part.citations
    )


def joined(blocks: list[Any]) -> str | list[Any]:
    """The blocks, or the text alone where that is all they are: the one normal form."""
    if len(blocks) != 1 or not isinstance(block := blocks[0], dict):
        return blocks
    if len(block) != len(_TEXT) or block.get("type") != "text":
        return blocks
    text = block.get("text")
    return text if type(text) is str else blocks


def encode_refusal(part: Refusal, context: Encoding) -> Block:
    """Text: in a request there are no refusals, and an empty turn would be refused (I15)."""
    context.lose("a refusal is sent as text")
    return encode_rest({"type": "text", "text": part.text}, part)


def decode_unknown(block: Any, context: Decoding) -> Text | Opaque:
    """A bare text among the blocks, or something of no type we know."""
    if type(block) is str:
        return bare_text(block, {"type": "text", "text": block}, NAME)
    return decode_opaque(block, context)


def decode_opaque(block: Any, context: Decoding) -> Opaque:
    """A block of no type we know, or not as its type should be: carried whole."""
    return Opaque(NAME, block, origin=context.origin)


def encode_opaque(part: Opaque, context: Encoding) -> Any:
    """What was carried, if it came from here."""
    if part.dialect == NAME:
        return part.payload
    context.lose("a part that only another dialect understands is left out")
    return UNSET


def encode_nothing(part: Part, context: Encoding) -> Any:
    """Nothing, for media that have no place here."""
    context.lose(f"{type(part).__name__.lower()} can't be sent")
    return UNSET


_DECODERS: dict[str, Callable[[Block, Decoding], ResultPart]] = {
    "text": decode_text,
    "image": decode_image,
    "document": decode_document,
}

ENCODERS: dict[type[Part], Callable[[Any, Encoding], Any]] = {
    Text: encode_text,
    Image: encode_image,
    File: encode_file,
    Audio: encode_nothing,
    Video: encode_nothing,
    Refusal: encode_refusal,
    Opaque: encode_opaque,
}


def decode_content(block: Any, context: Decoding) -> ResultPart:
    """A block inside a tool result."""
    kind = block.get("type") if isinstance(block, dict) else None
    decode = _DECODERS.get(kind) if type(kind) is str else None
    return decode(block, context) if decode is not None else decode_unknown(block, context)


def encode_content(parts: tuple[ResultPart, ...], context: Encoding) -> str | list[Any]:
    """The parts inside a tool result, without those that have no place there."""
    blocks: list[Any] = []
    for context.item, part in enumerate(parts):
        block = encoder_of(part, ENCODERS)(part, context)
        if block is not UNSET:
            blocks.append(block)
    context.item = None
    return joined(blocks)


def encoder_of(
    part: Part, encoders: dict[type[Part], Callable[[Any, Encoding], Any]]
) -> Callable[[Any, Encoding], Any]:
    """What writes parts of this kind, or of the kind it is derived from."""
    for kind in type(part).__mro__:
        if kind in encoders:
            return encoders[kind]
    return encode_nothing
