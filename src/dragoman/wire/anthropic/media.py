"""Images and documents."""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from typing import Any

from msgspec import UNSET

from dragoman.model.media import File, Image, Media, sniff_base64
from dragoman.model.parts import Opaque
from dragoman.wire.anthropic.context import NAME, Block, Decoding, Encoding, is_ours
from dragoman.wire.anthropic.fields import decode_cache, encode_cache
from dragoman.wire.overlay import difference, laid_over

_PDF = "application/pdf"
_TEXT = "text/plain"
_TEXTUAL = ("text/", "application/json", "application/xml")
"""Types that are sent as plain text: of the others, documents may only be PDF."""


def decode_image(block: Block, context: Decoding) -> Image | Opaque:
    """An image; opaque where its source is of no kind we know."""
    place: Any = _decode_source(block.get("source"))
    if place is None:
        return Opaque(NAME, block, origin=context.origin)
    image = Image(**place, origin=context.origin, cache=decode_cache(block))
    extras = difference(block, _image(image), NAME)
    return image.replace(extras=extras) if extras else image


def encode_image(image: Image, context: Encoding) -> Any:
    """An image block."""
    if _is_elsewhere(image, context):
        return UNSET
    if image.detail not in {None, "auto"}:
        context.lose("how closely to look at an image can't be said", ".detail")
    return laid_over(_image(image), image.extras, NAME)


def decode_document(block: Block, context: Decoding) -> File | Opaque:
    """A document; opaque where it is made of blocks, which a file can't hold."""
    place: Any = _decode_document_source(block.get("source"))
    if place is None:
        return Opaque(NAME, block, origin=context.origin)
    title = block.get("title")
    file = File(
        **place,
        name=title if type(title) is str else None,
        origin=context.origin,
        cache=decode_cache(block),
    )
    extras = difference(block, _document(file), NAME)
    return file.replace(extras=extras) if extras else file


def encode_file(file: File, context: Encoding) -> Any:
    """A document block, or an image block where the file is a picture."""
    if _is_elsewhere(file, context):
        return UNSET
    mime = file.mime or _PDF
    is_strange = file.data is not None and mime != _PDF and not mime.startswith(_TEXTUAL)
    if not is_strange or is_ours(context.origin_of(file)):
        return laid_over(_document(file), file.extras, NAME)
    if mime.startswith("image/"):
        return _image(file)
    context.lose("documents other than PDF and text can't be sent inline")
    return UNSET


def _is_elsewhere(media: Media, context: Encoding) -> bool:
    """Whether this is a file that was uploaded to another provider."""
    if media.file_id is None or not context.is_foreign(media):
        return False
    context.lose("a file uploaded to another provider is left out")
    return True


def _image(media: Media) -> Block:
    source = _encode_source(media, "image/png")
    if media.data is not None and media.mime is not None:
        found = sniff_base64(media.data)
        if found is not None and found.startswith("image/"):
            source["media_type"] = found  # W65: what the data is counts, not what it is called
    return _cached({"type": "image", "source": source}, media)


def _document(file: File) -> Block:
    block: Block = {"type": "document", "source": _encode_document_source(file)}
    if file.name is not None:
        block["title"] = file.name
    return _cached(block, file)


def _cached(block: Block, media: Media) -> Block:
    if media.cache is not None:
        block["cache_control"] = encode_cache(media.cache)
    return block


def _decode_source(source: Any) -> dict[str, str] | None:
    """Where the content of a medium is, as fields of `Media`."""
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
    """As `_decode_source`; plain text becomes the bytes of a text file."""
    if not isinstance(source, dict) or source.get("type") != "text":
        return _decode_source(source)
    text, mime = source.get("data"), source.get("media_type")
    if type(text) is not str or type(mime) is not str:
        return None
    return {"data": b64encode(text.encode("utf-8", "surrogatepass")).decode("ascii"), "mime": mime}


def _encode_document_source(file: File) -> Block:
    if file.data is not None and file.mime is not None and file.mime.startswith(_TEXTUAL):
        text = _text_of(file.data)
        if text is not None:
            return {"type": "text", "media_type": _TEXT, "data": text}
    return _encode_source(file, _PDF)


def _text_of(data: str) -> str | None:
    """The text in base64; None where there is none."""
    try:
        return b64decode(data, validate=True).decode("utf-8", "surrogatepass")
    except (binascii.Error, ValueError):
        return None
