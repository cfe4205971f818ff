"""Verifies and repairs sessions on any shelf: what is damaged, and what the rest still gives."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from time import time
from typing import Any

from msgspec.structs import replace

from dragoman.errors import Corrupt
from dragoman.history.identity import SessionIdentity
from dragoman.history.records import is_sealed
from dragoman.history.storage.heads import (
    Head,
    Stored,
    head_of,
    identity_of,
    plausible,
    readable_in,
)
from dragoman.history.storage.integrity import Tally, missing_rows, place_of, problem_with
from dragoman.history.storage.protocol import (
    EVERYTHING,
    MAIN,
    Fork,
    Row,
    Session,
    Storage,
    branches_of,
)
from dragoman.history.storage.shelf import Change, Record, Shelf
from dragoman.model import document

_PAGE = 500
_MISPLACED = (
    "its names don't match its key, so it can't be found under both; run `dragoman history repair`"
    " with its names"
)


def salvaged(stored: Stored, identity: SessionIdentity) -> Head:
    """A head, or what is readable of it."""
    try:
        return head_of(stored, identity)
    except Corrupt:
        return readable_in(stored, identity)


def without(head: Session, records: Sequence[Record], seqs: Sequence[int], reason: str) -> Change:
    """Moves records out of a session: those with these numbers, and those without a position.

    Its counters and branches are computed from the others.
    """
    forks = _branches(head.forks, [row for _, row in records])
    numbers = {MAIN, *(fork.number for fork in forks)}
    lost = [
        each for each in records if not plausible(each.row.seq) or each.row.branch not in numbers
    ]
    moved = _misplaced_first([each for each in records if each.row.seq in {*seqs}])
    if lost:  # one of them may have been read with the number of an intact one, which stays
        moved = [each for each in moved if problem_with(each.row) is not None]
    moved += lost
    keys: dict[Any, None] = dict.fromkeys(key for key, _ in moved)
    rows = [row for key, row in records if key not in keys]
    highest = max((row.seq for row in rows), default=0)
    now = time()
    made = replace(
        head,
        version=head.version + 1,
        last_seq=max(head.last_seq, highest),
        created_at=head.created_at or now,
        updated_at=now,
        active=head.active if head.active in numbers else MAIN,
        forks=forks,
    )
    made = mended(made, is_plain=is_plain(row.body for row in rows))
    tally = Tally(made.version, made.last_seq, len(rows), len(forks))
    made = replace(made, chain=str(tally))
    return Change(made, aside=[*keys], reason=reason, is_repair=True)


def _misplaced_first(found: Sequence[Record]) -> list[Record]:
    """Of several records with the same number, those that were written elsewhere, if any."""
    chosen: list[Record] = []
    for seq in {each.row.seq for each in found}:
        same = [each for each in found if each.row.seq == seq]
        elsewhere = [e for e in same if e.row.chain not in {None, place_of(e.row.branch, seq)}]
        chosen += elsewhere or same
    return chosen


def _branches(forks: Sequence[Fork], rows: Sequence[Row]) -> tuple[Fork, ...]:
    """The branches; a damaged one, or a lost one with messages, starts again at the main branch."""
    found: dict[int, Fork] = {}
    for fork in forks:
        leads = fork.parent == MAIN or fork.parent in found
        is_whole = leads and fork.at == plausible(fork.at) and fork.parent != fork.number
        if plausible(fork.number):
            found[fork.number] = fork if is_whole else Fork(fork.number, MAIN, 0)
    for row in rows:
        if plausible(row.branch) and row.chain == place_of(row.branch, row.seq):
            found.setdefault(row.branch, Fork(row.branch, MAIN, 0))
    return tuple(found[number] for number in sorted(found))


async def problems_of(storage: Storage, shelf: Shelf) -> list[str]:
    """What is wrong with a store: see `Storage.verify`."""
    problems = await shelf.problems()
    after = ""
    try:
        while page := await shelf.heads(EVERYTHING, _PAGE, after):
            for stored in page:
                problems += await _problems_with(storage, shelf, stored)
            after = page[-1].digest
    except Corrupt as error:  # the sessions can't be listed
        problems.append(str(error))
    return problems


async def _problems_with(storage: Storage, shelf: Shelf, stored: Stored) -> list[str]:
    shown = stored.digest if stored.digest.isascii() and stored.digest.isalnum() else "unknown"
    where = f"session {shown}"
    try:
        session = head_of(stored).session
    except Corrupt as error:
        if identity_of(stored) is None:
            return [f"{where}: {_MISPLACED}"]
        return [f"{where}: {error}"]
    found: list[str] = []
    try:
        found += [f"{where}: {each}" async for each in _damage_in(storage, session)]
        lost = await _without_place(storage, shelf, session)
    except Corrupt as error:
        found.append(f"{where}: {error}")
    else:
        if lost:
            found.append(f"{where}: {lost} messages have lost their position")
    return found


async def _without_place(storage: Storage, shelf: Shelf, session: Session) -> int:
    """The number of records that no branch leads to; 0 if the session was changed meanwhile."""
    digest = session.identity.digest
    reached = await shelf.count(digest, branches_of(session))
    lost = await shelf.count(digest, None) - reached
    if lost <= 0:
        return 0
    now = await storage.session(session.identity)
    return lost if now is not None and now.version == session.version else 0


async def _damage_in(storage: Storage, session: Session) -> AsyncIterator[str]:
    """Checks the rows and the record of a session; for `Storage.verify`."""
    held, overview = 0, Overview()
    for branch in (0, *(fork.number for fork in session.forks)):
        after = 0
        while rows := await storage.rows(session.identity, branch=branch, after=after, limit=_PAGE):
            for row in rows:
                problem = problem_with(row)
                if problem is not None:
                    yield f"message {row.seq}: {problem}"
                else:
                    overview.add(row)
            held += sum(row.seq <= session.last_seq for row in rows)
            if rows[-1].seq <= after:  # damaged: unordered numbers must not cause an endless loop
                yield "its messages are out of order"
                break
            after = rows[-1].seq
    missing = missing_rows(session, held)
    problems = [*([missing] if missing else ()), *overview.problems(session)]
    now = await storage.session(session.identity) if problems else None
    if now is not None and now.version == session.version:  # not changed meanwhile
        for problem in problems:
            yield problem


# --- a session's times, windows and seal
#
# A head's checksum says that it is what was written. These can be wrong all the same: copied from a
# damaged store, or written by a wrong clock. Times are compared with those of the messages; clocks
# differ, and are set right: only what no clock explains is a problem.

_DAY = 86_400.0  # seconds that clocks may differ by
_TIMES = (
    "its times are in the future, or before its last message was written; run `dragoman history"
    " repair` to correct them, unless the clock was wrong"
)
_WINDOWS = (
    "its windows can't be read, and will be computed again; run `dragoman history repair` to remove"
    " them"
)
_SEAL = (
    "it has a seal, but none of its messages is encrypted; rotate the keys to encrypt them, or run"
    " `dragoman history repair` without keys to remove the seal"
)


class Overview:
    """What the messages of a session say about its record; takes them in any order."""

    def __init__(self) -> None:
        self._last: Row | None = None
        self._has_sealed = False

    def add(self, row: Row) -> None:
        """Takes an intact message into account."""
        if self._last is None or row.seq > self._last.seq:
            self._last = row
        self._has_sealed = self._has_sealed or is_sealed(row.body)

    def problems(self, session: Session) -> Iterator[str]:
        """What is wrong with a session's times, windows and seal."""
        last = self._last
        latest = time() + _DAY
        times = (session.created_at, session.updated_at)
        is_late = last is not None and session.updated_at + _DAY < last.at <= latest
        if is_late or not all(0 <= each <= latest for each in times):
            yield _TIMES
        if not are_readable(session):
            yield _WINDOWS
        if session.seal is not None and last is not None and not self._has_sealed:
            yield _SEAL


def are_readable(session: Session) -> bool:
    """Whether a session's windows can be read, or are encrypted."""
    from dragoman.history.remembered_cuts import is_readable

    return all(
        raw is None or document.is_of_kind(raw, "SealedWindow") or is_readable(raw)
        for raw in (session.window, session.windows)
    )


def is_plain(bodies: Iterable[bytes]) -> bool:
    """Whether there are messages, and none of them is encrypted."""
    are_there = False
    for body in bodies:
        if is_sealed(body):
            return False
        are_there = True
    return are_there


def mended(session: Session, *, is_plain: bool) -> Session:
    """A session that is repaired, without what `Overview` would report; that is its last write."""
    changes: dict[str, Any] = {"created_at": min(max(session.created_at, 0.0), session.updated_at)}
    if not are_readable(session):
        changes |= {"window": None, "windows": None}
    if is_plain:
        changes["seal"] = None
    return replace(session, **changes)
