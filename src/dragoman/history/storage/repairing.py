"""Verifies and repairs sessions on any shelf: what is damaged, and what the rest still gives."""

from __future__ import annotations

from collections.abc import Sequence
from time import time
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from dragoman.errors import Corrupt
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.heads import (
    Head,
    Stored,
    head_of,
    identity_of,
    plausible,
    readable_in,
)
from dragoman.history.storage.integrity import Tally, damage_in, place_of, problem_with
from dragoman.history.storage.plausibility import is_plain, mended
from dragoman.history.storage.protocol import (
    EVERYTHING,
    MAIN,
    Fork,
    Row,
    Seal,
    Session,
    Storage,
    branches_of,
)
from dragoman.history.storage.shelf import Change, Record, Shelf

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


def without(
    head: Session, records: Sequence[Record], seqs: Sequence[int], reason: str, seal: Seal
) -> Change:
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
    if seal is not UNSET:
        made = replace(made, seal=seal)
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
        found += [f"{where}: {each}" async for each in damage_in(storage, session)]
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
