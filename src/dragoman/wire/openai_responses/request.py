"""Requests: `input`, instructions, tools and settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import Text
from dragoman.model.requests import BLANK, Request
from dragoman.model.roles import Role
from dragoman.wire.encoded import Encoded
from dragoman.wire.json_values import want
from dragoman.wire.losses import UNSUPPORTED_FIELD
from dragoman.wire.openai_responses.dialect import NAME, TARGET
from dragoman.wire.openai_responses.forms import BARE
from dragoman.wire.openai_responses.layout import decode_items
from dragoman.wire.openai_responses.layout_writer import MessageWriter
from dragoman.wire.openai_responses.request_repairs import repaired_items
from dragoman.wire.openai_responses.settings import (
    NO_ENCRYPTED_REASONING,
    PLACES,
    SETTINGS,
    as_in_chat,
    encode_include,
    omits_encrypted_reasoning,
)
from dragoman.wire.openai_responses.tables import is_plain
from dragoman.wire.openai_responses.tools import (
    decode_choice,
    decode_tools,
    encode_choice,
    encode_tools,
)
from dragoman.wire.overlay import fields_of, has_overlay, overlay_of, with_note, with_overlay
from dragoman.wire.overlay_edits import with_digests, without_edited
from dragoman.wire.target import Target
from dragoman.wire.writing import Writing

PATH = "/v1/responses"
_USER = Role.USER
_TEXT_ONLY = "only text is supported in instructions"


def decode_request(wire: Mapping[str, Any], _path: str | None = None) -> Request:
    """Decode a request body."""
    listed = wire.get("tools")
    tools = decode_tools(listed) if isinstance(listed, list) else ()
    instructions = wire.get("instructions")
    settings = BLANK.replace_trusted(
        system=(Text(instructions),) if type(instructions) is str else (),
        tools=tools,
        tool_choice=decode_choice(wire, tools),
        **SETTINGS.read(wire),
    )
    messages = _decode_input(wire)
    read = {"input" if messages else "", "tools" if tools else ""}
    rest = {key: wire[key] for key in wire if key not in read}
    rebuilt = _encode_settings(settings, Writing(TARGET), wire.get("conversation"))
    extras = overlay_of(rest, (), NAME, rebuilt)
    if omits_encrypted_reasoning(wire):
        extras = with_note(extras, NAME, NO_ENCRYPTED_REASONING, value=True)
    request = settings.replace_trusted(messages=messages, extras=extras)
    return with_digests(request, NAME, PLACES) if extras else request


def encode_request(request: Request, target: Target = TARGET) -> Encoded:
    """Encode a request."""
    writing = MessageWriter(target)
    own = fields_of(request.extras, NAME)
    settings = _encode_settings(request, writing, own.get("conversation"))
    body = settings | encode_include(request, own)
    if tools := encode_tools(request.tools, writing):
        body["tools"] = tools
    if request.messages:
        body["input"] = _encode_input(request, writing)
    if has_overlay(request.extras, NAME):
        body = with_overlay(body, without_edited(request, NAME, PLACES), NAME)
    for name in target.fields.refused:
        if body.pop(name, None) is not None:
            writing.lose(f"extras.{name}", UNSUPPORTED_FIELD)
    return Encoded(
        body,
        path=PATH,
        losses=tuple(writing.losses),
        repairs=tuple(writing.repairs),
        context=writing.context,
    )


def _decode_input(wire: Mapping[str, Any]) -> tuple[Message, ...]:
    given = wire.get("input")
    if type(given) is str:
        return (make_message(_USER, (Text(given),)),)
    if given is None:
        return ()
    messages = decode_items(want(wire, "input", list, NAME, "$"))
    if len(messages) == 1 and _is_bare(messages[0]):
        # Without an overlay it would be encoded as a bare string.
        return (make_message(_USER, messages[0].parts, extras=BARE),)
    return tuple(messages)


def _encode_input(request: Request, writing: MessageWriter) -> str | list[Any]:
    messages = request.messages
    if len(messages) == 1 and _is_bare(messages[0]):
        return messages[0].text
    writing.offer(request.tools)
    for index, message in enumerate(messages):
        writing.write(message, index)
    return repaired_items(request, writing)


def _is_bare(message: Message) -> bool:
    """Whether a message is only a user's plain text."""
    return (
        message.role is _USER
        and not message.extras
        and message.name is None
        and len(message.parts) == 1
        and is_plain(message.parts[0])
    )


def _encode_settings(request: Request, writing: Writing, conversation: Any) -> dict[str, Any]:
    """Encode all fields except messages and tools."""
    body = SETTINGS.write(request, writing)
    is_object = isinstance(conversation, Mapping) and conversation.keys() != {"id"}
    if is_object and "conversation" in body:
        body["conversation"] = {"id": body["conversation"]}  # it had more than an id
    form = body.get("text", EMPTY).get("format", EMPTY)
    if writing.target.schemas.uses_chat_format and form.get("type", "text") != "text":
        body["response_format"] = as_in_chat(form)
    if request.system:
        body["instructions"] = _encode_system(request.system, writing)
    if request.tool_choice is not None:
        body.update(encode_choice(request.tool_choice, request.tools))
    return body


def _encode_system(system: tuple[AnyPart, ...], writing: Writing) -> str:
    """Encode the system prompt as one text."""
    texts: list[str] = []
    for index, part in enumerate(system):
        if not isinstance(part, Text):
            writing.lose(f"system[{index}]", _TEXT_ONLY)
            continue
        texts.append(part.text)
        if part.cache is not None:
            writing.lose(f"system[{index}].cache", "cache hints are not supported in instructions")
        if part.citations:
            writing.lose(f"system[{index}].citations", _TEXT_ONLY)
    return "\n\n".join(texts)
