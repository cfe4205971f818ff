"""Message content: assistant text and tool calls, media, and tool results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import count
from typing import Any

from dragoman.model.content import AnyPart
from dragoman.model.media import Audio, Image, Media, sniff_base64, split_data_url
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import Opaque, Refusal, ServerToolCall, ServerToolResult, Text, Thinking
from dragoman.model.roles import Role
from dragoman.model.tools import ResultPart, ToolCall, ToolResult, make_result
from dragoman.wire.json_values import is_list
from dragoman.wire.ollama.dialect import NAME, ORIGIN, OllamaReading, OllamaWriting, is_own
from dragoman.wire.ollama.tools import decode_call, encode_call
from dragoman.wire.overlay import fields_of, overlay_of, with_overlay

# --- media: raw base64 in the `images` of a message of any role (W105)
#
# The server sniffs the first bytes and also accepts audio (wav, mp3) in `images`.

_AUDIO_TYPES = frozenset({"audio/wav", "audio/mpeg"})
_UNSUPPORTED_MEDIA = "files and videos are not supported"
_FOREIGN_PART = "a part that only another dialect understands is left out"
_FROM_URL_SAFE = str.maketrans("-_", "+/", "\r\n")


def decode_images(wire: Any) -> list[Image | Audio] | None:
    """The media in `images`, or None if malformed (then the field stays in the extras)."""
    if not is_list(wire) or not wire or not all(isinstance(item, str) for item in wire):
        return None
    return [_decode_image(item) for item in wire]


def _decode_image(text: str) -> Image | Audio:
    if text.startswith("data:"):  # the server refuses it, but the meaning is clear
        mime, data = split_data_url(text)
        if data and text.endswith(data):
            return Image(
                data=data, mime=mime, extras=overlay_of({"type": text[: -len(data)]}, (), NAME)
            )
    if text.startswith(("http://", "https://")):
        return Image(url=text, origin=ORIGIN)
    mime = sniff_base64(text)
    return Audio(data=text, mime=mime) if mime in _AUDIO_TYPES else Image(data=text, mime=mime)


def encode_image(part: AnyPart, writing: OllamaWriting) -> str | None:
    """The base64 data of an image or audio part, or None with a loss if it can't be sent."""
    is_lenient = not writing.target.is_strict  # then values of this dialect round-trip unchanged
    if is_lenient and (text := _original_image(part)) is not None:
        return text
    problem = _problem(part)
    if problem is not None or not isinstance(part, Media) or part.data is None:
        writing.lose_here(problem or _FOREIGN_PART)
        return None
    writing.lose_unsupported(part)
    if part.detail is not None:
        writing.lose_here("image detail is not supported", ".detail")
    return _standard_base64(part.data)


def _original_image(part: AnyPart) -> str | None:
    """The original value in `images` of a part that was decoded from this dialect."""
    if not isinstance(part, (Image, Audio)) or part.data is None:
        return part.url if isinstance(part, Image) and is_own(part.origin) else None
    prefix = fields_of(part.extras, NAME).get("type")
    return f"{prefix}{part.data}" if isinstance(prefix, str) else part.data


def _problem(part: AnyPart) -> str | None:
    """The reason a part can't be sent in `images`, or None."""
    if not isinstance(part, (Image, Audio)):
        return _UNSUPPORTED_MEDIA if isinstance(part, Media) else _FOREIGN_PART
    if part.data is None:
        return "media must be sent inline, not by URL or file id (W105)"
    if isinstance(part, Audio) and not _is_supported_audio(part, part.data):
        return "only wav and mp3 audio is supported"
    return None


def _is_supported_audio(part: Audio, data: str) -> bool:
    """Whether the server supports the audio format, judged by its bytes or declared format."""
    return sniff_base64(data) in _AUDIO_TYPES or part.format in ("wav", "mp3")


def _standard_base64(data: str) -> str:
    """Base64 in the standard alphabet with padding, as the server's decoder requires."""
    if "-" in data or "_" in data:
        data = data.translate(_FROM_URL_SAFE)
    missing = -len(data) % 4
    return data + "=" * missing if missing and data.isascii() and "\n" not in data else data


# --- assistant messages

