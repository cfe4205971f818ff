"""Exports and imports histories as lines of JSON."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from time import time
from typing import Any, Literal

import msgspec

from dragoman.errors import ConfigError, Conflict, Corrupt, InvalidInputError
from dragoman.history.branches import is_on, stretches
from dragoman.history.identity import SessionIdentity
from dragoman.history.records import (
    body_of,
    is_sealed,
    message_in,
    read_line,
    row_line,
    session_line,
)
from dragoman.history.reported_tokens import usage_of
from dragoman.history.storage.integrity import missing_rows, protected, tally_of
from dragoman.history.storage.protocol import (
    EVERYTHING,
    MAIN,
    Filter,
    Fork,
    Hit,
    Row,
    Session,
    Storage,
)
from dragoman.history.storage.scanning import found, words_of
from dragoman.model.collection import Messages
from dragoman.model.ids import new_id
from dragoman.model.jsontext import JsonText, loads
from dragoman.model.value import expect

_PAGE = 500
OnConflict = Literal["fail", "skip", "replace"]
_WAYS = ("fail", "skip", "replace")
_TRIES = 16
_HEAD = 64  # bytes at the start of a line that contain its kind


class ImportResult(msgspec.Struct):
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


def exported_messages(raw: bytes) -> tuple[Messages, int]:
    """Reads the lines of one exported session.

    Returns the messages of its active branch, and the number of messages on other branches. Raises
    `Corrupt` if a line can't be read or is missing.
    """
    session, *rows = [read_line(line) for line in raw.split(b"\n")]
    if not isinstance(session, Session):
        msg = "messages of an export without the line of their session"
        raise Corrupt(msg)
    stored = [row for row in rows if isinstance(row, Row)]
    problem = missing_rows(session, len(stored))
    if problem is not None:
        raise Corrupt(problem)
    path = stretches(session, session.active)
    shown = sorted((row for row in stored if is_on(path, row)), key=lambda row: row.seq)
    messages = Messages.wrapping([message_in(row) for row in shown])
    return messages, len(stored) - len(shown)


async def import_lines(
    storage: Storage, lines: Iterable[JsonText], *, on_conflict: OnConflict = "fail"
) -> ImportResult:
    """Imports exported sessions into a store.

    If a session already exists, the import raises (`fail`), skips it (`skip`) or replaces it
    (`replace`). Lines that can't be read are reported; everything else is imported.
    """
    _check_way(on_conflict)
    if isinstance(lines, (str, bytes, bytearray, memoryview)) or not isinstance(lines, Iterable):
        msg = f"lines must be an iterable of lines, such as a file, not {type(lines).__name__}"
        raise InvalidInputError(msg)
    report = ImportResult()
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


async def import_messages(
    storage: Storage,
    identity: SessionIdentity,
    messages: Any,
    *,
    branches: Iterable[tuple[str | None, Any]] = (),
    on_conflict: OnConflict = "fail",
) -> bool:
    """Stores a conversation as a new session; returns whether it was stored.

    Messages keep the time of their `created_at`. Each of the other `branches` follows the message
    with the given id (`None`: it starts the conversation). `on_conflict` is as for `import_lines`.
    """
    _check_way(on_conflict)
    expect(identity, SessionIdentity, "the identity of an import")
    rows: dict[str, Row] = {}
    forks: list[Fork] = []
    _add_rows(rows, messages, MAIN)
    for number, (after, others) in enumerate(branches, 1):
        before = None if after is None else rows.get(after)
        parent, at = (MAIN, 0) if before is None else (before.branch, before.seq)
        forks.append(Fork(number, parent, at))
        _add_rows(rows, others, number)
    times = [row.at for row in rows.values()] or [time()]
    session = Session(identity, 1, len(rows), times[0], max(times), forks=tuple(forks))
    return await _restored(storage, session, list(rows.values()), on_conflict)


def _add_rows(rows: dict[str, Row], messages: Any, branch: int) -> None:
    """Adds messages to the rows, with new ids for repeated ones."""
    for given in Messages.from_any(messages):
        message = given.with_id(new_id()) if given.id in rows else given
        usage, origin = usage_of(message), message.origin
        rows[message.id] = Row(
            message.id,
            body_of(message),
            time() if message.created_at is None else message.created_at,
            None if origin is None else origin.model,
            None if usage is None else usage.counts,
            seq=len(rows) + 1,
            branch=branch,
        )


def _check_way(on_conflict: str) -> None:
    if on_conflict not in _WAYS:
        msg = f"on_conflict must be one of {', '.join(_WAYS)}"
        raise InvalidInputError(msg)


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
    report: ImportResult,
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


def _with_new_tally(session: Session, rows: int, report: ImportResult) -> Session:
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


def _with_sound_branches(session: Session, report: ImportResult) -> Session:
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


def _sound(session: Session, rows: list[Row], report: ImportResult) -> list[Row]:
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


# --- search in a store without an index, such as an encrypted one


_BATCH = 200


async def scanned(storage: Storage, text: str, which: Filter, limit: int) -> list[Hit]:
    """The messages that contain all words, latest first; reads every message."""
    words_of(text)  # raises if there are no words, before anything is read
    hits: list[Hit] = []
    batch: list[tuple[Session, Row]] = []
    async for session in every_session(storage, which):
        async for row in every_row(storage, session):
            batch.append((session, row))
            if len(batch) == _BATCH:
                hits, batch = _latest([*hits, *found(text, batch, limit)], limit), []
    return _latest([*hits, *found(text, batch, limit)], limit)


def _latest(hits: list[Hit], limit: int) -> list[Hit]:
    return sorted(hits, key=lambda hit: (hit.row.at, hit.row.seq), reverse=True)[:limit]


async def encrypted_sessions(storage: Storage, which: Filter) -> int:
    """The number of sessions whose first message is encrypted."""
    count = 0
    async for session in every_session(storage, which):
        try:
            first = await storage.rows(session.identity, limit=1)
        except ConfigError:
            count += 1
        else:
            count += any(is_sealed(row.body) for row in first)
    return count
