"""Who has the last word, for targets that want it to be the user (W48, W79)."""

from __future__ import annotations

from dragoman.model.messages import Message, make_message
from dragoman.model.parts import Text
from dragoman.model.roles import Role
from dragoman.wire.losses import Note, Repair
from dragoman.wire.target import Target

ENDING = "(Please go on.)"


def with_ending(
    messages: tuple[Message, ...], target: Target, losses: list[Note]
) -> tuple[Message, ...]:
    """Messages that don't end with the assistant's, or not with white space.

    Calls without results have got theirs before: nothing is ever said between the two.
    """
    if target.prefill == "free":
        return messages
    if target.prefill == "trimmed":
        return _trimmed(messages, losses)
    last = len(messages) - 1
    while last >= 0 and messages[last].role.is_system:
        last -= 1
    if last < 0 or messages[last].role is not Role.ASSISTANT or messages[last].tool_calls:
        return messages
    reason = "a user's turn behind a begun answer, which is not continued here"
    losses.append(Repair(f"messages[{last}]", "W48", "added", reason))
    return (*messages, make_message(Role.USER, (Text(ENDING),)))


def _trimmed(messages: tuple[Message, ...], losses: list[Note]) -> tuple[Message, ...]:
    last = messages[-1] if messages else None
    end = last.parts[-1] if last is not None and last.parts else None
    if last is None or last.role is not Role.ASSISTANT or not isinstance(end, Text):
        return messages
    text = end.text.rstrip()
    if text == end.text:
        return messages
    path = f"messages[{len(messages) - 1}].parts[{len(last.parts) - 1}]"
    losses.append(Repair(path, "W48", "dropped", "white space at the end of a begun answer"))
    return (
        *messages[:-1],
        last.replace_unchecked(parts=(*last.parts[:-1], end.replace(text=text))),
    )
