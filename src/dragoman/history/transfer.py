"""Exports and imports histories as lines of JSON."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any, Literal

import msgspec

from dragoman.errors import Conflict, Corrupt, InvalidInputError
from dragoman.history.records import read_line, row_line, session_line
from dragoman.history.storage.integrity import missing_rows, protected, tally_of
from dragoman.history.storage.protocol import EVERYTHING, MAIN, Filter, Fork, Row, Session, Storage
from dragoman.model.jsontext import JsonText, loads
from dragoman.model.value import expect

_PAGE = 500
OnConflict = Literal["fail", "skip", "replace"]
_WAYS = ("fail", "skip", "replace")
_TRIES = 16
_HEAD = 64  # bytes at the start of a line that contain its kind


class Imported(msgspec.Struct):
    """The result of an import."""

    sessions: int = 0
    messages: int = 0
    skipped: int = 0
    """Sessions that already existed and were skipped."""
    problems: list[str] = msgspec.field(default_factory=list)
    """Lines that could not be read, by number; everything else was imported."""


async def every_session(
    storage: Storage, which: Filter = EVERYTHING, *, page: int = _PAGE
) -> AsyncIterator[Session]:
    """Iterates over all sessions, page by page."""
    after = ""
    while sessions := await storage.sessions(which, limit=page, after=after):
        for session in sessions:
            yield session
        after = sessions[-1].identity.digest


async def every_row(storage: Storage, session: Session) -> AsyncIterator[Row]:
    """Iterates over all rows of all branches of a session, page by page."""
    for branch in (MAIN, *(fork.number for fork in session.forks)):
        after = 0
        while rows := await storage.rows(session.identity, branch=branch, after=after, limit=_PAGE):
            for row in rows:
                yield row
            if rows[-1].seq <= after:  # damaged: unordered numbers must not cause an endless loop
                break
            after = rows[-1].seq


async def export(storage: Storage, which: Filter = EVERYTHING) -> AsyncIterator[bytes]:
    """Exports sessions as lines, each session before its messages; see `dragoman.history.records`.

    Messages are exported byte for byte as stored: encrypted ones stay encrypted, unless the store
    was opened with its keys. Raises `Corrupt` for a session whose counters are damaged.
    """
    async for session in every_session(storage, which):
        tally_of(session)  # raises if it is damaged, rather than exporting it as complete
        yield session_line(_with_sound_windows(session))
        async for row in every_row(storage, session):
            if row.seq <= session.last_seq:  # later ones belong to a later version
                yield row_line(protected(row))


def _with_sound_windows(session: Session) -> Session:
    """The session without damaged windows, which would make the whole line unreadable."""
    damaged = [
        name
        for name in ("window", "windows", "seal")
        if (raw := getattr(session, name)) is not None and not _is_json(raw)
    ]
    return msgspec.structs.replace(session, **dict.fromkeys(damaged)) if damaged else session


def _is_json(raw: bytes) -> bool:
    try:
        loads(raw)
    except InvalidInputError:
        return False
    return True


async def import_lines(
    storage: Storage, lines: Iterable[JsonText], *, on_conflict: OnConflict = "fail"
) -> Imported:
    """Imports exported sessions into a store.

    If a session already exists, the import raises (`fail`), skips it (`skip`) or replaces it
    (`replace`). Lines that can't be read are reported; everything else is imported.
    """
    if on_conflict not in _WAYS:
        msg = f"on_conflict must be one of {', '.join(_WAYS)}"
        raise InvalidInputError(msg)
    if isinstance(lines, (str, bytes, bytearray, memoryview)) or not isinstance(lines, Iterable):
        msg = f"lines must be an iterable of lines, such as a file, not {type(lines).__name__}"
        raise InvalidInputError(msg)
    report = Imported()
    session: Session | None = None
    rows: list[Row] = []
    for number, line in enumerate(lines, 1):
        text = _text(line)
        if not text.strip():
            continue
        value: Row | Session | None
        try:
            value = read_line(text)
        except Corrupt as error:
            report.problems.append(f"line {number}: {error}")
            value = None
        if isinstance(value, Row):
            rows.append(value)
        elif value is not None or not _is_of_row(text):
            # Messages after an unreadable session must not be added to another one.
            await _put(storage, session, rows, on_conflict, report)
            session, rows = value, []
    await _put(storage, session, rows, on_conflict, report)
    return report


def _text(line: Any) -> bytes:
    expect(line, (str, bytes, bytearray, memoryview), "a line of an import")
    return line.encode("utf-8", "surrogatepass") if isinstance(line, str) else bytes(line)


def _is_of_row(line: bytes) -> bool:
    """Whether an unreadable line was a message."""
    return b'"Record"' in line[:_HEAD]


async def _put(
    storage: Storage,
    session: Session | None,
    rows: list[Row],
    on_conflict: OnConflict,
    report: Imported,
) -> None:
    if session is None:
        if rows:
            report.problems.append(f"{len(rows)} messages without a session")
        return
    session = _with_sound_branches(session, report)
    sound = _sound(session, rows, report)
    session = _with_new_tally(session, len(sound), report)
    if not await _restored(storage, session, sound, on_conflict):
        report.skipped += 1
        return
    report.sessions += 1
    report.messages += len(sound)


def _with_new_tally(session: Session, rows: int, report: Imported) -> Session:
    """Resets the session's counters, which the target recomputes; reports missing rows."""
    try:
        problem = missing_rows(session, rows)
    except Corrupt:
        problem = "its counters are damaged"
    if problem is not None:
        report.problems.append(f"session {session.identity.digest}: {problem}")
    return msgspec.structs.replace(session, chain=None)


