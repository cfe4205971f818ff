"""Requests to `/api/chat`, and the messages that they hold."""

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
    extras_of,
    note_written,
)
from dragoman.wire.ollama.dialect import NAME, OWN, TARGET, OllamaReading, OllamaWriting
from dragoman.wire.ollama.settings import (
    SAMPLING,
    decode_output,
    decode_sampling,
    decode_thinking_config,
    encode_output,
    encode_sampling,
    encode_thinking_config,
)
from dragoman.wire.ollama.tools import decode_tools, encode_tools
from dragoman.wire.overlay import overlay_of, spelled, with_overlay
from dragoman.wire.overlay_edits import Places, with_digests, without_edited
from dragoman.wire.target import Target
from dragoman.wire.tolerance import Form, readable_message, with_original

# --- the messages of a conversation: a role, one text, and pictures beside it
#
# What others have in several parts is flattened (W105): an assistant's texts are pieces of one
# utterance and are joined as they are, others' are separate items and stand on lines of their own;
# media go to `images`, in their order.

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
_WRITTEN = {
    _USER: "user",
    Role.SYSTEM: "system",
    Role.DEVELOPER: "system",
    _ASSISTANT: "assistant",
    _TOOL: "user",  # what is in a tool's message and no result is said by the user
}


def decode_messages(wire: list[Any]) -> tuple[Message, ...]:
    """One message for each of the wire's."""
    return decode_calls(lambda calls: _decode_all(wire, OllamaReading(OWN, calls)))


def _decode_all(wire: list[Any], reading: OllamaReading) -> tuple[Message, ...]:
    messages: list[Message] = []
    for index, item in enumerate(wire):
        # A role and a text: most messages are this.
        if type(item) is dict and len(item) == 2 and type(item.get("content")) is str:  # noqa: PLR2004
            role = _PLAIN.get(word) if type(word := item.get("role")) is str else None
            if role is _ASSISTANT:
                reading.calls.begin_step()
            if role is not None and (item["content"] or role is not _ASSISTANT):
                messages.append(make_message(role, (Text(item["content"]),)))
                continue
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
    """The role of a message that has one of the known ones, and a text or nothing to say."""
    word = wire.get("role") if type(wire) is dict else None
    if type(word) is not str or type(wire.get("content")) not in FORM.kinds:
        return None
    return _ROLES.get(word.lower())  # as the server reads it


def _decode_user_or_system(wire: dict[str, Any], role: Role) -> Message:
    """A message of a user or the system."""
    known, written = set[str](), dict[str, Any]()
    note_written("role", _WRITTEN[role], wire, known, written)
    text = decode_text(wire, known, written)
    images = decode_media(wire, known)
    is_said = text or ("content" in known and not images)
    parts = (Text(text), *images) if is_said else tuple(images)
    return make_message(role, parts, extras=extras_of(wire, known, written))


def encode_messages(request: Request, writing: OllamaWriting) -> list[dict[str, Any]]:
    """The wire's messages; a system prompt from outside the list goes first."""
    written: list[dict[str, Any]] = []
    if request.system:
        place, writing.place = writing.place, "system[{1}]"
        if said := encode_texts_and_images(enumerate(request.system), writing):
            written.append({"role": "system", **said})
        writing.place = place
    for index, message in enumerate(request.messages):
        writing.message = index
        if (plain := _encode_plain(message)) is not None:
            written.append(plain)
        elif message.role is _ASSISTANT:
            answer = encode_assistant(message, writing)
            written += [] if answer is None else [answer]
        else:
            written += _encode_others(message, writing)
    return written


def _encode_plain(message: Message) -> dict[str, Any] | None:
    """The message that most are, a text and nothing else; None where there is more.

    Without this, writing a plain conversation takes a third longer.
    """
    only = message.parts[0] if len(message.parts) == 1 else None
    if type(only) is not Text or message.extras is not EMPTY or message.name is not None:
        return None
    if only.cache is not None or only.signature is not None or only.citations:
        return None
    return {"role": _WRITTEN[message.role], "content": only.text}


def _encode_others(message: Message, writing: OllamaWriting) -> list[dict[str, Any]]:
    """Messages of anybody but the model: each result in one of its own, and before the rest."""
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
        said = encode_texts_and_images(rest, writing)
        if said or not written:
            body = {"role": _WRITTEN[message.role], "content": "", **said}
            written.append(with_overlay(body, message.extras, NAME))
    elif len(written) == 1 and message.extras is not EMPTY:
        return [spelled(written[0], message.extras, NAME)]
    return written


# --- whole requests

PATH = "/api/chat"
"""Where requests go: the server's `/v1` speaks OpenAI Chat, and many a body would do for both."""


_PLACES: Places = {
    "model": "model",
    "stream": "stream",
    "tools": "tools",
    "format": "output",
    "think": "thinking",
    **SAMPLING,
}


def decode_request(wire: Mapping[str, Any]) -> Request:
    """The request in a body; one without messages loads the model, or unloads it."""
    if wire.get("messages") is not None:
        want(wire, "messages", list, NAME, "$")
    known, written = set[str](), dict[str, Any]()
    model, messages, stream = wire.get("model"), wire.get("messages"), wire.get("stream")
    if isinstance(model, str):
        known.add("model")
    if is_list(messages):
        known.add("messages")
    else:
        messages, written["messages"] = [], []
    if isinstance(stream, bool):
        known.add("stream")
    else:  # W101: who says nothing gets a stream
        stream = written["stream"] = True
    output = decode_output(wire.get("format"))
    if output is not None:
        known.add("format")
    thinking = decode_thinking_config(wire.get("think"))
    if thinking is not None:
        known.add("think")
    sampling, options = decode_sampling(wire, known)
    tools = decode_tools(wire.get("tools"), known)
    left = {key: value for key, value in wire.items() if key not in known}
    if options:
        left["options"] = options
    request = BLANK.replace_trusted(
        model=model if isinstance(model, str) else None,
        messages=decode_messages(messages),
        tools=tools,
        sampling=sampling,
        output=output,
        thinking=thinking,
        stream=stream,
        extras=overlay_of(left, (), NAME, written),
    )
    return request if request.extras is EMPTY else with_digests(request, NAME, _PLACES)


def encode_request(request: Request, target: Target = TARGET) -> Encoded:
    """The body to send for a request. Elsewhere a request that says nothing gets no stream."""
    writing = OllamaWriting(target)
    body: dict[str, Any] = {} if request.model is None else {"model": request.model}
    body["messages"] = encode_messages(request, writing)
    if tools := encode_tools(request, writing):
        body["tools"] = tools
    if request.output is not None:
        encode_output(request.output, body, writing)
    if request.thinking is not None:
        encode_thinking_config(request.thinking, body, writing)
    encode_sampling(request.sampling, body, writing)
    body["stream"] = request.stream or False  # W101
    if request.extras is not EMPTY:
        body = with_overlay(body, without_edited(request, NAME, _PLACES), NAME)
    return Encoded(body, path=PATH, losses=tuple(writing.losses), repairs=tuple(writing.repairs),
                   context=writing.context)  # fmt: skip
