"""The parts of messages as rows: which field of the wire is which field of the model.

Several hosts have forms of their own; overlay words record which one a part came in.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Any

from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY
from dragoman.model.media import Audio, File, Image, Media, Video, audio_mime
from dragoman.model.parts import CacheHint, Citation, Opaque, Part, Refusal, Text
from dragoman.model.tools import ToolDefinition
from dragoman.wire.json_values import is_list, is_object
from dragoman.wire.openai_chat.dialect import NAME, ChatWriting, is_own
from dragoman.wire.openai_chat.thinking import decode_thinking
from dragoman.wire.overlay import extras_of, merged, overlay_of, with_overlay, with_word, words_of
from dragoman.wire.reading import Reading
from dragoman.wire.rows import OBJECT, SILENT, TEXT, WHOLE, Row, Shape, Union, Value
from dragoman.wire.tolerance import bare_text, with_original
from dragoman.wire.writing import Writing

_needed = partial(Row, is_required=True)

# --- cache hints on parts and tools: OpenAI's breakpoints, and Anthropic's format in routers (C4)

_SPELLINGS = {
    "prompt_cache_breakpoint": ("mode", "explicit"),
    "cache_control": ("type", "ephemeral"),
}
_NO_HINTS = "cache hints are not supported: prompt caching is automatic"


def _hint_row(field: str) -> Row:
    key, word = _SPELLINGS[field]
    has_ttl = "len(v) == 2 and type(v.get('ttl')) is str"
    test = f"isinstance(v, dict) and v.get({key!r}) == {word!r} and (len(v) == 1 or {has_ttl})"
    noted = extras_of({}, NAME, (field,))

    def read(hint: dict[str, Any]) -> dict[str, Any]:
        return {"cache": CacheHint(hint.get("ttl")), "extras": noted}

    def write(item: Part, writing: Writing) -> dict[str, Any] | None:
        if item.cache is None:
            return None
        found = cache_field(item, writing)
        if found is None and field == "cache_control":
            writing.lose_here(_NO_HINTS, ".cache")
        return write_hint(field, item.cache) if found == field else None

    return Row(field, "", Value(test, read, write, "a cache hint"), reports=True)


def write_hint(field: str, hint: CacheHint) -> dict[str, Any]:
    """Encode a hint for one of its fields."""
    key, word = _SPELLINGS[field]
    return {key: word} if hint.ttl is None else {key: word, "ttl": hint.ttl}


def cache_field(item: Part | ToolDefinition, writing: Writing) -> str | None:
    """The field for a hint: the target's or the original one; those of other dialects have none."""
    words = words_of(item.extras, NAME)
    found = None if writing is SILENT else writing.target.cache.field
    found = found or next((field for field in reversed(_SPELLINGS) if field in words), None)
    if found is None and isinstance(item, Part) and is_own(item.origin):
        return "prompt_cache_breakpoint"
    return found


HINTS = tuple(map(_hint_row, _SPELLINGS))
"""The rows of everything that may be cached."""


# --- images, audio, video and files

ADDRESSES = ("http:", "https:", "gs:", "s3:", "file:")
_FLAT = ("flat", "document_url")
"""Overlay words for Mistral's formats."""


def _read_address(url: str) -> dict[str, Any]:
    """The `Media` fields for a URL: a base64 data URL becomes inline data.

    The MIME type is everything before `;base64`, so that encoding restores the same URL.
    """
    if url.startswith("data:"):
        head, comma, data = url.partition(",")
        if comma and head.endswith(";base64"):
            return {"data": data, "mime": head[5:-7]}
    return {"url": url}


def _write_address(part: Media) -> str | None:
    """The URL of media, or a data URL; None for an uploaded file."""
    if part.data is None:
        return part.url
    return f"data:;base64,{part.data}" if part.mime == "" else part.data_url


def _spelling(part: Media, writing: Writing) -> Collection[Any]:
    """The forms to choose: those of other hosts only if it is unknown what the target accepts."""
    if writing is SILENT or writing.target.media.kinds is None:
        return words_of(part.extras, NAME)
    words = _FLAT if writing.target.media.is_flat else ()
    return (*words, "file_url") if "file_url" in writing.target.media.url_parts else words


def _noted(kind: type, *words: str) -> Any:
    """A maker of parts that came in a form of some host."""

    def make(extras: Any = EMPTY, *, is_bare: bool = False, **fields: Any) -> Any:
        ours = extras_of({}, NAME, (*words, "bare") if is_bare else words)
        return kind(**fields, extras=merged(ours, extras) if extras else ours)

    return make


