"""What users send and tools return: texts, files, citations, cache points and JSON."""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from dragoman.model.content import AnyPart
from dragoman.model.frozen import thaw
from dragoman.model.jsontext import dumps
from dragoman.model.media import Audio, File, Image, Media, Video
from dragoman.model.parts import CacheHint, Citation, Opaque, Origin, Refusal, Text
from dragoman.model.tools import ToolResult
from dragoman.wire.peers.keeping import Keeper, Writing, mapping_at, text_at
from dragoman.wire.peers.providers import origin_at, provider_of
from dragoman.wire.peers.pydantic_ai.spelling import KEEPER, NAME, with_fields

# --- images, audio, video and documents: by address, inline, or uploaded before

_URLS: dict[str, type[Media]] = {
    "image-url": Image,
    "audio-url": Audio,
    "video-url": Video,
    "document-url": File,
}
_URL_KINDS = {kind: name for name, kind in _URLS.items()}
_BY_MIME: dict[str, type[Media]] = {"image": Image, "audio": Audio, "video": Video}
_FALLBACKS: dict[type[Media], str] = {Image: "image/png", Audio: "audio/wav", Video: "video/mp4"}
_UPLOADED_TO: dict[str | None, str] = {  # ours: theirs; it takes no others
    "anthropic": "anthropic",
    "openai": "openai",
    "azure": "openai",
    "google": "google",
    "vertex": "google-cloud",
    "xai": "xai",
    "bedrock": "bedrock",
}
_SETTINGS = ("vendor_metadata",)  # the provider heeds them
_FILES = Keeper(NAME)
_SAFE = str.maketrans("-_", "+/")  # pydantic writes base64 for addresses
_KINDS = frozenset({*_URLS, "binary", "uploaded-file"})
RECORDED = frozenset({*_URLS, "uploaded-file"})
"""Kinds of files that a tool's result has to list, or they would be read as plain data."""


def decode_file(item: Any) -> Media | None:
    """The medium in an item of content; None where the item is none."""
    if not isinstance(item, Mapping):
        return None
    kind, mime = item.get("kind"), text_at(item, "media_type")
    detail = text_at(mapping_at(item, "vendor_metadata"), "detail")
    made: type[Media] = _BY_MIME.get((mime or "").partition("/")[0], File)
    part: Media | None = None
    if isinstance(kind, str) and kind in _URLS and (url := text_at(item, "url")) is not None:
        part = _URLS[kind](url=url, mime=mime, detail=detail)
    elif kind == "binary" and mime is not None and (data := _base64(item)) is not None:
        part = made(data=data, mime=mime, detail=detail)
    elif kind == "uploaded-file" and (file_id := text_at(item, "file_id")) is not None:
        origin = _uploaded_to(text_at(item, "provider_name"))
        part = made(file_id=file_id, mime=mime, detail=detail, origin=origin)
    if part is None:
        return None
    ours = _written(part, part.origin) or {}
    given = tidy(item)
    settings = {key: given.pop(key) for key in _SETTINGS if key in given}
    said = {key: ours[key] for key in _SETTINGS if key in ours}
    return _FILES.with_fields(with_fields(part, given, ours), settings, said)


def _uploaded_to(provider: str | None) -> Origin | None:
    """Where a file was uploaded to, of which nothing else need be known."""
    unknown = None if provider is None else Origin(dialect=provider, provider=provider)
    return origin_at(provider) or unknown


def _base64(item: Mapping[str, Any]) -> str | None:
    """The data of an item in the usual base64; None where it is none."""
    data = (text_at(item, "data") or "-").translate(_SAFE) if item.get("data") != "" else ""
    try:
        b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return None
    return data


def is_file(item: Any) -> bool:
    """Whether an item of content is a file."""
    return decode_file(item) is not None


def tidy(content: Any) -> Any:
    """Content with its files as we write them: without empty fields, in the usual base64."""
    if isinstance(content, list):
        return [tidy(item) for item in content]
    if not isinstance(content, Mapping) or content.get("kind") not in _KINDS:
        return content
    item = {key: content[key] for key in content if content[key] not in (None, False)}
    if isinstance(item.get("data"), str):
        item["data"] = item["data"].translate(_SAFE)
    return item


def encode_file(part: Media, origin: Origin | None, writing: Writing) -> dict[str, Any] | None:
    """The item for a medium; `origin` is the message's."""
    written = _written(part, part.origin or origin)
    if written is None:
        writing.lose("an uploaded file needs a provider that is known there")
        return None
    if part.name is not None:
        writing.lose("files have no names there", ".name")
    if isinstance(part, Audio) and part.transcript is not None:
        writing.lose("audio has no transcript there", ".transcript")
    return _FILES.put_back(KEEPER.put_back(written, part.extras), part.extras)


