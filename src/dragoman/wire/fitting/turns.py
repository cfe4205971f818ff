"""Whose turn it is: roles that a target knows, and in which order it wants them (W13, W117, C1)."""

from __future__ import annotations

from operator import is_

from dragoman.model.frozen import EMPTY
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import Text
from dragoman.model.roles import Role
from dragoman.model.tools import ToolResult
from dragoman.wire.losses import Loss, Note, Repair
from dragoman.wire.target import Target

READ = "(The results were read.)"
Messages = tuple[Message, ...]


def with_known_roles(messages: Messages, target: Target, notes: list[Note]) -> Messages:
    """Messages in which the developer speaks as the system, where nobody knows a developer."""
    if target.takes_developer or not any(m.role is Role.DEVELOPER for m in messages):
        return messages
    notes.extend(
        Repair(f"messages[{index}]", "W13", "retyped", "the developer speaks as the system here")
        for index, message in enumerate(messages)
        if message.role is Role.DEVELOPER
    )
    return tuple(
        message.replace_unchecked(role=Role.SYSTEM) if message.role is Role.DEVELOPER else message
        for message in messages
    )


def with_alternating_roles(messages: Messages, target: Target, losses: list[Note]) -> Messages:
    """Messages in which no two in a row are of one role; a round of results counts as one."""
    if not target.alternates_roles:
        return messages
    done: list[Message] = []
    for index, message in enumerate(messages):
        before = done[-1] if done else None
        if before is None or before.role is not message.role or message.role is Role.TOOL:
            done.append(message)
            continue
        reason = "joined with the message before"
        losses.append(Repair(f"messages[{index}]", "W117", "merged", reason))
        if message.name != before.name or message.extras is not EMPTY:
            losses.append(Loss(f"messages[{index}]", "joined with the one before; its name is not"))
        done[-1] = before.replace_unchecked(parts=(*before.parts, *message.parts))
    return messages if len(done) == len(messages) else tuple(done)


def with_answered_results(messages: Messages, target: Target, notes: list[Note]) -> Messages:
    """Messages in which the assistant speaks after results, before the user does."""
    if not target.answers_results:
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
                reason = "an assistant's turn between results and user"
                notes.append(Repair(f"messages[{index}]", "C1", "added", reason))
                done.append(make_message(Role.ASSISTANT, (Text(READ),)))
        done.append(message)
    same = len(done) == len(messages) and all(map(is_, done, messages))
    return messages if same else tuple(done)
