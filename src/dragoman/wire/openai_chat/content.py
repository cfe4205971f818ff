"""Message content: text, media, citations and cache hints."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY, FrozenDict
from dragoman.model.media import Audio, File, Image, Media, Video, audio_mime
from dragoman.model.parts import CacheHint, Citation, Opaque, Origin, Part, Refusal, Text
from dragoman.model.tools import ToolDefinition
from dragoman.wire.json_values import is_integer, is_list, is_object
from dragoman.wire.openai_chat.content_thinking import decode_thinking
from dragoman.wire.openai_chat.dialect import NAME, ChatWriting, is_own
from dragoman.wire.overlay import (
    extras_of,
    overlay_of,
    with_guesses,
    with_overlay,
    with_word,
    words_of,
)
from dragoman.wire.target import Target
from dragoman.wire.tolerance import bare_text, with_original
from dragoman.wire.writing import Writing

# --- cache hints on parts and tools: OpenAI's breakpoints, and Anthropic's format in routers (C4)

_SPELLINGS = {
    "cache_control": ("type", "ephemeral"),
    "prompt_cache_breakpoint": ("mode", "explicit"),
}


def decode_cache(wire: dict[str, Any]) -> tuple[CacheHint | None, str]:
    """Decode the cache hint of an object; also returns its field, or an empty string."""
    for field, (key, value) in _SPELLINGS.items():
        hint = wire.get(field)
        if is_object(hint) and hint.get(key) == value:
            ttl = hint.get("ttl")
            if len(hint) == 1 or (len(hint) == 2 and isinstance(ttl, str)):  # noqa: PLR2004
                return CacheHint(ttl), field
    return None, ""


def encode_cache(
    body: dict[str, Any], item: Part | ToolDefinition, writing: Writing, path: str
) -> None:
    """Write a hint in its original field; hints of other dialects are left out."""
    if item.cache is None:
        return
    words = words_of(item.extras, NAME)
    field = writing.target.cache.field or next(
        (field for field in _SPELLINGS if field in words), None
    )
    if field is None and isinstance(item, Part) and is_own(item.origin):
        field = "prompt_cache_breakpoint"
    if field is None:
        writing.lose(f"{path}.cache", "cache hints are not supported: prompt caching is automatic")
        return
    key, value = _SPELLINGS[field]
    body[field] = {key: value} if item.cache.ttl is None else {key: value, "ttl": item.cache.ttl}


# --- images, audio, video and files

_FLAT = ("flat", "document_url")
"""Overlay words for Mistral's formats."""
_AUDIO_FIELDS = ("data", "format")
_ADDRESSES = ("http:", "https:", "gs:", "s3:", "file:")


def decode_address(url: str) -> dict[str, Any]:
    """The `Media` fields for a URL: a base64 data URL becomes inline data.

    The MIME type is everything before `;base64`, so that encoding restores the same URL.
    """
    if url.startswith("data:"):
        head, comma, data = url.partition(",")
        if comma and head.endswith(";base64"):
            return {"data": data, "mime": head[5:-7]}
    return {"url": url}


def encode_address(part: Media) -> str | None:
    """The URL of media, or a data URL; None for an uploaded file."""
    if part.data is None:
        return part.url
    return f"data:;base64,{part.data}" if part.mime == "" else part.data_url


def _extras(
    wire: dict[str, Any], key: str, known: Collection[str], words: tuple[str, ...] = ()
) -> dict[str, Any]:
    """The `Part` fields that all media share: cache hint and extras."""
    inner = wire[key]
    if len(wire) == 2 and len(inner) == len(known) and not words:  # noqa: PLR2004 - nothing else
        return {}
    cache, field = decode_cache(wire)
    taken = ("type", key, field or key)
    left = {name: value for name, value in wire.items() if name not in taken}
    if is_object(inner) and (odd := {k: v for k, v in inner.items() if k not in known}):
        left[key] = odd
    extras: FrozenDict = extras_of(left, NAME, (*words, field) if field else words)
    return {"cache": cache, "extras": extras}


def decode_image(wire: dict[str, Any], _origin: Origin | None) -> AnyPart | None:
    """Decode an `image_url` part; None if it is malformed."""
    source = wire.get("image_url")
    if isinstance(source, str):  # Mistral accepts a bare URL
        return Image(**decode_address(source), **_extras(wire, "image_url", (), ("flat",)))
    if not is_object(source) or not isinstance(url := source.get("url"), str):
        return None
    detail = source.get("detail")
    if not isinstance(detail, str):
        return Image(**decode_address(url), **_extras(wire, "image_url", ("url",)))
    known = _extras(wire, "image_url", ("url", "detail"))
    return Image(**decode_address(url), detail=detail, **known)


