"""Text and media blocks, which occur in messages and inside tool results."""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from collections.abc import Callable, Collection, Mapping
from typing import Any

from msgspec import UNSET

from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY, FrozenDict
from dragoman.model.media import Audio, File, Image, Media, Video, sniff_base64
from dragoman.model.parts import CacheHint, Opaque, Part, Refusal, Text
from dragoman.model.tools import ResultPart
from dragoman.wire.anthropic.content_citations import decode_citations, encode_citations
from dragoman.wire.anthropic.dialect import NAME, Block
from dragoman.wire.overlay import overlay_of, with_overlay
from dragoman.wire.reading import Reading
from dragoman.wire.settings_table import text
from dragoman.wire.tolerance import bare_text
from dragoman.wire.writing import Writing

Encoder = Callable[[Any, Writing], Any]
Decoders = dict[str, Callable[[Block, Reading], AnyPart]]
"""Decoders by block type."""
Encoders = dict[type[Part], Encoder]
"""Encoders by part class; an encoder returns `UNSET` if the part is left out."""


# --- fields of any block: the cache hint, and unknown fields

_PLAIN_HINT = CacheHint()


def decode_cache(block: Mapping[str, Any]) -> CacheHint | None:
    """Decode a block's `cache_control`; None if it is missing or unknown."""
    control = block.get("cache_control")
    if not isinstance(control, dict) or control.get("type") != "ephemeral":
        return None
    ttl = control.get("ttl")
    return CacheHint(ttl) if type(ttl) is str else _PLAIN_HINT


def encode_cache(hint: CacheHint) -> Block:
    """Encode a hint as `cache_control`."""
    if hint.ttl is None:
        return {"type": "ephemeral"}
    return {"type": "ephemeral", "ttl": hint.ttl}


def decode_common_fields(
    block: Block, known: Collection[str]
) -> tuple[CacheHint | None, FrozenDict]:
    """The cache hint of a block, and the extras: all fields other than it and `known`."""
    hint = decode_cache(block)
    if hint is None:
        return None, overlay_of(block, known, NAME)
    return hint, overlay_of(block, known, NAME, {"cache_control": encode_cache(hint)})


def with_common_fields(block: Block, part: Part) -> Block:
    """The block with the part's cache hint and extras."""
    return with_overlay(_with_cache(block, part), part.extras, NAME)


def _with_cache(block: Block, part: Part) -> Block:
    if part.cache is not None:
        block["cache_control"] = encode_cache(part.cache)
    return block


# --- images and documents

_PDF = "application/pdf"
_PLAIN_TEXT = "text/plain"
_TEXTUAL = ("text/", "application/json", "application/xml")
"""Types sent as plain text. All other documents must be PDF."""


def decode_image(block: Block, reading: Reading) -> Image | Opaque:
    """Decode an image; opaque if its source is of an unknown type."""
    place: Any = _decode_source(block.get("source"))
    if place is None:
        return decode_opaque(block, reading)
    image = Image(**place, origin=reading.origin, cache=decode_cache(block))
    extras = overlay_of(block, (), NAME, _image(image))
    return image.replace(extras=extras) if extras else image


def encode_image(image: Image, writing: Writing) -> Any:
    """Encode an image block."""
    if _is_foreign_upload(image, writing):
        return UNSET
    if image.detail not in {None, "auto"}:
        writing.lose_here("image detail is not supported", ".detail")
    return with_overlay(_image(image), image.extras, NAME)


def decode_document(block: Block, reading: Reading) -> File | Opaque:
    """Decode a document; opaque if it consists of blocks, which a file can't hold."""
    place: Any = _decode_document_source(block.get("source"))
    if place is None:
        return decode_opaque(block, reading)
    name, cache = text(block.get("title")), decode_cache(block)
    file = File(**place, name=name, origin=reading.origin, cache=cache)
    extras = overlay_of(block, (), NAME, _document(file))
    return file.replace(extras=extras) if extras else file


