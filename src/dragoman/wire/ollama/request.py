"""Requests to `/api/chat` and their messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import Text
from dragoman.model.requests import BLANK, Request
from dragoman.model.roles import Role
from dragoman.model.tools import ToolResult
from dragoman.wire.call_ids import decode_calls
from dragoman.wire.encoded import Encoded
from dragoman.wire.json_values import is_list, want
from dragoman.wire.ollama.content import (
    decode_assistant,
    decode_media,
    decode_result,
    decode_text,
    encode_assistant,
    encode_result,
    encode_texts_and_images,
    note_written,
)
from dragoman.wire.ollama.dialect import NAME, ORIGIN, TARGET, OllamaReading, OllamaWriting
from dragoman.wire.ollama.settings import PLACES, SETTINGS
from dragoman.wire.ollama.tools import decode_tools, encode_tools
from dragoman.wire.overlay import overlay_of, spelled, with_overlay
from dragoman.wire.overlay_edits import with_digests, without_edited
from dragoman.wire.target import Target
from dragoman.wire.tolerance import Form, readable_message, with_original

# --- messages: a role, one text, and images beside it
#
# Messages of several parts are flattened (W105): an assistant's texts are pieces of one
# utterance and are joined without a separator; other roles' texts are separate items and are
# joined by newlines. Media go to `images`, in order.

_ASSISTANT, _TOOL, _USER = Role.ASSISTANT, Role.TOOL, Role.USER
_ROLES = {
    "user": _USER,
    "system": Role.SYSTEM,
    "assistant": _ASSISTANT,
    "tool": _TOOL,
    "developer": Role.DEVELOPER,  # unknown to the server, which passes it to the model's template
}
FORM = Form(NAME, {word: word for word in _ROLES}, kinds=(str, type(None)))
"""The shape of messages in this dialect."""
_WRITTEN = {
    _USER: "user",
    Role.SYSTEM: "system",
    Role.DEVELOPER: "system",
    _ASSISTANT: "assistant",
    _TOOL: "user",  # parts of a tool message that are not results are sent as the user's
}


def decode_messages(wire: list[Any]) -> tuple[Message, ...]:
    """Decode messages one to one."""
    return decode_calls(lambda calls: _decode_all(wire, OllamaReading(ORIGIN, calls)))


def _decode_all(wire: list[Any], reading: OllamaReading) -> tuple[Message, ...]:
    messages: list[Message] = []
    for index, item in enumerate(wire):
        reading.calls.at(index)
        messages.append(_decode_message(item, reading))
    return tuple(messages)


def _decode_message(wire: Any, reading: OllamaReading) -> Message:
    role = _readable_role(wire)
    if role is None:
        made, guesses = readable_message(wire, FORM)
        return with_original(_decode_message(made, reading), NAME, guesses)
    if role is _ASSISTANT:
        return decode_assistant(wire, reading)
    if role is _TOOL:
        return decode_result(wire, reading)
    return _decode_user_or_system(wire, role)


def _readable_role(wire: Any) -> Role | None:
    """The role of a message if it is known and the content is a text or missing; else None."""
    word = wire.get("role") if type(wire) is dict else None
    if type(word) is not str or type(wire.get("content")) not in FORM.kinds:
        return None
    return _ROLES.get(word.lower())  # case-insensitive, as on the server


def _decode_user_or_system(wire: dict[str, Any], role: Role) -> Message:
    """Decode a user or system message."""
    known, written = set[str](), dict[str, Any]()
    note_written("role", _WRITTEN[role], wire, known, written)
    text = decode_text(wire, known, written)
    images = decode_media(wire, known)
    has_text = text or ("content" in known and not images)
    parts = (Text(text), *images) if has_text else tuple(images)
    return make_message(role, parts, extras=overlay_of(wire, known, NAME, written))


def encode_messages(request: Request, writing: OllamaWriting) -> list[dict[str, Any]]:
    """Encode the messages of a request, the system prompt first."""
    written: list[dict[str, Any]] = []
    if request.system:
        place, writing.place = writing.place, "system[{1}]"
        if fields := encode_texts_and_images(enumerate(request.system), writing):
            written.append({"role": "system", **fields})
        writing.place = place
    for index, message in enumerate(request.messages):
        writing.message = index
        if message.role is _ASSISTANT:
            answer = encode_assistant(message, writing)
            written += [] if answer is None else [answer]
        else:
            written += _encode_others(message, writing)
    return written


def _encode_others(message: Message, writing: OllamaWriting) -> list[dict[str, Any]]:
    """Encode a non-assistant message: one message for each result, then one for the rest."""
    written: list[dict[str, Any]] = []
    rest: list[tuple[int, AnyPart]] = []
    for index, part in enumerate(message.parts):
        if type(part) is ToolResult:
            writing.part = index
            written.append(encode_result(part, writing))
        else:
            rest.append((index, part))
    if message.role is not _TOOL:
        writing.lose_name(message)
    if rest or not message.parts:
        fields = encode_texts_and_images(rest, writing)
        if fields or not written:
            body = {"role": _WRITTEN[message.role], "content": "", **fields}
            written.append(with_overlay(body, message.extras, NAME))
    elif len(written) == 1 and message.extras is not EMPTY:
        return [spelled(written[0], message.extras, NAME)]
    return written


# --- whole requests

PATH = "/api/chat"
"""The endpoint of requests. The server's `/v1` speaks OpenAI Chat, with similar bodies."""


def decode_request(wire: Mapping[str, Any], _path: str | None = None) -> Request:
    """Decode a request body; a request without messages loads or unloads the model."""
    if wire.get("messages") is not None:
        want(wire, "messages", list, NAME, "$")
    settings, messages = SETTINGS.read(wire), wire.get("messages")
    settings.setdefault("stream", True)  # W101: the default
    known, written = set[str](), dict[str, Any]()
    if is_list(messages):
        known.add("messages")
    else:
        messages, written["messages"] = [], []
    request = BLANK.replace_trusted(
        messages=decode_messages(messages), tools=decode_tools(wire.get("tools"), known), **settings
    )
    written |= SETTINGS.write(request, OllamaWriting(TARGET))
    extras = overlay_of(wire, known, NAME, written)
    if not extras:
        return request
    return with_digests(request.replace_trusted(extras=extras), NAME, PLACES)


def encode_request(request: Request, target: Target = TARGET) -> Encoded:
    """Encode a request. `stream` is always written: the default differs from other dialects."""
    writing = OllamaWriting(target)
    body = SETTINGS.write(request, writing)
    body["messages"] = encode_messages(request, writing)
    if tools := encode_tools(request, writing):
        body["tools"] = tools
    body["stream"] = request.stream or False  # W101
    if request.extras is not EMPTY:
        body = with_overlay(body, without_edited(request, NAME, PLACES), NAME)
    return Encoded(body, path=PATH, losses=tuple(writing.losses), repairs=tuple(writing.repairs),
                   context=writing.context)  # fmt: skip
