"""What messages hold: assistants' texts and calls, pictures, tools' results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dragoman.model.content import AnyPart
from dragoman.model.media import Audio, Image, Media, sniff_base64, split_data_url
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import Opaque, Refusal, ServerToolCall, ServerToolResult, Text, Thinking
from dragoman.model.roles import Role
from dragoman.model.tools import ResultPart, ToolCall, ToolResult, make_result
from dragoman.wire.json_values import is_list
from dragoman.wire.ollama.dialect import NAME, OWN, Incoming, Outgoing, is_own
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
_FOREIGN_TOOL = "another provider's own tools can't be replayed here"


def decode_assistant(wire: dict[str, Any], incoming: Incoming) -> Message:
    """An assistant message; `incoming.origin` says where it came from.

    The empty content of a message that has something else to say is no text.
    """
    incoming.calls.begin_step()
    known, written = set[str](), dict[str, Any]()
    parts: list[AnyPart] = []
    if wire.get("role") == "assistant":
        known.add("role")
    else:
        written["role"] = "assistant"
    thinking = wire.get("thinking")
    if thinking and isinstance(thinking, str):
        known.add("thinking")
        parts.append(Thinking(thinking, origin=incoming.origin))
    if text := decode_text(wire, known, written):
        parts.append(Text(text))
    parts += take_images(wire, known)
    calls = wire.get("tool_calls")
    if is_list(calls) and calls:
        known.add("tool_calls")
        parts += [decode_call(call, incoming) for call in calls]
    return make_message(_ASSISTANT, tuple(parts), extras=overlay_of(wire, known, NAME, written))


def decode_text(wire: dict[str, Any], known: set[str], written: dict[str, Any]) -> str:
    """The content of a message; without one, what an encoder writes there is noted."""
    content = wire.get("content")
    if isinstance(content, str):
        known.add("content")
        return content
    written["content"] = ""
    return ""


def take_images(wire: dict[str, Any], known: set[str]) -> list[AnyPart]:
    """The media of a message."""
    found = decode_images(wire.get("images")) if "images" in wire else None
    if found is None:
        return []
    known.add("images")
    return [*found]


def encode_assistant(message: Message, out: Outgoing, path: str) -> dict[str, Any] | None:
    """An assistant message; None where nothing of it could be said."""
    return _Writer(message, out, path).write()


class _Writer:
    """Puts each part where the wire has it."""

    __slots__ = ("_calls", "_images", "_message", "_out", "_path", "_texts", "_thinking")

    def __init__(self, message: Message, out: Outgoing, path: str) -> None:
        self._message = message
        self._out = out
        self._path = path
        self._texts: list[str] = []
        self._thinking: list[str] = []
        self._images: list[str] = []
        self._calls: list[Any] = []

    def write(self) -> dict[str, Any] | None:
        message = self._message
        for index, part in enumerate(message.parts):
            _PLACES.get(type(part), _Writer.put_image)(self, part, f"{self._path}.parts[{index}]")
        # Pieces of one utterance, as `Message.text` has it.
        body: dict[str, Any] = {"role": "assistant", "content": "".join(self._texts)}
        if any(self._thinking):
            body["thinking"] = "".join(self._thinking)
        if self._images:
            body["images"] = self._images
        if self._calls:
            body["tool_calls"] = self._calls
        if message.name is not None:
            self._out.lose(f"{self._path}.name", "messages carry no names here")
        is_said = len(body) > 2 or self._texts or not message.parts  # noqa: PLR2004 - role and content
        return with_overlay(body, message.extras, NAME) if is_said else None

    def put_text(self, part: Any, path: str) -> None:
        self._texts.append(part.text)
        if part.cache is not None or part.signature is not None:
            self._out.lose_luggage(part, path)
        if part.citations:
            self._out.lose(f"{path}.citations", "there are no citations here")

    def put_refusal(self, part: Any, path: str) -> None:
        self._texts.append(part.text)
        self._out.lose(path, "a refusal is sent as text")

    def put_thinking(self, part: Any, path: str) -> None:
        """Thinking is plain text here, and goes back to who made it (W106).

        A response may show what can be read of anybody's.
        """
        origin = part.origin if part.origin is not None else self._message.origin
        is_sealed = part.signature is not None or part.data is not None
        is_foreign = is_sealed or not (origin is None or is_own(origin))
        if is_foreign and not (self._out.is_response and part.text):
            self._out.lose(path, "another provider's thinking can't be replayed here")
            return
        if is_sealed:
            self._out.lose(f"{path}.signature", "another provider's seal has no place here")
        if part.text and self._thinking and not is_own(origin):
            self._thinking.append("\n")
        self._thinking.append(part.text)

    def put_call(self, part: Any, path: str) -> None:
        call = encode_call(part, self._message.origin, self._out, path, len(self._calls))
        if call is not None:
            self._calls.append(call)

    def put_executed(self, _part: Any, path: str) -> None:
        self._out.lose(path, _FOREIGN_TOOL)

    def put_opaque(self, part: Any, path: str) -> None:
        if part.dialect == NAME:
            self._calls.append(part.payload)  # nothing else is opaque here
        else:
            self._out.lose(path, "what only another dialect understands is left out")

    def put_image(self, part: Any, path: str) -> None:
        is_ours = is_own(part.origin if part.origin is not None else self._message.origin)
        if self._out.is_response and not is_ours:
            # The official client fails to read them.
            self._out.lose(path, "an answer holds no media here")
        elif (image := encode_image(part, self._out, path)) is not None:
            self._images.append(image)


_PLACES: dict[type, Callable[[_Writer, Any, str], None]] = {
    Text: _Writer.put_text,
    Refusal: _Writer.put_refusal,
    Thinking: _Writer.put_thinking,
    ToolCall: _Writer.put_call,
    ServerToolCall: _Writer.put_executed,
    ServerToolResult: _Writer.put_executed,
    Opaque: _Writer.put_opaque,
}


# --- tool results: messages of role `tool`, which name their tool and, of late, their call (W103)

_TOOL = Role.TOOL


def decode_result(wire: dict[str, Any], incoming: Incoming) -> Message:
    """A message with the result of one call."""
    known, written = set[str](), dict[str, Any]()
    if wire["role"] == "tool":
        known.add("role")
    else:
        written["role"] = "tool"
    text = decode_text(wire, known, written)
    name, wire_id = wire.get("tool_name"), wire.get("tool_call_id")
    name = name if name and isinstance(name, str) else None
    wire_id = wire_id if wire_id and isinstance(wire_id, str) else None
    call_id, ours = incoming.calls.answer_named(name, wire_id)
    if name is not None:
        known.add("tool_name")
    elif call_id in incoming.names:
        written["tool_name"] = incoming.names[call_id]
    if wire_id is not None and wire_id == ours:
        known.add("tool_call_id")
    elif ours:  # an empty one is not written
        written["tool_call_id"] = ours
    images = take_images(wire, known)
    content = _decode_content(text, images) if images else text
    extras = overlay_of(wire, known, NAME, written)
    return make_message(_TOOL, (make_result(call_id, content, tool_name=name, extras=extras),))


def _decode_content(text: str, images: list[AnyPart]) -> tuple[ResultPart, ...]:
    media = [part for part in images if isinstance(part, (Image, Audio))]
    return (Text(text), *media) if text else tuple(media)


def encode_result(result: ToolResult, out: Outgoing, path: str) -> dict[str, Any]:
    """The message for a result. The server shows the pictures of every message to the model."""
    body: dict[str, Any] = {"role": "tool", "content": ""}
    content = result.content
    if isinstance(content, str):
        body["content"] = content or result.text  # data as JSON, where there is no text
    else:
        _encode_content(content, body, out, path)
    name = result.tool_name or out.names.get(result.call_id)
    if name is not None:
        body["tool_name"] = name
    call_id = out.ids.get(result.call_id, result.call_id)
    if call_id:
        body["tool_call_id"] = call_id
    if result.is_error:
        out.lose(f"{path}.is_error", "a failed call can only be told by its text here")
    if result.cache is not None or result.signature is not None:
        out.lose_luggage(result, path)
    return with_overlay(body, result.extras, NAME)


def _encode_content(
    content: tuple[ResultPart, ...], body: dict[str, Any], out: Outgoing, path: str
) -> None:
    texts: list[str] = []
    for index, part in enumerate(content):
        where = f"{path}.content[{index}]"
        if isinstance(part, (Text, Refusal)):
            texts.append(part.text)
            if part.cache is not None:
                out.lose_luggage(part, where)
        elif (image := encode_image(part, out, where)) is not None:
            body.setdefault("images", []).append(image)
    body["content"] = "\n".join(texts)
