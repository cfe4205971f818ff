"""Requests: messages, system prompt and settings."""

from __future__ import annotations

from typing import Any

from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import Opaque, Refusal, Text, Thinking
from dragoman.model.requests import BLANK, Request, Sampling
from dragoman.model.roles import Role
from dragoman.model.tools import ToolResult
from dragoman.wire.anthropic.dialect import NAME, ORIGIN, RANGES, TARGET, Block, is_own
from dragoman.wire.anthropic.settings import (
    MIN_BUDGET,
    MIN_TOP_P,
    PLACES,
    SETTINGS,
    is_on,
    may_think,
    thinking_field,
)
from dragoman.wire.anthropic.tables import (
    TEXT_BLOCK,
    decode_part,
    decode_unknown,
    encode_parts,
    is_plain,
    text_or_blocks,
)
from dragoman.wire.anthropic.tools import (
    decode_tool_choice,
    decode_tools,
    encode_tool_choice,
    encode_tools,
)
from dragoman.wire.call_ids import CallIds, decode_calls
from dragoman.wire.encoded import Encoded
from dragoman.wire.fitting.settings import sampling_within
from dragoman.wire.fitting.steps import Step, unless_same
from dragoman.wire.json_values import want
from dragoman.wire.losses import Loss, Note, Repair
from dragoman.wire.overlay import (
    fields_of,
    overlay_keys,
    overlay_of,
    with_guesses,
    with_overlay,
    with_word,
    words_of,
)
from dragoman.wire.overlay_edits import with_digests, without_edited
from dragoman.wire.reading import Reading
from dragoman.wire.rows import SILENT
from dragoman.wire.target import Target
from dragoman.wire.tolerance import Form, plain_text, readable_message, with_original
from dragoman.wire.unsealing import unsealed_message
from dragoman.wire.writing import Writing

# --- messages and the system prompt

_SYSTEM, _DEVELOPER, _USER = Role.SYSTEM, Role.DEVELOPER, Role.USER
_ASSISTANT, _TOOL = Role.ASSISTANT, Role.TOOL
_TO_WIRE = {_USER: "user", _TOOL: "user", _ASSISTANT: "assistant", _SYSTEM: "system",
            _DEVELOPER: "system"}  # fmt: skip
_OWN_EXTRAS = overlay_keys(NAME)
_MESSAGE = frozenset({"role", "content"})
_ROLES = frozenset({"user", "assistant", "system"})
FORM = Form(NAME, {word: word for word in _ROLES})
"""The shape of messages in this dialect."""
_IN_SYSTEM = (Text, Refusal, Opaque)


def decode_message(wire: Any, reading: Reading) -> Message:
    """Decode a message. A user message with only tool results becomes a tool message."""
    name, content = (wire.get("role"), wire.get("content")) if type(wire) is dict else (None, None)
    if type(name) is not str or name not in _ROLES:
        return _decode_odd_message(wire, reading)
    parts: tuple[AnyPart, ...] = ()
    if type(content) is str:
        parts = (Text(content),)
    elif isinstance(content, list):
        parts = tuple([decode_part(block, reading) for block in content])
    elif name != "system" or content is not None:
        return _decode_odd_message(wire, reading)
    if name == "system":
        return _decode_system_message(wire, parts)
    role = _ASSISTANT if name == "assistant" else _TOOL if _are_results(parts) else _USER
    extras = EMPTY if len(wire) == len(_MESSAGE) else overlay_of(wire, _MESSAGE, NAME)
    message = make_message(role, parts, extras=extras)
    if role is _ASSISTANT and reading.has_envelopes:
        reading.has_envelopes = False
        return unsealed_message(message, NAME)
    return message


def _decode_odd_message(wire: Any, reading: Reading) -> Message:
    made, guesses = readable_message(wire, FORM)
    return with_original(decode_message(made, reading), NAME, guesses)


def _decode_system_message(wire: Block, parts: tuple[AnyPart, ...]) -> Message:
    # The origin keeps it in place; other dialects' system messages are moved (W49). Only a system
    # message may lack content, so no content is written if there are no parts.
    known = _MESSAGE if parts else {"role"}
    return make_message(_SYSTEM, parts, origin=ORIGIN, extras=overlay_of(wire, known, NAME))


