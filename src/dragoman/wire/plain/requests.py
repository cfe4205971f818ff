"""Encodes conversations: plain stretches by the generated loop, everything else by the steps.

A long plain stretch between two places where a conversation stands alike (before a user's text that
follows an answer, or before calls that follow results) is taken out. A sample of it stays in its
place: a text of the user, an answer, and a round of calls if it has any. What remains is short, and
is fitted and encoded in the general way. The sample must come out as the loop writes it; then the
whole stretch is written there. Thus a target or a setting that changes such messages is noticed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from msgspec import MsgspecError
from msgspec.json import Decoder, Encoder
from msgspec.structs import replace

from dragoman.model.parts import Text
from dragoman.model.requests import Request
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolResult
from dragoman.wire.encoded import Encoded
from dragoman.wire.fitting.identifiers import accepted_id
from dragoman.wire.losses import Loss, Repair
from dragoman.wire.plain.writing import (
    ANSWERS,
    CARRIED,
    USER_AFTER_RESULT,
    USERS,
    Begun,
    Messages,
    Span,
    span_of,
)
from dragoman.wire.target import Target

N = TypeVar("N", Loss, Repair)
LEAST = 12
"""The fewest messages of a stretch that are worth it."""
_TEXTS = ("(A user's text, number {}.)", "(An answer, number {}.)")
_MOVING = frozenset({"I5", "I8", "I9"})
"""The rules by which results move to their calls: after that, messages are hard to number."""
_PATH = re.compile(r"messages\[(\d+)\]", re.ASCII)
_UNWRITABLE = (MsgspecError, UnicodeError, TypeError, ValueError, RecursionError)
"""What JSON can't hold, such as half a character, is for the steps."""
_encode = Encoder().encode
_decode = Decoder().decode


class _Stretch(NamedTuple):
    """A plain stretch, its items, and what stays in its place."""

    span: Span
    items: list[Any]
    sample: Messages
    shown: list[Any]
    """The items of the sample."""


def encoded_plainly(  # noqa: PLR0911 - one return for each reason
    request: Request,
    target: Target,
    field: str,
    begun: Begun,
    general: Callable[[Request], Encoded],
) -> Encoded | None:
    """The encoded request; None if it has no long plain stretch, or the target changes those."""
    messages = request.messages
    if len(messages) < LEAST or target.thinking.sent_back == "all":
        return None
    try:
        stretches = _stretches(request, target, begun)
    except _UNWRITABLE:
        return None
    if not stretches:
        return None
    rest, numbers = _without(messages, stretches)
    if any(each.origin is not None and each.origin.dialect == target.dialect for each in rest):
        return None
    made = general(request.replace_trusted(messages=rest))
    if any(each.rule in _MOVING for each in made.repairs):
        return None
    losses, repairs = _renumbered(made.losses, numbers), _renumbered(made.repairs, numbers)
    if losses is None or repairs is None:
        return None
    raw = _whole(made.body, field, stretches)
    if raw is None:
        return None
    return Encoded(None, made.path, made.headers, losses, repairs, made.context, raw)


def _whole(body: dict[str, Any], field: str, stretches: Sequence[_Stretch]) -> bytes | None:
    """The body with the stretches in place of their samples; None if one is not there."""
    try:
        items = body.get(field)
        found = _spliced(items, stretches) if isinstance(items, list) else None
        return None if found is None else _encode({**body, field: found})
    except _UNWRITABLE:
        return None


def _stretches(request: Request, target: Target, begun: Begun) -> list[_Stretch]:
    """The plain stretches; none if they have something that this target may not accept."""
    messages = request.messages
    write, coming, start, run = begun
    found: list[_Stretch] = []
    calls: dict[str, str] = {}
    known = 0
    while True:
        if _is_changed(run.kinds, target):
            return []
        turns, steps = span_of(run.turns), span_of(run.steps)
        span = turns if turns.size >= steps.size else steps
        if span.size >= LEAST:
            sample = _sample(messages, span, len(found), is_turn=span is turns)
            shown = write(sample, 0)
            if not shown.is_whole:
                return []
            items = run.items[span.start : span.stop]
            found.append(_Stretch(span, items, sample, _decode(_encode(shown.items))))
            taken = list(run.calls.items())[span.calls : span.called]
            known += len(taken)
            calls.update(taken)
        start = run.end + 1
        if len(messages) - start < LEAST:
            break
        run = write(coming, start)
    return found if not found or _are_accepted(request, found, calls, known, target) else []


