"""Histories as lines of JSON, out of a store and into another."""

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
_HEAD = 64  # bytes of a line in which its kind stands


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
            if rows[-1].seq <= after:  # damaged: numbers in no order must not be read for ever
                break
            after = rows[-1].seq


async def export(storage: Storage, which: Filter = EVERYTHING) -> AsyncIterator[bytes]:
    """The sessions as lines, each session before its messages; see `dragoman.history.records`.

    Messages come out byte for byte as they are stored: encrypted ones stay so, unless the store
    was opened with its keys. Raises `Corrupt` at a session whose numbers are damaged.
    """
    async for session in every_session(storage, which):
        tally_of(session)  # what is damaged is not exported as if it were whole
        yield session_line(_with_sound_windows(session))
        async for row in every_row(storage, session):
            if row.seq <= session.last_seq:  # later ones belong to a later version
                yield row_line(protected(row))


def _with_sound_windows(session: Session) -> Session:
    """The session; a damaged window would make its whole line unreadable, and can be made anew."""
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
    """Put exported sessions into a store.

    A session that is there already stays as it is and ends the import (`fail`), is passed over
    (`skip`), or gives way (`replace`). Lines that can't be read are reported; the rest comes in.
    """
    if on_conflict not in _WAYS:
        msg = f"on_conflict is one of {', '.join(_WAYS)}"
        raise InvalidInputError(msg)
    if isinstance(lines, (str, bytes, bytearray, memoryview)) or not isinstance(lines, Iterable):
        msg = f"an import takes lines, as a file gives them, not {type(lines).__name__}"
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
            # Messages after a session that can't be read must not become another's.
            await _put(storage, session, rows, on_conflict, report)
            session, rows = value, []
    await _put(storage, session, rows, on_conflict, report)
    return report


def _text(line: Any) -> bytes:
    expect(line, (str, bytes, bytearray, memoryview), "a line of an import")
    return line.encode("utf-8", "surrogatepass") if isinstance(line, str) else bytes(line)


def _is_of_row(line: bytes) -> bool:
    """Whether a line that can't be read was a message's."""
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
            report.problems.append(f"{len(rows)} messages come without a session")
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
    """The session, to be counted anew where it goes; what is missing of it is reported."""
    try:
        problem = missing_rows(session, rows)
    except Corrupt:
        problem = "its numbers are damaged"
    if problem is not None:
        report.problems.append(f"session {session.identity.digest}: {problem}")
    return msgspec.structs.replace(session, chain=None)


async def _restored(
    storage: Storage, session: Session, rows: list[Row], on_conflict: OnConflict
) -> bool:
    """Whether the session took its place; False where one that is there stays."""
    for _ in range(_TRIES):
        there = await storage.session(session.identity)
        if there is not None and on_conflict == "fail":
            msg = "a session of the import is in the store already; skip it or replace it"
            raise Conflict(msg)
        if there is not None and on_conflict == "skip":
            return False
        # In one step: what is there gives way only to what is whole. It has to be newer for that.
        newer = max(session.version, 1 if there is None else there.version + 1)
        if await storage.restore(msgspec.structs.replace(session, version=newer), rows):
            return True  # otherwise somebody was quicker: look again
    msg = "somebody keeps writing to a session that is to be replaced; try again"
    raise Conflict(msg)


def _with_sound_branches(session: Session, report: Imported) -> Session:
    """The session without branches that come from nowhere, or from themselves."""
    session = msgspec.structs.replace(session, last_seq=max(session.last_seq, 0))
    sound: dict[int, Fork] = {}
    for fork in sorted(session.forks, key=lambda fork: fork.number):
        is_new = fork.number > MAIN and fork.number not in sound
        is_rooted = fork.parent == MAIN or fork.parent in sound  # lower ones come first
        if is_new and is_rooted and 0 <= fork.at <= session.last_seq:
            sound[fork.number] = fork
        else:
            report.problems.append(f"branch {fork.number} of a session leads nowhere")
    active = session.active if session.active in sound else MAIN
    return msgspec.structs.replace(session, forks=tuple(sound.values()), active=active)


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
