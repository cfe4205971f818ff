"""Blank texts, and media, that the target refuses (W46, W76, W105)."""

from __future__ import annotations

from collections.abc import Callable
from operator import is_
from typing import TypeVar

from dragoman.model.content import AnyPart
from dragoman.model.media import Image, Media
from dragoman.model.messages import Message
from dragoman.model.parts import Origin, Part, Refusal, Text
from dragoman.model.roles import Role
from dragoman.model.tools import ToolResult
from dragoman.wire.losses import Loss, Note, Repair
from dragoman.wire.target import Target

_BLANK = "(no text)"
_ASSISTANT = Role.ASSISTANT


def without_blank_texts(
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
    if target.turns.refuses_blank_text:
        return _is_blank
    if target.turns.refuses_empty_text:
        return _is_empty
    return _is_nothing if target.turns.refuses_empty_messages else None


def _is_blank(part: AnyPart) -> bool:
    return isinstance(part, (Text, Refusal)) and not part.text.strip()  # both are sent as text


def _is_empty(part: AnyPart) -> bool:
    return isinstance(part, (Text, Refusal)) and not part.text


def _is_nothing(_part: AnyPart) -> bool:
    return False


P = TypeVar("P", bound=Part)
_HEARD = ("audio", "video")


def with_accepted_media(
    messages: tuple[Message, ...], target: Target, losses: list[Note]
) -> tuple[Message, ...]:
    """Messages with the media that the target takes."""
    if not any(map(_has_media, messages)):
        return messages
    changed = tuple(
        _message(message, target, f"messages[{index}]", losses)
        for index, message in enumerate(messages)
    )
    return messages if all(map(is_, changed, messages)) else changed


def _has_media(message: Message) -> bool:
    for part in message.parts:
        if type(part) is ToolResult:
            if type(part.content) is not str:
                return True
        elif isinstance(part, Media):
            return True
    return False


def _message(message: Message, target: Target, path: str, losses: list[Note]) -> Message:
    parts: tuple[AnyPart, ...] = tuple(
        _result(part, target, f"{path}.parts[{place}]", losses)
        if isinstance(part, ToolResult)
        else _seen(part, target, f"{path}.parts[{place}]", losses)
        for place, part in enumerate(message.parts)
    )
    return (
        message if all(map(is_, parts, message.parts)) else message.replace_unchecked(parts=parts)
    )


def _result(result: ToolResult, target: Target, path: str, losses: list[Note]) -> ToolResult:
    if isinstance(result.content, str):
        return result
    content = tuple(
        _seen(part, target, f"{path}.content[{place}]", losses)
        for place, part in enumerate(result.content)
    )
    return (
        result
        if all(map(is_, content, result.content))
        else result.replace_unchecked(content=content)
    )


def _seen(part: P, target: Target, path: str, losses: list[Note]) -> P | Text:
    """The part itself, or words in its place."""
    if not isinstance(part, Media):
        return part
    kind = _kind(part)
    if part.file_id is not None and _is_elsewhere(part.origin, target):
        losses.append(Loss(path, f"{kind}: uploaded to another provider"))
    elif target.media.kinds is not None and kind not in target.media.kinds:
        losses.append(Loss(path, f"{kind}: this model takes none"))
    elif isinstance(part, Image) and part.url is not None and not target.media.takes_image_urls:
        losses.append(Loss(path, "images can be given as data only here (W105)"))
    else:
        return part
    return Text(f"({kind} that can't be shown here)")


def _is_elsewhere(origin: Origin | None, target: Target) -> bool:
    """Whether a file was uploaded to another vendor; one vendor's dialects know the same files."""
    if origin is None:
        return False
    return origin.dialect.partition("-")[0] != target.dialect.partition("-")[0]


def _kind(part: Media) -> str:
    """What it is: sound and film are what they are in a file, too."""
    of_type = (part.mime or "").partition("/")[0]
    return of_type if of_type in _HEARD else type(part).__name__.lower()