async def _restored(
    storage: Storage, session: Session, rows: list[Row], on_conflict: OnConflict
) -> bool:
    """Restores a session; returns `False` if an existing one was kept."""
    for _ in range(_TRIES):
        there = await storage.session(session.identity)
        if there is not None and on_conflict == "fail":
            msg = "a session of the import already exists in the store; skip or replace it"
            raise Conflict(msg)
        if there is not None and on_conflict == "skip":
            return False
        # Atomically: an existing session is replaced only by a complete, newer one.
        newer = max(session.version, 1 if there is None else there.version + 1)
        if await storage.restore(msgspec.structs.replace(session, version=newer), rows):
            return True  # otherwise another writer was faster: check again
    msg = "a session to be replaced is being written to; try again"
    raise Conflict(msg)


def _with_sound_branches(session: Session, report: Imported) -> Session:
    """Drops branches without a valid parent."""
    session = msgspec.structs.replace(session, last_seq=max(session.last_seq, 0))
    sound: dict[int, Fork] = {}
    for fork in sorted(session.forks, key=lambda fork: fork.number):
        is_new = fork.number > MAIN and fork.number not in sound
        is_rooted = fork.parent == MAIN or fork.parent in sound  # lower ones come first
        if is_new and is_rooted and 0 <= fork.at <= session.last_seq:
            sound[fork.number] = fork
        else:
            report.problems.append(f"branch {fork.number} of a session has no valid parent")
    active = session.active if session.active in sound else MAIN
    return msgspec.structs.replace(session, forks=tuple(sound.values()), active=active)


def _sound(session: Session, rows: list[Row], report: Imported) -> list[Row]:
    """The rows on a valid branch, each id and sequence number once; reports the others."""
    branches = {MAIN, *(fork.number for fork in session.forks)}
    seen: set[object] = set()
    sound: list[Row] = []
    for row in rows:
        is_placed = row.branch in branches and 0 < row.seq <= session.last_seq
        if is_placed and not {row.id, row.seq} & seen:
            sound.append(row)
            seen |= {row.id, row.seq}
        else:
            report.problems.append("a message has no valid, unique position in its session")
    return sound
