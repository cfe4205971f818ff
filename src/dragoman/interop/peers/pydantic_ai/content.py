"""Content of user prompts and tool results: texts, files, citations, cache points and JSON."""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, TypeVar

from msgspec import UNSET
from msgspec.structs import replace

from dragoman.interop.peers.kept_fields import Keeper, Writing, mapping_at, text_at
from dragoman.interop.peers.providers import origin_at, provider_of
from dragoman.model.content import AnyPart
from dragoman.model.frozen import thaw
from dragoman.model.jsontext import dumps
from dragoman.model.media import Audio, File, Image, Media, Video
from dragoman.model.parts import CacheHint, Citation, Opaque, Origin, Part, Refusal, Text
from dragoman.model.tools import ToolResult
from dragoman.wire.overlay import overlay_of

P = TypeVar("P", bound=Part)

NAME = "pydantic-ai"
KEEPER = Keeper(f"{NAME} facts")
"""For pydantic-ai's metadata of messages and parts."""
# A dump has every field of an object. Those with default values are not kept.
_DEFAULTS: dict[str, Any] = {
    "scope": "conversation",
    "state": "complete",
    "force_download": False,
    "outcome": "success",
    "kind": None,
}


def significant(given: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a dump, without defaults that we would not write."""
    return {
        key: item
        for key, item in given.items()
        if key in ours or (item is not None and _DEFAULTS.get(key, ...) != item)
    }


def fields_kept(given: Mapping[str, Any], ours: Mapping[str, Any]) -> Mapping[str, Any]:
    """The fields of an object that we would not write, as extras."""
    return overlay_of(significant(given, ours), (), KEEPER.name, ours, notes_absent=False)


def with_fields(part: P, given: Mapping[str, Any], ours: Mapping[str, Any]) -> P:
    """The part with those fields of its object that we would not write."""
    return KEEPER.with_fields(part, significant(given, ours), ours)


def decode_time(text: Any) -> float | None:
    """A time in seconds; None if it is invalid."""
    if not isinstance(text, str):
        return None
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def encode_time(seconds: float) -> str | None:
    """A time as text, in UTC; None if it is out of range."""
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        return None


# --- images, audio, video and documents: by URL, inline, or uploaded

_URLS: dict[str, type[Media]] = {
    "image-url": Image,
    "audio-url": Audio,
    "video-url": Video,
    "document-url": File,
}
_URL_KINDS = {kind: name for name, kind in _URLS.items()}
_BY_MIME: dict[str, type[Media]] = {"image": Image, "audio": Audio, "video": Video}
_FALLBACKS: dict[type[Media], str] = {Image: "image/png", Audio: "audio/wav", Video: "video/mp4"}
_UPLOADED_TO: dict[str | None, str] = {  # our names to theirs; no others are supported
    "anthropic": "anthropic",
    "openai": "openai",
    "azure": "openai",
    "google": "google",
    "vertex": "google-cloud",
    "xai": "xai",
    "bedrock": "bedrock",
}
_SETTINGS = ("vendor_metadata",)  # these affect the provider
_FILES = Keeper(NAME)
_SAFE = str.maketrans("-_", "+/")  # pydantic writes URL-safe base64
_KINDS = frozenset({*_URLS, "binary", "uploaded-file"})
RECORDED = frozenset({*_URLS, "uploaded-file"})
"""Kinds of files that a tool's result must list, or they would be read as plain data."""


def decode_file(item: Any) -> Media | None:
    """The media in an item of content; None if it is no media."""
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
    """The origin that identifies where a file was uploaded to."""
    unknown = None if provider is None else Origin(dialect=provider, provider=provider)
    return origin_at(provider) or unknown


def _base64(item: Mapping[str, Any]) -> str | None:
    """The data of an item in standard base64; None if it is invalid."""
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
    """Content with its files as we write them: without empty fields, in standard base64."""
    if isinstance(content, list):
        return [tidy(item) for item in content]
    if not isinstance(content, Mapping) or content.get("kind") not in _KINDS:
        return content
    item = {key: content[key] for key in content if content[key] not in (None, False)}
    if isinstance(item.get("data"), str):
        item["data"] = item["data"].translate(_SAFE)
    return item


def encode_file(part: Media, origin: Origin | None, writing: Writing) -> dict[str, Any] | None:
    """The item for media; `origin` is the message's."""
    written = _written(part, part.origin or origin)
    if written is None:
        writing.lose("an uploaded file needs a provider that pydantic-ai supports")
        return None
    if part.name is not None:
        writing.lose("pydantic-ai files have no names", ".name")
    if isinstance(part, Audio) and part.transcript is not None:
        writing.lose("pydantic-ai audio has no transcript", ".transcript")
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
    """The digests that a tool result lists for its files, so that they are read as files again."""
    if isinstance(content, list):
        return sorted({found for item in content for found in digests_of(item)})
    if isinstance(content, Mapping) and content.get("kind") in RECORDED:
        return [digest(content)]
    return []


def digest(item: Mapping[str, Any]) -> str:
    """pydantic-ai's digest of a file, from the item as it is dumped."""
    import json  # as in pydantic-ai: the digest depends on the exact characters

    plain = json.loads(dumps(item))
    canonical = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    return sha256(canonical.encode()).hexdigest()


# --- content

_MEDIA = (Image, Audio, Video, File)
_TEXTS = frozenset({"text-content", "structured-content"})
_CACHE = "cache-point"
_LIFETIMES = ("5m", "1h")


def decode_content(content: Any) -> list[AnyPart]:
    """The parts of a user prompt: a text, or a list of items."""
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
    """The part for an item of content."""
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
    """The content for these parts: a plain text if possible."""
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
    """The cache lifetime, limited to the two that are supported."""
    ttl = cache.ttl or _LIFETIMES[0]
    if ttl in _LIFETIMES:
        return ttl
    writing.lose("pydantic-ai supports cache lifetimes of 5m and 1h only", ".cache")
    return _LIFETIMES[0]


def encode_item(
    parts: Sequence[AnyPart], at: int, origin: Origin | None, writing: Writing
) -> list[Any]:
    """The items for the part at that index."""
    part = parts[at]
    whole = KEEPER.whole([replace(part, cache=None)], 0, _read_other)
    if whole is not None:
        return [whole[0]]
    if isinstance(part, Text):
        if part.citations:
            writing.lose("only texts of responses can have citations in pydantic-ai", ".citations")
        return [part.text]
    if isinstance(part, _MEDIA):
        item = encode_file(part, origin, writing)
        return [] if item is None else [item]
    if isinstance(part, Opaque) and part.dialect == NAME:
        return [thaw(part.payload)]
    if isinstance(part, Refusal):
        writing.lose("a refusal is written as text", ".type")
        return [part.text]
    writing.lose("this kind of content is not supported in pydantic-ai messages")
    return []


# --- tool results


def decode_result_content(content: Any, record: Any) -> dict[str, Any]:
    """The fields of a result for a tool's return value: text, text and files, or JSON.

    `record` has the digests of the files in it: data that merely looks like a file is data.
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
    text = Text(dumps(item).decode("utf-8"))  # readable by any model
    return KEEPER.keep_whole([text], item)[0]


def encode_result_content(result: ToolResult, origin: Origin | None, writing: Writing) -> Any:
    """The tool's return value."""
    if isinstance(result.content, str):
        is_data = result.data is not UNSET and not result.content
        return thaw(result.data) if is_data else result.content
    items: list[Any] = []
    for part in result.content:
        again = KEEPER.whole([part], 0, lambda item: [_result_part(item)])
        items += encode_item((part,), 0, origin, writing) if again is None else [again[0]]
    return items[0] if len(items) == 1 and isinstance(items[0], (str, dict)) else items


# --- citations: theirs have one or more sources, ours have one

_KEPT = "pydantic-ai citation"


def decode_citations(given: Any) -> tuple[Citation, ...]:
    """A citation for each source; the first of a group keeps the original."""
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
    """A citation with one source; None if it names no source."""
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
