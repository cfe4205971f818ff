"""Messages, and the system prompt beside them."""

from __future__ import annotations

from typing import Any

from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import Opaque, Refusal, Text
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolResult
from dragoman.wire.anthropic.calls import plain_call, plain_result
from dragoman.wire.anthropic.content import decode_text, decode_unknown, is_plain, joined
from dragoman.wire.anthropic.context import HERE, NAME, Block, Decoding, Encoding, is_ours
from dragoman.wire.anthropic.parts import decode_part, encode_parts
from dragoman.wire.call_ids import CallIds
from dragoman.wire.overlay import has_overlay, laid_over, rest
from dragoman.wire.tolerance import Form, plain_text, readable_message, with_shapes
from dragoman.wire.unsealing import EMPTIED, unsealed

_SYSTEM, _DEVELOPER, _USER = Role.SYSTEM, Role.DEVELOPER, Role.USER
_ASSISTANT, _TOOL = Role.ASSISTANT, Role.TOOL

_TO_WIRE = {
    _USER: "user",
    _TOOL: "user",
    _ASSISTANT: "assistant",
    _SYSTEM: "system",
    _DEVELOPER: "system",
}
_TALKERS = {_USER: "user", _ASSISTANT: "assistant"}
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
    return make_message(role, parts, origin=origin, extras=rest(wire, _MESSAGE, NAME))


def _decode_odd_message(wire: Any, context: Decoding) -> Message:
    made, shapes = readable_message(wire, FORM)
    return with_shapes(decode_message(made, context), NAME, shapes)


def _decode_system_message(wire: Block, parts: tuple[AnyPart, ...]) -> Message:
    # The origin lets it stay where it stands; those of other dialects are moved (W49). It alone
    # may have no content, so nothing is written where there are no parts.
    known = _MESSAGE if parts else {"role"}
    return make_message(_SYSTEM, parts, origin=HERE, extras=rest(wire, known, NAME))


def _are_results(parts: tuple[AnyPart, ...]) -> bool:
    for part in parts:
        if type(part) is not ToolResult:
            return False
    return bool(parts)


def encode_plain(message: Message, context: Encoding) -> Block | None:
    """The message that most are: a text, a call or a result, and nothing else.

    None where there is more to it; the slow way comes to the same in three times the time.
    """
    parts, extras = message.parts, message.extras
    if len(parts) != 1 or message.name is not None:
        return None
    if extras is not EMPTY and has_overlay(extras, NAME):
        return None
    part, role = parts[0], message.role
    if type(part) is Text:
        word = _TALKERS.get(role)
        return {"role": word, "content": part.text} if word and is_plain(part) else None
    if type(part) is ToolCall and role is _ASSISTANT:
        block = plain_call(part)
        return None if block is None else {"role": "assistant", "content": [block]}
    if type(part) is ToolResult and role is _TOOL and not context.wire_ids:
        block = plain_result(part)
        return None if block is None else {"role": "user", "content": [block]}
    return None


def encode_message(message: Message, context: Encoding) -> Any:
    """One message; an object, unless it came as something else."""
    parts = message.parts
    content: str | list[Any]
    if len(parts) == 1 and is_plain(parts[0]):
        content = parts[0].text  # type: ignore[union-attr]  # a Text: it is plain
    else:
        context.origin = message.origin
        content = joined(encode_parts(parts, context))
    wire: Block = {"role": _TO_WIRE[message.role], "content": content}
    if not parts and message.role is _SYSTEM:
        del wire["content"]
    lose_name(message, context)
    return wire if message.extras is EMPTY else laid_over(wire, message.extras, NAME)


def lose_name(message: Message, context: Encoding) -> None:
    """Note the name of who speaks, if there is one."""
    if message.name is not None:
        context.lose_at(f"messages[{context.message}].name", "messages carry no names here")


def belongs_outside(message: Message) -> bool:
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