def _is_changed(kinds: int, target: Target) -> bool:
    """Whether a target merges such neighbours, or puts something between them."""
    turns = target.turns
    if turns.alternates_roles and kinds & (USERS | ANSWERS):
        return True
    return turns.answers_results and bool(kinds & USER_AFTER_RESULT)


def _are_accepted(
    request: Request, stretches: Sequence[_Stretch], calls: dict[str, str], count: int,
    target: Target,
) -> bool:  # fmt: skip
    """Whether a target takes the calls of the stretches as they are."""
    if not calls:
        return True
    if not request.tools and target.tools.must_be_declared:
        return False
    if len(calls) != count or not target.ids.accepts_all(calls.keys()):
        return False
    if CARRIED in "".join(calls) or not all(map(target.tools.accepts_name, set(calls.values()))):
        return False
    others = set(_ids(request.messages, stretches))
    if not calls.keys().isdisjoint(others):
        return False
    return not any(accepted_id(each, target.ids) in calls for each in others)


def _ids(messages: Messages, stretches: Iterable[_Stretch]) -> Iterable[str]:
    """The ids of calls and results outside of the stretches."""
    end = 0
    for first, last in [*((each.span.first, each.span.end) for each in stretches), (None, 0)]:
        for message in messages[end:first]:
            for part in message.parts:
                if isinstance(part, ToolCall):
                    yield part.id
                elif isinstance(part, ToolResult):
                    yield part.call_id
        end = last


def _sample(messages: Messages, span: Span, number: int, *, is_turn: bool) -> Messages:
    """What stays of a stretch."""
    step = span.first
    if is_turn:
        while step < span.end and not messages[step].tool_calls:
            step += 1
    end = step + 1
    while end < span.end and messages[end].role is Role.TOOL:
        end += 1
    called = messages[step:end] if step < span.end else ()
    if not is_turn:
        return called
    asked, answer = messages[span.first], messages[span.end - 1]
    texts = [(Text(each.format(number)),) for each in _TEXTS]
    return (
        asked.replace_unchecked(parts=texts[0]),
        *called,
        answer.replace_unchecked(parts=texts[1]),
    )


def _without(
    messages: Messages, stretches: Iterable[_Stretch]
) -> tuple[Messages, list[int | None]]:
    """The conversation with samples in place of stretches, and where its messages were."""
    rest: list[Any] = []
    numbers: list[int | None] = []
    end = 0
    for span, _, sample, _ in stretches:
        rest += messages[end : span.first]
        numbers += range(end, span.first)
        rest += sample
        numbers += [None] * len(sample)
        end = span.end
    return (*rest, *messages[end:]), [*numbers, *range(end, len(messages))]


def _spliced(items: list[Any], stretches: Iterable[_Stretch]) -> list[Any] | None:
    """The items with the stretches in place of their samples; None if one is not there."""
    said = _decode(_encode(items))
    made: list[Any] = []
    end = 0
    for _, written, _, shown in stretches:
        size = len(shown)
        places = [at for at in range(end, len(said) - size + 1) if said[at : at + size] == shown]
        if len(places) != 1:
            return None
        made += items[end : places[0]]
        made += written
        end = places[0] + size
    return [*made, *items[end:]]


def _renumbered(notes: Sequence[N], numbers: Sequence[int | None]) -> tuple[N, ...] | None:
    """The notes, about the messages where they were; None if one is about a sample."""
    made: list[N] = []
    for note in notes:
        found = _PATH.match(note.path)
        number = numbers[int(found[1])] if found is not None else -1
        if number is None:
            return None
        if found is not None:
            note = replace(note, path=f"messages[{number}]{note.path[found.end() :]}")  # noqa: PLW2901
        made.append(note)
    return tuple(made)
