"""Replaces blank texts and media that the target refuses (W46, W76, W105, C5)."""

from __future__ import annotations

from collections.abc import Callable

from dragoman.model.content import AnyPart
from dragoman.model.media import Image, Media
from dragoman.model.messages import Message
from dragoman.model.parts import Origin, Refusal, Text
from dragoman.model.requests import Request
from dragoman.model.roles import Role
from dragoman.wire.fitting.steps import (
    Messages,
    unless_same,
    with_changed_content_too,
)
from dragoman.wire.fitting.unsupported_fields import unsupported_by
from dragoman.wire.foreign_extras import has_content
from dragoman.wire.losses import Loss, Note, Repair
from dragoman.wire.overlay import fields_of
from dragoman.wire.target import Target

_BLANK = "(no text)"


def without_blank_texts(messages: Messages, target: Target, notes: list[Note]) -> Messages:
    """Remove blank texts; an otherwise empty message is removed or gets a placeholder text.

    Some targets accept blank texts, but not a message without parts (W76).
    """
    is_refused = _refused_texts(target)
    may_be_silent = not target.turns.refuses_empty_answers
    if is_refused is None:
        if may_be_silent:
            return messages
        is_refused = _never
    kept: list[Message] = []
    for index, message in enumerate(messages):
        path, parts = f"messages[{index}]", message.parts
        if not may_be_silent and _is_silent(message, target):
            notes.append(Repair(path, "C5", "dropped", "empty assistant message"))
            continue
        refused = [place for place, part in enumerate(parts) if is_refused(part, message)]
        if (parts and not refused) or (
            is_refused is _never and not target.turns.refuses_empty_messages
        ):
            kept.append(message)
        elif len(refused) < len(parts):
            notes.extend(
                Repair(f"{path}.parts[{place}]", "W46", "dropped", "blank text")
                for place in refused
            )
            rest = tuple(part for place, part in enumerate(parts) if place not in refused)
            kept.append(message.replace_unchecked(parts=rest))
        elif message.role is Role.ASSISTANT:
            notes.append(Repair(path, "W46", "dropped", "empty assistant message"))
        elif message.role in (Role.SYSTEM, Role.DEVELOPER):
            notes.append(Repair(path, "W46", "dropped", "empty instructions"))
        else:  # without it, two assistant messages would become adjacent
            notes.append(Repair(path, "W46", "added", "placeholder for a blank text"))
            kept.append(message.replace_unchecked(parts=(Text(_BLANK),)))
    return unless_same(kept, messages)


def without_blank_instructions(request: Request, target: Target, notes: list[Note]) -> Request:
    """Remove blank texts from the system prompt."""
    blank: list[int] = []
    for place, part in enumerate(request.system):
        text = part.text if isinstance(part, Text) else "media"
        if not (text.strip() if target.turns.refuses_blank_text else text):
            blank.append(place)
            notes.append(Repair(f"system[{place}]", "W46", "dropped", "empty instructions"))
    if not blank:
        return request
    kept = [part for place, part in enumerate(request.system) if place not in blank]
    return request.replace_trusted(system=tuple(kept))


def without_empty_results(messages: Messages, target: Target, notes: list[Note]) -> Messages:  # noqa: ARG001 - a step's
    """Remove tool messages without results.

    An agent that runs many tools stores such a message to record which ones it has started.
    """
    is_empty = [message.role is Role.TOOL and not message.parts for message in messages]
    notes.extend(
        Repair(f"messages[{place}]", "W46", "dropped", "tool message without a result")
        for place, drops in enumerate(is_empty) if drops
    )  # fmt: skip
    kept = [message for message, drops in zip(messages, is_empty, strict=True) if not drops]
    return unless_same(kept, messages)


def _refused_texts(target: Target) -> Callable[[AnyPart, Message], bool] | None:
    """A predicate for texts that the target refuses; None if it refuses none."""
    if target.turns.refuses_blank_text:
        return _is_blank
    if target.turns.refuses_empty_text:
        return _is_empty
    if target.turns.doubts_empty_text:
        return lambda part, message: (
            _is_empty(part, message) and _is_elsewhere(message.origin_of(part), target)
        )
    return _never if target.turns.refuses_empty_messages else None