def decode_images(wire: Any, origin: Origin | None) -> list[AnyPart]:
    """Decode the `images` of a response; empty unless all of them are well-formed."""
    shown = decode_parts(wire, origin) if is_list(wire) else []
    if not all(isinstance(part, Image) for part in shown):
        return []
    return [
        part.replace(origin=origin, extras=with_word(part.extras, NAME, "images")) for part in shown
    ]


def encode_image(part: Image) -> dict[str, Any] | None:
    """Encode an `image_url` part; None for an uploaded image, which is not supported."""
    url = encode_address(part)
    if url is None:
        return None
    if "flat" in words_of(part.extras, NAME) and part.detail is None:
        return {"type": "image_url", "image_url": url}
    source = {"url": url} if part.detail is None else {"url": url, "detail": part.detail}
    return {"type": "image_url", "image_url": source}


def decode_audio(wire: dict[str, Any], origin: Origin | None) -> AnyPart | None:
    """Decode an `input_audio` part; None if it is malformed."""
    source = wire.get("input_audio")
    if isinstance(source, str):  # Mistral accepts base64 or a URL
        extras = _extras(wire, "input_audio", (), ("flat",))
        if source.startswith(_ADDRESSES):
            return Audio(url=source, origin=origin, **extras)
        return Audio(data=source, **extras)
    if not is_object(source) or not isinstance(data := source.get("data"), str):
        return None
    form = source.get("format")
    if not isinstance(form, str):
        return Audio(data=data, **_extras(wire, "input_audio", ("data",), ("-format",)))
    part = Audio(data=data, mime=audio_mime(form), **_extras(wire, "input_audio", _AUDIO_FIELDS))
    if part.format == form:
        return part
    theirs = with_guesses(part.extras, NAME, [[["input_audio", "format"], part.format, form]])
    return part.replace(extras=theirs)


def encode_audio(part: Audio, words: Collection[Any], *, is_own: bool) -> dict[str, Any] | None:
    """Encode an `input_audio` part; a URL is only sent back to this dialect."""
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


def _decode_address_part(
    wire: dict[str, Any], origin: Origin | None, kind: type[Audio | Video], words: tuple[str, ...]
) -> AnyPart | None:
    """Decode an `audio_url` part (vLLM), or a `video_url` part (OpenRouter, vLLM, Qwen)."""
    key = wire["type"]
    source = wire.get(key)
    if not is_object(source) or not isinstance(url := source.get("url"), str):
        return None
    return kind(**decode_address(url), origin=origin, **_extras(wire, key, ("url",), words))


def encode_video(part: Video, *, is_own: bool) -> dict[str, Any] | None:
    """Encode a `video_url` part; only sent back to this dialect, as OpenAI has no video."""
    url = encode_address(part) if is_own else None
    return None if url is None else {"type": "video_url", "video_url": {"url": url}}


def decode_file(wire: dict[str, Any], origin: Origin | None) -> AnyPart | None:
    """Decode a `file` part; None if it is malformed."""
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
    """Decode a `document_url` part (Mistral)."""
    url, name = wire.get("document_url"), wire.get("document_name")
    if not isinstance(url, str):
        return None
    cache, field = decode_cache(wire)
    known = {"type", "document_url", field, "document_name" if isinstance(name, str) else ""}
    left = {k: v for k, v in wire.items() if k not in known}
    extras = extras_of(left, NAME, ("document_url", *([field] if field else [])))
    return File(**decode_address(url), name=_text(name), origin=origin, cache=cache, extras=extras)


def decode_file_url(wire: dict[str, Any], origin: Origin | None) -> AnyPart | None:
    """Decode a `file_url` part (Perplexity), whose data is base64 without a header."""
    source, name = wire.get("file_url"), wire.get("file_name")
    if not is_object(source) or not isinstance(url := source.get("url"), str):
        return None
    is_url = url.startswith(("data:", *_ADDRESSES))
    fields: dict[str, Any] = decode_address(url) if is_url else {"data": url}
    wire = {key: value for key, value in wire.items() if key != "file_name" or _text(name) is None}
    words = ("file_url",) if is_url else ("file_url", "bare")
    return File(**fields, name=_text(name), origin=origin,
                **_extras(wire, "file_url", ("url",), words))  # fmt: skip


