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
    if not target.is_strict:
        return messages
    done: list[Message] = []
    for index, message in enumerate(messages):
        if message.role is _ASSISTANT or not message.tool_calls:
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
    return messages if len(done) == len(messages) and not notes else tuple(done)


def _is_call(part: AnyPart) -> bool:
    return type(part) is ToolCall
