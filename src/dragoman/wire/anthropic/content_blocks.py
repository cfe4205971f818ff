"""Texts with their citations, and media: the blocks that tool results may hold, too."""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from collections.abc import Callable
from functools import partial
from typing import Any

from msgspec import UNSET

from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY
from dragoman.model.media import Audio, File, Image, Media, Video, sniff_base64
from dragoman.model.parts import CacheHint, Citation, Opaque, Part, Refusal, Text
from dragoman.model.tools import ResultPart
from dragoman.wire.anthropic.dialect import NAME, Block
from dragoman.wire.overlay import fields_of
from dragoman.wire.reading import Reading
from dragoman.wire.rows import Row, Shape
from dragoman.wire.settings_table import whole
from dragoman.wire.tolerance import bare_text
from dragoman.wire.writing import Writing

Encoder = Callable[[Any, Writing], Any]
Decoders = dict[str, Callable[[Block, Reading], AnyPart]]
"""Decoders by block type."""
Encoders = dict[type[Part], Encoder]
"""Encoders by part class; an encoder returns `UNSET` if the part is left out."""


# --- the cache hint of any block

_PLAIN_HINT = CacheHint()


def read_cache(control: Any, _reading: Any = None) -> CacheHint | None:
    """Decode `cache_control`; None if it is unknown."""
    if not isinstance(control, dict) or control.get("type") != "ephemeral":
        return None
    ttl = control.get("ttl")
    return CacheHint(ttl) if type(ttl) is str else _PLAIN_HINT


def write_cache(hint: CacheHint, _writing: Any = None) -> Block:
    """Encode a hint as `cache_control`."""
    if hint.ttl is None:
        return {"type": "ephemeral"}
    return {"type": "ephemeral", "ttl": hint.ttl}


CACHE = Row("cache_control", "cache", read_cache, write_cache, is_compared=True)
"""The row of every block that may be cached."""

# --- images and documents

_PDF = "application/pdf"
_PLAIN_TEXT = "text/plain"
_TEXTUAL = ("text/", "application/json", "application/xml")
"""Types sent as plain text. All other documents must be PDF."""


def _may_send(media: Media, writing: Writing) -> bool:
    """Whether this is not a file uploaded to another provider; reports what is lost."""
    if media.file_id is not None and writing.is_foreign(media):
        writing.lose_here("a file uploaded to another provider is left out")
        return False
    if isinstance(media, Image) and media.detail not in {None, "auto"}:
        writing.lose_here("image detail is not supported", ".detail")
    return True


def encode_file(file: File, writing: Writing) -> Any:
    """Encode a document block, or an image block if the file is an image."""
    mime = file.mime or _PDF
    is_binary = file.data is not None and mime != _PDF and not mime.startswith(_TEXTUAL)
    if not is_binary or writing.is_own(file):
        return DOCUMENT.write(file, writing)
    if mime.startswith("image/"):
        return IMAGE.body(file, writing)
    writing.lose_here("only PDF and text documents can be sent inline")
    return UNSET


def _read_source(source: Any, _reading: Reading) -> dict[str, str] | None:
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


def _write_source(media: Media, _writing: Writing, fallback: str = "image/png") -> Block:
    if media.data is not None:
        mime = media.mime
        if not mime or fallback != _PDF:
            found = sniff_base64(media.data) or ""
            if not mime or found.startswith("image/"):
                mime = found  # W65: the actual type of an image counts, not the declared one
        return {"type": "base64", "media_type": mime or fallback, "data": media.data}
    if media.url is not None:
        return {"type": "url", "url": media.url}
    return {"type": "file", "file_id": media.file_id}


def _read_document(source: Any, reading: Reading) -> dict[str, str] | None:
    """Like `_read_source`; plain text becomes the bytes of a text file."""
    if not isinstance(source, dict) or source.get("type") != "text":
        return _read_source(source, reading)
    written, mime = source.get("data"), source.get("media_type")
    if type(written) is not str or type(mime) is not str:
        return None
    return {
        "data": b64encode(written.encode("utf-8", "surrogatepass")).decode("ascii"),
        "mime": mime,
    }


def _write_document(file: File, writing: Writing) -> Block:
    if file.data is not None and file.mime is not None and file.mime.startswith(_TEXTUAL):
        written = _text_of(file.data)
        if written is not None:
            return {"type": "text", "media_type": _PLAIN_TEXT, "data": written}
    return _write_source(file, writing, _PDF)


def _text_of(data: str) -> str | None:
    """The text in base64 data; None if it is not valid text."""
    try:
        return b64decode(data, validate=True).decode("utf-8", "surrogatepass")
    except (binascii.Error, ValueError):
        return None


_source = partial(Row, "source", "", is_required=True, is_compared=True, takes_owner=True)
_media = partial(Shape, NAME, origin="*", allows=_may_send)
IMAGE = _media("image", Image, _source(_read_source, _write_source), CACHE)
DOCUMENT = _media(
    "document", File, _source(_read_document, _write_document), Row("title", "name"), CACHE
)
"""A document of blocks is opaque, since a file can't hold them."""


# --- citations: locations in documents or web pages that a text refers to

Location = tuple[Shape[Citation], str | None]
"""One type of citation, and the anchor that makes it valid.

The anchor (an index into this very request, or an encrypted reference) means nothing in other
dialects and can't be made up (W71). It stays in the extras; a citation without it is left out.
"""


