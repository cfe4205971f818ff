"""Images, audio, video and files as standard content blocks, and as older ones have them.

`{"type": "image", "base64": …, "mime_type": …}`; before version 1, `source_type` told which field
holds the data.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import Any

from dragoman.model.media import Audio, File, Image, Media, Video

_KINDS: dict[str, type[Image | Audio | Video | File]] = {
    "image": Image,
    "audio": Audio,
    "video": Video,
    "file": File,
    "text-plain": File,
}
_NAMES: dict[type[Media], str] = {Image: "image", Audio: "audio", Video: "video", File: "file"}
_SOURCES = {"base64": "data", "url": "url", "id": "id"}


def decode_media(block: Mapping[str, Any]) -> Image | Audio | Video | File | None:
    """The medium in a standard block; None where the block is another."""
    kind = block.get("type")
    made = _KINDS.get(kind) if isinstance(kind, str) else None
    if made is None:
        return None
    source = _source(block)
    if source is None:
        return None
    mime, extras = block.get("mime_type"), block.get("extras")
    about = extras if isinstance(extras, Mapping) else {}
    fields = {"mime": mime, "name": about.get("filename"), "detail": about.get("detail")}
    if made is Audio:
        fields["transcript"] = about.get("transcript")
    texts: dict[str, Any] = {key: text for key, text in fields.items() if isinstance(text, str)}
    return made(**source, **texts)


def _source(block: Mapping[str, Any]) -> dict[str, Any] | None:
    old = block.get("source_type")
    if isinstance(old, str):
        found = block.get(_SOURCES.get(old, old))
        key = {"base64": "data", "url": "url", "id": "file_id"}.get(old)
        return {key: found} if key is not None and isinstance(found, str) else None
    if block.get("type") == "text-plain" and isinstance(text := block.get("text"), str):
        return {"data": b64encode(text.encode("utf-8", "surrogatepass")).decode("ascii")}
    given = {"data": block.get("base64"), "url": block.get("url"), "file_id": block.get("file_id")}
    texts = {key: text for key, text in given.items() if isinstance(text, str)}
    return texts if len(texts) == 1 else None


def encode_media(part: Media) -> dict[str, Any]:
    """The standard block for a medium."""
    block: dict[str, Any] = {"type": _NAMES[type(part)]}
    sources = {"base64": part.data, "url": part.url, "file_id": part.file_id}
    block.update({key: text for key, text in sources.items() if text is not None})
    if part.mime is not None:
        block["mime_type"] = part.mime
    about = {"filename": part.name, "detail": part.detail}
    if isinstance(part, Audio):
        about["transcript"] = part.transcript
    extras = {key: text for key, text in about.items() if text is not None}
    if extras:
        block["extras"] = extras
    return block