_ASSISTANT = Role.ASSISTANT


def decode_assistant(wire: dict[str, Any], reading: OllamaReading) -> Message:
    """Decode an assistant message whose origin is `reading.origin`.

    Empty content does not become a text part.
    """
    reading.calls.begin_step()
    known, written = set[str](), dict[str, Any]()
    parts: list[AnyPart] = []
    note_written("role", "assistant", wire, known, written)
    thinking = wire.get("thinking")
    if thinking and isinstance(thinking, str):
        known.add("thinking")
        parts.append(Thinking(thinking, origin=reading.origin))
    if text := decode_text(wire, known, written):
        parts.append(Text(text))
    parts += decode_media(wire, known)
    calls = wire.get("tool_calls")
    if is_list(calls) and calls:
        known.add("tool_calls")
        parts += [decode_call(call, reading) for call in calls]
    return make_message(_ASSISTANT, tuple(parts), extras=overlay_of(wire, known, NAME, written))


def note_written(
    key: str, ours: Any, wire: Mapping[str, Any], known: set[str], written: dict[str, Any]
) -> None:
    """Record the value our encoder writes for a field: known if the wire has the same value."""
    if wire.get(key) == ours:
        known.add(key)
    else:
        written[key] = ours


def decode_text(wire: dict[str, Any], known: set[str], written: dict[str, Any]) -> str:
    """The content of a message; if missing, the value our encoder writes is recorded."""
    content = wire.get("content")
    if isinstance(content, str):
        known.add("content")
        return content
    written["content"] = ""
    return ""


def decode_media(wire: dict[str, Any], known: set[str]) -> list[Image | Audio]:
    """The media of a message."""
    found = decode_images(wire.get("images")) if "images" in wire else None
    if found is not None:
        known.add("images")
    return found or []


def encode_assistant(
    message: Message, writing: OllamaWriting, numbers: Iterable[int] | None = None
) -> dict[str, Any] | None:
    """Encode an assistant message; None if none of its parts could be sent.

    `numbers` are the indexes of its parts if they belong to a longer message.
    """
    writing.origin = message.origin
    fields = _Fields()
    for number, part in zip(numbers or count(), message.parts, strict=False):
        writing.part = number
        _PUT_PART.get(type(part), _put_image)(part, fields, writing)
    # Joined without a separator, as in `Message.text`.
    body: dict[str, Any] = {"role": "assistant", "content": "".join(fields.texts)}
    if fields.thinking:
        body["thinking"] = "".join(fields.thinking)
    if fields.images:
        body["images"] = fields.images
    if fields.calls:
        body["tool_calls"] = fields.calls
    writing.lose_name(message)
    has_content = len(body) > 2 or fields.texts or not message.parts  # noqa: PLR2004 - role and content
    return with_overlay(body, message.extras, NAME) if has_content else None


class _Fields:
    """Collects encoded parts by the message field they go into."""

    __slots__ = ("calls", "images", "texts", "thinking")

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.thinking: list[str] = []
        self.images: list[str] = []
        self.calls: list[Any] = []


def _put_text(part: Text, fields: _Fields, writing: OllamaWriting) -> None:
    fields.texts.append(part.text)
    writing.lose_unsupported(part)
    if part.citations:
        writing.lose_here("citations are not supported", ".citations")


def _put_refusal(part: Refusal, fields: _Fields, writing: OllamaWriting) -> None:
    fields.texts.append(part.text)
    writing.lose_here("a refusal is sent as text")


def _put_thinking(part: Thinking, fields: _Fields, writing: OllamaWriting) -> None:
    """Thinking is plain text, sent back only to the provider that produced it (W106).

    A response may show readable thinking of any provider.
    """
    is_sealed = part.signature is not None or part.data is not None
    is_shown = writing.is_response and part.text
    if (is_sealed or writing.is_foreign(part)) and not is_shown:
        writing.lose_here("another provider's thinking can't be replayed")
        return
    if is_sealed:
        writing.lose_here("another provider's signature is left out", ".signature")
    if part.text:
        if fields.thinking and not writing.is_own(part):
            fields.thinking.append("\n")
        fields.thinking.append(part.text)


