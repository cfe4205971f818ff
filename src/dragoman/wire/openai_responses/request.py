"""Requests: the conversation as `input`, and how it should go on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import Text
from dragoman.model.requests import Request
from dragoman.model.roles import Role
from dragoman.wire.encoded import Encoded
from dragoman.wire.fitting.settings import has_hidden_context
from dragoman.wire.json_values import want
from dragoman.wire.losses import Loss
from dragoman.wire.openai_responses.content import is_plain
from dragoman.wire.openai_responses.content_forms import BARE
from dragoman.wire.openai_responses.content_items import decode_items
from dragoman.wire.openai_responses.content_turns import Writer
from dragoman.wire.openai_responses.dialect import NAME, TARGET
from dragoman.wire.openai_responses.request_repairs import Coherence, Situation
from dragoman.wire.openai_responses.settings import (
    UNASKED,
    decode_output,
    decode_sampling,
    decode_state,
    decode_thinking,
    encode_include,
    encode_output,
    encode_sampling,
    encode_state,
    encode_thinking,
    is_stored,
    is_unasked,
)
from dragoman.wire.openai_responses.tools import (
    decode_choice,
    decode_tools,
    encode_choice,
    encode_tools,
)
from dragoman.wire.overlay import fields_of, overlay_of, with_note, with_overlay
from dragoman.wire.overlay_edits import PartlyRead, Places, with_digests, without_edited
from dragoman.wire.schemas import SentSchemas
from dragoman.wire.target import Target

PATH = "/v1/responses"
_USER = Role.USER
_BEARINGS: Places = {
    "model": "model",
    "stream": "stream",
    "instructions": "system",
    "tools": "tools",
    "tool_choice": "tool_choice",
    "parallel_tool_calls": "tool_choice.parallel",
    "text": {"format": PartlyRead("output")},
    "response_format": "output",
    "reasoning": {"effort": "thinking", "summary": "thinking"},
    "store": "state.store",
    "previous_response_id": "state.previous_response_id",
    "conversation": PartlyRead("state.conversation"),
    "prompt": PartlyRead("state.prompt"),
    "max_output_tokens": "sampling.max_tokens",
    "temperature": "sampling.temperature",
    "top_p": "sampling.top_p",
    "top_logprobs": "sampling.top_logprobs",
}


def decode_request(wire: Mapping[str, Any]) -> Request:
    """The request in a body."""
    listed = wire.get("tools")
    tools = decode_tools(listed) if isinstance(listed, list) else ()
    instructions = wire.get("instructions")
    settings = Request(
        model=_kept(wire.get("model"), str),
        system=(Text(instructions),) if type(instructions) is str else (),
        tools=tools,
        tool_choice=decode_choice(wire, tools),
        sampling=decode_sampling(wire),
        output=decode_output(wire),
        thinking=decode_thinking(wire),
        state=decode_state(wire),
        stream=_kept(wire.get("stream"), bool),
    )
    messages = _decode_input(wire)
    read = {"input" if messages else "", "tools" if tools else ""}
    rest = {key: wire[key] for key in wire if key not in read}
    came = wire.get("conversation")
    rebuilt = _encode_settings(settings, [], TARGET, SentSchemas([], []), came)
    extras = overlay_of(rest, (), NAME, rebuilt)
    if is_unasked(wire):
        extras = with_note(extras, NAME, UNASKED, value=True)
    request = replace(settings, messages=messages, extras=extras)
    return with_digests(request, NAME, _BEARINGS) if extras else request


def encode_request(request: Request, target: Target = TARGET) -> Encoded:
    """The body that says a request, and what it could not say."""
    writer = Writer(target)
    schemas = SentSchemas(writer.losses, writer.repairs)
    came = fields_of(request.extras, NAME).get("conversation")
    settings = _encode_settings(request, writer.losses, target, schemas, came)
    body = {**settings, **encode_include(request)}
    tools = encode_tools(request.tools, writer.losses, writer.repairs, target, schemas)
    if tools:
        body["tools"] = tools
    if request.messages:
        body["input"] = _encode_input(request, target, writer)
    if request.extras is not EMPTY:
        body = with_overlay(body, without_edited(request, NAME, _BEARINGS), NAME)
    return Encoded(
        body,
        path=PATH,
        losses=tuple(writer.losses),
        repairs=tuple(writer.repairs),
        context=schemas.context,
    )


def _decode_input(wire: Mapping[str, Any]) -> tuple[Message, ...]:
    given = wire.get("input")
    if type(given) is str:
        return (make_message(_USER, (Text(given),)),)
    if given is None:
        return ()
    messages = decode_items(want(wire, "input", list, NAME, "$"))
    if len(messages) == 1 and _is_bare(messages[0]):
        # Without an overlay it would be the bare string that it could have been.
        return (make_message(_USER, messages[0].parts, extras=BARE),)
    return tuple(messages)


def _encode_input(request: Request, target: Target, writer: Writer) -> str | list[Any]:
    messages = request.messages
    if len(messages) == 1 and _is_bare(messages[0]):
        return messages[0].text
    for index, message in enumerate(messages):
        writer.write(message, index)
    if not target.state.verifies_items:
        return writer.items
    coherence = Coherence(writer.items, writer.places, _situation(request, target))
    items = coherence.items()
    writer.losses += coherence.losses
    writer.repairs += coherence.repairs
    return items


def _situation(request: Request, target: Target) -> Situation:
    return Situation(
        is_stored=is_stored(request),
        is_continued=has_hidden_context(request, request.messages, target),
        gaps=frozenset(
            index
            for index, message in enumerate(request.messages)
            if target.thinking.sent_back == "never" or (message.usage and message.usage.thinking)
        ),
        spared=frozenset(
            index
            for index, message in enumerate(request.messages)
            if target.keeps_own_messages and target.owns(message)
        ),
    )


def _is_bare(message: Message) -> bool:
    """Whether a message is a user's plain text and nothing else."""
    return (
        message.role is _USER
        and not message.extras
        and message.name is None
        and len(message.parts) == 1
        and is_plain(message.parts[0])
    )


def _encode_settings(
    request: Request,
    losses: list[Loss],
    target: Target,
    schemas: SentSchemas,
    conversation: Any = None,
) -> dict[str, Any]:
    """Everything but the conversation and the tools."""
    body: dict[str, Any] = {
        **encode_sampling(request, losses),
        **encode_output(request.output, target, schemas),
        **encode_thinking(request.thinking, losses),
        **encode_state(request, conversation),
    }
    if request.model is not None:
        body["model"] = request.model
    if request.system:
        body["instructions"] = _encode_system(request.system, losses)
    if request.tool_choice is not None:
        body.update(encode_choice(request.tool_choice, request.tools))
    if request.stream is not None:
        body["stream"] = request.stream
    return body


def _encode_system(system: tuple[AnyPart, ...], losses: list[Loss]) -> str:
    """Instructions are one text here."""
    texts: list[str] = []
    for index, part in enumerate(system):
        if isinstance(part, Text):
            texts.append(part.text)
            if part.cache is not None:
                losses.append(Loss(f"system[{index}].cache", "instructions have no breakpoints"))
            if part.citations:
                losses.append(Loss(f"system[{index}].citations", "instructions are text only here"))
        else:
            losses.append(Loss(f"system[{index}]", "instructions are text only here"))
    return "\n\n".join(texts)


def _kept(value: Any, kind: type) -> Any:
    return value if type(value) is kind else None