def _at(kind: str, anchor: str, *rows: Row) -> tuple[str, Location]:
    return kind, (Shape(NAME, kind, Citation, *rows, fixed={"kind": kind}), anchor)


def _span(unit: str) -> tuple[Row, Row]:
    return Row(f"start_{unit}", "start", whole), Row(f"end_{unit}", "end", whole)


_TITLE, _QUOTE = Row("title", "title"), Row("cited_text", "quote")
_DOCUMENT = "document_index", Row("document_title", "title"), _QUOTE
_SOURCE = "search_result_index", Row("source", "url"), _TITLE, _QUOTE
_FOUND, _SEAL = "web_search_result_location", "encrypted_index"
SHOWN = "dragoman"
"""Replaces the encrypted reference in another provider's citation shown to a client."""
_LOCATIONS: dict[str, Location] = dict([
    _at("char_location", *_DOCUMENT, *_span("char_index")),
    _at("page_location", *_DOCUMENT, *_span("page_number")),
    _at("content_block_location", *_DOCUMENT, *_span("block_index")),
    _at("search_result_location", *_SOURCE, *_span("block_index")),
    _at(_FOUND, _SEAL, Row("url", "url"), _TITLE, _QUOTE),
])  # fmt: skip
_UNKNOWN: Location = (Shape(NAME, None, Citation, Row("type", "kind", is_required=True)), None)
_FIELDS = ("url", "title", "quote", "start", "end")


def decode_citations(wire: Any, reading: Any = None) -> tuple[Citation, ...] | None:
    """Decode the citations of a text; None unless there are some and all are well-formed."""
    if not wire or not isinstance(wire, list) or not all(map(_is_well_formed, wire)):
        return None
    return tuple([_decode_citation(item, reading) for item in wire])


def encode_citations(
    citations: tuple[Citation, ...], writing: Writing, first: int = 0
) -> list[Block]:
    """Encode citations; those that the provider would refuse are left out.

    `first` is the index of the first one in its text.
    """
    encoded: list[Block] = []
    for index, citation in enumerate(citations, first):
        place = f".citations[{index}]"
        shape, anchor = _LOCATIONS.get(citation.kind, _UNKNOWN)
        ours = fields_of(citation.extras, NAME)
        if anchor in ours if anchor is not None else ours:
            encoded.append(shape.write(citation, writing))
            known = {row.field for row in shape.rows}
            for name in _FIELDS:
                if name not in known and getattr(citation, name) is not None:
                    reason = "this citation type does not have this field"
                    writing.lose_here(reason, f"{place}.{name}")
        elif writing.is_response and citation.url is not None:
            encoded.append(_shown(citation))
        else:
            writing.lose_here("a citation whose source is not in this request is left out", place)
    return encoded


def _is_well_formed(wire: Any) -> bool:
    kind = wire.get("type") if isinstance(wire, dict) else None
    if type(kind) is not str:
        return False
    _, anchor = _LOCATIONS.get(kind, _UNKNOWN)
    return len(wire) > 1 if anchor is None else anchor in wire


def _shown(citation: Citation) -> Block:
    """Another dialect's URL citation in a form that clients can read, with a fake anchor."""
    return {
        "type": _FOUND,
        "url": citation.url,
        "title": citation.title,
        "cited_text": citation.quote or "",
        _SEAL: SHOWN,
    }


def _decode_citation(wire: Block, reading: Any) -> Citation:
    shape, anchor = _LOCATIONS.get(wire["type"], _UNKNOWN)
    made: Any = shape.read(wire, reading)
    if anchor != _SEAL or wire[_SEAL] != SHOWN:
        return made  # type: ignore[no-any-return]  # it has a type, so it can be read
    url, title, quote = made.url or None, made.title or None, made.quote or None
    return Citation(kind="url", url=url, title=title, quote=quote)  # made by a front


# --- text blocks and unknown blocks

_TEXT = frozenset({"type", "text"})


def without_signature(part: Part, writing: Writing) -> bool:
    """True; reports the signature, which texts and calls have in other dialects, as lost."""
    if part.signature is not None:
        writing.lose_here("another provider's signature is left out")
    return True


def _write_citations(citations: tuple[Citation, ...], writing: Writing) -> list[Block] | None:
    return encode_citations(citations, writing) or None


TEXT = Shape(
    NAME, "text", Text,
    Row("text", "text", is_required=True, delta="text_delta", grows="text"),
    Row("citations", "citations", decode_citations, _write_citations,
        delta="citations_delta", grows="citation"),
    CACHE,
    origin="citations", allows=without_signature,
)  # fmt: skip
"""Citations hold encrypted references, so a cited text keeps its origin (W71)."""


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


def encode_refusal(part: Refusal, writing: Writing) -> Any:
    """Encode a refusal as text: requests have no refusals, and can't have empty turns (I15)."""
    writing.lose_here("a refusal is sent as text")
    return TEXT.write(Text(part.text, cache=part.cache, extras=part.extras), writing)


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
    "text": TEXT.read,
    "image": IMAGE.read,
    "document": DOCUMENT.read,
}

RESULT_ENCODERS: Encoders = {
    Text: TEXT.write,
    Image: IMAGE.write,
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
