"""Repairs for this dialect only: fields and schemas that the target host refuses or ignores."""

from __future__ import annotations

from operator import is_

from dragoman.model.messages import Message
from dragoman.model.parts import Thinking
from dragoman.model.requests import AnyTool, Request
from dragoman.model.roles import Role
from dragoman.model.tools import ToolDefinition
from dragoman.wire.fitting.settings import sampling_within
from dragoman.wire.fitting.steps import Step
from dragoman.wire.losses import Loss, Note, Repair
from dragoman.wire.openai_chat.dialect import DETAILS, NAME, RANGES, TARGET, is_own
from dragoman.wire.openai_chat.layout import FIELD_PLACES
from dragoman.wire.openai_chat.thinking import (
    NOT_WRITTEN,
    SEALED_THINKING,
    TEXT_FIELDS,
    is_lost_in_chunk,
    is_sealed_thinking,
)
from dragoman.wire.openai_strict_schemas import is_refused_strict
from dragoman.wire.overlay import with_words, words_of
from dragoman.wire.overlay_edits import with_digests, without_edited
from dragoman.wire.target import Target

_FIELDS = (DETAILS, "content", *reversed(TEXT_FIELDS))
_SUPPORTED_FIELD = "moved to the field that this host supports"

# --- thinking in fields that the host supports


def with_thinking_in_known_fields(request: Request, target: Target, notes: list[Note]) -> Request:
    """Move thinking to a field that the host reads (W115), and drop empty thinking (W110)."""
    messages = tuple(
        [
            _with_thinking_in_known_fields(message, target.thinking.fields, notes, index)
            for index, message in enumerate(request.messages)
        ]
    )
    same = all(map(is_, messages, request.messages))
    return request if same else request.replace_trusted(messages=messages)


def _with_thinking_in_known_fields(
    message: Message, known: tuple[str, ...], notes: list[Note], index: int
) -> Message:
    own = {
        place: part
        for place, part in enumerate(message.parts)
        if isinstance(part, Thinking) and is_own(message.origin_of(part))
    }
    if not own or message.role is not Role.ASSISTANT:
        return message
    parts = list(message.parts)
    for place, part in own.items():
        path = f"messages[{index}].parts[{place}]"
        parts[place] = _in_known_field(part, known, notes, path, is_only=len(own) == 1)
    if all(map(is_, parts, message.parts)):
        return message
    # Extras recorded for the original thinking now apply to the changed one.
    extras = without_edited(message, NAME, FIELD_PLACES)
    changed = message.replace_unchecked(parts=tuple(parts), extras=extras)
    return with_digests(changed, NAME, FIELD_PLACES)


def _in_known_field(
    part: Thinking, known: tuple[str, ...], notes: list[Note], path: str, *, is_only: bool
) -> Thinking:
    words = list(words_of(part.extras, NAME))
    came = next((field for field in _FIELDS if field in words), "reasoning_content")
    field = _field_of(part, came, known, is_only=is_only)
    # Of the text fields only `reasoning_content` may be empty, and sometimes must be (C2).
    may_be_empty = field in ("content", DETAILS, "reasoning_content")
    if not part.text and part.data is None and not may_be_empty:
        notes.append(Repair(path, "W110", "dropped", "empty thinking is left out"))
    elif came not in known:
        notes.append(Repair(path, "W115", "moved", _SUPPORTED_FIELD))
    is_redacted = part.data is not None and field == "reasoning_content"
    is_written = bool(part.text) or (may_be_empty and not is_redacted)
    is_lost = is_lost_in_chunk(part) or came != "content"
    if is_sealed_thinking(part) and field != DETAILS and (field != "content" or is_lost):
        notes.append(Loss(path, SEALED_THINKING))
        part = part.replace(signature=None, data=None)
    gone = [*_FIELDS, *[f"={name}" for name in TEXT_FIELDS if name not in known]]
    now = [field if field is not None and is_written else NOT_WRITTEN]
    now += [word for word in words if word not in gone]
    if now == words or (now == ["reasoning_content"] and not words and is_only):
        return part
    return part.replace(extras=with_words(part.extras, NAME, now))


def _field_of(part: Thinking, came: str, known: tuple[str, ...], *, is_only: bool) -> str | None:
    """The best field for thinking that the host reads; None if there is none."""
    if "content" in known:
        return "content"
    is_detail = is_sealed_thinking(part) or not (is_only or came == "reasoning")
    if DETAILS in known and (came == DETAILS or is_detail):
        return DETAILS
    texts = [field for field in known if field in TEXT_FIELDS]
    spelled = "reasoning" if came == "reasoning" else "reasoning_content"
    return spelled if spelled in texts else next(iter(texts), None)


# --- schemas


def with_strict_schemas(request: Request, target: Target, notes: list[Note]) -> Request:
    """Adapt schemas of this dialect to strict mode; otherwise they are sent unchanged."""
    tools = list[AnyTool](request.tools)
    for index, tool in enumerate(request.tools):
        if not isinstance(tool, ToolDefinition) or not is_own(tool.origin):
            continue
        if is_refused_strict(tool, target, TARGET):
            reason = "the schema is adapted to strict mode"
            notes.append(Repair(f"tools[{index}].parameters", "W14", "retyped", reason))
            tools[index] = tool.replace_unchecked(origin=None)
    same = all(map(is_, tools, request.tools))
    return request if same else request.replace_trusted(tools=tuple(tools))


STEPS = (
    sampling_within(RANGES),
    Step(
        with_thinking_in_known_fields,
        ("thinking.fields",),
        lambda seen, to: seen.has_thinking and bool(to.thinking.fields),
    ),
    Step(with_strict_schemas, ("schemas.checks_strict",), lambda _, to: to.schemas.checks_strict),
)
"""Fitting steps for this dialect only."""
