"""The parts of a message's content."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY
from dragoman.model.media import Media
from dragoman.model.parts import Opaque, Origin, Refusal, Text
from dragoman.wire.openai_chat.caching import decode_cache, encode_cache
from dragoman.wire.openai_chat.exchange import Outgoing
from dragoman.wire.openai_chat.media import (
    decode_audio,
    decode_audio_address,
    decode_document,
    decode_file,
    decode_image,
    decode_video,
    encode_media,
)
from dragoman.wire.openai_chat.spelling import NAME, is_object, laid, left_over
from dragoman.wire.openai_chat.thinking import decode_thinking
from dragoman.wire.tolerance import bare_text


def decode_parts(items: list[Any], origin: Origin | None) -> list[AnyPart]:
    """The parts of a content list. What is unknown or malformed is carried whole."""
    parts: list[AnyPart] = []
    for item in items:
        if is_object(item) and item.get("type") == "text" and isinstance(item.get("text"), str):
            # Most parts are this, with nothing else.
            parts.append(Text(item["text"]) if len(item) == 2 else _decode_text(item, origin))  # noqa: PLR2004
        elif is_object(item) and item.get("type") == "thinking":
            parts.extend(decode_thinking(item, origin) or [Opaque(NAME, item, origin=origin)])
        else:
            parts.append(decode_part(item, origin))
    return parts


def decode_part(item: Any, origin: Origin | None) -> AnyPart:
    """A part that is neither text nor thinking."""
    if isinstance(item, str):
        return bare_text(item, {"type": "text", "text": item}, NAME)
    kind = item.get("type") if is_object(item) else None
    decode = _DECODERS.get(kind) if isinstance(kind, str) else None
    part = decode(item, origin) if decode is not None else None
    return Opaque(NAME, item, origin=origin) if part is None else part


def encode_part(part: AnyPart, out: Outgoing, path: str, origin: Origin | None = None) -> list[Any]:
    """The content part, in a list; empty, and a loss, for what has no place in content."""
    if type(part) is Text:
        return [_encode_text(part, out, path)]
    if isinstance(part, Opaque) and part.dialect == NAME:
        return [part.payload]
    is_own = out.sees_as_own(part, origin)
    body: dict[str, Any] | None = None
    if isinstance(part, Media):
        body = encode_media(part, out.target, is_own=is_own)
        if body is not None and part.cache is not None:
            encode_cache(body, part, out, path)
    elif isinstance(part, Refusal):
        body = laid({"type": "refusal", "refusal": part.text}, part.extras)
    if body is None:
        out.lose_part(part, path)
        return []
    return [body]


def is_bare(part: Text) -> bool:
    """Whether there is nothing beside the text."""
    return part.extras is EMPTY and part.cache is None and not part.citations


def lose_citations(part: AnyPart, out: Outgoing, path: str) -> None:
    """Note the citations of a text that is not the model's."""
    if type(part) is Text and part.citations:
        out.lose(f"{path}.citations", "only the model cites here")


def _decode_text(item: dict[str, Any], origin: Origin | None) -> Text:
    cache, field = decode_cache(item)
    if cache is None:
        return Text(item["text"], extras=left_over(item, ("type", "text")))
    extras = left_over(item, ("type", "text", field), (field,))
    return Text(item["text"], cache=cache, origin=origin, extras=extras)


def _encode_text(part: Text, out: Outgoing, path: str) -> dict[str, Any]:
    body: dict[str, Any] = {"type": "text", "text": part.text}
    if part.cache is not None:
        encode_cache(body, part, out, path)
    return body if part.extras is EMPTY else laid(body, part.extras)


def _decode_refusal(item: dict[str, Any], _origin: Origin | None) -> AnyPart | None:
    text = item.get("refusal")
    if not isinstance(text, str):
        return None
    return Refusal(text, extras=left_over(item, ("type", "refusal"), ("content",)))


def encode_content(items: list[Any]) -> str | list[Any]:
    """Content as the wire has it: one plain text is a string (the normal form)."""
    if len(items) == 1:
        only = items[0]
        # An opaque payload is frozen and stays as it is, whatever it looks like.
        if type(only) is dict and len(only) == 2 and only.get("type") == "text":  # noqa: PLR2004
            text: str = only["text"]
            return text
    return items


_DECODERS: Mapping[str, Callable[[dict[str, Any], Origin | None], AnyPart | None]] = {
    "image_url": decode_image,
    "input_audio": decode_audio,
    "audio_url": decode_audio_address,
    "video_url": decode_video,
    "file": decode_file,
    "document_url": decode_document,
    "refusal": _decode_refusal,
}
