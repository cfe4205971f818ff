"""Contents: what the API calls a message."""

from __future__ import annotations

from typing import Any

from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY, FrozenDict
from dragoman.model.messages import Message
from dragoman.model.parts import Origin, Text
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolResult
from dragoman.wire.call_ids import CallIds
from dragoman.wire.gemini.functions import encode_call
from dragoman.wire.gemini.parts import decode_parts, encode_parts
from dragoman.wire.gemini.results import encode_result, in_call_order
from dragoman.wire.gemini.trace import (
    NAME,
    Trace,
    as_it_came,
    is_array,
    is_object,
    noted,
)
from dragoman.wire.gemini.writing import Writing
from dragoman.wire.overlay import has_overlay
from dragoman.wire.tolerance import Form, readable_answer, readable_message, shaped_extras

_USER, _ASSISTANT, _TOOL = Role.USER, Role.ASSISTANT, Role.TOOL
_SYSTEM, _DEVELOPER = Role.SYSTEM, Role.DEVELOPER
_ROLES = {"user": _USER, "model": _ASSISTANT}
# Not in the API's documents, or no longer; they come back as they were.
_OTHER_ROLES = {
    "function": _TOOL,
    "tool": _TOOL,
    "assistant": _ASSISTANT,
    "system": _SYSTEM,
    "developer": _DEVELOPER,
}
_WIRE_ROLES = {_USER: "user", _TOOL: "user", _ASSISTANT: "model"}

FORM = Form(
    NAME,
    {"user": "user", "assistant": "model"},
    content="parts",
    kinds=(list, dict, type(None)),
    said=lambda text: [{"text": text}],
)
"""What is read here as a content."""

Content = tuple[Role, tuple[AnyPart, ...], FrozenDict]
"""Role, parts and extras of a message."""


def decode_content(wire: Any, calls: CallIds, absent_role: Role, origin: Origin | None) -> Content:
    """What a content says; `origin` goes to parts that carry opaque state."""
    if not is_object(wire) or type(wire.get("parts")) not in FORM.kinds:
        return _decode_odd_content(wire, calls, absent_role, origin)
    parts, role = wire.get("parts"), wire.get("role")
    known = _ROLES.get(role) if type(role) is str else None
    if known is not None and len(wire) == 2 and type(parts) is list and parts:  # noqa: PLR2004 - role and parts
        extras = EMPTY
    else:
        trace = Trace()
        parts = _irregular_parts(wire, trace)
        if known is None:
            known = _irregular_role(wire, trace, absent_role)
        trace.fields.update((key, wire[key]) for key in wire if key not in {"role", "parts"})
        extras = trace.extras()
    decoded = decode_parts(parts, calls, origin)
    if known is _USER and decoded and all(type(part) is ToolResult for part in decoded):
        known = _TOOL
    return known, decoded, extras


def _decode_odd_content(
    wire: Any, calls: CallIds, absent_role: Role, origin: Origin | None
) -> Content:
    if is_object(wire):
        made, shapes = readable_answer(wire, FORM)
    else:
        made, shapes = readable_message(wire, FORM, absent_role.value)
    role, parts, extras = decode_content(made, calls, absent_role, origin)
    return role, parts, shaped_extras(extras, NAME, shapes)


def _irregular_parts(wire: dict[str, Any], trace: Trace) -> list[Any]:
    parts = wire.get("parts")
    if is_object(parts):
        trace.single("parts")
        return [parts]
    if parts:
        return list(parts)
    if "parts" in wire:
        trace.fields["parts"] = parts
    return []


def _irregular_role(wire: dict[str, Any], trace: Trace, absent: Role) -> Role:
    if "role" not in wire:
        trace.absent("role", _WIRE_ROLES[absent])
        return absent
    name = wire["role"]
    role = _OTHER_ROLES.get(name) if type(name) is str else None
    if role is None:
        trace.shape(["role"], _WIRE_ROLES[absent], name)
        return absent
    trace.instead("role", _WIRE_ROLES.get(role, "user"), name)
    return role


def is_instruction(message: Message) -> bool:
    """Whether a message belongs into the system prompt: contents have no such role (W75).

    One that came as a content, against the documents, goes back as one.
    """
    is_system = message.role is _SYSTEM or message.role is _DEVELOPER
    return is_system and _OTHER_ROLES.get(_spelled_role(message)) is not message.role


def _spelled_role(message: Message) -> str:
    """How the wire named the role, where that was none of the API's own."""
    instead = noted(message.extras, "instead") if message.extras else None
    values = instead.get("role") if is_object(instead) else None
    return str(values[-1]) if is_array(values) and values else ""


def encode_plain(message: Message, index: int, writing: Writing) -> dict[str, Any] | None:
    """The content of most messages: a text, a call or a result, and nothing else.

    None where there is more to it; the slow way comes to the same in twice the time.
    """
    parts = message.parts
    if len(parts) != 1 or message.name is not None or has_overlay(message.extras, NAME):
        return None
    part, role = parts[0], message.role
    if part.signature is not None or part.extras is not EMPTY:
        return None
    if type(part) is Text:
        if part.citations or (role is not _USER and role is not _ASSISTANT):
            return None
        return {"role": "user" if role is _USER else "model", "parts": [{"text": part.text}]}
    writing.at = (index, 0)
    if type(part) is ToolCall and role is _ASSISTANT:
        body, problem = encode_call(part, writing)
    elif type(part) is ToolResult and role is _TOOL and type(part.content) is str:
        body, problem = encode_result(part, writing)
    else:
        return None
    if problem is not None:
        writing.lose_part(index, 0, problem)
    return {"role": "model" if role is _ASSISTANT else "user", "parts": [body]}


def encode_content(message: Message, index: int, writing: Writing) -> Any:
    """The content for a message; one without parts has none here either."""
    writing.origin = message.origin
    parts = encode_parts(message.parts, index, writing)
    if len(parts) > 1 and type(message.parts[0]) is ToolResult:
        in_call_order(parts, message.parts, writing)
    role = _WIRE_ROLES.get(message.role, "user")
    body: dict[str, Any] = {"role": role, "parts": parts} if parts else {"role": role}
    lose_name(message, index, writing)
    if not message.extras:
        return body
    body = as_it_came(body, message.extras)
    spelled = body.get("role") if is_object(body) else None  # a content may come as a text
    if type(spelled) is str and _OTHER_ROLES.get(spelled, message.role) is not message.role:
        body["role"] = role  # somebody else says it by now
    return body


def lose_name(message: Message, index: int, writing: Writing) -> None:
    """Note the name of who speaks, if there is one."""
    if message.name is not None:
        writing.lose_of_message(index, "the name of the speaker has no place here", ".name")
