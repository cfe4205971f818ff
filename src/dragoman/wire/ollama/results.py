"""Tool results: messages of role `tool`, which name their tool and, of late, their call (W103)."""

from __future__ import annotations

from typing import Any

from dragoman.model.content import AnyPart
from dragoman.model.media import Audio, Image
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import Refusal, Text
from dragoman.model.roles import Role
from dragoman.model.tools import ResultPart, ToolResult, make_result
from dragoman.wire.ollama.assistant import decode_text, take_images
from dragoman.wire.ollama.exchange import Incoming, Outgoing
from dragoman.wire.ollama.media import encode_image
from dragoman.wire.ollama.spelling import kept, laid

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
    extras = kept(wire, known, written)
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
    return laid(body, result.extras)


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
