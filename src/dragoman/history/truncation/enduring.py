"""The messages that always stay, when no turn is in progress."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.history.truncation.groups import grouped, is_instruction, pairs
from dragoman.model.messages import Message
from dragoman.model.roles import Role


def enduring(messages: Sequence[Message]) -> list[Message]:
    """Instructions and pinned turns, and the last turn unless the model has finished it."""
    groups = grouped(messages)
    staying = [group.stays for group in groups]
    if staying and not _is_over(messages):
        staying[-1] = True
    kept: list[Message] = []
    for group, stays in zip(groups, staying, strict=True):
        own = messages[group.start : group.stop]
        kept += own if stays else [message for message in own if is_instruction(message)]
    return kept


def _is_over(messages: Sequence[Message]) -> bool:
    """Whether the model has responded last, without pending calls."""
    last = messages[-1]
    answered = {call for call, _ in pairs(messages)}
    is_waiting = bool(last.tool_calls) and len(messages) - 1 not in answered
    return last.role is Role.ASSISTANT and not is_waiting
