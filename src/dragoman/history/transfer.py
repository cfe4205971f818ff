"""Histories as lines of JSON, out of a store and into another."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Literal

import msgspec

from dragoman.errors import Conflict, Corrupt, NotFound
from dragoman.history.paths import stretches
from dragoman.history.records import read_line, row_line, session_line
from dragoman.history.storage.protocol import EVERYTHING, MAIN, Filter, Fork, Row, Session, Storage
from dragoman.model.jsontext import JsonText

_PAGE = 500
OnConflict = Literal["fail", "skip", "replace"]


class Imported(msgspec.Struct):
    """What an import did."""

    sessions: int = 0
    messages: int = 0
    skipped: int = 0
    """Sessions that were there already."""
    problems: list[str] = msgspec.field(default_factory=list)
    """Lines that could not be read, by number: everything else came in."""


async def every_session(
    storage: Storage, which: Filter = EVERYTHING, *, page: int = _PAGE
) -> AsyncIterator[Session]:
    """All sessions, a page at a time."""
    after = ""
    while sessions := await storage.sessions(which, limit=page, after=after):
        for session in sessions:
            yield session
        after = sessions[-1].identity.digest


async def every_row(storage: Storage, session: Session) -> AsyncIterator[Row]:
    """All rows of all branches of a session, a page at a time."""
    for branch in (MAIN, *(fork.number for fork in session.forks)):
        after = 0
        while rows := await storage.rows(session.identity, branch=branch, after=after, limit=_PAGE):
            for row in rows:
                yield row
            after = rows[-1].seq


async def export(storage: Storage, which: Filter = EVERYTHING) -> AsyncIterator[bytes]:
    """The sessions as lines, each session before its messages; see `dragoman.history.records`.

    Messages come out byte for byte as they are stored: encrypted ones stay so, unless the store
    was opened with its keys.
    """
    async for session in every_session(storage, which):
        yield session_line(session)
        async for row in every_row(storage, session):
            if row.seq <= session.last_seq:  # later ones belong to a later version
                yield row_line(row)


async def import_lines(
    storage: Storage, lines: Iterable[JsonText], *, on_conflict: OnConflict = "fail"
) -> Imported:
    """Put exported sessions into a store.

    A session that is there already stays as it is and ends the import (`fail`), is passed over
    (`skip`), or gives way (`replace`). Lines that can't be read are reported; the rest comes in.
    """
    report = Imported()
    session: Session | None = None
    rows: list[Row] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():  # type: ignore[union-attr]  # a memoryview has none; files give bytes
            continue
        try:
            value = read_line(line)
        except Corrupt as error:
            report.problems.append(f"line {number}: {error}")
            continue
        if isinstance(value, Row):
            rows.append(value)
            continue
        await _put(storage, session, rows, on_conflict, report)
        session, rows = value, []
    await _put(storage, session, rows, on_conflict, report)
    return report


async def _put(
    storage: Storage,
    session: Session | None,
    rows: list[Row],
    on_conflict: OnConflict,
    report: Imported,
) -> None:
    if session is None:
        if rows:
            report.problems.append(f"{len(rows)} messages come before any session")
        return
    session = _with_sound_branches(session, report)
    sound = _sound(session, rows, report)
    if await storage.session(session.identity) is not None:
        if on_conflict == "fail":
            msg = "a session of the import is in the store already; skip it or replace it"
            raise Conflict(msg)
        if on_conflict == "skip":
            report.skipped += 1
            return
        await storage.delete(session.identity)
    await storage.restore(session, sound)
    report.sessions += 1
    report.messages += len(sound)


def _with_sound_branches(session: Session, report: Imported) -> Session:
    """The session without branches that come from nowhere, or from themselves."""
    sound: list[Fork] = []
    for fork in session.forks:
        try:
            stretches(session, fork.number)
        except NotFound:
            report.problems.append(f"branch {fork.number} of a session leads nowhere")
        else:
            sound.append(fork)
    active = session.active if session.active in {f.number for f in sound} else MAIN
    return msgspec.structs.replace(session, forks=tuple(sound), active=active)


def _sound(session: Session, rows: list[Row], report: Imported) -> list[Row]:
    """The rows that can stand in the session: on a branch of it, each id and number once."""
    branches = {MAIN, *(fork.number for fork in session.forks)}
    seen: set[object] = set()
    sound: list[Row] = []
    for row in rows:
        is_placed = row.branch in branches and 0 < row.seq <= session.last_seq
        if is_placed and not {row.id, row.seq} & seen:
            sound.append(row)
            seen |= {row.id, row.seq}
        else:
            report.problems.append("a message has no place of its own in its session")
    return sound
