"""Empty and blank texts, for targets that refuse them (W46, W76)."""

from __future__ import annotations

from collections.abc import Callable

from dragoman.model.content import AnyPart
from dragoman.model.messages import Message
from dragoman.model.parts import Refusal, Text
from dragoman.model.roles import Role
from dragoman.wire.losses import Note, Repair
from dragoman.wire.target import Target

_BLANK = "(no text)"
_ASSISTANT = Role.ASSISTANT


def without_blanks(
    messages: tuple[Message, ...], target: Target, losses: list[Note]
) -> tuple[Message, ...]:
    """Messages without blank texts; one that was nothing else is left out, or says that it is.

    Some targets take blank texts, but no message without any part (W76).
    """
    is_refused = _judge(target)
    if is_refused is None:
        return messages

    def has_refused(message: Message) -> bool:
        return any(map(is_refused, message.parts)) or not message.parts

    if not any(map(has_refused, messages)):
        return messages
    kept: list[Message] = []
    for index, message in enumerate(messages):
        if not has_refused(message):
            kept.append(message)
            continue
        rest = tuple(part for part in message.parts if not is_refused(part))
        if rest:
            losses.extend(
                Repair(f"messages[{index}].parts[{place}]", "W46", "dropped", "a blank text")
                for place, part in enumerate(message.parts)
                if is_refused(part)
            )
            kept.append(message.replace_unchecked(parts=rest))
        elif message.role is _ASSISTANT:
            losses.append(Repair(f"messages[{index}]", "W46", "dropped", "an empty answer"))
        else:  # who spoke is part of the conversation: leaving it out would join two answers
            reason = "words in the place of a blank text"
            losses.append(Repair(f"messages[{index}]", "W46", "added", reason))
            kept.append(message.replace_unchecked(parts=(Text(_BLANK),)))
    return tuple(kept)


def _judge(target: Target) -> Callable[[AnyPart], bool] | None:
    """What tells whether a part is a text that the target refuses; None: it minds nothing."""
    if target.refuses_blank_text:
        return _is_blank
    if target.refuses_empty_text:
        return _is_empty
    return _is_nothing if target.refuses_empty else None


def _is_blank(part: AnyPart) -> bool:
    return isinstance(part, (Text, Refusal)) and not part.text.strip()  # both are sent as text


def _is_empty(part: AnyPart) -> bool:
    return isinstance(part, (Text, Refusal)) and not part.text


def _is_nothing(_part: AnyPart) -> bool:
    return False