def _encode_file_url(part: File, words: Collection[Any]) -> dict[str, Any] | None:
    """Encode a `file_url` part; data has no header, unless it came with one."""
    came_with_header = "file_url" in words_of(part.extras, NAME) and "bare" not in words
    url = encode_address(part) if part.data is None or came_with_header else part.data
    named = {} if part.name is None else {"file_name": part.name}
    return None if url is None else {"type": "file_url", "file_url": {"url": url}, **named}


def encode_file(part: File, words: Collection[Any], *, is_own: bool) -> dict[str, Any] | None:
    """Encode a `file` part; a URL is only sent back to this dialect, or as `document_url`."""
    if "file_url" in words:
        return _encode_file_url(part, words)
    if part.url is not None and not is_own and "document_url" not in words:
        return None
    if words == _FLAT and part.file_id is not None:
        return None  # uploaded to another provider
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


_URL_PARTS: dict[type[Media], str] = {Audio: "audio_url", Video: "video_url", File: "file"}


def encode_media(part: Media, target: Target, *, is_own: bool) -> dict[str, Any] | None:
    """Encode any media part; None if it is not supported.

    Formats of other hosts are kept if it is unknown what the target accepts.
    """
    words: Collection[Any] = _FLAT if target.media.is_flat else ()
    if target.media.kinds is None:
        words = words_of(part.extras, NAME)
    is_own = is_own and (target.media.kinds is None or target.media.is_flat)
    # A host that is known to accept such URLs gets them from any dialect.
    form = _URL_PARTS.get(type(part))
    is_own = is_own or (form is not None and form in target.media.url_parts)
    if "file_url" in target.media.url_parts:
        words = (*words, "file_url")
    body: dict[str, Any] | None = None
    if isinstance(part, Image):
        body = encode_image(part)
    elif isinstance(part, Audio):
        body = encode_audio(part, words, is_own=is_own)
    elif isinstance(part, File):
        body = encode_file(part, words, is_own=is_own)
    elif isinstance(part, Video):
        body = encode_video(part, is_own=is_own)
    return None if body is None else with_overlay(body, part.extras, NAME)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


# --- parts


def decode_parts(items: list[Any], origin: Origin | None) -> list[AnyPart]:
    """Decode a content list; unknown and malformed items become opaque parts."""
    parts: list[AnyPart] = []
    for item in items:
        if is_object(item) and item.get("type") == "text" and isinstance(item.get("text"), str):
            # Shortcut for the most common part, a text without other fields.
            parts.append(Text(item["text"]) if len(item) == 2 else _decode_text(item, origin))  # noqa: PLR2004
        elif is_object(item) and item.get("type") == "thinking":
            parts.extend(decode_thinking(item, origin) or [Opaque(NAME, item, origin=origin)])
        else:
            parts.append(decode_part(item, origin))
    return parts


def decode_part(item: Any, origin: Origin | None) -> AnyPart:
    """Decode a part that is neither text nor thinking."""
    if isinstance(item, str):
        return bare_text(item, {"type": "text", "text": item}, NAME)
    if is_object(item) and "type" not in item:
        for made in ("text", "image_url"):
            read = decode_parts([{**item, "type": made}], origin) if item.get(made) else []
            if read and type(read[0]) is not Opaque:
                return with_original(read[0], NAME, [[["type"], made]])
    kind = item.get("type") if is_object(item) else None
    decode = _DECODERS.get(kind) if isinstance(kind, str) else None
    part = decode(item, origin) if decode is not None else None
    return Opaque(NAME, item, origin=origin) if part is None else part


def encode_part(part: AnyPart, writing: ChatWriting) -> list[Any]:
    """Encode a content part, as a list; empty with a loss if it is not supported."""
    if type(part) is Text:
        return [_encode_text(part, writing)]
    if isinstance(part, Opaque) and part.dialect == NAME:
        return [part.payload]
    body: dict[str, Any] | None = None
    if isinstance(part, Media):
        body = encode_media(part, writing.target, is_own=writing.is_own(part))
        if body is not None and part.cache is not None:
            encode_cache(body, part, writing, writing.here)
    elif isinstance(part, Refusal):
        body = with_overlay({"type": "refusal", "refusal": part.text}, part.extras, NAME)
    if body is None:
        writing.lose_part(part)
        return []
    return [body]


def is_bare(part: Text) -> bool:
    """Whether a text has no other fields."""
    return part.extras is EMPTY and part.cache is None and not part.citations