def _is_silent(message: Message, target: Target) -> bool:
    """Whether an answer has no content, nor a field of the target's own."""
    return (
        message.role is Role.ASSISTANT
        and all(_is_empty(part, message) for part in message.parts)
        and not any(
            has_content(fields_of(held.extras, target.dialect))
            for held in (message, *message.parts)
        )
    )


def _is_blank(part: AnyPart, _message: Message) -> bool:
    return isinstance(part, (Text, Refusal)) and not part.text.strip()  # both are sent as text


def _is_empty(part: AnyPart, _message: Message) -> bool:
    return isinstance(part, (Text, Refusal)) and not part.text


def _never(_part: AnyPart, _message: Message) -> bool:
    return False


_TIMED_MEDIA = ("audio", "video")


def with_accepted_media(messages: Messages, target: Target, notes: list[Note]) -> Messages:
    """Replace media that the target doesn't support with a note."""

    def accepted(part: AnyPart, path: str) -> AnyPart:
        if not isinstance(part, Media) or (problem := _problem(part, target)) is None:
            return part
        notes.append(Loss(path, problem))
        return Text(f"({_kind(part)} that can't be shown here)")

    return with_changed_content_too(messages, accepted)


def _problem(part: Media, target: Target) -> str | None:
    """Why the target doesn't accept it; None if it does."""
    kind = _kind(part)
    if part.file_id is not None and _is_elsewhere(part.origin, target):
        return f"{kind}: uploaded to another provider"
    if target.media.kinds is not None and kind not in target.media.kinds:
        return f"{kind}: not supported by this model"
    if isinstance(part, Image) and part.url is not None and not target.media.takes_image_urls:
        return "image URLs are not supported; send the data instead (W105)"
    is_stored = part.url is not None and part.url.startswith(_BUCKETS)
    if is_stored and not target.media.takes_bucket_urls:
        return f"{kind}: this provider can't fetch it from a cloud's storage"
    return None


_NEAREST = "sent as the nearest detail that this host knows"
_BUCKETS = ("gs:", "s3:")
_DETAILS = ("low", "medium", "high", "ultra_high", "original")
"""The values of `Image.detail` that providers have, from coarse to fine, besides `auto`."""


def with_known_details(messages: Messages, target: Target, notes: list[Note]) -> Messages:
    """Replace image details that the target doesn't know with the nearest that it knows."""
    known = target.media.details
    if known is None:
        return messages

    def fitted(part: AnyPart, path: str) -> AnyPart:
        if not isinstance(part, Media) or part.detail is None or part.detail in known:
            return part
        if f"{type(part).__name__}.detail" in unsupported_by(target):
            return part  # there is no such field, which is reported with the others
        nearest = _nearest_detail(part.detail, known)
        if nearest is None:
            notes.append(Loss(f"{path}.detail", "this image detail is not supported"))
        else:
            notes.append(Repair(f"{path}.detail", "I14", "retyped", _NEAREST))
        return part.replace(detail=nearest)

    return with_changed_content_too(messages, fitted)


def _nearest_detail(detail: str, known: tuple[str, ...]) -> str | None:
    """The nearest known value, of two equally near the finer; None for a word of nobody's."""
    if detail not in _DETAILS:
        return None
    wanted = _DETAILS.index(detail)
    scale = [one for one in reversed(_DETAILS) if one in known]
    return min(scale, key=lambda one: abs(_DETAILS.index(one) - wanted), default=None)


def _is_elsewhere(origin: Origin | None, target: Target) -> bool:
    """Whether a file was uploaded to another vendor; a vendor's dialects share uploaded files."""
    if origin is None:
        return False
    return origin.dialect.partition("-")[0] != target.dialect.partition("-")[0]


def _kind(part: Media) -> str:
    """The kind of media; audio and video are recognised in a file part too."""
    of_type = (part.mime or "").partition("/")[0]
    return of_type if of_type in _TIMED_MEDIA else type(part).__name__.lower()
