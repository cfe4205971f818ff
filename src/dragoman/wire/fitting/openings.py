"""Who speaks first, for targets that want it to be the user, or no call (W47, W77)."""

from __future__ import annotations

from dragoman.model.messages import Message, make_message
from dragoman.model.parts import Text
from dragoman.model.roles import Role
from dragoman.wire.losses import Note, Repair
from dragoman.wire.target import Target

OPENING = "(The conversation begins here.)"


def with_opening(
    messages: tuple[Message, ...],
    target: Target,
    notes: list[Note],
    *,
    is_instructed: bool = False,
) -> tuple[Message, ...]:
    """Messages that begin with the user's, or with instructions followed by it.

    `is_instructed`: whether there are instructions outside of the messages.
    """
    for index, message in enumerate(messages):
        if message.role.is_system:
            continue
        is_refused = target.starts_with_user or (
            target.refuses_call_first and _begins_with_call(messages[index:])
        )
        if message.role is Role.USER or not is_refused:
            return messages
        notes.append(Repair("messages", "W47", "added", "a user's turn at the beginning"))
        return (*messages[:index], _opening(), *messages[index:])
    if target.needs_message and (messages or is_instructed):
        notes.append(Repair("messages", "W47", "added", "a user's turn beside the instructions"))
        return (*messages, _opening())
    return messages


def _begins_with_call(messages: tuple[Message, ...]) -> bool:
    """Whether the model calls a tool in the first turn, of however many messages."""
    for message in messages:
        if message.role is Role.ASSISTANT and message.tool_calls:
            return True
        if not (message.role is Role.ASSISTANT or message.role.is_system):
            return False
    return False


def _opening() -> Message:
    return make_message(Role.USER, (Text(OPENING),))
