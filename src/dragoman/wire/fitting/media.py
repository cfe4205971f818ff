"""Media that the target can't see: words stand for them, and the loss is reported (W105)."""

from __future__ import annotations

from operator import is_
from typing import TypeVar

from dragoman.model.content import AnyPart
from dragoman.model.media import Image, Media
from dragoman.model.messages import Message
from dragoman.model.parts import Origin, Part, Text
from dragoman.model.tools import ToolResult
from dragoman.wire.losses import Loss, Note
from dragoman.wire.target import Target

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
    elif target.media is not None and kind not in target.media:
        losses.append(Loss(path, f"{kind}: this model takes none"))
    elif isinstance(part, Image) and part.url is not None and not target.takes_image_urls:
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
