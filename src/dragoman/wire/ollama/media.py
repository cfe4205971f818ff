"""Media: raw base64 in the `images` of a message, of whatever role (W105).

The server looks at the first bytes and takes sound (wav, mp3) there as well.
"""

from __future__ import annotations

from typing import Any

from dragoman.model.content import AnyPart
from dragoman.model.media import Audio, Image, Media, sniff_base64, split_data_url
from dragoman.wire.ollama.exchange import Outgoing
from dragoman.wire.ollama.spelling import NAME, OWN, is_list, is_own, kept
from dragoman.wire.overlay import overlay

_SOUNDS = frozenset({"audio/wav", "audio/mpeg"})
_UNSEEN = "neither files nor films can be sent here"
_UNKNOWN = "what only another dialect understands is left out"
_FROM_URL_SAFE = str.maketrans("-_", "+/", "\r\n")


def decode_images(wire: Any) -> list[Image | Audio] | None:
    """The media in `images`; None where they are malformed, and stay in the extras."""
    if not is_list(wire) or not wire or not all(isinstance(item, str) for item in wire):
        return None
    return [_decode_image(item) for item in wire]


def _decode_image(text: str) -> Image | Audio:
    if text.startswith("data:"):  # refused by the server; what was meant is clear
        mime, data = split_data_url(text)
        if data and text.endswith(data):
            return Image(data=data, mime=mime, extras=kept({"type": text[: -len(data)]}, ()))
    if text.startswith(("http://", "https://")):
        return Image(url=text, origin=OWN)
    mime = sniff_base64(text)
    return Audio(data=text, mime=mime) if mime in _SOUNDS else Image(data=text, mime=mime)


def encode_image(part: AnyPart, out: Outgoing, path: str) -> str | None:
    """The base64 of a picture or a sound; None, and a loss, where it can't be sent."""
    if out.takes_anything and (text := _as_it_came(part)) is not None:
        return text
    problem = _problem(part)
    if problem is not None or not isinstance(part, Media) or part.data is None:
        out.lose(path, problem or _UNKNOWN)
        return None
    out.lose_luggage(part, path)
    if part.detail is not None:
        out.lose(f"{path}.detail", "how closely to look at an image can't be said")
    return _standard(part.data)


def _as_it_came(part: AnyPart) -> str | None:
    """What stood in `images`, of a part that came in this dialect."""
    if not isinstance(part, (Image, Audio)) or part.data is None:
        return part.url if isinstance(part, Image) and is_own(part.origin) else None
    prefix = overlay(part.extras, NAME).get("type")
    return f"{prefix}{part.data}" if isinstance(prefix, str) else part.data


def _problem(part: AnyPart) -> str | None:
    """Why a part can't stand among the images."""
    if not isinstance(part, (Image, Audio)):
        return _UNSEEN if isinstance(part, Media) else _UNKNOWN
    if part.data is None:
        return "media can be sent inline only (W105)"
    if isinstance(part, Audio) and not _is_heard(part, part.data):
        return "only wav and mp3 can be heard here"
    return None


def _is_heard(part: Audio, data: str) -> bool:
    """Whether the server knows the sound, by its bytes or at least by its name."""
    return sniff_base64(data) in _SOUNDS or part.format in ("wav", "mp3")


def _standard(data: str) -> str:
    """Base64 as the server's decoder takes it: the standard alphabet, and padded."""
    if "-" in data or "_" in data:
        data = data.translate(_FROM_URL_SAFE)
    missing = -len(data) % 4
    return data + "=" * missing if missing and data.isascii() and "\n" not in data else data
