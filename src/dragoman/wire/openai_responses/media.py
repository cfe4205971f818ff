"""Images, files and sound: a data URL, an address, or an uploaded file's id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.model.frozen import EMPTY
from dragoman.model.media import Audio, File, Image, audio_mime
from dragoman.wire.openai_responses.caching import decode_cache, encode_cache
from dragoman.wire.openai_responses.forms import ORIGIN, decode_form, encode_form, formed

_DATA, _BASE64 = "data:", ";base64"
_UNNAMED = {"filename": "file"}
_AUTO = {"detail": "auto"}  # the types want one


def _split(url: str) -> tuple[str | None, str | None]:
    """Mime type and base64 of a data URL that we would write in the same way, else nothing."""
    if not url.startswith(_DATA):
        return None, None
    header, comma, data = url.partition(",")
    mime = header[len(_DATA) : -len(_BASE64)]
    if not comma or not header.endswith(_BASE64) or not mime or ";" in mime:
        return None, None
    return mime, data


def _without(wire: dict[str, Any], *known: str) -> dict[str, Any]:
    return {key: wire[key] for key in wire if key not in known}


def _taken(optional: dict[str, Any], key: str) -> str | None:
    return optional.pop(key) if type(optional.get(key)) is str else None


def _source(wire: dict[str, Any], *keys: str) -> str | None:
    """The one of these keys that holds a text; None where several do, or something else does."""
    given = [key for key in keys if wire.get(key) is not None]
    return given[0] if len(given) == 1 and type(wire[given[0]]) is str else None


def decode_image(wire: dict[str, Any], item_id: str | None) -> Image | None:
    """An `input_image` part; None where it names no image, or several."""
    source = _source(wire, "image_url", "file_id")
    if source is None:
        return None
    mime, data = _split(wire[source]) if source == "image_url" else (None, None)
    optional = _without(wire, "type", source)
    detail = _taken(optional, "detail")
    return Image(
        data=data,
        url=wire[source] if source == "image_url" and data is None else None,
        file_id=wire[source] if source == "file_id" else None,
        origin=ORIGIN if source == "file_id" else None,
        mime=mime,
        detail=detail,
        item_id=item_id,
        cache=decode_cache(optional),
        extras=decode_form(optional, _AUTO if detail is None else EMPTY),
    )


def encode_image(image: Image) -> dict[str, Any]:
    """The `input_image` part of an image."""
    body: dict[str, Any] = {"type": "input_image"}
    if image.file_id is not None:
        body["file_id"] = image.file_id
    else:
        body["image_url"] = image.data_url
    if image.detail is not None:
        body["detail"] = image.detail
    formed(body, image.extras, _AUTO if image.detail is None else EMPTY)
    return encode_cache(image, body)


def decode_file(wire: dict[str, Any], item_id: str | None) -> File | None:
    """An `input_file` part; None where it names no file, or several."""
    source = _source(wire, "file_data", "file_url", "file_id")
    if source is None:
        return None
    mime, data = _split(wire[source]) if source == "file_data" else (None, None)
    if source == "file_data" and data is None:
        if wire[source].startswith(_DATA):
            return None
        data = wire[source]  # base64 without a header
    optional = _without(wire, "type", source)
    name, detail = _taken(optional, "filename"), _taken(optional, "detail")
    return File(
        data=data,
        url=wire[source] if source == "file_url" else None,
        file_id=wire[source] if source == "file_id" else None,
        origin=ORIGIN if source == "file_id" else None,
        mime=mime,
        name=name,
        detail=detail,
        item_id=item_id,
        cache=decode_cache(optional),
        extras=decode_form(optional, _usual(data, name)),
    )


def encode_file(file: File) -> dict[str, Any]:
    """The `input_file` part of a file; inline data needs a name."""
    body: dict[str, Any] = {"type": "input_file"}
    if file.file_id is not None:
        body["file_id"] = file.file_id
    elif file.url is not None:
        body["file_url"] = file.url
    else:
        body["file_data"] = file.data if file.mime is None else file.data_url
    if file.name is not None:
        body["filename"] = file.name
    if file.detail is not None:
        body["detail"] = file.detail
    formed(body, file.extras, _usual(file.data, file.name))
    return encode_cache(file, body)


def _usual(data: str | None, name: str | None) -> Mapping[str, Any]:
    return _UNNAMED if data is not None and name is None else EMPTY


def decode_audio(wire: dict[str, Any], item_id: str | None) -> Audio | None:
    """An `input_audio` part; None where its sound or its format can't be told."""
    inner = wire.get("input_audio")
    if not isinstance(inner, dict) or inner.keys() != {"data", "format"}:
        return None
    data, audio_format = inner["data"], inner["format"]
    if type(data) is not str or type(audio_format) is not str:
        return None
    optional = _without(wire, "type", "input_audio")
    extras = decode_form(optional, EMPTY)
    audio = Audio(data=data, mime=audio_mime(audio_format), item_id=item_id, extras=extras)
    return audio if audio.format == audio_format else None


def encode_audio(audio: Audio) -> dict[str, Any]:
    """The `input_audio` part of sound."""
    inner = {"data": audio.data, "format": audio.format}
    return {"type": "input_audio", "input_audio": inner, **encode_form(audio.extras, EMPTY)}
