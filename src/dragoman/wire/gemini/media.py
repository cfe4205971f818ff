"""Media: inline as base64 (`inlineData`) or by address (`fileData`)."""

from __future__ import annotations

from typing import Any

from dragoman.model.media import Audio, File, Image, Media, Video
from dragoman.model.parts import Origin
from dragoman.wire.call_ids import CallIds
from dragoman.wire.gemini.trace import Trace, is_object, snake_names

AnyMedia = Image | Audio | Video | File

_NAMES = snake_names("mimeType", "fileUri", "displayName")
_TYPES: dict[str, type[AnyMedia]] = {"image": Image, "audio": Audio, "video": Video}
_FALLBACK_MIMES: dict[type[Media], str] = {
    Image: "image/png",
    Audio: "audio/wav",
    Video: "video/mp4",
}
_RESOLUTIONS = {
    "MEDIA_RESOLUTION_LOW": "low",
    "MEDIA_RESOLUTION_MEDIUM": "medium",
    "MEDIA_RESOLUTION_HIGH": "high",
    "MEDIA_RESOLUTION_ULTRA_HIGH": "ultra_high",
}
_RESOLUTION_OF = {detail: level for level, detail in _RESOLUTIONS.items()}


def decode_media(
    fields: dict[str, Any], trace: Trace, _calls: CallIds, origin: Origin | None
) -> AnyMedia | None:
    """The medium in a part; None where it is malformed."""
    kind = "inlineData" if fields.get("inlineData") is not None else "fileData"
    if not is_object(fields[kind]):
        return None
    blob = trace.camel(fields[kind], _NAMES, f"{kind}.")
    source, field = ("data", "data") if kind == "inlineData" else ("fileUri", "url")
    if type(blob.get(source)) is not str:
        return None
    content = {field: blob[source], **_described(blob)}
    taken = [kind]
    if (detail := _decode_resolution(fields.get("mediaResolution"))) is not None:
        content["detail"] = detail
        taken.append("mediaResolution")
    part = _media_type(content.get("mime"), is_video="videoMetadata" in fields)(**content)
    trace.compare(blob, _encode_blob(part)[kind], kind)
    signature = trace.leave(fields, *taken)
    if signature is not None:
        part = part.replace(signature=signature, origin=origin)
    extras = trace.extras()
    return part.replace(extras=extras) if extras else part


_UNWRITTEN = "the words that were spoken are left out: only the sound is sent"


def encode_media(part: AnyMedia) -> tuple[dict[str, Any] | None, str | None]:
    """The data field of a medium, or None; and what was lost."""
    if part.file_id is not None and not part.file_id.startswith("files/"):
        return None, "a file that was uploaded to another provider"
    body = _encode_blob(part)
    level = _RESOLUTION_OF.get(part.detail) if part.detail is not None else None
    if level is not None:
        body["mediaResolution"] = {"level": level}
    elif part.detail not in {None, "auto"} and isinstance(part, Image):
        return body, "how closely to look can't be said in these words"
    return body, _UNWRITTEN if isinstance(part, Audio) and part.transcript else None


def _encode_blob(part: AnyMedia) -> dict[str, Any]:
    described = {"mimeType": part.mime, "displayName": part.name}
    blob = {key: value for key, value in described.items() if value is not None}
    if part.data is None:
        blob["fileUri"] = part.url if part.url is not None else _file_uri(part.file_id or "")
        return {"fileData": blob}
    blob["data"] = part.data
    blob.setdefault("mimeType", _FALLBACK_MIMES.get(type(part), "application/octet-stream"))
    return {"inlineData": blob}


def _described(blob: dict[str, Any]) -> dict[str, Any]:
    named = {"mime": blob.get("mimeType"), "name": blob.get("displayName")}
    return {field: value for field, value in named.items() if type(value) is str}


def _decode_resolution(wire: Any) -> str | None:
    if not is_object(wire) or len(wire) != 1 or type(level := wire.get("level")) is not str:
        return None
    return _RESOLUTIONS.get(level)


def _media_type(mime: str | None, *, is_video: bool) -> type[AnyMedia]:
    if mime is None:
        return Video if is_video else File
    return _TYPES.get(mime.partition("/")[0], File)


def _file_uri(file_id: str) -> str:
    return f"https://generativelanguage.googleapis.com/v1beta/{file_id}"
