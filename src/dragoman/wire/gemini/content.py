"""Content parts: exactly one data field each, and what may stand beside it (W76)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from dragoman.model.content import AnyPart
from dragoman.model.media import Audio, File, Image, Video
from dragoman.model.parts import (
    Opaque,
    Origin,
    Part,
    Refusal,
    ServerToolCall,
    ServerToolResult,
    Text,
    Thinking,
)
from dragoman.model.tools import ToolCall, ToolResult
from dragoman.wire.call_ids import CallIds
from dragoman.wire.gemini.content_media import AnyMedia, decode_media, encode_media
from dragoman.wire.gemini.dialect import NAME, SIGNATURE, Writing, keep_fields, snake_names
from dragoman.wire.gemini.tools_calls import (
    decode_call,
    decode_result,
    decode_server_call,
    decode_server_result,
    encode_call,
    encode_result,
    encode_server_call,
    encode_server_result,
)
from dragoman.wire.json_values import is_object
from dragoman.wire.overlay import Overlay, with_overlay
from dragoman.wire.tolerance import bare_text

_NAMES = snake_names(
    "thoughtSignature", "inlineData", "fileData", "functionCall", "functionResponse",
    "executableCode", "codeExecutionResult", "toolCall", "toolResponse", "videoMetadata",
    "mediaResolution",
)  # fmt: skip
_FOREIGN_SIGNATURE = "a signature of another provider was left out"
_SEALED = "sealed thinking has no place here"
_FOREIGN_TOOL = "another provider's own tools can't be replayed here"


# --- wire → model


def decode_parts(wire: Iterable[Any], calls: CallIds, origin: Origin | None) -> tuple[AnyPart, ...]:
    """The parts of a content; `origin` goes to those that carry opaque state."""
    parts: list[AnyPart] = []
    for item in wire:
        # Most parts are this.
        if type(item) is dict and len(item) == 1 and type(text := item.get("text")) is str:
            parts.append(Text(text))
        else:
            parts.append(decode_part(item, calls, origin))
    return tuple(parts)


def decode_part(wire: Any, calls: CallIds, origin: Origin | None) -> AnyPart:
    """One part, of whatever kind it is."""
    part = None
    if type(wire) is str:
        return bare_text(wire, {"text": wire}, NAME)
    if is_object(wire):
        kept = Overlay(NAME)
        fields = kept.renamed(wire, _NAMES)
        kinds = [key for key in fields if key in _DECODERS and fields[key] is not None]
        if len(kinds) == 1:
            part = _DECODERS[kinds[0]](fields, kept, calls, origin)
        elif not kinds and type(fields.get(SIGNATURE)) is str:
            part = _decode_lone_signature(fields, kept, origin)
    return Opaque(NAME, wire, origin=origin) if part is None else part


def _decode_text(
    fields: dict[str, Any], kept: Overlay, _calls: CallIds, origin: Origin | None
) -> Text | Thinking | None:
    text = fields["text"]
    if type(text) is not str:
        return None
    if fields.get("thought") is True:
        signature = keep_fields(kept, fields, "text", "thought")
        origin = None if signature is None else origin
        extras = kept.extras()
        # The API never gives the thoughts themselves.
        return Thinking(text, None, "summary", signature=signature, origin=origin, extras=extras)
    signature = keep_fields(kept, fields, "text")
    origin = None if signature is None else origin
    return Text(text, signature=signature, origin=origin, extras=kept.extras())


def _decode_lone_signature(fields: dict[str, Any], kept: Overlay, origin: Origin | None) -> Text:
    # It belongs to this place among the parts, and must not be lost (W85).
    signature = keep_fields(kept, fields, "text")
    if "text" in fields:
        kept.value(("text",), "", None)
    else:
        kept.absent(("text",), "")
    return Text("", signature=signature, origin=origin, extras=kept.extras())


_DECODERS: dict[
    str, Callable[[dict[str, Any], Overlay, CallIds, Origin | None], AnyPart | None]
] = {
    "text": _decode_text,
    "inlineData": decode_media,
    "fileData": decode_media,
    "functionCall": decode_call,
    "functionResponse": decode_result,
    "executableCode": decode_server_call,
    "toolCall": decode_server_call,
    "codeExecutionResult": decode_server_result,
    "toolResponse": decode_server_result,
}


# --- model → wire


def encode_parts(parts: tuple[AnyPart, ...], message: int, writing: Writing) -> list[Any]:
    """The parts of a message; what has no place here is left out and recorded."""
    written: list[Any] = []
    for index, part in enumerate(parts):
        if type(part) is Text and part.signature is None and not (part.extras or part.citations):
            written.append({"text": part.text})
        else:
            written += encode_part(part, message, index, writing)
    return written


def encode_part(part: AnyPart, message: int, index: int, writing: Writing) -> list[Any]:
    """One part; nothing where it has no place here, which is recorded."""
    if type(part) is Opaque:
        if part.dialect == NAME:
            return [part.payload]
        writing.lose_part(message, index, "content that only another dialect knows")
        return []
    writing.at = (message, index)
    encode = _ENCODERS.get(type(part), _encode_unknown)
    body, problem = encode(part, writing)
    if problem is not None:
        writing.lose_part(message, index, problem)
    if body is None:
        return []
    if part.signature is not None:
        if writing.is_verifiable(part):
            body[SIGNATURE] = part.signature
        else:
            writing.lose_part(message, index, _FOREIGN_SIGNATURE)
    if not part.extras:
        return [body]
    # A part that was a signature and nothing else is the empty text without it.
    came: Any = with_overlay(body, part.extras, NAME)
    return [{"text": ""} if came == {} else came]


Written = tuple[dict[str, Any] | None, str | None]
"""A part's data field, or None where there is none for it; and what was lost."""


def _encode_text(part: Text, writing: Writing) -> Written:
    is_shortened = bool(part.citations) and not writing.is_response
    return {"text": part.text}, "citations have no place here" if is_shortened else None


def _encode_refusal(part: Refusal, _writing: Writing) -> Written:
    return {"text": part.text}, "a refusal was sent as plain text"


def _encode_thinking(part: Thinking, writing: Writing) -> Written:
    is_own = writing.is_own(part)
    if not is_own and not writing.is_response:
        return None, "another provider's thinking can't be replayed here"
    if not part.text and (part.data is not None or not is_own):
        return None, _SEALED
    problem = None if part.data is None else _SEALED
    return {"text": part.text, "thought": True}, problem


def _encode_unknown(_part: Part, _writing: Writing) -> Written:
    return None, "a kind of content that is not known here"


def _encode_media(part: AnyMedia, _writing: Writing) -> Written:
    return encode_media(part)


def _encode_server_call(part: ServerToolCall, writing: Writing) -> Written:
    if not writing.is_own(part):
        return None, _FOREIGN_TOOL
    return encode_server_call(part), None


def _encode_server_result(part: ServerToolResult, writing: Writing) -> Written:
    if not writing.is_own(part):
        return None, _FOREIGN_TOOL
    return encode_server_result(part), None


_ENCODERS: dict[type[Part], Callable[[Any, Writing], Written]] = {
    Text: _encode_text,
    Thinking: _encode_thinking,
    Refusal: _encode_refusal,
    Image: _encode_media,
    Audio: _encode_media,
    Video: _encode_media,
    File: _encode_media,
    ToolCall: encode_call,
    ToolResult: encode_result,
    ServerToolCall: _encode_server_call,
    ServerToolResult: _encode_server_result,
}