def _are_results(parts: tuple[AnyPart, ...]) -> bool:
    for part in parts:
        if type(part) is not ToolResult:
            return False
    return bool(parts)


def encode_message(message: Message, writing: Writing) -> Any:
    """Encode a message: an object, unless the original was something else."""
    parts = message.parts
    content: str | list[Any]
    if len(parts) == 1 and is_plain(parts[0]):
        content = parts[0].text  # type: ignore[union-attr]  # a Text: it is plain
    else:
        writing.origin = message.origin
        content = text_or_blocks(encode_parts(parts, writing))
    wire: Block = {"role": _TO_WIRE[message.role], "content": content}
    if not parts and message.role is _SYSTEM:
        del wire["content"]
    _lose_name(message, writing)
    extras = message.extras
    return wire if extras is EMPTY else with_overlay(wire, extras, NAME)


def _lose_name(message: Message, writing: Writing) -> None:
    """Report the name of a message as lost, if it has one."""
    if message.name is not None:
        writing.lose(f"messages[{writing.message}].name", "message names are not supported")


def belongs_to_system_prompt(message: Message) -> bool:
    """Whether a system message goes into `system`; only this dialect's own stay in place (W49)."""
    role = message.role
    return (role is _SYSTEM or role is _DEVELOPER) and not is_own(message.origin)


def decode_system(wire: Any) -> tuple[AnyPart, ...]:
    """Decode the system prompt: a string or blocks; anything else is converted to text."""
    if type(wire) is str:
        return (Text(wire),)
    if isinstance(wire, list):
        reading = Reading(ORIGIN, CallIds())
        return tuple([_decode_system_block(block, reading) for block in wire])
    return () if wire is None else (Text(plain_text(wire)),)


def _decode_system_block(block: Any, reading: Reading) -> Text | Opaque:
    if isinstance(block, dict) and block.get("type") == "text":
        return TEXT_BLOCK.read(block, reading)
    return decode_unknown(block, reading)


def encode_system(parts: tuple[AnyPart, ...], writing: Writing) -> list[Any]:
    """Encode the system prompt: texts, and opaque blocks of this dialect."""
    blocks: list[Any] = []
    for index, part in enumerate(parts):
        if isinstance(part, _IN_SYSTEM):
            blocks += encode_parts((part,), writing, index)
        else:
            writing.part = index
            writing.lose_here("only text is supported in the system prompt")
    return blocks


# --- whole requests

PATH = "/v1/messages"
PLACEHOLDER = "(Something that can't be shown here.)"


def decode_request(wire: Block, _path: str | None = None) -> Request:
    """Decode a request body."""
    messages = want(wire, "messages", list, NAME, "$")
    settings = SETTINGS.read(wire)
    if (config := settings.get("thinking")) is not None and config.enabled is None:
        settings["thinking"] = config.replace(extras=with_word(config.extras, NAME, _OWN_EFFORT))
    request = BLANK.replace_trusted(
        system=decode_system(wire.get("system")),
        messages=decode_calls(lambda calls: _decode_messages(messages, calls)),
        tools=decode_tools(wire.get("tools")),
        tool_choice=decode_tool_choice(wire.get("tool_choice")),
        **settings,
    )
    read = {"messages"}
    if request.system:
        read.add("system")
    if request.tools:
        read.add("tools")
    extras = overlay_of(wire, read, NAME, _fields(request, Writing(TARGET)))
    system = wire.get("system")
    if system is not None and not isinstance(system, (str, list)):
        extras = with_guesses(extras, NAME, [[["system"], plain_text(system), system]])
    if not extras:
        return request
    return with_digests(request.replace_trusted(extras=extras), NAME, PLACES)


def _decode_messages(wire: list[Any], calls: CallIds) -> tuple[Message, ...]:
    reading = Reading(ORIGIN, calls)
    messages: list[Message] = []
    for index, message in enumerate(wire):
        calls.at(index)
        messages.append(decode_message(message, reading))
    return tuple(messages)


