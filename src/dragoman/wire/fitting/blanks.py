"""Texts of nothing but white space, for targets that refuse them (W46, W76)."""

from __future__ import annotations

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
    has_blanks = _has_blanks if target.refuses_blank_text else _is_empty
    if not (target.refuses_blank_text or target.refuses_empty):
        return messages
    if not any(map(has_blanks, messages)):
        return messages
    kept: list[Message] = []
    for index, message in enumerate(messages):
        if not has_blanks(message):
            kept.append(message)
            continue
        rest = tuple(part for part in message.parts if not _is_blank(part))
        if rest:
            losses.extend(
                Repair(f"messages[{index}].parts[{place}]", "W46", "dropped", "a blank text")
                for place, part in enumerate(message.parts)
                if _is_blank(part)
            )
            kept.append(message.replace_unchecked(parts=rest))
        elif message.role is _ASSISTANT:
            losses.append(Repair(f"messages[{index}]", "W46", "dropped", "an empty answer"))
        else:  # who spoke is part of the conversation: leaving it out would join two answers
            reason = "words in the place of a blank text"
            losses.append(Repair(f"messages[{index}]", "W46", "added", reason))
            kept.append(message.replace_unchecked(parts=(Text(_BLANK),)))
    return tuple(kept)


def _has_blanks(message: Message) -> bool:
    for part in message.parts:
        if (type(part) is Text or type(part) is Refusal) and not part.text.strip():
            return True
    return not message.parts


def _is_empty(message: Message) -> bool:
    return not message.parts


def _is_blank(part: AnyPart) -> bool:
    return isinstance(part, (Text, Refusal)) and not part.text.strip()  # both are sent as text
