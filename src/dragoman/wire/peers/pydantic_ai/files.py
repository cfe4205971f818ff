"""Images, audio, video and documents: by address, inline, or uploaded before."""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from dragoman.model.jsontext import dumps
from dragoman.model.media import Audio, File, Image, Media, Video
from dragoman.model.parts import Origin
from dragoman.wire.peers.keeping import Keeper, Writing
from dragoman.wire.peers.providers import origin_at, provider_of
from dragoman.wire.peers.pydantic_ai.spelling import (
    KEEPER,
    NAME,
    mapping_at,
    text_at,
    with_fields,
)

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
