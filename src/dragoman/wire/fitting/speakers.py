"""Calls in a message that is not the model's: nobody takes them there.

Wires may hold them, and so may edited histories; only the model can call a tool.
"""

from __future__ import annotations

from itertools import groupby

from dragoman.model.content import AnyPart
from dragoman.model.messages import Message
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall
from dragoman.wire.losses import Note, Repair
from dragoman.wire.target import Target

_ASSISTANT = Role.ASSISTANT
_REASON = "a call stands in a message of the assistant, who alone can make it"


def with_calls_of_the_assistant(
    messages: tuple[Message, ...], target: Target, notes: list[Note]
) -> tuple[Message, ...]:
    """Messages in which every call is the assistant's, each where it stood."""
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
