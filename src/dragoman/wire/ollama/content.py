"""What messages hold: assistants' texts and calls, pictures, tools' results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import count
from typing import Any

from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY, FrozenDict
from dragoman.model.media import Audio, Image, Media, sniff_base64, split_data_url
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import Opaque, Refusal, ServerToolCall, ServerToolResult, Text, Thinking
from dragoman.model.roles import Role
from dragoman.model.tools import ResultPart, ToolCall, ToolResult, make_result
from dragoman.wire.json_values import is_list
from dragoman.wire.ollama.dialect import NAME, OWN, OllamaReading, OllamaWriting, is_own
from dragoman.wire.ollama.tools import decode_call, encode_call
from dragoman.wire.overlay import fields_of, overlay_of, with_overlay

# --- media: raw base64 in the `images` of a message, of whatever role (W105)
#
# The server looks at the first bytes and takes sound (wav, mp3) there as well.

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
            return Image(
                data=data, mime=mime, extras=overlay_of({"type": text[: -len(data)]}, (), NAME)
            )
    if text.startswith(("http://", "https://")):
        return Image(url=text, origin=OWN)
    mime = sniff_base64(text)
    return Audio(data=text, mime=mime) if mime in _SOUNDS else Image(data=text, mime=mime)


def encode_image(part: AnyPart, writing: OllamaWriting) -> str | None:
    """The base64 of a picture or a sound; None, and a loss, where it can't be sent."""
    is_lenient = not writing.target.is_strict  # what came here goes back as it came
    if is_lenient and (text := _as_it_came(part)) is not None:
        return text
    problem = _problem(part)
    if problem is not None or not isinstance(part, Media) or part.data is None:
        writing.lose_here(problem or _UNKNOWN)
        return None
    writing.lose_unsupported(part)
    if part.detail is not None:
        writing.lose_here("how closely to look at an image can't be said", ".detail")
    return _standard(part.data)


def _as_it_came(part: AnyPart) -> str | None:
    """What stood in `images`, of a part that came in this dialect."""
    if not isinstance(part, (Image, Audio)) or part.data is None:
        return part.url if isinstance(part, Image) and is_own(part.origin) else None
    prefix = fields_of(part.extras, NAME).get("type")
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


# --- assistant messages

_ASSISTANT = Role.ASSISTANT