def _written(part: Media, origin: Origin | None) -> dict[str, Any] | None:
    item: dict[str, Any] = {}
    if part.data is not None:
        mime = part.mime or _FALLBACKS.get(type(part), "application/octet-stream")
        item = {"kind": "binary", "data": part.data, "media_type": mime}
    elif part.url is not None:
        item = {"kind": _URL_KINDS[type(part)], "url": part.url}
        if part.mime is not None:
            item["media_type"] = part.mime
    else:
        provider = _UPLOADED_TO.get(provider_of(origin))
        if provider is None:
            return None
        item = {"kind": "uploaded-file", "file_id": part.file_id, "provider_name": provider}
        if part.mime is not None:
            item["media_type"] = part.mime
    if part.detail is not None:
        item["vendor_metadata"] = {"detail": part.detail}
    return item


def digests_of(content: Any) -> list[str]:
    """What a tool's result says about the files in it, so that they are read as files again."""
    if isinstance(content, list):
        return sorted({found for item in content for found in digests_of(item)})
    if isinstance(content, Mapping) and content.get("kind") in RECORDED:
        return [digest(content)]
    return []


def digest(item: Mapping[str, Any]) -> str:
    """The digest that pydantic-ai has for a file, of the item as it is dumped."""
    import json  # as pydantic-ai does it: the digest is of these very characters

    plain = json.loads(dumps(item))
    canonical = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    return sha256(canonical.encode()).hexdigest()


# --- content

_MEDIA = (Image, Audio, Video, File)
_TEXTS = frozenset({"text-content", "structured-content"})
_CACHE = "cache-point"
_LIFETIMES = ("5m", "1h")


def decode_content(content: Any) -> list[AnyPart]:
    """The parts of what a user sent: a text, or a list of items."""
    if isinstance(content, str):
        return [Text(content)]
    parts: list[AnyPart] = []
    for item in content if isinstance(content, list) else [content]:
        if _is_cache_point(item) and parts and parts[-1].cache is None:
            ttl = text_at(item, "ttl")
            parts[-1] = replace(parts[-1], cache=CacheHint(ttl))
        else:
            parts += decode_item(item)
    return parts


def _is_cache_point(item: Any) -> bool:
    return isinstance(item, Mapping) and item.keys() == {"kind", "ttl"} and item["kind"] == _CACHE


def decode_item(item: Any) -> list[AnyPart]:
    """The part of an item of content."""
    if isinstance(item, str):
        return [Text(item)]
    media = decode_file(item)
    if media is not None:
        return [media]  # type: ignore[list-item]  # one of the four kinds
    read = _read_other(item)
    return read if isinstance(read[0], Opaque) else KEEPER.keep_whole(read, item)


def _read_other(item: Any) -> list[AnyPart]:
    is_object = isinstance(item, Mapping)
    text = text_at(item, "content") if is_object and item.get("kind") in _TEXTS else None
    return [Opaque(NAME, item) if text is None else Text(text)]


def encode_content(
    parts: Sequence[AnyPart], origin: Origin | None, writing: Writing
) -> str | list[Any]:
    """The content for these parts: a text where that is all."""
    items: list[Any] = []
    for at, part in enumerate(parts):
        writing.part = at
        items += encode_item(parts, at, origin, writing)
        if part.cache is not None:
            items.append({"kind": _CACHE, "ttl": _lifetime(part.cache, writing)})
    if len(items) == 1 and isinstance(items[0], str):
        return items[0]
    return items


def _lifetime(cache: CacheHint, writing: Writing) -> str:
    """How long to cache: there are two times to choose from."""
    ttl = cache.ttl or _LIFETIMES[0]
    if ttl in _LIFETIMES:
        return ttl
    writing.lose("a prompt is cached for 5m or 1h there", ".cache")
    return _LIFETIMES[0]


def encode_item(
    parts: Sequence[AnyPart], at: int, origin: Origin | None, writing: Writing
) -> list[Any]:
    """The items for the part at that place."""
    part = parts[at]
    whole = KEEPER.whole([replace(part, cache=None)], 0, _read_other)
    if whole is not None:
        return [whole[0]]
    if isinstance(part, Text):
        if part.citations:
            writing.lose("texts of users and tools cite nothing there", ".citations")
        return [part.text]
    if isinstance(part, _MEDIA):
        item = encode_file(part, origin, writing)
        return [] if item is None else [item]
    if isinstance(part, Opaque) and part.dialect == NAME:
        return [thaw(part.payload)]
    if isinstance(part, Refusal):
        writing.lose("a refusal is written as text there", ".type")
        return [part.text]
    writing.lose("this kind of content has no place in a message there")
    return []