def _read_format(form: str) -> dict[str, Any]:
    return {"mime": audio_mime(form)}


def _write_format(part: Audio, writing: Writing) -> str | None:
    return None if "-format" in _spelling(part, writing) else part.format


def _made_audio(mime: str | None = None, **fields: Any) -> Audio:
    return (Audio if mime is not None else _WITHOUT_FORMAT)(mime=mime, **fields)


def _read_flat_audio(source: str) -> dict[str, Any]:
    return {"url": source} if source.startswith(ADDRESSES) else {"data": source}


def _write_flat_audio(part: Audio) -> str | None:
    return part.url if part.data is None else part.data


def _read_file(source: dict[str, Any], reading: Reading) -> dict[str, Any] | None:
    data, file_id, name = source.get("file_data"), source.get("file_id"), source.get("filename")
    named = {"name": name} if isinstance(name, str) else {}
    if isinstance(data, str) == isinstance(file_id, str):
        return None
    if not isinstance(data, str):
        return {"file_id": file_id, "origin": reading.origin, **named}
    if not data.startswith(("data:", *ADDRESSES)):
        return {"data": data, "is_bare": True, **named}
    found = _read_address(data)
    return found | named | ({"origin": reading.origin} if "url" in found else {})


def _write_file(part: File, writing: Writing) -> dict[str, Any]:
    named: dict[str, Any] = {} if part.name is None else {"filename": part.name}
    address = _write_address(part)
    if address is None:
        return {**named, "file_id": part.file_id}
    is_bare = "bare" in _spelling(part, writing) and part.data is not None and part.mime is None
    return {**named, "file_data": part.data if is_bare else address}


def _read_file_url(url: str) -> dict[str, Any]:
    """Perplexity's data is base64 without a header."""
    if url.startswith(("data:", *ADDRESSES)):
        return _read_address(url)
    return {"data": url, "is_bare": True}


def _write_file_url(part: File, writing: Writing) -> str | None:
    came_with_header = "file_url" in words_of(part.extras, NAME)
    came_with_header = came_with_header and "bare" not in _spelling(part, writing)
    return _write_address(part) if part.data is None or came_with_header else part.data


def _read_either(wire: dict[str, Any], reading: Reading) -> Any:
    """Mistral accepts a string in place of the object."""
    flat, full = _EITHER[wire["type"]]
    return (flat if isinstance(wire.get(wire["type"]), str) else full).read(wire, reading)


_ADDRESS = TEXT._replace(read=_read_address, write=_write_address, exact=True)
_address = partial(_needed, field="", value=_ADDRESS)
_INNER = ("data", "url", "file_id", "mime", "name", "detail")
_media = partial(Shape, NAME, fields=_INNER)
_WITHOUT_FORMAT = _noted(Audio, "-format")
IMAGE = _media(
    "image_url", Image, _address("image_url.url"), Row("image_url.detail", "detail"), *HINTS,
    reads=_read_either,
)  # fmt: skip
FLAT_IMAGE = _media("image_url", Image, _address("image_url"), *HINTS, make=_noted(Image, "flat"))
AUDIO = _media(
    "input_audio", Audio, _needed("input_audio.data", "data"),
    Row("input_audio.format", "", TEXT._replace(read=_read_format, write=_write_format),
        reports=True),
    *HINTS, make=_made_audio, reads=_read_either,
)  # fmt: skip
FLAT_AUDIO = _media(
    "input_audio", Audio,
    _needed("input_audio", "", TEXT._replace(read=_read_flat_audio, write=_write_flat_audio)),
    *HINTS, make=_noted(Audio, "flat"), keeps_origin="url",
)  # fmt: skip
"""Mistral accepts base64 or a URL."""
URL_AUDIO = _media("audio_url", Audio, _address("audio_url.url"), *HINTS,
                   make=_noted(Audio, "audio_url"), keeps_origin=True)  # fmt: skip
"""vLLM's."""
VIDEO = _media("video_url", Video, _address("video_url.url"), *HINTS, keeps_origin=True)
"""That of OpenRouter, vLLM and Qwen."""
FILE = _media(
    "file", File, _needed("file", "", Value(OBJECT.test, _read_file, _write_file, "a file"),
                          deep=True), *HINTS, make=_noted(File),
)  # fmt: skip
DOCUMENT = _media("document_url", File, _address("document_url"), Row("document_name", "name"),
                  *HINTS, make=_noted(File, "document_url"), keeps_origin=True)  # fmt: skip
