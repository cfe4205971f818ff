"""Images, sound, film and files in a message's content."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from dragoman.model.content import AnyPart
from dragoman.model.frozen import FrozenDict
from dragoman.model.media import Audio, File, Image, Media, Video, audio_mime
from dragoman.model.parts import Origin
from dragoman.wire.openai_chat.caching import decode_cache
from dragoman.wire.openai_chat.spelling import NAME, extras_of, is_object, laid, words_of
from dragoman.wire.overlay import instead
from dragoman.wire.target import Target

_FLAT = ("flat", "document_url")
"""The spellings of Mistral's."""
_SOUND = ("data", "format")
_ADDRESSES = ("http:", "https:", "gs:", "s3:", "file:")


def decode_address(url: str) -> dict[str, Any]:
    """The fields of media at an address: a base64 data URL is inline data.

    The mime type is whatever stands before `;base64`, so that writing gives the same address.
    """
    if url.startswith("data:"):
        head, comma, data = url.partition(",")
        if comma and head.endswith(";base64"):
            return {"data": data, "mime": head[5:-7]}
    return {"url": url}


def encode_address(part: Media) -> str | None:
    """The address of media, or their data as one; None for an uploaded file."""
    if part.data is None:
        return part.url
    return f"data:;base64,{part.data}" if part.mime == "" else part.data_url


def _extras(
    wire: dict[str, Any], key: str, known: Collection[str], words: tuple[str, ...] = ()
) -> dict[str, Any]:
    """The fields of a part that every kind of media shares: its cache hint, and its extras."""
    inner = wire[key]
    if len(wire) == 2 and len(inner) == len(known) and not words:  # noqa: PLR2004 - nothing else
        return {}
    cache, field = decode_cache(wire)
    taken = ("type", key, field or key)
    left = {name: value for name, value in wire.items() if name not in taken}
    if is_object(inner) and (odd := {k: v for k, v in inner.items() if k not in known}):
        left[key] = odd
    extras: FrozenDict = extras_of(left, (*words, field) if field else words)
    return {"cache": cache, "extras": extras}


def decode_image(wire: dict[str, Any], _origin: Origin | None) -> AnyPart | None:
    """An `image_url` part; None where it is malformed."""
    source = wire.get("image_url")
    if isinstance(source, str):  # Mistral takes the bare address
        return Image(**decode_address(source), **_extras(wire, "image_url", (), ("flat",)))
    if not is_object(source) or not isinstance(url := source.get("url"), str):
        return None
    detail = source.get("detail")
    if not isinstance(detail, str):
        return Image(**decode_address(url), **_extras(wire, "image_url", ("url",)))
    known = _extras(wire, "image_url", ("url", "detail"))
    return Image(**decode_address(url), detail=detail, **known)


def encode_image(part: Image) -> dict[str, Any] | None:
    """The `image_url` part; None for an uploaded image, which has no place here."""
    url = encode_address(part)
    if url is None:
        return None
    if "flat" in words_of(part.extras) and part.detail is None:
        return {"type": "image_url", "image_url": url}
    source = {"url": url} if part.detail is None else {"url": url, "detail": part.detail}
    return {"type": "image_url", "image_url": source}


def decode_audio(wire: dict[str, Any], origin: Origin | None) -> AnyPart | None:
    """An `input_audio` part; None where it is malformed."""
    source = wire.get("input_audio")
    if isinstance(source, str):  # Mistral takes base64 or an address
        extras = _extras(wire, "input_audio", (), ("flat",))
        if source.startswith(_ADDRESSES):
            return Audio(url=source, origin=origin, **extras)
        return Audio(data=source, **extras)
    if not is_object(source) or not isinstance(data := source.get("data"), str):
        return None
    form = source.get("format")
    if not isinstance(form, str):
        return Audio(data=data, **_extras(wire, "input_audio", ("data",), ("-format",)))
    part = Audio(data=data, mime=audio_mime(form), **_extras(wire, "input_audio", _SOUND))
    if part.format == form:
        return part
    theirs = instead(("input_audio", "format"), part.format, form, NAME)
    return part.replace(extras={**part.extras, **theirs})


def encode_audio(part: Audio, words: Collection[Any], *, is_own: bool) -> dict[str, Any] | None:
    """The `input_audio` part; an address goes only where it came from."""
    if part.url is not None and is_own and "flat" not in words:
        return {"type": "audio_url", "audio_url": {"url": part.url}}
    if "audio_url" in words:
        return {"type": "audio_url", "audio_url": {"url": encode_address(part)}}
    source = part.data if part.data is not None else part.url if is_own else None
    if source is None:
        return None
    if "flat" in words:
        return {"type": "input_audio", "input_audio": source}
    if "-format" in words:
        return {"type": "input_audio", "input_audio": {"data": source}}
    return {"type": "input_audio", "input_audio": {"data": source, "format": part.format}}