def _put_call(part: ToolCall, fields: _Fields, writing: OllamaWriting) -> None:
    call = encode_call(part, writing, len(fields.calls))
    if call is not None:
        fields.calls.append(call)


def _put_server_tool(_part: AnyPart, _fields: _Fields, writing: OllamaWriting) -> None:
    writing.lose_here("another provider's built-in tools can't be replayed")


def _put_opaque(part: Opaque, fields: _Fields, writing: OllamaWriting) -> None:
    if part.dialect == NAME:
        fields.calls.append(part.payload)  # only calls become opaque parts in this dialect
    else:
        writing.lose_here(_FOREIGN_PART)


def _put_image(part: AnyPart, fields: _Fields, writing: OllamaWriting) -> None:
    if writing.is_response and not writing.is_own(part):
        writing.lose_here("a response can't hold media")  # the official client fails on them
    elif (image := encode_image(part, writing)) is not None:
        fields.images.append(image)


_PUT_PART: dict[type, Callable[[Any, _Fields, OllamaWriting], None]] = {
    Text: _put_text,
    Refusal: _put_refusal,
    Thinking: _put_thinking,
    ToolCall: _put_call,
    ServerToolCall: _put_server_tool,
    ServerToolResult: _put_server_tool,
    Opaque: _put_opaque,
}


# --- tool results: messages with role `tool` that name their tool and, lately, their call (W103)

_TOOL = Role.TOOL


def decode_result(wire: dict[str, Any], reading: OllamaReading) -> Message:
    """Decode a tool message, which holds the result of one call."""
    known, written = set[str](), dict[str, Any]()
    note_written("role", "tool", wire, known, written)
    text = decode_text(wire, known, written)
    name, wire_id = wire.get("tool_name"), wire.get("tool_call_id")
    name = name if name and isinstance(name, str) else None
    wire_id = wire_id if wire_id and isinstance(wire_id, str) else None
    call_id, ours = reading.calls.answer_named(name, wire_id)
    if name is not None:
        known.add("tool_name")
    elif call_id in reading.names:
        written["tool_name"] = reading.names[call_id]
    if wire_id is not None and wire_id == ours:
        known.add("tool_call_id")
    elif ours:  # an empty id is not written
        written["tool_call_id"] = ours
    images = decode_media(wire, known)
    parts: tuple[ResultPart, ...] = (Text(text), *images) if text else tuple(images)
    extras = overlay_of(wire, known, NAME, written)
    return make_message(
        _TOOL, (make_result(call_id, parts if images else text, tool_name=name, extras=extras),)
    )


def encode_result(result: ToolResult, writing: OllamaWriting) -> dict[str, Any]:
    """The tool message for a result. The server passes images of any message to the model."""
    body: dict[str, Any] = {"role": "tool", "content": ""}
    content = result.content
    if isinstance(content, str):
        body["content"] = content or result.text  # structured data as JSON if there is no text
    else:
        body |= encode_texts_and_images(enumerate(content), writing, "item")
        writing.item = None
    name = result.tool_name or writing.names.get(result.call_id)
    if name is not None:
        body["tool_name"] = name
    call_id = writing.wire_ids.get(result.call_id, result.call_id)
    if call_id:
        body["tool_call_id"] = call_id
    if result.is_error:
        writing.lose_here(
            "the error flag of a result is not supported; only its text is sent", ".is_error"
        )
    writing.lose_unsupported(result)
    return with_overlay(body, result.extras, NAME)


# --- content of all other roles: texts joined by newlines, and media in `images`


def encode_texts_and_images(
    parts: Iterable[tuple[int, AnyPart]], writing: OllamaWriting, position: str = "part"
) -> dict[str, Any]:
    """The `content` and `images` fields for numbered parts; empty if nothing could be sent."""
    texts: list[str] = []
    images: list[str] = []
    for number, part in parts:
        setattr(writing, position, number)
        if isinstance(part, (Text, Refusal)):
            texts.append(part.text)
            writing.lose_unsupported(part)
        elif (image := encode_image(part, writing)) is not None:
            images.append(image)
    if images:
        return {"content": "\n".join(texts), "images": images}
    return {"content": "\n".join(texts)} if texts else {}
