"""Random images, audio and files in each dialect's form, usual and unusual."""

from __future__ import annotations

import random
from base64 import b64encode, urlsafe_b64encode
from typing import Any

Part = dict[str, Any]

_BYTES = (
    b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe0", b"GIF89a", b"RIFF\0\0\0\0WEBP", b"RIFF\0\0\0\0WAVE",
    b"ID3\4", b"%PDF-1.7", b"\0\0\0 ftypisom", b"PK\3\4", b"A text.", b"\xff", "é✓".encode(),
)  # fmt: skip
_ODD_DATA = ("", "A", "QUI", "QU==I", "QU J", "-_-_", "QUJD\n", "QUJD====", "é", "QU=A", '"\\')
_TYPES = (
    "image/png", "image/png", "image/jpeg", "image/webp", "image/svg+xml", "image/heic",
    "application/pdf", "text/plain", "text/csv", "application/json", "audio/wav", "audio/mpeg",
    "video/mp4", "", "x", "IMAGE/PNG", "image/png;charset=utf-8",
)  # fmt: skip
_LINKS = (
    "https://example.com/x.png", 'http://example.com/é?"x"', "https://youtu.be/x",
    "https://generativelanguage.googleapis.com/v1beta/files/x", "https://", "gs://b/x", "ftp://x",
    "x", "data:,x", "data:image/png,x", "data:text/plain;base64,QUJD", "DATA:image/png;base64,QUJD",
)  # fmt: skip
_NAMES = ("x.pdf", "x.txt", 'é"✓.docx', "")


def _data(rng: random.Random) -> str:
    if rng.random() < 0.1:
        return rng.choice(_ODD_DATA)
    encode = urlsafe_b64encode if rng.random() < 0.15 else b64encode
    return encode(rng.choice(_BYTES) + rng.randbytes(rng.randint(0, 60))).decode()


def _address(rng: random.Random) -> str:
    if rng.random() < 0.3:
        return rng.choice(_LINKS)
    return f"data:{rng.choice(_TYPES)};base64,{_data(rng)}"


def _some(rng: random.Random, **fields: Any) -> Part:
    """Some of the fields, or none."""
    return {name: value for name, value in fields.items() if rng.random() < 0.3}


def attached(dialect: str, rng: random.Random) -> Part:
    """A random image, audio or file."""
    part: Part = _ATTACHED[dialect](rng)
    if rng.random() < 0.03:
        part[rng.choice(("odd", "cache_control", "thought"))] = rng.choice((None, 1, {}))
    return part


def _chat(rng: random.Random) -> Part:
    detail = _some(rng, detail=rng.choice(("auto", "low", "high", "odd", None)))
    named = _some(rng, filename=rng.choice(_NAMES))
    sound = {"data": _data(rng), "format": rng.choice(("wav", "mp3", "odd"))}
    picture = {"type": "image_url", "image_url": {"url": _address(rng), **detail}}
    return rng.choice(
        (
            picture,
            picture,
            {"type": "image_url", "image_url": _address(rng)},
            {"type": "input_audio", "input_audio": sound},
            {"type": "input_audio", "input_audio": rng.choice((_data(rng), _address(rng)))},
            {"type": "video_url", "video_url": {"url": _address(rng)}},
            {"type": "file", "file": {"file_data": _address(rng), **named}},
            {"type": "file", "file": {"file_data": _data(rng), **named}},
            {"type": "file", "file": {"file_id": "file-1"}},
            {
                "type": "document_url",
                "document_url": _address(rng),
                **_some(rng, document_name="x"),
            },
        )
    )


def _anthropic(rng: random.Random) -> Part:
    source: Part = {"type": "base64", "media_type": rng.choice(_TYPES), "data": _data(rng)}
    if rng.random() < 0.3:
        source = rng.choice(
            (
                {"type": "url", "url": rng.choice(_LINKS)},
                {"type": "text", "media_type": "text/plain", "data": "A text."},
                {"type": "file", "file_id": "file_1"},
            )
        )
    if rng.random() < 0.6:
        return {"type": "image", "source": source}
    told = _some(
        rng, title=rng.choice(_NAMES), context="c", citations=rng.choice(({"enabled": True}, None))
    )
    return {"type": "document", "source": source, **told}


def _gemini(rng: random.Random) -> Part:
    named = _some(rng, displayName=rng.choice(_NAMES))
    if rng.random() < 0.7:
        blob = {"mimeType": rng.choice(_TYPES), "data": _data(rng), **named}
        return {"inlineData": blob, **_some(rng, mediaResolution={"level": "MEDIA_RESOLUTION_LOW"})}
    link = {"fileUri": rng.choice(_LINKS), **_some(rng, mimeType=rng.choice(_TYPES)), **named}
    return {"fileData": link}


def _responses(rng: random.Random) -> Part:
    if rng.random() < 0.6:
        detail = _some(rng, detail=rng.choice(("auto", "auto", "low", "original", None)))
        return {"type": "input_image", "image_url": _address(rng), **detail}
    named = _some(rng, filename=rng.choice(_NAMES))
    where = rng.choice(({"file_data": _address(rng)}, {"file_data": _data(rng)},
                        {"file_url": rng.choice(_LINKS)}, {"file_id": "file-1"}))  # fmt: skip
    return {"type": "input_file", **where, **named}


_ATTACHED = {
    "anthropic": _anthropic,
    "gemini": _gemini,
    "openai-chat": _chat,
    "openai-responses": _responses,
}
