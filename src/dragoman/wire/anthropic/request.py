"""Requests: messages, the system prompt beside them, and settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import Opaque, Refusal, Text
from dragoman.model.requests import AnyTool, Request, State
from dragoman.model.roles import Role
from dragoman.model.tools import ToolDefinition, ToolResult
from dragoman.wire.anthropic.content import decode_part, encode_parts
from dragoman.wire.anthropic.content_blocks import (
    decode_text,
    decode_unknown,
    is_plain,
    text_or_blocks,
)
from dragoman.wire.anthropic.dialect import HERE, NAME, TARGET, Block, Decoding, Encoding, is_ours
from dragoman.wire.anthropic.rules_view import View
from dragoman.wire.anthropic.settings import (
    SETTINGS,
    decode_output,
    decode_sampling,
    decode_thinking_config,
    encode_settings,
)
from dragoman.wire.anthropic.tools import (
    decode_tool,
    decode_tool_choice,
    encode_tool,
    encode_tool_choice,
    permitted_tools,
)
from dragoman.wire.call_ids import CallIds, decode_calls
from dragoman.wire.encoded import Encoded
from dragoman.wire.json_values import want
from dragoman.wire.losses import Repair
from dragoman.wire.overlay import overlay_of, with_guesses, with_overlay
from dragoman.wire.overlay_edits import PartlyRead, Places, with_digests, without_edited
from dragoman.wire.schemas import PLAIN, anthropic_profiles, projected
from dragoman.wire.target import Target
from dragoman.wire.tolerance import Form, plain_text, readable_message, with_original
from dragoman.wire.unsealing import EMPTIED, unsealed

# --- messages, and the system prompt beside them

_SYSTEM, _DEVELOPER, _USER = Role.SYSTEM, Role.DEVELOPER, Role.USER
_ASSISTANT, _TOOL = Role.ASSISTANT, Role.TOOL

_TO_WIRE = {
    _USER: "user",
    _TOOL: "user",
    _ASSISTANT: "assistant",
    _SYSTEM: "system",
    _DEVELOPER: "system",
}
_MESSAGE = frozenset({"role", "content"})
_ROLES = frozenset({"user", "assistant", "system"})
FORM = Form(NAME, {word: word for word in _ROLES})
"""What is read here as a message."""
_IN_SYSTEM = (Text, Refusal, Opaque)


def decode_message(wire: Any, context: Decoding) -> Message:
    """One message. A user's that holds nothing but tool results is a tool's."""
    name, content = (wire.get("role"), wire.get("content")) if type(wire) is dict else (None, None)
    if type(name) is not str or name not in _ROLES:
        return _decode_odd_message(wire, context)
    parts: tuple[AnyPart, ...] = ()
    if type(content) is str:
        parts = (Text(content),)
    elif isinstance(content, list):
        parts = tuple([decode_part(block, context) for block in content])
    elif name != "system" or content is not None:
        return _decode_odd_message(wire, context)
    if name == "system":
        return _decode_system_message(wire, parts)
    role = _ASSISTANT if name == "assistant" else _TOOL if _are_results(parts) else _USER
    origin = None
    if role is _ASSISTANT and context.has_envelopes:
        context.has_envelopes, parts = False, unsealed(parts)
        origin = None if parts else EMPTIED
    if len(wire) == len(_MESSAGE):
        return make_message(role, parts, origin=origin)
    return make_message(role, parts, origin=origin, extras=overlay_of(wire, _MESSAGE, NAME))


def _decode_odd_message(wire: Any, context: Decoding) -> Message:
    made, shapes = readable_message(wire, FORM)
    return with_original(decode_message(made, context), NAME, shapes)


def _decode_system_message(wire: Block, parts: tuple[AnyPart, ...]) -> Message:
    # The origin lets it stay where it stands; those of other dialects are moved (W49). It alone
    # may have no content, so nothing is written where there are no parts.
    known = _MESSAGE if parts else {"role"}
    return make_message(_SYSTEM, parts, origin=HERE, extras=overlay_of(wire, known, NAME))


def _are_results(parts: tuple[AnyPart, ...]) -> bool:
    for part in parts:
        if type(part) is not ToolResult:
            return False
    return bool(parts)


def encode_message(message: Message, context: Encoding) -> Any:
    """One message; an object, unless it came as something else."""
    parts = message.parts
    content: str | list[Any]
    if len(parts) == 1 and is_plain(parts[0]):
        content = parts[0].text  # type: ignore[union-attr]  # a Text: it is plain
    else:
        context.origin = message.origin
        content = text_or_blocks(encode_parts(parts, context))
    wire: Block = {"role": _TO_WIRE[message.role], "content": content}
    if not parts and message.role is _SYSTEM:
        del wire["content"]
    _lose_name(message, context)
    return wire if message.extras is EMPTY else with_overlay(wire, message.extras, NAME)


def _lose_name(message: Message, context: Encoding) -> None:
    """Note the name of who speaks, if there is one."""
    if message.name is not None:
        context.lose_at(f"messages[{context.message}].name", "messages carry no names here")


def belongs_to_system_prompt(message: Message) -> bool:
    """Whether a system message goes into the prompt outside the list; all but our own do (W49)."""
    role = message.role
    return (role is _SYSTEM or role is _DEVELOPER) and not is_ours(message.origin)


def decode_system(wire: Any) -> tuple[AnyPart, ...]:
    """The system prompt, a text or blocks; what is neither is read as a text."""
    if type(wire) is str:
        return (Text(wire),)
    if isinstance(wire, list):
        context = Decoding(HERE, CallIds())
        return tuple([_decode_system_block(block, context) for block in wire])
    return () if wire is None else (Text(plain_text(wire)),)


def _decode_system_block(block: Any, context: Decoding) -> Text | Opaque:
    if isinstance(block, dict) and block.get("type") == "text":
        return decode_text(block, context)
    return decode_unknown(block, context)


def encode_system(parts: tuple[AnyPart, ...], context: Encoding) -> list[Any]:
    """The blocks of a system prompt: text only, and what this dialect itself put there."""
    blocks: list[Any] = []
    for index, part in enumerate(parts):
        if isinstance(part, _IN_SYSTEM):
            blocks += encode_parts((part,), context, index)
        else:
            context.part = index
            context.lose("the system prompt takes text only")
    return blocks


# --- whole requests

PATH = "/v1/messages"
PLACEHOLDER = "(Something that can't be shown here.)"
_BEARINGS: Places = {
    "model": "model",
    "stream": "stream",
    "system": "system",
    "tools": "tools",
    "tool_choice": "tool_choice",
    "thread": PartlyRead("state.thread"),
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
    rebuilt = _fields(request, Encoding(""))
    if "max_tokens" not in wire:
        del rebuilt["max_tokens"]  # the default, which some targets must be sent (W50)
    extras = overlay_of(_without_lists(wire, request), (), NAME, rebuilt)
    if not isinstance(system := wire.get("system"), str | list | None):
        extras = with_guesses(extras, NAME, [[["system"], plain_text(system), system]])
    return with_digests(request.replace(extras=extras), NAME, _BEARINGS) if extras else request


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
    context = Encoding("messages[{}].parts[{}]", profiles)
    body = _fields(request, context)
    tools = _encode_tools(request, body, context)
    if tools:
        body["tools"] = tools
    if target.thinking.is_refused_in_prefill:
        context.first_without_thinking = _first_without_thinking(request, body)
    system, messages = _encode_conversation(request, context)
    if system:
        body["system"] = text_or_blocks(system)
    body["messages"] = messages
    limit = body.get("max_tokens")
    if request.extras is not EMPTY:
        body = with_overlay(body, without_edited(request, NAME, _BEARINGS), NAME)
    repairs: tuple[Repair, ...] = ()
    if request.sampling.max_tokens is None and body.get("max_tokens") is limit:
        if target.sampling.needs_token_limit:
            reason = "a limit on the answer, which must be there"
            repairs = (Repair("sampling.max_tokens", "W50", "added", reason),)
        else:
            body.pop("max_tokens", None)
    if target.host.names_model_in_path:
        body.pop("model", None)
    if target.host.api_version is not None:
        body["anthropic_version"] = target.host.api_version
    return Encoded(
        body,
        path=PATH,
        losses=tuple(context.losses),
        repairs=(*context.repairs, *repairs),
        context=context.schemas.context,
    )


def _first_without_thinking(request: Request, body: Block) -> int | None:
    """The place of an answer to be gone on with, while thinking is off (W53)."""
    thinking = body.get("thinking")
    if thinking is not None and thinking.get("type") in ("enabled", "adaptive"):
        return None
    found = None
    for index in range(len(request.messages) - 1, -1, -1):
        message = request.messages[index]
        if message.role is _ASSISTANT:
            found = index  # those before it are of the same turn
        elif not belongs_to_system_prompt(message):
            break
    return found


def _decode_tools(wire: Any) -> tuple[AnyTool, ...]:
    if isinstance(wire, list):
        return tuple([decode_tool(tool) for tool in wire])
    return ()


def _encode_tools(request: Request, body: Block, context: Encoding) -> list[Block]:
    tools = permitted_tools(request.tools, request.tool_choice)
    definitions = [tool for tool in tools.values() if isinstance(tool, ToolDefinition)]
    strict = [tool for tool in definitions if tool.strict is True]
    if any(not is_ours(tool.origin) for tool in strict):
        _reserve_strict_schemas(body, [tool for tool in strict if is_ours(tool.origin)], context)
    return [wire for index, tool in tools.items() for wire in encode_tool(tool, index, context)]


def _reserve_strict_schemas(body: Block, own: list[ToolDefinition], context: Encoding) -> None:
    """Count what is sent in any case, before tools from elsewhere are strict: it goes first."""
    _, answer = View(body, TARGET).output_schema
    if isinstance(answer, Mapping):
        context.strict_limits.spend(projected(answer, PLAIN).weight)
    for tool in own:
        context.strict_limits.spend(projected(tool.parameters or EMPTY, PLAIN).weight, tools=1)


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
    for context.message, message in enumerate(request.messages):
        if not belongs_to_system_prompt(message):
            messages += _encode_spoken(message, context)
            continue
        context.origin = message.origin
        system += encode_system(message.parts, context)
        _lose_name(message, context)
        if messages:
            reason = "a system message amid the others goes to the system prompt"
            path = f"messages[{context.message}]"
            context.repairs.append(Repair(path, "W49", "moved", reason))
    return system, messages


def _encode_spoken(message: Message, context: Encoding) -> list[Block]:
    """A message in a list; empty for an answer of which nothing can be said here."""
    wire = encode_message(message, context)
    is_empty = isinstance(wire, dict) and wire.get("content") == []
    if is_empty and message.parts:  # an empty message would be refused (W47)
        if message.role is _ASSISTANT:
            return []
        wire["content"] = PLACEHOLDER
    return [wire]