def encode_request(request: Request, target: Target = TARGET) -> Encoded:
    """Encode a request."""
    writing = Writing(target)
    body = _fields(request, writing)
    if request.tools and (tools := encode_tools(request, body, writing)):
        body["tools"] = tools
    system, messages = _encode_conversation(request, writing)
    if system:
        body["system"] = text_or_blocks(system)
    body["messages"] = messages
    if not _OWN_EXTRAS.isdisjoint(request.extras):
        body = with_overlay(body, without_edited(request, NAME, PLACES), NAME)
    if target.host.names_model_in_path:
        body.pop("model", None)
    if target.host.api_version is not None:
        body["anthropic_version"] = target.host.api_version
    return Encoded(
        body,
        path=PATH,
        losses=tuple(writing.losses),
        repairs=tuple(writing.repairs),
        context=writing.context,
    )


def _fields(request: Request, writing: Writing) -> Block:
    """Encode all fields except the system prompt, tools and messages."""
    body = SETTINGS.write(request, writing)
    if request.tool_choice is not None:
        body["tool_choice"] = encode_tool_choice(request.tool_choice)
    return body


def _encode_conversation(request: Request, writing: Writing) -> tuple[list[Any], list[Block]]:
    """Encode the system prompt, including system messages that move there, and the messages."""
    system: list[Any] = []
    if request.system:
        in_messages, writing.place = writing.place, "system[{1}]"
        system = encode_system(request.system, writing)
        writing.place = in_messages
    messages: list[Block] = []
    for index, message in enumerate(request.messages):
        writing.message = index
        if not belongs_to_system_prompt(message):
            messages += _encode_nonempty(message, writing)
            continue
        writing.origin = message.origin
        system += encode_system(message.parts, writing)
        _lose_name(message, writing)
        if messages:
            reason = "a system message between other messages is moved to the system prompt"
            writing.repair(f"messages[{index}]", "W49", "moved", reason)
    return system, messages


def _encode_nonempty(message: Message, writing: Writing) -> list[Block]:
    """Encode a message, as a list; empty for an assistant message that has no supported parts."""
    wire = encode_message(message, writing)
    is_empty = isinstance(wire, dict) and wire.get("content") == []
    if is_empty and message.parts:  # an empty message would be refused (W47)
        if message.role is _ASSISTANT:
            return []
        wire["content"] = PLACEHOLDER
    return [wire]


# --- repairs for Anthropic only: conflicting settings and thinking in a prefilled response

_ROOM = 4096
"""Tokens for the answer beside a thinking budget, if the request has no limit."""


