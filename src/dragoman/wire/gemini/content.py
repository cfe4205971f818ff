"""Content parts: exactly one data field each, and optional fields (W76)."""

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
from dragoman.wire.envelope import is_sealed
from dragoman.wire.gemini.content_media import (
    NEAREST_DETAIL,
    AnyMedia,
    decode_media,
    encode_media,
    media_problem,
)
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
FOREIGN_SIGNATURE = "another provider's signature is left out"


# --- decoding


def decode_parts(wire: Iterable[Any], reading: Reading) -> tuple[AnyPart, ...]:
    """Decode the parts of a content."""
    parts: list[AnyPart] = []
    for item in wire:
        # Shortcut for the most common part.
        if type(item) is dict and len(item) == 1 and type(text := item.get("text")) is str:
            parts.append(Text(text))
        else:
            parts.append(decode_part(item, reading))
    return tuple(parts)


def decode_part(wire: Any, reading: Reading) -> AnyPart:
    """Decode a part of any kind."""
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
    if is_thought:  # the API only sends summaries of thoughts
        return Thinking(text, None, "summary", signature=signature, origin=origin, extras=extras)
    return Text(text, signature=signature, origin=origin, extras=extras)


def _decode_lone_signature(fields: dict[str, Any], kept: Overlay, reading: Reading) -> Text:
    # It belongs at this position among the parts, and must not be lost (W85).
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


# --- encoding


def encode_parts(parts: tuple[AnyPart, ...], message: int, writing: Writing) -> list[Any]:
    """Encode the parts of a message; unsupported parts are left out and reported."""
    written: list[Any] = []
    writing.message = message
    for index, part in enumerate(parts):
        # Shortcut for the most common part.
        if type(part) is Text and part.signature is None and not (part.extras or part.citations):
            written.append({"text": part.text})
        else:
            writing.part = index
            written += encode_part(part, writing)
    return written


def encode_part(part: AnyPart, writing: Writing) -> list[Any]:
    """Encode the current part of `writing`; empty with a loss if it is not supported."""
    if type(part) is Opaque:
        if part.dialect == NAME:
            return [part.payload]
        writing.lose_here("a part that only another dialect understands is left out")
        return []
    encode = _ENCODERS.get(type(part), _encode_unknown)
    body = encode(part, writing)
    if body is None:
        return []
    if part.signature is not None:
        is_envelope = writing.is_response and is_sealed(part)  # made by the front
        if is_envelope or writing.target.has_made(writing.origin_of(part)):
            body[SIGNATURE] = part.signature
        else:
            writing.lose_here(FOREIGN_SIGNATURE)
    if not part.extras:
        return [body]
    # A part that was only a signature would be an empty text without it.
    came: Any = with_overlay(body, part.extras, NAME)
    return [{"text": ""} if came == {} else came]


def _encode_text(part: Text, writing: Writing) -> dict[str, Any]:
    if part.citations and not writing.is_response:
        writing.lose_here("citations are not supported")
    return {"text": part.text}


def _encode_refusal(part: Refusal, writing: Writing) -> dict[str, Any]:
    writing.lose_here("a refusal is sent as text")
    return {"text": part.text}


def _encode_thinking(part: Thinking, writing: Writing) -> dict[str, Any] | None:
    is_foreign = writing.is_foreign(part)
    if is_foreign and not writing.is_response:
        writing.lose_here("another provider's thinking can't be replayed")
        return None
    is_sealed = part.data is not None
    if is_sealed or (is_foreign and not part.text):
        writing.lose_here("encrypted thinking is not supported")
    if not part.text and (is_sealed or is_foreign):
        return None
    return {"text": part.text, "thought": True}


def _encode_unknown(_part: Part, writing: Writing) -> None:
    writing.lose_here("this kind of content is not supported")


def _encode_media(part: AnyMedia, writing: Writing) -> dict[str, Any] | None:
    if (problem := media_problem(part)) is not None:
        writing.lose_here(problem)
    if part.detail in NEAREST_DETAIL:
        writing.repair_here(
            "I14", "retyped", "the image detail is sent as the nearest supported one"
        )
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