def encode_file(file: File, writing: Writing) -> Any:
    """Encode a document block, or an image block if the file is an image."""
    if _is_foreign_upload(file, writing):
        return UNSET
    mime = file.mime or _PDF
    is_binary = file.data is not None and mime != _PDF and not mime.startswith(_TEXTUAL)
    if not is_binary or writing.is_own(file):
        return with_overlay(_document(file), file.extras, NAME)
    if mime.startswith("image/"):
        return _image(file)
    writing.lose_here("only PDF and text documents can be sent inline")
    return UNSET


def _is_foreign_upload(media: Media, writing: Writing) -> bool:
    """Whether this is a file uploaded to another provider; reports the loss if so."""
    if media.file_id is None or not writing.is_foreign(media):
        return False
    writing.lose_here("a file uploaded to another provider is left out")
    return True


def _image(media: Media) -> Block:
    source = _encode_source(media, "image/png")
    if media.data is not None and media.mime is not None:
        found = sniff_base64(media.data)
        if found is not None and found.startswith("image/"):
            source["media_type"] = (
                found  # W65: the actual type of the data counts, not the declared one
            )
    return _with_cache({"type": "image", "source": source}, media)


def _document(file: File) -> Block:
    block: Block = {"type": "document", "source": _encode_document_source(file)}
    if file.name is not None:
        block["title"] = file.name
    return _with_cache(block, file)


def _decode_source(source: Any) -> dict[str, str] | None:
    """Decode a source to fields of `Media`; None if unknown."""
    if not isinstance(source, dict):
        return None
    kind, mime = source.get("type"), source.get("media_type")
    if kind == "base64" and type(data := source.get("data")) is str and type(mime) is str:
        return {"data": data, "mime": mime}
    if kind == "url" and type(url := source.get("url")) is str:
        return {"url": url}
    if kind == "file" and type(file_id := source.get("file_id")) is str:
        return {"file_id": file_id}
    return None


def _encode_source(media: Media, fallback: str) -> Block:
    if media.data is not None:
        mime = media.mime or sniff_base64(media.data) or fallback
        return {"type": "base64", "media_type": mime, "data": media.data}
    if media.url is not None:
        return {"type": "url", "url": media.url}
    return {"type": "file", "file_id": media.file_id}


def _decode_document_source(source: Any) -> dict[str, str] | None:
    """Like `_decode_source`; plain text becomes the bytes of a text file."""
    if not isinstance(source, dict) or source.get("type") != "text":
        return _decode_source(source)
    written, mime = source.get("data"), source.get("media_type")
    if type(written) is not str or type(mime) is not str:
        return None
    return {
        "data": b64encode(written.encode("utf-8", "surrogatepass")).decode("ascii"),
        "mime": mime,
    }


def _encode_document_source(file: File) -> Block:
    if file.data is not None and file.mime is not None and file.mime.startswith(_TEXTUAL):
        written = _text_of(file.data)
        if written is not None:
            return {"type": "text", "media_type": _PLAIN_TEXT, "data": written}
    return _encode_source(file, _PDF)


def _text_of(data: str) -> str | None:
    """The text in base64 data; None if it is not valid text."""
    try:
        return b64decode(data, validate=True).decode("utf-8", "surrogatepass")
    except (binascii.Error, ValueError):
        return None


# --- text blocks and unknown blocks

_TEXT = frozenset({"type", "text"})
FOREIGN_SIGNATURE = "another provider's signature is left out"
_CITED_TEXT = _TEXT | {"citations"}


def decode_text(block: Block, reading: Reading) -> Text | Opaque:
    """Decode a text block and its citations."""
    value = block.get("text")
    if type(value) is not str:
        return decode_opaque(block, reading)
    if len(block) == len(_TEXT):
        return Text(value)
    citations = decode_citations(block.get("citations"))
    cache, extras = decode_common_fields(block, _CITED_TEXT if citations else _TEXT)
    origin = reading.origin if citations else None  # citations hold encrypted references: W71
    return Text(value, citations, cache=cache, extras=extras, origin=origin)


