"""Learns which losses and repairs the general path reports, and repeats them for plain requests.

The general path translates a skeleton in which everything occurs twice (`skeleton.skeleton`). What
it reports about one is what it reports about all of that kind; the order of reports shows how many
passes it makes over the conversation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from dragoman.wire.fitting.identifiers import RENAMED_IDS
from dragoman.wire.lane.plain import ABOUT_MESSAGES, RENAMED, SPELLED, Mark, Marks, NotPlain
from dragoman.wire.losses import Loss, Repair

N = TypeVar("N", bound=Loss | Repair)
_PLACE = re.compile(r"messages\[(\d+)\](?:\.parts\[(\d+)\])?")


class _Report(NamedTuple, Generic[N]):
    """A report about one thing."""

    note: N
    has_part: bool
    rest: str
    """The path after the message and part."""

    def at(self, message: int, part: int) -> N:
        place = f"messages[{message}].parts[{part}]" if self.has_part else f"messages[{message}]"
        return replace(self.note, path=place + self.rest)


class _Pass(NamedTuple, Generic[N]):
    """The reports of one pass over the conversation: those about the request, then by kind."""

    fixed: tuple[N, ...]
    by_kind: dict[int, tuple[_Report[N], ...]]


class Reports(Struct, Generic[N], frozen=True, eq=False):
    """All reports about a conversation."""

    fixed: tuple[N, ...]
    passes: tuple[_Pass[N], ...] = ()

    def of(self, marks: Marks) -> tuple[N, ...]:
        """The reports for a conversation with these marks."""
        if not self.passes or not marks:
            return self.fixed
        notes: list[N] = []
        for each in self.passes:
            notes += each.fixed
            for kind, message, part in marks:
                notes += [report.at(message, part) for report in each.by_kind.get(kind, ())]
        return tuple(notes)


def reports_of(notes: Sequence[N], marks: Marks, leading: int) -> Reports[N] | None:
    """Learn from the notes on a skeleton with these marks; None if they follow no clear pattern."""
    try:
        runs = list(_runs(notes, marks, leading))
        if len(runs) == 1 and not runs[0][1]:
            return Reports(tuple(runs[0][0]))
        reports = Reports((), tuple(_pass(fixed, found, marks) for fixed, found in runs))
    except NotPlain:
        return None
    return reports if reports.of(marks) == tuple(notes) else None


_Found = tuple[Mark, _Report[N]]


def _runs(
    notes: Sequence[N], marks: Marks, leading: int
) -> Iterator[tuple[list[N], list[_Found[N]]]]:
    """Split the notes into passes: those on the request, then those on the conversation."""
    kinds = _kinds(mark for mark in marks if mark[0] != RENAMED)
    renamed = {(message, part) for kind, message, part in marks if kind == RENAMED}
    fixed: list[N] = []
    found: list[_Found[N]] = []
    for note in notes:
        place = _PLACE.match(note.path)
        if place is None and note.path.startswith("messages") and note.path != "messages":
            raise NotPlain
        if place is None or int(place[1]) < leading:
            if found:
                yield fixed, found
                fixed, found = [], []
            fixed.append(note)
            continue
        message, part = int(place[1]), -1 if place[2] is None else int(place[2])
        is_of_id = isinstance(note, Repair) and note.rule == RENAMED_IDS
        kind = RENAMED if is_of_id and (message, part) in renamed else kinds.get((message, part))
        if kind is None or note.path.startswith(".content[", place.end()):
            raise NotPlain  # for content of results, the item would be unknown
        if found and (message, part) < found[-1][0][1:]:
            yield fixed, found
            fixed, found = [], []
        report = _Report(note, part >= 0, note.path[place.end() :])
        found.append(((kind, message, part), report))
    yield fixed, found


def _kinds(marks: Iterable[Mark]) -> dict[tuple[int, int], int | None]:
    """The kind of mark by position; None if a position has two."""
    kinds: dict[tuple[int, int], int | None] = {}
    for kind, message, part in marks:
        place = (message, -1 if kind & ABOUT_MESSAGES else part)
        kinds[place] = None if place in kinds else kind
    return kinds


def _pass(fixed: list[N], found: list[_Found[N]], marks: Marks) -> _Pass[N]:
    """The pass that made these notes; raises if marks of one kind differ."""
    by_mark: dict[Mark, list[_Report[N]]] = {}
    for mark, report in found:
        by_mark.setdefault(mark, []).append(report)
    by_kind: dict[int, tuple[_Report[N], ...]] = {}
    for kind, message, part in marks:
        place = (kind, message, -1 if kind & ABOUT_MESSAGES else part)
        reports = tuple(by_mark.get(place, ()))
        if reports and kind & SPELLED:
            raise NotPlain  # spelling must not be reported
        said = [report.at(0, 0) for report in reports]
        if kind in by_kind and [report.at(0, 0) for report in by_kind[kind]] != said:
            raise NotPlain
        by_kind[kind] = reports
    return _Pass(tuple(fixed), {kind: reports for kind, reports in by_kind.items() if reports})
