"""Assistant messages: what the model thought, said and called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dragoman.model.content import AnyPart
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import Opaque, Refusal, ServerToolCall, ServerToolResult, Text, Thinking
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall
from dragoman.wire.ollama.calls import decode_call, encode_call
from dragoman.wire.ollama.exchange import Incoming, Outgoing
from dragoman.wire.ollama.media import decode_images, encode_image
from dragoman.wire.ollama.spelling import NAME, is_list, is_own, kept, laid

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
    return make_message(_ASSISTANT, tuple(parts), extras=kept(wire, known, written))


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
        return laid(body, message.extras) if is_said else None

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