def encode_text(part: Text, writing: Writing) -> Block:
    """Encode a text block."""
    block: Block = {"type": "text", "text": part.text}
    if part.signature is not None:
        writing.lose_here(FOREIGN_SIGNATURE)
    if part.citations:
        citations = encode_citations(part.citations, writing)
        if citations:
            block["citations"] = citations
    return with_common_fields(block, part)


def is_plain(part: Part) -> bool:
    """Whether a part is a text without any other fields."""
    return (
        type(part) is Text
        and part.extras is EMPTY
        and part.cache is None
        and part.signature is None
        and not part.citations
    )


def text_or_blocks(blocks: list[Any]) -> str | list[Any]:
    """A single plain text block as a string, else the blocks: the normal form of content."""
    if len(blocks) != 1 or not isinstance(block := blocks[0], dict):
        return blocks
    if len(block) != len(_TEXT) or block.get("type") != "text":
        return blocks
    value = block.get("text")
    return value if type(value) is str else blocks


def encode_refusal(part: Refusal, writing: Writing) -> Block:
    """Encode a refusal as text: requests have no refusals, and can't have empty turns (I15)."""
    writing.lose_here("a refusal is sent as text")
    return with_common_fields({"type": "text", "text": part.text}, part)


def decode_unknown(block: Any, reading: Reading) -> Text | Opaque:
    """Decode a bare string among the blocks, or a block of unknown type."""
    if type(block) is str:
        return bare_text(block, {"type": "text", "text": block}, NAME)
    return decode_opaque(block, reading)


def decode_opaque(block: Any, reading: Reading) -> Opaque:
    """Keep a block of unknown type, or a malformed one, as an opaque part."""
    return Opaque(NAME, block, origin=reading.origin)


def encode_opaque(part: Opaque, writing: Writing) -> Any:
    """Encode an opaque part of this dialect."""
    if part.dialect == NAME:
        return part.payload
    writing.lose_here("a part that only another dialect understands is left out")
    return UNSET


def encode_unsupported(part: Part, writing: Writing) -> Any:
    """Leave out media that are not supported."""
    writing.lose_here(f"{type(part).__name__.lower()} is not supported")
    return UNSET


RESULT_DECODERS: dict[str, Callable[[Block, Reading], ResultPart]] = {
    "text": decode_text,
    "image": decode_image,
    "document": decode_document,
}

RESULT_ENCODERS: Encoders = {
    Text: encode_text,
    Image: encode_image,
    File: encode_file,
    Audio: encode_unsupported,
    Video: encode_unsupported,
    Refusal: encode_refusal,
    Opaque: encode_opaque,
}


def decode_content(block: Any, reading: Reading) -> ResultPart:
    """Decode a block inside a tool result."""
    kind = block.get("type") if isinstance(block, dict) else None
    decode = RESULT_DECODERS.get(kind) if type(kind) is str else None
    return decode(block, reading) if decode is not None else decode_unknown(block, reading)


def encode_content(parts: tuple[ResultPart, ...], writing: Writing) -> str | list[Any]:
    """Encode the content of a tool result; unsupported parts are left out."""
    blocks: list[Any] = []
    for writing.item, part in enumerate(parts):
        block = encoder_of(part, RESULT_ENCODERS)(part, writing)
        if block is not UNSET:
            blocks.append(block)
    writing.item = None
    return text_or_blocks(blocks)


def encoder_of(part: Part, encoders: Encoders) -> Encoder:
    """The encoder for the class of a part, or for the class it is derived from."""
    for kind in type(part).__mro__:
        if kind in encoders:
            return encoders[kind]
    return encode_unsupported