# --- results of tools


def decode_result_content(content: Any, record: Any) -> dict[str, Any]:
    """The fields of a result for what a tool returned: text, text and files, or JSON.

    `record` are the digests of the files in it: data that only looks like a file is data.
    """
    if isinstance(content, str):
        return {"content": content}
    items = content if isinstance(content, list) else [content]
    if any(_is_recorded(item, record) for item in items):
        return {"content": tuple(_result_part(item) for item in items)}
    return {"data": content}


def _is_recorded(item: Any, record: Any) -> bool:
    if not is_file(item):
        return False
    return item["kind"] not in RECORDED or not isinstance(record, list) or digest(item) in record


def _result_part(item: Any) -> Any:
    if isinstance(item, str):
        return Text(item)
    file = decode_file(item)
    if file is not None:
        return file
    text = Text(dumps(item).decode("utf-8"))  # what any other model can be shown
    return KEEPER.keep_whole([text], item)[0]


def encode_result_content(result: ToolResult, origin: Origin | None, writing: Writing) -> Any:
    """What the tool returned."""
    if isinstance(result.content, str):
        is_data = result.data is not UNSET and not result.content
        return thaw(result.data) if is_data else result.content
    items: list[Any] = []
    for part in result.content:
        again = KEEPER.whole([part], 0, lambda item: [_result_part(item)])
        items += encode_item((part,), 0, origin, writing) if again is None else [again[0]]
    return items[0] if len(items) == 1 and isinstance(items[0], (str, dict)) else items


# --- citations: each has one or more sources, where ours has one

_KEPT = "pydantic-ai citation"


def decode_citations(given: Any) -> tuple[Citation, ...]:
    """A citation for each source; the first of those that belong together keeps what was given."""
    found: list[Citation] = []
    for item in given if isinstance(given, list) else ():
        if isinstance(item, Mapping):
            first, *others = _read(item)
            if _write(first) != item or others:
                kept = {":given": dict(item)}
                first = first.replace(extras={_KEPT: kept})
            found += [first, *others]
    return tuple(found)


def _read(item: Mapping[str, Any]) -> list[Citation]:
    sources, anchor = item.get("sources"), mapping_at(item, "anchor")
    start, end = anchor.get("start"), anchor.get("end")
    place: dict[str, Any] = (
        {"start": start, "end": end} if type(start) is int and type(end) is int else {}
    )
    listed = sources if isinstance(sources, list) and sources else [{}]
    return [_read_source(source, place) for source in listed if isinstance(source, Mapping)] or [
        Citation(kind="web", **place)
    ]


def _read_source(source: Mapping[str, Any], place: dict[str, Any]) -> Citation:
    excerpts = source.get("excerpts")
    quote = excerpts[0] if isinstance(excerpts, list) and excerpts else None
    return Citation(
        kind=text_at(source, "kind") or "web",
        url=text_at(source, "url"),
        title=text_at(source, "title"),
        quote=quote if isinstance(quote, str) else None,
        **place,
    )


def encode_citations(citations: Sequence[Citation]) -> tuple[list[dict[str, Any]], int]:
    """The citations, and how many could not be written."""
    written: list[dict[str, Any]] = []
    lost = at = 0
    while at < len(citations):
        kept = citations[at].extras.get(_KEPT)
        given = kept.get(":given") if isinstance(kept, Mapping) else None
        again = _read(given) if isinstance(given, Mapping) else []
        if again and again == list(citations[at : at + len(again)]):
            written.append(dict(given))  # type: ignore[arg-type]  # a mapping, or nothing were read
            at += len(again)
            continue
        item = _write(citations[at])
        written += [] if item is None else [item]
        lost += item is None
        at += 1
    return written, lost


def _write(citation: Citation) -> dict[str, Any] | None:
    """A citation of one source; None where nothing says what was cited."""
    excerpts = [] if citation.quote is None else [citation.quote]
    source: dict[str, Any] = {"title": citation.title, "excerpts": excerpts}
    if citation.url is not None:
        source = {"url": citation.url, **source, "kind": "web"}
    elif citation.title or excerpts:
        source = {"document_id": None, **source, "kind": "document"}
    else:
        return None
    start, end = citation.start, citation.end
    anchor = None
    if start is not None and end is not None and 0 <= start < end:
        anchor = {"start": start, "end": end, "kind": "content"}
    return {"sources": [source], "anchor": anchor}
