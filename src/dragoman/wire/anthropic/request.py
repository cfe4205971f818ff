"""Requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.model.frozen import EMPTY
from dragoman.model.messages import Message
from dragoman.model.requests import AnyTool, Request, State
from dragoman.model.roles import Role
from dragoman.model.tools import ToolDefinition
from dragoman.wire.agreement import Bearings, Beside, agreed, with_notes
from dragoman.wire.anthropic.content import joined
from dragoman.wire.anthropic.context import HERE, NAME, Block, Decoding, Encoding, is_ours
from dragoman.wire.anthropic.messages import (
    belongs_outside,
    decode_message,
    decode_system,
    encode_message,
    encode_plain,
    encode_system,
    lose_name,
)
from dragoman.wire.anthropic.settings import (
    SETTINGS,
    decode_output,
    decode_sampling,
    decode_thinking_config,
    encode_settings,
)
from dragoman.wire.anthropic.target import TARGET
from dragoman.wire.anthropic.tools import (
    decode_tool,
    decode_tool_choice,
    encode_tool,
    encode_tool_choice,
    permitted,
)
from dragoman.wire.anthropic.view import View
from dragoman.wire.call_ids import CallIds, decode_calls
from dragoman.wire.encoded import Encoded
from dragoman.wire.losses import Repair
from dragoman.wire.overlay import difference, laid_over, want
from dragoman.wire.schemas import PLAIN, anthropic_profiles, projected
from dragoman.wire.target import Target
from dragoman.wire.tolerance import plain_text, shaped_extras

PATH = "/v1/messages"
UNSAYABLE = "(Something that can't be shown here.)"
_ASSISTANT = Role.ASSISTANT
_BEARINGS: Bearings = {
    "model": "model",
    "stream": "stream",
    "system": "system",
    "tools": "tools",
    "tool_choice": "tool_choice",
    "thread": Beside("state.thread"),
    **SETTINGS,
}


def decode_request(wire: Block) -> Request:
    """The request in a body."""
    messages = want(wire, "messages", list, NAME, "$")
    model, stream = wire.get("model"), wire.get("stream")
    request = Request(
        model=model if type(model) is str else None,
        system=decode_system(wire.get("system")),
        messages=decode_calls(lambda calls: _decode_messages(messages, calls)),
        tools=_decode_tools(wire.get("tools")),
        tool_choice=decode_tool_choice(wire.get("tool_choice")),
        sampling=decode_sampling(wire),
        output=decode_output(wire),
        thinking=decode_thinking_config(wire),
        state=_decode_state(wire.get("thread")),
        stream=stream if type(stream) is bool else None,
    )
    rebuilt = _fields(request, Encoding("", is_strict=False))
    extras = difference(_without_lists(wire, request), rebuilt, NAME)
    if not isinstance(system := wire.get("system"), str | list | None):
        extras = shaped_extras(extras, NAME, [[["system"], plain_text(system), system]])
    return with_notes(request.replace(extras=extras), NAME, _BEARINGS) if extras else request


def _decode_state(thread: Any) -> State | None:
    found = thread.get("id") if isinstance(thread, Mapping) else thread
    return State(thread=found) if type(found) is str else None


def _decode_messages(wire: list[Any], calls: CallIds) -> tuple[Message, ...]:
    context = Decoding(HERE, calls)
    messages: list[Message] = []
    for index, message in enumerate(wire):
        calls.at(index)
        messages.append(decode_message(message, context))
    return tuple(messages)


def encode_request(request: Request, target: Target = TARGET) -> Encoded:
    """The body for a request."""
    profiles = anthropic_profiles(target)
    context = Encoding("messages[{}].parts[{}]", profiles, is_strict=target.is_strict)
    body = _fields(request, context)
    tools = _encode_tools(request, body, context)
    if tools:
        body["tools"] = tools
    if target.refuses_prefilled_thinking:
        context.unthinking = _unthinking(request, body)
    system, messages = _encode_conversation(request, context)
    if system:
        body["system"] = joined(system)
    body["messages"] = messages
    limit = body.get("max_tokens")
    if request.extras is not EMPTY:
        body = laid_over(body, agreed(request, NAME, _BEARINGS), NAME)
    repairs: tuple[Repair, ...] = ()
    if request.sampling.max_tokens is None and body.get("max_tokens") is limit:
        if target.needs_token_limit:
            reason = "a limit on the answer, which must be there"
            repairs = (Repair("sampling.max_tokens", "W50", "added", reason),)
        else:
            body.pop("max_tokens", None)
    if target.model_in_path:
        body.pop("model", None)
    if target.api_version is not None:
        body["anthropic_version"] = target.api_version
    return Encoded(
        body,
        path=PATH,
        losses=tuple(context.losses),
        repairs=(*context.repairs, *repairs),
        context=context.schemas.context,
    )


def _unthinking(request: Request, body: Block) -> int | None:
    """The place of an answer to be gone on with, while thinking is off (W53)."""
    thinking = body.get("thinking")
    if thinking is not None and thinking.get("type") in ("enabled", "adaptive"):
        return None
    found = None
    for index in range(len(request.messages) - 1, -1, -1):
        message = request.messages[index]
        if message.role is _ASSISTANT:
            found = index  # those before it are of the same turn
        elif not belongs_outside(message):
            break
    return found


def _decode_tools(wire: Any) -> tuple[AnyTool, ...]:
    if isinstance(wire, list):
        return tuple([decode_tool(tool) for tool in wire])
    return ()


def _encode_tools(request: Request, body: Block, context: Encoding) -> list[Block]:
    tools = permitted(request.tools, request.tool_choice)
    definitions = [tool for tool in tools.values() if isinstance(tool, ToolDefinition)]
    strict = [tool for tool in definitions if tool.strict is True]
    if any(not is_ours(tool.origin) for tool in strict):
        _share(body, [tool for tool in strict if is_ours(tool.origin)], context)
    return [wire for index, tool in tools.items() for wire in encode_tool(tool, index, context)]


def _share(body: Block, own: list[ToolDefinition], context: Encoding) -> None:
    """Count what is sent in any case, before tools from elsewhere are strict: it goes first."""
    _, answer = View(body, TARGET).output_schema
    if isinstance(answer, Mapping):
        context.allowance.spend(projected(answer, PLAIN).weight)
    for tool in own:
        context.allowance.spend(projected(tool.parameters or EMPTY, PLAIN).weight, tools=1)


def _without_lists(wire: Block, request: Request) -> Block:
    """The fields that `_fields` regenerates, and the unknown ones; empty lists among them."""
    written = {"messages"}
    if request.system:
        written.add("system")
    if request.tools:
        written.add("tools")
    return {key: value for key, value in wire.items() if key not in written}


def _fields(request: Request, context: Encoding) -> Block:
    """All of a body but its lists."""
    body: Block = {} if request.model is None else {"model": request.model}
    body |= encode_settings(request, context)
    if request.tool_choice is not None:
        body["tool_choice"] = encode_tool_choice(request.tool_choice)
    if request.stream is not None:
        body["stream"] = request.stream
    if request.state is not None and request.state.thread is not None:
        body["thread"] = {"id": request.state.thread}
    return body


def _encode_conversation(request: Request, context: Encoding) -> tuple[list[Any], list[Block]]:
    """The system prompt, with system messages that belong into it, and all other messages."""
    in_messages, context.place = context.place, "system[{1}]"
    system = encode_system(request.system, context)
    context.place = in_messages
    messages: list[Block] = []
    for index, message in enumerate(request.messages):
        plain = encode_plain(message, context)
        if plain is not None:
            messages.append(plain)
            continue
        context.message = index
        if not belongs_outside(message):
            encoded = encode_message(message, context)
            is_empty = isinstance(encoded, dict) and encoded.get("content") == []
            if is_empty and message.parts:
                # Nothing of it can be said here, and an empty message would be refused (W47).
                if message.role is _ASSISTANT:
                    continue
                encoded["content"] = UNSAYABLE
            messages.append(encoded)
            continue
        context.origin = message.origin
        system += encode_system(message.parts, context)
        lose_name(message, context)
        if messages:
            reason = "a system message amid the others goes to the system prompt"
            context.repairs.append(Repair(f"messages[{index}]", "W49", "moved", reason))
    return system, messages
