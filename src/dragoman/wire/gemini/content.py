"""Content parts: exactly one data field each, and what may stand beside it (W76)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from dragoman.model.content import AnyPart
from dragoman.model.media import Audio, File, Image, Video
from dragoman.model.parts import (
    Opaque,
    Part,
    Refusal,
    ServerToolCall,
    ServerToolResult,
    Text,
    Thinking,
)
from dragoman.model.tools import ToolCall, ToolResult
from dragoman.wire.gemini.content_media import AnyMedia, decode_media, encode_media, media_problem
from dragoman.wire.gemini.dialect import NAME, SIGNATURE, Writing, keep_fields, snake_names
from dragoman.wire.gemini.tools_calls import (
    decode_call,
    decode_result,
    decode_server_part,
    encode_call,
    encode_result,
    encode_server_part,
)
from dragoman.wire.json_values import is_object
from dragoman.wire.overlay import Overlay, with_overlay
from dragoman.wire.reading import Reading
from dragoman.wire.tolerance import bare_text

_NAMES = snake_names(
    "thoughtSignature", "inlineData", "fileData", "functionCall", "functionResponse",
    "executableCode", "codeExecutionResult", "toolCall", "toolResponse", "videoMetadata",
    "mediaResolution",
)  # fmt: skip
FOREIGN_SIGNATURE = "a signature of another provider was left out"


# --- wire → model


def decode_parts(wire: Iterable[Any], reading: Reading) -> tuple[AnyPart, ...]:
    """The parts of a content."""
    parts: list[AnyPart] = []
    for item in wire:
        # Most parts are this.
        if type(item) is dict and len(item) == 1 and type(text := item.get("text")) is str:
            parts.append(Text(text))
        else:
            parts.append(decode_part(item, reading))
    return tuple(parts)


def decode_part(wire: Any, reading: Reading) -> AnyPart:
    """One part, of whatever kind it is."""
    part = None
    if type(wire) is str:
        return bare_text(wire, {"text": wire}, NAME)
    if is_object(wire):
        kept = Overlay(NAME)
        fields = kept.renamed(wire, _NAMES)
        kinds = [key for key in fields if key in _DECODERS and fields[key] is not None]
        if len(kinds) == 1:
            part = _DECODERS[kinds[0]](fields, kept, reading)
        elif not kinds and type(fields.get(SIGNATURE)) is str:
            part = _decode_lone_signature(fields, kept, reading)
    return Opaque(NAME, wire, origin=reading.origin) if part is None else part


def _decode_text(fields: dict[str, Any], kept: Overlay, reading: Reading) -> Text | Thinking | None:
    text = fields["text"]
    if type(text) is not str:
        return None
    is_thought = fields.get("thought") is True
    signature = keep_fields(kept, fields, *(("text", "thought") if is_thought else ("text",)))
    origin = None if signature is None else reading.origin
    extras = kept.extras()
    if is_thought:  # the API never gives the thoughts themselves
        return Thinking(text, None, "summary", signature=signature, origin=origin, extras=extras)
    return Text(text, signature=signature, origin=origin, extras=extras)


def _decode_lone_signature(fields: dict[str, Any], kept: Overlay, reading: Reading) -> Text:
    # It belongs to this place among the parts, and must not be lost (W85).
    signature = keep_fields(kept, fields, "text")
    if "text" in fields:
        kept.value(("text",), "", None)
    else:
        kept.absent(("text",), "")
    return Text("", signature=signature, origin=reading.origin, extras=kept.extras())


_DECODERS: dict[str, Callable[[dict[str, Any], Overlay, Reading], AnyPart | None]] = {
    "text": _decode_text,
    "inlineData": decode_media,
    "fileData": decode_media,
    "functionCall": decode_call,
    "functionResponse": decode_result,
    "executableCode": decode_server_part,
    "toolCall": decode_server_part,
    "codeExecutionResult": decode_server_part,
    "toolResponse": decode_server_part,
}


# --- model → wire


def encode_parts(parts: tuple[AnyPart, ...], message: int, writing: Writing) -> list[Any]:
    """The parts of a message; what has no place here is left out and recorded."""
    written: list[Any] = []
    writing.message = message
    for index, part in enumerate(parts):
        # Most parts are this.
        if type(part) is Text and part.signature is None and not (part.extras or part.citations):
            written.append({"text": part.text})
        else:
            writing.part = index
            written += encode_part(part, writing)
    return written


def encode_part(part: AnyPart, writing: Writing) -> list[Any]:
    """The part at which `writing` is; nothing where it has no place here, which is recorded."""
    if type(part) is Opaque:
        if part.dialect == NAME:
            return [part.payload]
        writing.lose_here("content that only another dialect knows")
        return []
    encode = _ENCODERS.get(type(part), _encode_unknown)
    body = encode(part, writing)
    if body is None:
        return []
    if part.signature is not None:
        if writing.target.has_made(writing.origin_of(part)):
            body[SIGNATURE] = part.signature
        else:
            writing.lose_here(FOREIGN_SIGNATURE)
    if not part.extras:
        return [body]
    # A part that was a signature and nothing else is the empty text without it.
    came: Any = with_overlay(body, part.extras, NAME)
    return [{"text": ""} if came == {} else came]


def _encode_text(part: Text, writing: Writing) -> dict[str, Any]:
    if part.citations and not writing.is_response:
        writing.lose_here("citations have no place here")
    return {"text": part.text}


def _encode_refusal(part: Refusal, writing: Writing) -> dict[str, Any]:
    writing.lose_here("a refusal was sent as plain text")
    return {"text": part.text}


def _encode_thinking(part: Thinking, writing: Writing) -> dict[str, Any] | None:
    is_foreign = writing.is_foreign(part)
    if is_foreign and not writing.is_response:
        writing.lose_here("another provider's thinking can't be replayed here")
        return None
    is_sealed = part.data is not None
    if is_sealed or (is_foreign and not part.text):
        writing.lose_here("sealed thinking has no place here")
    if not part.text and (is_sealed or is_foreign):
        return None
    return {"text": part.text, "thought": True}


def _encode_unknown(_part: Part, writing: Writing) -> None:
    writing.lose_here("a kind of content that is not known here")


def _encode_media(part: AnyMedia, writing: Writing) -> dict[str, Any] | None:
    if (problem := media_problem(part)) is not None:
        writing.lose_here(problem)
    return encode_media(part)


_ENCODERS: dict[type[Part], Callable[[Any, Writing], dict[str, Any] | None]] = {
    Text: _encode_text,
    Thinking: _encode_thinking,
    Refusal: _encode_refusal,
    Image: _encode_media,
    Audio: _encode_media,
    Video: _encode_media,
    File: _encode_media,
    ToolCall: encode_call,
    ToolResult: encode_result,
    ServerToolCall: encode_server_part,
    ServerToolResult: encode_server_part,
}