def with_smaller_budget(request: Request, _target: Target, notes: list[Note]) -> Request:
    """Make the thinking budget smaller than `max_tokens`, which includes it."""
    config, limit = request.thinking, request.sampling.max_tokens
    if config is None or limit is None:
        return request
    field = thinking_field(config)
    budget = field.get("budget_tokens")
    if not is_on(field) or type(budget) is not int or budget < limit:
        return request
    if limit > MIN_BUDGET:
        notes.append(Loss("thinking.budget", "lowered to fit into max_tokens"))
        # Half of the limit, so that some is left for the response.
        return request.replace_trusted(thinking=config.replace(budget=max(MIN_BUDGET, limit // 2)))
    notes.append(Loss("thinking", "turned off: max_tokens leaves no room for it"))
    return request.replace_trusted(
        thinking=config.replace(enabled=False, budget=None, extras=EMPTY)
    )


_OWN_EFFORT = "own effort"
"""The word for an effort of this dialect, which limits answers and doesn't switch thinking on."""
_NO_SWITCH = "stays off: it excludes the sampling settings, and only an effort was given"


def with_thinking_switched_on(request: Request, target: Target, notes: list[Note]) -> Request:
    """Switch thinking on where another dialect's effort or wish to see it asks for thinking.

    A model with adaptive thinking does not think for an effort alone.
    """
    config = request.thinking
    if config is None or config.enabled is not None or config.budget is not None:
        return request
    is_asked_for = config.effort != "none" if config.effort is not None else config.is_shown
    if not is_asked_for or _OWN_EFFORT in words_of(config.extras, NAME):
        return request
    if target.thinking.is_always_on and not config.is_shown:
        return request
    if target.thinking.form == "either" and _refused_by_thinking(request.sampling):
        notes.append(Loss("thinking", _NO_SWITCH))
        return request
    notes.append(Repair("thinking", "W59", "added", "switched on, which an effort alone does not"))
    return request.replace_trusted(thinking=config.replace(enabled=True))


def _refused_by_thinking(sampling: Sampling) -> list[str]:
    refused = {
        "temperature": sampling.temperature not in (None, 1),
        "top_p": sampling.top_p is not None and sampling.top_p < MIN_TOP_P,
        "top_k": sampling.top_k is not None,
    }
    return [name for name, is_refused in refused.items() if is_refused]


def with_sampling_for_thinking(request: Request, _target: Target, notes: list[Note]) -> Request:
    """Remove sampling settings that are refused while thinking is on."""
    config, sampling = request.thinking, request.sampling
    if config is None or not may_think(thinking_field(config)):
        return request
    names = _refused_by_thinking(sampling)
    if not names:
        return request
    notes.extend(Loss(f"sampling.{name}", "not supported while thinking is on") for name in names)
    changes: dict[str, Any] = dict.fromkeys(names)
    return request.replace_trusted(sampling=sampling.replace_trusted(**changes))


def with_token_limit(request: Request, target: Target, notes: list[Note]) -> Request:
    """Add a token limit if the target requires one (W50)."""
    if request.sampling.max_tokens is not None:
        return request
    extras = EMPTY if request.extras is EMPTY else without_edited(request, NAME, PLACES)
    if "max_tokens" in fields_of(extras, NAME):
        return request  # malformed: let the target report it
    config, limit = request.thinking, target.sampling.default_output_tokens
    if config is not None and is_on(thinking_field(config)):
        limit = max(limit, (config.budget or 0) + _ROOM)  # the budget counts towards the limit
    reason = "max_tokens is required; a default is sent"
    notes.append(Repair("sampling.max_tokens", "W50", "added", reason))
    return request.replace_trusted(sampling=request.sampling.replace_trusted(max_tokens=limit))


def without_fast_mode(request: Request, _target: Target, notes: list[Note]) -> Request:
    """Remove the tier that is sent as `speed`, for a model that has no fast mode, or a host."""
    service = request.service
    if service is None or SETTINGS.write(Request(service=service), SILENT).get("speed") != "fast":
        return request
    notes.append(Loss("service.tier", "this model has no fast mode"))
    return request.replace(service=service.replace(tier=None))


def without_thinking_in_prefill(request: Request, _target: Target, notes: list[Note]) -> Request:
    """Remove thinking from a prefilled response while thinking is off (W53)."""
    config = request.thinking
    if config is not None and may_think(thinking_field(config)):
        return request
    reason = "with thinking off, a prefilled response can't contain thinking"
    first = _prefill_start(request.messages)
    messages = list(request.messages[:first])
    for index, message in enumerate(request.messages[first:], first):
        thoughts = [place for place, part in enumerate(message.parts) if isinstance(part, Thinking)]
        if not thoughts or message.role is not Role.ASSISTANT:
            messages.append(message)
            continue
        notes.extend(Loss(f"messages[{index}].parts[{place}]", reason) for place in thoughts)
        if rest := tuple(part for part in message.parts if not isinstance(part, Thinking)):
            messages.append(message.replace_unchecked(parts=rest))
    left = unless_same(messages, request.messages)
    return request if left is request.messages else request.replace_trusted(messages=left)


def _prefill_start(messages: tuple[Message, ...]) -> int:
    """The index of the first message of the prefill, which may span several messages."""
    first = len(messages)
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].role is Role.ASSISTANT:
            first = index
        elif not belongs_to_system_prompt(messages[index]):
            break
    return first


STEPS = (
    sampling_within(RANGES),
    Step(with_thinking_switched_on, ("thinking.form",),
         lambda _seen, target: target.thinking.form in ("adaptive", "either")),
    Step(with_smaller_budget, ("is_strict",),
         lambda _seen, target: target.is_strict),
    Step(with_sampling_for_thinking, ("is_strict",),
         lambda _seen, target: target.is_strict),
    Step(without_thinking_in_prefill, ("thinking.is_refused_in_prefill",),
         lambda seen, target: seen.has_thinking and target.thinking.is_refused_in_prefill),
    Step(without_fast_mode, ("sampling.has_fast_mode",),
         lambda _seen, target: not target.sampling.has_fast_mode),
    Step(with_token_limit, ("sampling.needs_token_limit",),
         lambda _seen, target: target.sampling.needs_token_limit),
)  # fmt: skip
"""Fitting steps for this dialect only."""