def decode_assistant(wire: dict[str, Any], reading: OllamaReading) -> Message:
    """An assistant message; `reading.origin` says where it came from.

    The empty content of a message that has something else to say is no text.
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
    return make_message(_ASSISTANT, tuple(parts), extras=extras_of(wire, known, written))


def note_written(
    key: str, ours: Any, wire: Mapping[str, Any], known: set[str], written: dict[str, Any]
) -> None:
    """Note what an encoder writes in a field: it is known where the wire has the same."""
    if wire.get(key) == ours:
        known.add(key)
    else:
        written[key] = ours


def extras_of(wire: dict[str, Any], known: set[str], written: dict[str, Any]) -> FrozenDict:
    """What of a message would not come back by itself: of most, nothing.

    `known` are fields that the message has. `overlay_of` would find out by itself; so, a
    conversation of 200 messages is read in 7 % less time.
    """
    is_known = not written and len(known) == len(wire)
    return EMPTY if is_known else overlay_of(wire, known, NAME, written)


def decode_text(wire: dict[str, Any], known: set[str], written: dict[str, Any]) -> str:
    """The content of a message; without one, what an encoder writes there is noted."""
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
    """An assistant message; None where nothing of it could be said.

    `numbers` are those of its parts, where they are pieces of a longer message.
    """
    writing.origin = message.origin
    fields = _Fields()
    for number, part in zip(numbers or count(), message.parts, strict=False):
        writing.part = number
        _PLACES.get(type(part), _put_image)(part, fields, writing)
    # Pieces of one utterance, as `Message.text` has it.
    body: dict[str, Any] = {"role": "assistant", "content": "".join(fields.texts)}
    if fields.thinking:
        body["thinking"] = "".join(fields.thinking)
    if fields.images:
        body["images"] = fields.images
    if fields.calls:
        body["tool_calls"] = fields.calls
    writing.lose_name(message)
    is_said = len(body) > 2 or fields.texts or not message.parts  # noqa: PLR2004 - role and content
    return with_overlay(body, message.extras, NAME) if is_said else None


class _Fields:
    """What the parts of a message give, by the field that it stands in."""

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
        writing.lose_here("there are no citations here", ".citations")


def _put_refusal(part: Refusal, fields: _Fields, writing: OllamaWriting) -> None:
    fields.texts.append(part.text)
    writing.lose_here("a refusal is sent as text")


def _put_thinking(part: Thinking, fields: _Fields, writing: OllamaWriting) -> None:
    """Thinking is plain text here, and goes back to who made it (W106).

    A response may show what can be read of anybody's.
    """
    is_sealed = part.signature is not None or part.data is not None
    is_shown = writing.is_response and part.text
    if (is_sealed or writing.is_foreign(part)) and not is_shown:
        writing.lose_here("another provider's thinking can't be replayed here")
        return
    if is_sealed:
        writing.lose_here("another provider's seal has no place here", ".signature")
    if part.text:
        if fields.thinking and not writing.is_own(part):
            fields.thinking.append("\n")
        fields.thinking.append(part.text)


def _put_call(part: ToolCall, fields: _Fields, writing: OllamaWriting) -> None:
    call = encode_call(part, writing, len(fields.calls))
    if call is not None:
        fields.calls.append(call)


def _put_server_tool(_part: AnyPart, _fields: _Fields, writing: OllamaWriting) -> None:
    writing.lose_here("another provider's own tools can't be replayed here")


def _put_opaque(part: Opaque, fields: _Fields, writing: OllamaWriting) -> None:
    if part.dialect == NAME:
        fields.calls.append(part.payload)  # nothing else is opaque here
    else:
        writing.lose_here(_UNKNOWN)


def _put_image(part: AnyPart, fields: _Fields, writing: OllamaWriting) -> None:
    if writing.is_response and not writing.is_own(part):
        writing.lose_here("an answer holds no media here")  # the official client fails on them
    elif (image := encode_image(part, writing)) is not None:
        fields.images.append(image)


_PLACES: dict[type, Callable[[Any, _Fields, OllamaWriting], None]] = {
    Text: _put_text,
    Refusal: _put_refusal,
    Thinking: _put_thinking,
    ToolCall: _put_call,
    ServerToolCall: _put_server_tool,
    ServerToolResult: _put_server_tool,
    Opaque: _put_opaque,
}


# --- tool results: messages of role `tool`, which name their tool and, of late, their call (W103)

_TOOL = Role.TOOL


def decode_result(wire: dict[str, Any], reading: OllamaReading) -> Message:
    """A message with the result of one call."""
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
    elif ours:  # an empty one is not written
        written["tool_call_id"] = ours
    images = decode_media(wire, known)
    parts: tuple[ResultPart, ...] = (Text(text), *images) if text else tuple(images)
    extras = extras_of(wire, known, written)
    return make_message(
        _TOOL, (make_result(call_id, parts if images else text, tool_name=name, extras=extras),)
    )


def encode_result(result: ToolResult, writing: OllamaWriting) -> dict[str, Any]:
    """The message for a result. The server shows the pictures of every message to the model."""
    body: dict[str, Any] = {"role": "tool", "content": ""}
    content = result.content
    if isinstance(content, str):
        body["content"] = content or result.text  # data as JSON, where there is no text
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
        writing.lose_here("a failed call can only be told by its text here", ".is_error")
    writing.lose_unsupported(result)
    return with_overlay(body, result.extras, NAME)


# --- what anybody but the model says: texts on lines of their own, and media beside them


def encode_texts_and_images(
    parts: Iterable[tuple[int, AnyPart]], writing: OllamaWriting, position: str = "part"
) -> dict[str, Any]:
    """The fields of a message for these parts, by their numbers; none where nothing is said."""
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
