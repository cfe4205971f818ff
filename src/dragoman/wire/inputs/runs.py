"""Message dicts, read by the dialect that wrote them.

Neighbours of one dialect are decoded together, as one request: results find their calls, and
Responses' items become the messages that they are part of. Fields that the dialect does not have
are the caller's own: they are kept as the fields and extras of our own shapes, and never sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from dragoman.errors import InvalidInputError, WireError
from dragoman.model import inputs, shapes
from dragoman.model.messages import Message, make_message
from dragoman.model.requests import Request
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolResult
from dragoman.wire.dialect import Dialect, dialect
from dragoman.wire.inputs.evidence import ANTHROPIC, CHAT, GEMINI, OWN, dialects_of, is_answer
from dragoman.wire.overlay import overlay

Slot = Message | dict[str, Any]
"""One thing of a conversation: a message, or a dict that is still to be read."""

_OWN_FIELDS = ("id", "metadata", "_metadata", "created_at", "createdAt", "extras")
_FIELDS: Mapping[str, frozenset[str]] = {  # of a message; where none are listed, all are taken
    CHAT: frozenset({"role", "content", "name", "tool_calls", "tool_call_id", "function_call",
                     "refusal", "annotations", "audio", "images", "executed_tools", "reasoning",
                     "reasoning_content", "reasoning_details", "thinking_blocks",
                     "cache_control", "extra_content", "prefix", "partial"}),
    ANTHROPIC: frozenset({"role", "content"}),
    GEMINI: frozenset({"role", "parts"}),
    "ollama": frozenset({"role", "content", "thinking", "images", "tool_calls", "tool_name",
                         "tool_call_id"}),
}  # fmt: skip
_ROLES: Mapping[str, Mapping[Role, str]] = {
    ANTHROPIC: {Role.DEVELOPER: "system", Role.TOOL: "user"},
    GEMINI: {Role.ASSISTANT: "model", Role.TOOL: "user"},
}
_OF_MODELS = frozenset({"tool_use", "server_tool_use", "thinking", "redacted_thinking"})
_CALLED = ("functionCall", "function_call")
_IDS = frozenset({"id", "call_id", "tool_call_id", "tool_use_id"})


class Run(NamedTuple):
    """Messages that were read together."""

    messages: Sequence[Message]
    ids: frozenset[str] | None
    """The ids that stood in the dicts; None where the messages are to stay as they are."""


def runs_of(slots: Sequence[Slot]) -> Iterator[Run]:
    """The messages of a conversation, in order."""
    names = iter(dialects_of([slot for slot in slots if isinstance(slot, dict)]))
    named = [(next(names) if isinstance(slot, dict) else OWN, slot) for slot in slots]
    for name, pairs in groupby(named, lambda pair: pair[0]):
        run = [slot for _, slot in pairs]
        if name == OWN:
            yield from map(_own, run)
        else:
            wire = [slot for slot in run if isinstance(slot, dict)]
            yield _run(_decoded_run(dialect(name), wire), wire)


def _own(slot: Slot) -> Run:
    if isinstance(slot, Message):
        return Run((slot,), None)
    return _run((inputs.own_message(slot, Message),), (slot,))


def _run(messages: Sequence[Message], wire: Iterable[dict[str, Any]]) -> Run:
    return Run(messages, frozenset(_ids_in(wire)) if uses_tools(messages) else frozenset())


def uses_tools(messages: Sequence[Message]) -> bool:
    """Whether there is a tool call or a result in one of these messages."""
    return any(isinstance(part, (ToolCall, ToolResult)) for m in messages for part in m.parts)


def decoded(spoken: Dialect, body: dict[str, Any]) -> Request:
    """The request in a body that somebody handed in."""
    try:
        return spoken.decode_request(body)
    except WireError as error:
        problem = str(error)
    # Nobody sent this: the error is the caller's.
    msg = f"this can't be read as {spoken.name}: {problem}"
    raise InvalidInputError(msg)


def with_system(request: Request) -> list[Message]:
    """The messages of a request, its instructions first."""
    told = [make_message(Role.SYSTEM, request.system)] if request.system else []
    return [*told, *request.messages]


# --- one run


def _decoded_run(spoken: Dialect, wire: list[dict[str, Any]]) -> list[Message]:
    known = _FIELDS.get(spoken.name)
    if known is None:
        return list(decoded(spoken, {spoken.messages_field: wire}).messages)
    items = [_with_role(_known_fields(item, known), spoken) for item in wire]
    read = decoded(spoken, {spoken.messages_field: items}).messages
    if len(read) != len(wire):
        msg = f"some of these messages say nothing in {spoken.name}"
        raise InvalidInputError(msg)
    return [_completed(*pair, known, spoken) for pair in zip(read, wire, strict=True)]


def _known_fields(item: dict[str, Any], known: frozenset[str]) -> dict[str, Any]:
    fields = {key: item[key] for key in item if key in known}
    if fields.get("name") == "":
        del fields["name"]  # as our own shapes are read: nobody is called that
    return fields


def _with_role(item: dict[str, Any], spoken: Dialect) -> dict[str, Any]:
    """The dict with the role that its dialect has for it, which may be missing in stored forms."""
    words = _ROLES.get(spoken.name)
    if words is None:
        return item
    given = item.get("role")
    role = (Role.ASSISTANT if _is_models(item) else Role.USER) if not given else Role.parse(given)
    return {**item, "role": words.get(role, role.value)}


def _is_models(item: Mapping[str, Any]) -> bool:
    blocks = item.get("content") or item.get("parts")
    return any(
        block.get("type") in _OF_MODELS or any(key in block for key in _CALLED)
        for block in (blocks if isinstance(blocks, list) else ())
        if isinstance(block, dict) and isinstance(block.get("type", ""), str)
    )


def _completed(
    message: Message, wire: Mapping[str, Any], known: frozenset[str], spoken: Dialect
) -> Message:
    """The message with the caller's own fields."""
    if spoken.name == ANTHROPIC and is_answer(wire):
        return _answered(spoken, wire)
    rest = {key: value for key, value in wire.items() if key not in known}
    if not rest:
        return message
    fields = shapes.read({key: rest.pop(key) for key in _OWN_FIELDS if key in rest})
    kept = {key: fields[key] for key in ("id", "metadata", "created_at") if key in fields}
    extras = {**message.extras, **fields["extras"]}
    if rest:
        extras["canonical"] = {**overlay(extras, "canonical"), **rest}
    return message.replace(**kept, extras=extras)


def _answered(spoken: Dialect, wire: Mapping[str, Any]) -> Message:
    """The message of a response, with its usage and why it ended."""
    try:
        return spoken.decode_response(dict(wire)).message
    except WireError as error:
        problem = str(error)
    msg = f"this can't be read as a response of {spoken.name}: {problem}"
    raise InvalidInputError(msg)


def _ids_in(wire: Iterable[Any]) -> Iterator[str]:
    """All texts that stand where calls and results have their ids."""
    left = list(wire)
    while left:
        value = left.pop()
        if isinstance(value, ToolCall):
            yield value.id
        elif isinstance(value, ToolResult):
            yield value.call_id
        elif isinstance(value, dict):
            yield from (value[key] for key in _IDS if isinstance(value.get(key), str))
            left += value.values()
        elif isinstance(value, list):
            left += value