"""Mistral's."""
FILE_URL = _media(
    "file_url", File,
    _needed("file_url.url", "", TEXT._replace(read=_read_file_url, write=_write_file_url),
            reports=True),
    Row("file_name", "name"), *HINTS, make=_noted(File, "file_url"), keeps_origin=True,
)  # fmt: skip
"""Perplexity's."""
_EITHER: dict[str, tuple[Shape[Any], Shape[Any]]] = {
    "image_url": (FLAT_IMAGE, IMAGE), "input_audio": (FLAT_AUDIO, AUDIO)
}  # fmt: skip
_URL_PARTS: dict[type, str] = {Audio: "audio_url", Video: "video_url", File: "file"}


def _media_shape(part: Media, writing: ChatWriting) -> Shape[Any] | None:
    """The form for media; None if the target has none."""
    media = writing.target.media
    # URLs are only sent back to this dialect, or to a host that is known to accept them.
    is_ours = writing.is_own(part) and (media.kinds is None or media.is_flat)
    is_ours = is_ours or _URL_PARTS.get(type(part)) in media.url_parts
    if isinstance(part, Audio):
        return _audio_shape(part, _spelling(part, writing), is_ours=is_ours)
    if isinstance(part, File):
        return _file_shape(part, writing, is_ours=is_ours)
    if part.data is None and part.url is None:
        return None
    if not isinstance(part, Image):
        return VIDEO if is_ours else None
    is_flat = "flat" in words_of(part.extras, NAME) and part.detail is None
    return FLAT_IMAGE if is_flat else IMAGE


def _audio_shape(part: Audio, words: Collection[Any], *, is_ours: bool) -> Shape[Any] | None:
    if "audio_url" in words or (part.url is not None and is_ours and "flat" not in words):
        return URL_AUDIO
    if part.data is None and (part.url is None or not is_ours):
        return None
    return FLAT_AUDIO if "flat" in words else AUDIO


def _file_shape(part: File, writing: ChatWriting, *, is_ours: bool) -> Shape[Any] | None:
    media, words = writing.target.media, _spelling(part, writing)
    has_address = part.data is not None or part.url is not None
    if "file_url" in words:
        return FILE_URL if has_address else None
    if part.url is not None and not is_ours and "document_url" not in words:
        return None
    if not has_address and media.is_flat and media.kinds is not None:
        return None  # uploaded to another provider
    return DOCUMENT if "document_url" in words and has_address else FILE


# --- parts

TEXT_PART = Shape(NAME, "text", Text, _needed("text", "text"), *HINTS, keeps_origin="cache",
                  fields=("citations",))  # fmt: skip
REFUSAL = Shape(NAME, "refusal", Refusal, _needed("refusal", "text"),
                make=_noted(Refusal, "content"))  # fmt: skip
PARTS = Union(NAME, TEXT_PART, IMAGE, AUDIO, URL_AUDIO, VIDEO, FILE, DOCUMENT, FILE_URL, REFUSAL)
_PLAIN = 2
"""Fields of a text without others."""


NULL_CONTENT = extras_of({"content": None}, NAME)
"""The extras of a message with only calls, as sent by OpenAI: one object for all of them."""


def decode_parts(items: list[Any], reading: Reading) -> list[AnyPart]:
    """Decode a content list; unknown and malformed items become opaque parts."""
    parts: list[AnyPart] = []
    for item in items:
        if is_object(item) and item.get("type") == "thinking":
            parts.extend(
                decode_thinking(item, reading.origin) or [Opaque(NAME, item, origin=reading.origin)]
            )
        else:
            parts.append(_decode_part(item, reading))
    return parts


def _decode_part(item: Any, reading: Reading) -> AnyPart:
    """Decode a part that is not thinking."""
    if isinstance(item, str):
        return bare_text(item, {"type": "text", "text": item}, NAME)
    if is_object(item) and "type" not in item:
        for made in ("text", "image_url"):
            read = PARTS.read({**item, "type": made}, reading) if item.get(made) else None
            if read is not None and type(read) is not Opaque:
                return with_original(read, NAME, [[["type"], made]])  # type: ignore[no-any-return]
    found: AnyPart = PARTS.read(item, reading)
    return found


def decode_images(wire: Any, reading: Reading) -> list[AnyPart]:
    """Decode the `images` of a response; empty unless all of them are well-formed."""
    shown = decode_parts(wire, reading) if is_list(wire) else []
    if not all(isinstance(part, Image) for part in shown):
        return []
    return [
        part.replace(origin=reading.origin, extras=with_word(part.extras, NAME, "images"))
        for part in shown
    ]


