"""The messages of a conversation: a role, one text, and pictures beside it.

What others have in several parts is flattened (W105): an assistant's texts are pieces of one
utterance and are joined as they are, others' are separate items and stand on lines of their own;
media go to `images`, in their order.
"""

from __future__ import annotations

from typing import Any

from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import Refusal, Text
from dragoman.model.roles import Role
from dragoman.model.tools import ToolResult
from dragoman.wire.call_ids import decode_calls
from dragoman.wire.ollama.assistant import (
    decode_assistant,
    decode_text,
    encode_assistant,
    take_images,
)
from dragoman.wire.ollama.exchange import Incoming, Outgoing
from dragoman.wire.ollama.media import encode_image
from dragoman.wire.ollama.results import decode_result, encode_result
from dragoman.wire.ollama.spelling import NAME, OWN, kept, laid
from dragoman.wire.overlay import reshaped
from dragoman.wire.tolerance import Form, readable_message, with_shapes

_ASSISTANT, _TOOL, _USER = Role.ASSISTANT, Role.TOOL, Role.USER
_ROLES = {
    "user": _USER,
    "system": Role.SYSTEM,
    "assistant": _ASSISTANT,
    "tool": _TOOL,
    "developer": Role.DEVELOPER,  # unknown to the server, which hands it to the model's template
}
FORM = Form(NAME, {word: word for word in _ROLES}, kinds=(str, type(None)))
"""What is read here as a message."""
_PLAIN = {"user": _USER, "system": Role.SYSTEM, "assistant": _ASSISTANT}
# What is in a tool's message and no result is said by the user.
_WRITTEN = {_USER: "user", Role.SYSTEM: "system", Role.DEVELOPER: "system", _TOOL: "user"}


def decode_messages(wire: list[Any]) -> tuple[Message, ...]:
    """One message for each of the wire's."""
    return decode_calls(lambda calls: _decode_all(wire, Incoming(OWN, calls)))


def _decode_all(wire: list[Any], incoming: Incoming) -> tuple[Message, ...]:
    messages: list[Message] = []
    for index, item in enumerate(wire):
        # A role and a text: most messages are this.
        if type(item) is dict and len(item) == 2 and type(item.get("content")) is str:  # noqa: PLR2004
            role = _PLAIN.get(word) if type(word := item.get("role")) is str else None
            if role is _ASSISTANT:
                incoming.calls.begin_step()
            if role is not None and (item["content"] or role is not _ASSISTANT):
                messages.append(make_message(role, (Text(item["content"]),)))
                continue
        incoming.calls.at(index)
        messages.append(_decode_message(item, incoming))
    return tuple(messages)


def _decode_message(wire: Any, incoming: Incoming) -> Message:
    role = _readable_role(wire)
    if role is None:
        made, shapes = readable_message(wire, FORM)
        return with_shapes(_decode_message(made, incoming), NAME, shapes)
    if role is _ASSISTANT:
        return decode_assistant(wire, incoming)
    if role is _TOOL:
        return decode_result(wire, incoming)
    return _decode_talk(wire, role)


def _readable_role(wire: Any) -> Role | None:
    """The role of a message that has one of the known ones, and a text or nothing to say."""
    word = wire.get("role") if type(wire) is dict else None
    if type(word) is not str or type(wire.get("content")) not in FORM.kinds:
        return None
    return _ROLES.get(word.lower())  # as the server reads it


def _decode_talk(wire: dict[str, Any], role: Role) -> Message:
    """A message of a user or the system."""
    known, written = set[str](), dict[str, Any]()
    if wire["role"] == _WRITTEN[role]:
        known.add("role")
    else:
        written["role"] = _WRITTEN[role]
    text = decode_text(wire, known, written)
    images = take_images(wire, known)
    is_said = text or ("content" in known and not images)
    parts = (Text(text), *images) if is_said else tuple(images)
    return make_message(role, parts, extras=kept(wire, known, written))


def encode_messages(
    system: tuple[AnyPart, ...], messages: tuple[Message, ...], out: Outgoing
) -> list[dict[str, Any]]:
    """The wire's messages; a system prompt from outside the list goes first."""
    written: list[dict[str, Any]] = []
    if system:
        body, is_said = _encode_parts("system", list(enumerate(system)), out, "system")
        written += [body] if is_said else []
    for index, message in enumerate(messages):
        if message.role is _ASSISTANT:
            answer = _encode_plain(message, "assistant")
            answer = answer or encode_assistant(message, out, f"messages[{index}]")
            written += [] if answer is None else [answer]
        else:
            written += _encode_talk(message, out, f"messages[{index}]")
    return written


def _encode_talk(message: Message, out: Outgoing, path: str) -> list[dict[str, Any]]:
    """Messages of anybody but the model: each result in one of its own, and before the rest."""
    word = _WRITTEN[message.role]
    plain = _encode_plain(message, word)
    if plain is not None:
        return [plain]
    place = f"{path}.parts"
    written: list[dict[str, Any]] = []
    rest: list[tuple[int, AnyPart]] = []
    for index, part in enumerate(message.parts):
        if type(part) is ToolResult:
            written.append(encode_result(part, out, f"{place}[{index}]"))
        else:
            rest.append((index, part))
    if message.name is not None and message.role is not _TOOL:
        out.lose(f"{path}.name", "messages carry no names here")
    if rest or not message.parts:
        body, is_said = _encode_parts(word, rest, out, place)
        if is_said or not written:
            written.append(laid(body, message.extras))
    elif len(written) == 1 and message.extras is not EMPTY:
        return [reshaped(written[0], message.extras, NAME)]
    return written


def _encode_plain(message: Message, word: str) -> dict[str, Any] | None:
    """The message that most are, a text and nothing else; None where there is more."""
    parts = message.parts
    only = parts[0] if len(parts) == 1 else None
    if type(only) is not Text or message.extras is not EMPTY or message.name is not None:
        return None
    if only.cache is not None or only.signature is not None or only.citations:
        return None
    return {"role": word, "content": only.text}


def _encode_parts(
    word: str, parts: list[tuple[int, AnyPart]], out: Outgoing, place: str
) -> tuple[dict[str, Any], bool]:
    """A message with these parts, and whether it says anything."""
    texts: list[str] = []
    images: list[str] = []
    for index, part in parts:
        path = f"{place}[{index}]"
        if isinstance(part, (Text, Refusal)):
            texts.append(part.text)
            if part.cache is not None or part.signature is not None:
                out.lose_luggage(part, path)
        elif (image := encode_image(part, out, path)) is not None:
            images.append(image)
    body: dict[str, Any] = {"role": word, "content": "\n".join(texts)}
    if images:
        body["images"] = images
    return body, bool(texts or images)
