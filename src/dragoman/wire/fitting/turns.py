"""Roles, their order, and the position of instructions."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import Text
from dragoman.model.requests import Request
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolResult
from dragoman.wire.fitting.steps import Keeps, Messages, unless_same
from dragoman.wire.losses import Loss, Note, Repair
from dragoman.wire.target import Target

READ = "(The results were read.)"


def with_known_roles(messages: Messages, target: Target, notes: list[Note]) -> Messages:
    """Turn developer messages into system messages, if the target has no developer role."""
    if target.turns.takes_developer:
        return messages
    done: list[Message] = []
    for index, message in enumerate(messages):
        if message.role is Role.DEVELOPER:
            reason = "sent as a system message: there is no developer role"
            notes.append(Repair(f"messages[{index}]", "W13", "retyped", reason))
            done.append(message.replace_unchecked(role=Role.SYSTEM))
        else:
            done.append(message)
    return unless_same(done, messages)


def with_alternating_roles(messages: Messages, target: Target, notes: list[Note]) -> Messages:
    """Merge consecutive messages of one role; tool messages are left apart."""
    if not target.turns.alternates_roles:
        return messages
    done: list[Message] = []
    for index, message in enumerate(messages):
        before = done[-1] if done else None
        if before is None or before.role is not message.role or message.role is Role.TOOL:
            done.append(message)
            continue
        reason = "merged into the previous message"
        notes.append(Repair(f"messages[{index}]", "W117", "merged", reason))
        if message.name != before.name or message.extras is not EMPTY:
            notes.append(Loss(f"messages[{index}]", "merged into the previous; its name is lost"))
        done[-1] = before.replace_unchecked(parts=(*before.parts, *message.parts))
    return messages if len(done) == len(messages) else tuple(done)


def with_answered_results(messages: Messages, target: Target, notes: list[Note]) -> Messages:
    """Add an assistant message between tool results and a user message."""
    if not target.turns.answers_results:
        return messages
    done: list[Message] = []
    for index, message in enumerate(messages):
        if message.role is Role.USER:
            results = [part for part in message.parts if isinstance(part, ToolResult)]
            rest = [part for part in message.parts if not isinstance(part, ToolResult)]
            if results:
                done.append(make_message(Role.TOOL, tuple(results)))
                notes.append(Repair(f"messages[{index}]", "C1", "moved", "results before the text"))
                message = message.replace_unchecked(parts=tuple(rest))  # noqa: PLW2901 - what is left of it
                if not rest:
                    continue
            if done and done[-1].role is Role.TOOL:
                reason = "an assistant message is required between results and user"
                notes.append(Repair(f"messages[{index}]", "C1", "added", reason))
                done.append(make_message(Role.ASSISTANT, (Text(READ),)))
        done.append(message)
    return unless_same(done, messages)


_ASSISTANT = Role.ASSISTANT
_REASON = "calls are valid only in assistant messages"


def with_calls_by_assistant(messages: Messages, target: Target, notes: list[Note]) -> Messages:
    """Put calls in other messages into assistant messages, in the same position."""
    if not target.is_strict or not any(map(_has_misplaced_calls, messages)):
        return messages
    done: list[Message] = []
    for index, message in enumerate(messages):
        if not _has_misplaced_calls(message):
            done.append(message)
            continue
        notes.extend(
            Repair(f"messages[{index}].parts[{place}]", "shape", "moved", _REASON)
            for place, part in enumerate(message.parts)
            if type(part) is ToolCall
        )
        for is_call, parts in groupby(message.parts, _is_call):
            role = _ASSISTANT if is_call else message.role
            done.append(message.replace_unchecked(role=role, parts=tuple(parts)))
    return tuple(done)


def _has_misplaced_calls(message: Message) -> bool:
    return message.role is not _ASSISTANT and bool(message.tool_calls)


def _is_call(part: AnyPart) -> bool:
    return type(part) is ToolCall


_GAP = "\n\n"


def with_placed_instructions(request: Request, target: Target, notes: list[Note]) -> Request:
    """Move instructions to where the target accepts them."""
    if target.turns.system_place == "anywhere":
        return request
    is_first = target.turns.system_place == "first"
    places = [index for index, message in enumerate(request.messages) if message.role.is_system]
    if not places and (is_first or not request.system):
        return request
    if is_first and places == [0] and not request.system:
        return request
    given = [*request.system, *(part for at in places for part in request.messages[at].parts)]
    said = _joined(given)
    spoken = tuple(message for message in request.messages if not message.role.is_system)
    if is_first:
        _note_moved(request.messages, places, notes)
        messages = (make_message(Role.SYSTEM, said), *spoken)
    else:
        reason = "instructions are sent as user text"
        notes.extend(Loss(f"messages[{index}]", reason) for index in places)
        if request.system:
            notes.append(Loss("system", reason))
        messages = _as_user_text(said, spoken)
    return request.replace_trusted(system=(), messages=messages)


def _note_moved(messages: Messages, places: list[int], notes: list[Note]) -> None:
    for at, index in enumerate(places):
        if index != at:  # leading instructions are only merged
            notes.append(Loss(f"messages[{index}]", "instructions are moved to the beginning"))
        if messages[index].name is not None:
            notes.append(Loss(f"messages[{index}].name", "merged with other instructions"))


def _as_user_text(said: tuple[AnyPart, ...], spoken: Messages) -> Messages:
    if spoken and spoken[0].role is Role.USER:
        first = spoken[0].replace_unchecked(parts=_joined((*said, *spoken[0].parts)))
        return (first, *spoken[1:])
    return (make_message(Role.USER, said), *spoken)


def _joined(parts: Iterable[AnyPart]) -> tuple[AnyPart, ...]:
    """Join adjacent plain texts: chat templates handle a text better than a list."""
    done: list[AnyPart] = []
    for part in parts:
        before = done[-1] if done else None
        if isinstance(before, Text) and _is_plain(before) and _is_plain(part):
            done[-1] = Text(f"{before.text}{_GAP}{part.text}")  # type: ignore[union-attr]
        else:
            done.append(part)
    return tuple(done)


def _is_plain(part: AnyPart) -> bool:
    return type(part) is Text and part.extras is EMPTY and part.cache is None and not part.citations


OPENING = "(The conversation begins here.)"


def with_opening(
    messages: Messages,
    target: Target,
    notes: list[Note],
    *,
    is_instructed: bool = False,
) -> Messages:
    """Make the first message, after any instructions, a user message if the target requires it.

    `is_instructed`: whether there are instructions outside the messages.
    """
    for index, message in enumerate(messages):
        if message.role.is_system:
            continue
        is_refused = target.turns.starts_with_user or (
            target.turns.refuses_call_first and _begins_with_call(messages[index:])
        )
        if message.role is Role.USER or not is_refused:
            return messages
        notes.append(Repair("messages", "W47", "added", "the first message must be a user message"))
        return (*messages[:index], _opening(), *messages[index:])
    if target.turns.needs_message and (messages or is_instructed):
        notes.append(Repair("messages", "W47", "added", "a user message besides the instructions"))
        return (*messages, _opening())
    return messages


def with_opening_among_kept(
    messages: Messages, target: Target, notes: list[Note], keeps: Keeps
) -> Messages:
    """Like `with_opening`, unless the first message is kept unchanged."""
    first = next((message for message in messages if not message.role.is_system), None)
    if first is not None and keeps(first):
        return messages
    return with_opening(messages, target, notes)


def _begins_with_call(messages: Messages) -> bool:
    """Whether the first turn has a tool call, however many messages it spans."""
    for message in messages:
        if message.role is Role.ASSISTANT and message.tool_calls:
            return True
        if not (message.role is Role.ASSISTANT or message.role.is_system):
            return False
    return False


def _opening() -> Message:
    return make_message(Role.USER, (Text(OPENING),))


ENDING = "(Please go on.)"


def with_ending(messages: Messages, target: Target, notes: list[Note]) -> Messages:
    """Add a user message after a trailing assistant message, or trim its trailing whitespace.

    Calls without results already got placeholders, so nothing comes between a call and its result.
    """
    if target.turns.prefill == "free":
        return messages
    if target.turns.prefill == "trimmed":
        return _trimmed(messages, notes)
    last = len(messages) - 1
    while last >= 0 and messages[last].role.is_system:
        last -= 1
    if last < 0 or messages[last].role is not Role.ASSISTANT or messages[last].tool_calls:
        return messages
    reason = "a user message after a prefill, which is not supported"
    notes.append(Repair(f"messages[{last}]", "W48", "added", reason))
    return (*messages, make_message(Role.USER, (Text(ENDING),)))


def _trimmed(messages: Messages, notes: list[Note]) -> Messages:
    last = messages[-1] if messages else None
    end = last.parts[-1] if last is not None and last.parts else None
    if last is None or last.role is not Role.ASSISTANT or not isinstance(end, Text):
        return messages
    text = end.text.rstrip()
    if text == end.text:
        return messages
    path = f"messages[{len(messages) - 1}].parts[{len(last.parts) - 1}]"
    notes.append(Repair(path, "W48", "dropped", "trailing whitespace of a prefill"))
    return (
        *messages[:-1],
        last.replace_unchecked(parts=(*last.parts[:-1], end.replace(text=text))),
    )
