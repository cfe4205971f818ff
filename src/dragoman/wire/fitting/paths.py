"""Maps paths in the fitted request back to the request as given, for losses and repairs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeVar

from dragoman.model.content import AnyPart
from dragoman.model.messages import Message
from dragoman.model.tools import ToolResult
from dragoman.wire.fitting.pairing import PLACEHOLDERS
from dragoman.wire.fitting.steps import Messages
from dragoman.wire.losses import Loss, Note, Repair

_PATH = re.compile(r"messages\[(\d+)\](?:\.parts\[(\d+)\])?")
_TOOL = re.compile(r"tools\[(\d+)\]")
Numbers = tuple[int, ...]
T = TypeVar("T")
N = TypeVar("N", Loss, Repair, Note)


class Places:
    """The original positions of messages and parts, looked up by object identity.

    Fitting moves and drops parts, but those it keeps are the same objects. If one object occurs
    several times, its positions are used in order.
    """

    def __init__(self, given: Messages, fitted: Messages) -> None:
        known: dict[int, list[tuple[int, int]]] = {}
        for index, message in enumerate(given):
            for place, part in enumerate(message.parts):
                known.setdefault(id(part), []).append((index, place))
        whole = _places_of(given)
        self._fitted = fitted
        self._messages: list[int | None] = []
        self._parts: list[list[tuple[int, int] | None]] = []
        for message in fitted:
            found = [_next(known.get(id(part))) for part in message.parts]
            first = next((place[0] for place in found if place is not None), None)
            same = _next(whole.get(id(message)))
            self._messages.append(same if same is not None else first)
            self._parts.append(found)

    def restored(self, note: N) -> N | None:
        """The note with its original path; None if it is about a placeholder of ours."""
        found = _PATH.match(note.path)
        if found is None or int(found[1]) >= len(self._messages):
            return note
        index, rest = int(found[1]), note.path[found.end() :]
        if found[2] is None:
            place = self._messages[index]
            return note if place is None else note.replace(path=f"messages[{place}]{rest}")
        parts = self._parts[index]
        if int(found[2]) >= len(parts):
            return note
        part = parts[int(found[2])]
        if part is None:
            return None if _is_placeholder(self._fitted[index].parts[int(found[2])]) else note
        return note.replace(path=f"messages[{part[0]}].parts[{part[1]}]{rest}")


def restored(notes: Iterable[N], given: Messages, fitted: Messages) -> tuple[N, ...]:
    """Map losses and repairs from the fitted messages to the given ones."""
    found = tuple(notes)
    if fitted is given or not found:
        return found
    places = Places(given, fitted)
    return tuple([note for told in found if (note := places.restored(told)) is not None])


def left(placed: Messages, before: Messages, after: Messages) -> Messages:
    """Apply to `placed` what a step moved or dropped when it turned `before` into `after`.

    A part that the step replaced is recognised by its position, if the step changed none.
    """
    if after is before:
        return placed
    sizes = [len(message.parts) for message in after]
    in_place = sizes == [len(message.parts) for message in before]
    whole = {id(new): old for new, old in zip(before, placed, strict=False)}
    known = {
        id(part): given
        for new, old in zip(before, placed, strict=False)
        for part, given in zip(new.parts, old.parts, strict=False)
    }
    result: list[Message] = []
    for index, message in enumerate(after):
        there = placed[index] if in_place and index < len(placed) else message
        if in_place and message is before[index]:
            found = there
        elif id(message) in whole:
            found = whole[id(message)]
        else:
            there = there if len(there.parts) == len(message.parts) else message
            parts = zip(message.parts, there.parts, strict=True)
            kept = tuple([known.get(id(part), given) for part, given in parts])
            found = message.replace_unchecked(parts=kept)
        result.append(found)
    return tuple(result)


def renumbered(notes: Iterable[N], kept: Numbers | None) -> tuple[N, ...]:
    """Map losses and repairs to the original indices of the tools."""
    if kept is None:
        return tuple(notes)
    return tuple(_renumbered(note, kept) for note in notes)


def _renumbered(note: N, kept: Numbers) -> N:
    found = _TOOL.match(note.path)
    if found is None:
        return note
    number = kept[int(found[1])]
    return note.replace(path=f"tools[{number}]{note.path[found.end() :]}")


def _is_placeholder(part: AnyPart) -> bool:
    """Whether a part is a placeholder result."""
    return isinstance(part, ToolResult) and part.content in PLACEHOLDERS


def _places_of(messages: Messages) -> dict[int, list[int]]:
    places: dict[int, list[int]] = {}
    for index, message in enumerate(messages):
        places.setdefault(id(message), []).append(index)
    return places


def _next(places: list[T] | None) -> T | None:
    return places.pop(0) if places else None
