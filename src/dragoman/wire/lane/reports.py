"""What is reported of a conversation that has more to it than is written: learned, then repeated.

The general path is shown a skeleton in which everything occurs twice (`skeleton.skeleton`). What it
reports of each is what it reports of all of its kind; and the order in which it does so shows how
many passes it makes over the conversation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Generic, NamedTuple, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from dragoman.wire.lane.plain import ABOUT_MESSAGES, SPELLED, Mark, Marks
from dragoman.wire.losses import Loss, Repair

N = TypeVar("N", bound=Loss | Repair)
_PLACE = re.compile(r"messages\[(\d+)\](?:\.parts\[(\d+)\])?")


class _Report(NamedTuple, Generic[N]):
    """What is said of one thing."""

    note: N
    has_part: bool
    rest: str
    """Of its path, behind the place."""

    def at(self, message: int, part: int) -> N:
        place = f"messages[{message}].parts[{part}]" if self.has_part else f"messages[{message}]"
        return replace(self.note, path=place + self.rest)


class _Pass(NamedTuple, Generic[N]):
    """What is said in one pass over the conversation: first of the request, then by kind."""

    fixed: tuple[N, ...]
    by_kind: dict[int, tuple[_Report[N], ...]]


class Reports(Struct, Generic[N], frozen=True, eq=False):
    """What is said of all."""

    fixed: tuple[N, ...]
    passes: tuple[_Pass[N], ...] = ()

    def of(self, marks: Marks) -> tuple[N, ...]:
        """What is said of a conversation that has these."""
        if not self.passes or not marks:
            return self.fixed
        notes: list[N] = []
        for each in self.passes:
            notes += each.fixed
            for kind, message, part in marks:
                notes += [report.at(message, part) for report in each.by_kind.get(kind, ())]
        return tuple(notes)


def reports_of(notes: Sequence[N], marks: Marks, leading: int) -> Reports[N] | None:
    """What notes say of a skeleton, of which these are the marks; None where it can't be told."""
    kinds = _kinds(marks)
    passes: list[_Pass[N]] = []
    found: list[tuple[N, Mark, _Report[N]]] = []
    fixed: list[N] = []
    for note in notes:
        place = _PLACE.match(note.path)
        if place is None and note.path.startswith("messages") and note.path != "messages":
            return None
        if place is None or int(place[1]) < leading:
            if found:
                done = _pass(fixed, found, marks)
                if done is None:
                    return None
                passes.append(done)
                fixed, found = [], []
            fixed.append(note)
            continue
        message, part = int(place[1]), -1 if place[2] is None else int(place[2])
        kind = kinds.get((message, part))
        if kind is None or note.path.startswith(".content[", place.end()):
            return None  # of the latter, not which one it is
        mark = (kind, message, part)
        if found and (message, part) < found[-1][1][1:]:
            done = _pass(fixed, found, marks)
            if done is None:
                return None
            passes.append(done)
            fixed, found = [], []
        found.append((note, mark, _Report(note, part >= 0, note.path[place.end() :])))
    if not passes and not found:
        return Reports(tuple(fixed))
    last = _pass(fixed, found, marks)
    return None if last is None else Reports((), (*passes, last))


def _kinds(marks: Iterable[Mark]) -> dict[tuple[int, int], int | None]:
    """What is where; None where there are two things in one place."""
    kinds: dict[tuple[int, int], int | None] = {}
    for kind, message, part in marks:
        place = (message, -1 if kind & ABOUT_MESSAGES else part)
        kinds[place] = None if place in kinds else kind
    return kinds


def _pass(fixed: list[N], found: list[tuple[N, Mark, _Report[N]]], marks: Marks) -> _Pass[N] | None:
    """The pass in which these notes were made; None where not all of a kind fare alike."""
    by_mark: dict[tuple[int, int, int], list[_Report[N]]] = {}
    for _, mark, report in found:
        by_mark.setdefault(mark, []).append(report)
    by_kind: dict[int, tuple[_Report[N], ...]] = {}
    for kind, message, part in marks:
        place = (kind, message, -1 if kind & ABOUT_MESSAGES else part)
        reports = tuple(by_mark.get(place, ()))
        if reports and kind & SPELLED:
            return None  # it was to say nothing
        said = [report.at(0, 0) for report in reports]
        if kind in by_kind and [report.at(0, 0) for report in by_kind[kind]] != said:
            return None
        by_kind[kind] = reports
    return _Pass(tuple(fixed), {kind: reports for kind, reports in by_kind.items() if reports})