def encode_part(part: AnyPart, writing: ChatWriting) -> list[Any]:
    """Encode a content part, as a list; empty with a loss if it is not supported."""
    if isinstance(part, Opaque) and part.dialect == NAME:
        return [part.payload]
    shape: Shape[Any] | None = _SHAPES.get(type(part))
    if shape is None and isinstance(part, Media):
        shape = _media_shape(part, writing)
    if shape is None:
        writing.lose_part(part)
        return []
    return [shape.write(part, writing)]


_SHAPES: dict[type, Shape[Any]] = {Text: TEXT_PART, Refusal: REFUSAL}


def encode_content(items: list[Any]) -> str | list[Any]:
    """Encode content in its normal form: a single plain text is a string."""
    if len(items) == 1:
        only = items[0]
        # An opaque payload is frozen, not a dict, and stays unchanged even if it looks like a text.
        if type(only) is dict and len(only) == _PLAIN and only.get("type") == "text":
            text: str = only["text"]
            return text
    return items


# --- audio output

SPEECH = Shape(
    NAME, None, Audio, _needed("id", "item_id"), _needed("data", "data"),
    Row("transcript", "transcript"), keeps_origin=True,
)  # fmt: skip
"""Audio output: whole in a response."""
SPEECH_ID = Shape(NAME, None, Audio, _needed("id", "file_id"), keeps_origin=True)
"""In later requests, only its id."""
_NOT_SPEECH = frozenset({"flat", "-format"})  # overlay words of content parts only


def decode_speech_delta(wire: dict[str, Any]) -> dict[str, Any]:
    """Decode a delta of `audio`: more `data`, more transcript (`text`), id, and other fields."""
    names = {"id": "id", "data": "data", "transcript": "text"}
    known = [key for key in names if isinstance(wire.get(key), str)]
    extras = overlay_of(wire, known, NAME)
    growth = {names[key]: wire[key] for key in known}
    return {**growth, "extras": extras} if extras else growth


def is_speech(part: Audio) -> bool:
    """Whether a part is audio output, not a content part as in Mistral's messages."""
    is_content = part.mime is not None or not _NOT_SPEECH.isdisjoint(words_of(part.extras, NAME))
    return part.url is None and part.file_id is None and not is_content


def encode_speech_delta(part: Audio) -> dict[str, Any]:
    """Encode a delta of `audio`."""
    fields = {"id": part.item_id, "data": part.data or None, "transcript": part.transcript}
    return with_overlay(
        {key: value for key, value in fields.items() if value is not None}, part.extras, NAME
    )


# --- citations: the annotations of a message

_URL = "url_citation"
CITATION = Shape(
    NAME, _URL, Citation,
    Row(f"{_URL}.url", "url"), Row(f"{_URL}.title", "title"), Row(f"{_URL}.content", "quote"),
    Row(f"{_URL}.start_index", "start", WHOLE), Row(f"{_URL}.end_index", "end", WHOLE),
    tag_field="kind",
)  # fmt: skip
_SAID = tuple([row.field for row in CITATION.rows])


def decode_annotations(wire: Any) -> tuple[Citation, ...]:
    """Decode `annotations`; empty unless all of them are well-formed."""
    if not is_list(wire) or not all(map(is_object, wire)):
        return ()
    return tuple([_decode_annotation(annotation) for annotation in wire])


def _decode_annotation(wire: dict[str, Any]) -> Any:
    kind = wire.get("type")
    if kind == _URL and is_object(wire.get(_URL)):
        return CITATION.read(wire, SILENT)
    if not isinstance(kind, str) or kind == _URL:
        return Citation(kind="", extras=extras_of(wire, NAME))
    left = wire if not kind else {key: value for key, value in wire.items() if key != "type"}
    return Citation(kind=kind, extras=extras_of(left, NAME))


def is_fully_supported(citation: Citation) -> bool:
    """Whether an annotation can hold all fields of a citation."""
    return citation.kind == _URL or all(getattr(citation, name) is None for name in _SAID)


def encode_annotation(citation: Citation, *, is_own: bool) -> dict[str, Any] | None:
    """Encode an annotation; None for a citation of another dialect without a URL."""
    if is_own and citation.kind != _URL:
        return with_overlay({"type": citation.kind} if citation.kind else {}, citation.extras, NAME)
    if citation.url is None and not is_own:
        return None
    body = CITATION.body(citation, SILENT)
    # The SDKs' types require the positions.
    least = {} if is_own else {"start_index": 0, "end_index": 0, "title": ""}
    return with_overlay({**body, _URL: least | body.get(_URL, {})}, citation.extras, NAME)