def decode_audio_address(wire: dict[str, Any], origin: Origin | None) -> AnyPart | None:
    """An `audio_url` part, as vLLM takes it."""
    source = wire.get("audio_url")
    if not is_object(source) or not isinstance(url := source.get("url"), str):
        return None
    extras = _extras(wire, "audio_url", ("url",), ("audio_url",))
    return Audio(**decode_address(url), origin=origin, **extras)


def decode_video(wire: dict[str, Any], origin: Origin | None) -> AnyPart | None:
    """A `video_url` part, as OpenRouter, vLLM and Qwen take it."""
    source = wire.get("video_url")
    if not is_object(source) or not isinstance(url := source.get("url"), str):
        return None
    return Video(**decode_address(url), origin=origin, **_extras(wire, "video_url", ("url",)))


def encode_video(part: Video, *, is_own: bool) -> dict[str, Any] | None:
    """The `video_url` part; OpenAI itself takes no video, so only where one came from."""
    url = encode_address(part) if is_own else None
    return None if url is None else {"type": "video_url", "video_url": {"url": url}}


def decode_file(wire: dict[str, Any], origin: Origin | None) -> AnyPart | None:
    """A `file` part; None where it is malformed."""
    source = wire.get("file")
    if not is_object(source):
        return None
    data, file_id, name = source.get("file_data"), source.get("file_id"), source.get("filename")
    key = "file_data" if isinstance(data, str) else "file_id"
    if isinstance(data, str) == isinstance(file_id, str):
        return None
    known = (key, "filename") if isinstance(name, str) else (key,)
    if not isinstance(data, str):
        fields: dict[str, Any] = {"file_id": file_id, "origin": origin}
    elif data.startswith(("data:", *_ADDRESSES)):
        fields = decode_address(data)
        if "url" in fields:
            fields["origin"] = origin
    else:
        return File(data=data, name=_text(name), **_extras(wire, "file", known, ("bare",)))
    return File(**fields, name=_text(name), **_extras(wire, "file", known))


def decode_document(wire: dict[str, Any], origin: Origin | None) -> AnyPart | None:
    """A `document_url` part, as Mistral takes it."""
    url, name = wire.get("document_url"), wire.get("document_name")
    if not isinstance(url, str):
        return None
    cache, field = decode_cache(wire)
    known = {"type", "document_url", field, "document_name" if isinstance(name, str) else ""}
    left = {k: v for k, v in wire.items() if k not in known}
    extras = extras_of(left, ("document_url", *([field] if field else [])))
    return File(**decode_address(url), name=_text(name), origin=origin, cache=cache, extras=extras)


def encode_file(part: File, words: Collection[Any], *, is_own: bool) -> dict[str, Any] | None:
    """The `file` part; an address goes only where it came from, or where documents have one."""
    if part.url is not None and not is_own and "document_url" not in words:
        return None
    if words == _FLAT and part.file_id is not None:
        return None  # uploaded elsewhere
    address = encode_address(part)
    if "document_url" in words and address is not None:
        named = {} if part.name is None else {"document_name": part.name}
        return {"type": "document_url", "document_url": address, **named}
    file: dict[str, Any] = {} if part.name is None else {"filename": part.name}
    if address is None:
        file["file_id"] = part.file_id
    else:
        is_bare = "bare" in words and part.data is not None and part.mime is None
        file["file_data"] = part.data if is_bare else address
    return {"type": "file", "file": file}


def encode_media(part: Media, target: Target, *, is_own: bool) -> dict[str, Any] | None:
    """The part for any media; None for what has no place here.

    Spellings of other hosts are kept for a target of which nobody knows what it takes.
    """
    words: Collection[Any] = _FLAT if target.has_flat_media else ()
    if target.media is None:
        words = words_of(part.extras)
    is_own = is_own and (target.media is None or target.has_flat_media)
    body: dict[str, Any] | None = None
    if isinstance(part, Image):
        body = encode_image(part)
    elif isinstance(part, Audio):
        body = encode_audio(part, words, is_own=is_own)
    elif isinstance(part, File):
        body = encode_file(part, words, is_own=is_own)
    elif isinstance(part, Video):
        body = encode_video(part, is_own=is_own)
    return None if body is None else laid(body, part.extras)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