def lose_citations(part: AnyPart, writing: ChatWriting) -> None:
    """Report the citations of a non-assistant text as lost."""
    if type(part) is Text and part.citations:
        writing.lose_here("citations are only supported in assistant messages", ".citations")


def _decode_text(item: dict[str, Any], origin: Origin | None) -> Text:
    cache, field = decode_cache(item)
    if cache is None:
        return Text(item["text"], extras=overlay_of(item, ("type", "text"), NAME))
    extras = overlay_of(item, ("type", "text", field), NAME, words=(field,))
    return Text(item["text"], cache=cache, origin=origin, extras=extras)


def _encode_text(part: Text, writing: ChatWriting) -> dict[str, Any]:
    body: dict[str, Any] = {"type": "text", "text": part.text}
    if part.cache is not None:
        encode_cache(body, part, writing, writing.here)
    return body if part.extras is EMPTY else with_overlay(body, part.extras, NAME)


def _decode_refusal(item: dict[str, Any], _origin: Origin | None) -> AnyPart | None:
    text = item.get("refusal")
    if not isinstance(text, str):
        return None
    return Refusal(text, extras=overlay_of(item, ("type", "refusal"), NAME, words=("content",)))


def encode_content(items: list[Any]) -> str | list[Any]:
    """Encode content in its normal form: a single plain text is a string."""
    if len(items) == 1:
        only = items[0]
        # An opaque payload is frozen, not a dict, and stays unchanged even if it looks like a text.
        if type(only) is dict and len(only) == 2 and only.get("type") == "text":  # noqa: PLR2004
            text: str = only["text"]
            return text
    return items


_DECODERS: Mapping[str, Callable[[dict[str, Any], Origin | None], AnyPart | None]] = {
    "image_url": decode_image,
    "input_audio": decode_audio,
    "audio_url": lambda wire, origin: _decode_address_part(wire, origin, Audio, ("audio_url",)),
    "video_url": lambda wire, origin: _decode_address_part(wire, origin, Video, ()),
    "file": decode_file,
    "document_url": decode_document,
    "file_url": decode_file_url,
    "refusal": _decode_refusal,
}


# --- citations: the annotations of a message

_URL = "url_citation"
_TEXTS = {"url": "url", "title": "title", "content": "quote"}
_PLACES = {"start_index": "start", "end_index": "end"}


def decode_annotations(wire: Any) -> tuple[Citation, ...]:
    """Decode `annotations`; empty unless all of them are well-formed."""
    if not is_list(wire) or not all(map(is_object, wire)):
        return ()
    return tuple([_decode_annotation(annotation) for annotation in wire])


def _decode_annotation(wire: dict[str, Any]) -> Citation:
    kind, source = wire.get("type"), wire.get(_URL)
    if not isinstance(kind, str) or not kind or (kind == _URL and not is_object(source)):
        return Citation(kind="", extras=extras_of(wire, NAME))
    left = {key: value for key, value in wire.items() if key != "type"}
    if kind != _URL or not is_object(source):
        return Citation(kind=kind, extras=extras_of(left, NAME))
    fields: dict[str, Any] = {}
    odd: dict[str, Any] = {}
    for key, value in source.items():
        if key in _TEXTS and isinstance(value, str):
            fields[_TEXTS[key]] = value
        elif key in _PLACES and is_integer(value):
            fields[_PLACES[key]] = value
        else:
            odd[key] = value
    left = {**left, _URL: odd} if odd else {k: v for k, v in left.items() if k != _URL}
    return Citation(kind=kind, **fields, extras=extras_of(left, NAME))


def is_fully_supported(citation: Citation) -> bool:
    """Whether an annotation can hold all fields of a citation."""
    others = (*_TEXTS.values(), *_PLACES.values())
    return citation.kind == _URL or all(getattr(citation, name) is None for name in others)


def encode_annotation(citation: Citation, *, is_own: bool) -> dict[str, Any] | None:
    """Encode an annotation; None for a citation of another dialect without a URL."""
    if is_own and citation.kind != _URL:
        return with_overlay({"type": citation.kind} if citation.kind else {}, citation.extras, NAME)
    if citation.url is None and not is_own:
        return None
    names = {**_TEXTS, **_PLACES}
    found = {key: getattr(citation, name) for key, name in names.items()}
    source = {key: value for key, value in found.items() if value is not None}
    if not is_own:  # the SDKs' types require the positions
        source = {"start_index": 0, "end_index": 0, "title": "", **source}
    return with_overlay({"type": _URL, _URL: source}, citation.extras, NAME)
