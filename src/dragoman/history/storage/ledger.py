"""`Ledger`: every operation of `Storage`, written once, over a shelf that keeps bytes and rows.

An operation reads the session's head and computes a `Change`, which the shelf commits if the head's
stamp is still the same. If another writer was faster, it is computed again. A stamp is unique to
its commit, and a head remembers the latest of each of the last writers: so a commit whose reply was
lost is sent again as it was, and the stamps tell whether the first attempt was done.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from itertools import count
from time import monotonic, time
from typing import Any, ParamSpec, TypeGuard, TypeVar, cast
from weakref import WeakValueDictionary

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from dragoman.errors import Conflict, Corrupt, InvalidInputError, NotFound, StoreError
from dragoman.history.identity import SessionIdentity
from dragoman.history.owners import is_gone
from dragoman.history.storage import repairing
from dragoman.history.storage.heads import (
    Head,
    Lease,
    Stored,
    head_of,
    listed,
    stored_of,
    without_checksum,
)
from dragoman.history.storage.integrity import Tally, is_damaged, protected, tally_of
from dragoman.history.storage.protocol import (
    EVERYTHING,
    MAIN,
    NO_BRANCH,
    NO_MESSAGE,
    NO_SESSION,
    Appended,
    DuplicateIds,
    Entry,
    Erasure,
    Filter,
    Fork,
    Group,
    Hit,
    Row,
    Session,
    Total,
    branches_of,
    conflict,
    expect_query,
    placed,
)
from dragoman.history.storage.scanning import found, summed, words_of
from dragoman.history.storage.shelf import Change, LostReply, RunningAsAWhole, Searching, Shelf
from dragoman.model.value import expect

_TRIES = 1000  # attempts to commit before another writer
_LOST_TRIES = 4  # attempts to learn what became of a commit
_WRITERS = 16  # writers whose latest commit a head remembers
_COUNTER = 23  # bits of a stamp that count a writer's commits; those above name the writer
_CACHED = 1000  # sessions whose heads are cached
_PAGE = 1000  # sessions read at once

P = ParamSpec("P")
T = TypeVar("T")
Making = Callable[[Session], Change]
SlowMaking = Callable[[Session], Awaitable[Change]]


class Fenced(Conflict):
    """Another owner has taken the session's lease."""

    def __init__(self) -> None:
        super().__init__("another owner has taken the session's lease; nothing was written")


class Ledger:
    """A `Storage` on a shelf."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf
        self.is_blocking = shelf.is_blocking
        # The head after this writer's latest commit. It is checked by the next, and saves a read.
        self._seen: dict[str, Head] = {}
        self._forks = -1
        self._stamps: Iterator[int] = iter(())
        self._is_watching = False
        self._watched: dict[str, tuple[tuple[int, int], float]] = {}
        # A commit must be this writer's latest when its outcome is looked for.
        takes_turns = not shelf.is_blocking and not _is_whole(shelf)
        self._takes_turns = takes_turns
        self._locks: WeakValueDictionary[tuple[int, str], asyncio.Lock] = WeakValueDictionary()
        if _is_whole(shelf):
            shelf.run_as_a_whole(self)

    @property
    def name(self) -> str:
        """See `Storage.name`."""
        return self.shelf.name

    async def open(self) -> None:
        """See `Storage.open`."""
        await self.shelf.open()

    async def close(self) -> None:
        """See `Storage.close`."""
        self._seen.clear()
        await self.shelf.close()

    # --- one session

    async def session(self, identity: SessionIdentity) -> Session | None:
        """The session, or `None`."""
        stored = await self.shelf.get(identity.digest)
        return None if stored is None else head_of(stored, identity).session

    async def append(
        self,
        identity: SessionIdentity,
        entries: Sequence[Entry],
        *,
        branch: int = MAIN,
        expected: int | None = None,
        fence: int | None = None,
    ) -> Appended:
        """See `Storage.append`."""

        def appended(head: Session) -> Change:
            if branch:
                _expect_branch(head, branch)
            first = head.last_seq + 1
            rows = [placed(each, seq, branch) for seq, each in enumerate(entries, first)]
            more = len(rows)
            return Change(_next(head, more, at=entries[-1].at, added=more), rows)

        try:
            now = await self._made(identity, expected, fence, appended, entries[0].at)
        except DuplicateIds:
            pass
        else:
            return Appended(now.version, now.last_seq)
        raise await self._refused(identity, [each.id for each in entries])

    async def _refused(self, identity: SessionIdentity, ids: Sequence[str]) -> Exception:
        known = [row.id for row in await self.shelf.named(identity.digest, ids)]
        if known or len({*ids}) < len(ids):
            return DuplicateIds(known)
        return Corrupt(
            "the session's counters are damaged: the next sequence number is already in use;"
            " nothing was changed. Run `dragoman history repair` to recount its messages"
        )

    async def rows(
        self,
        identity: SessionIdentity,
        *,
        branch: int = MAIN,
        after: int = 0,
        upto: int | None = None,
        limit: int | None = None,
        newest: bool = False,
    ) -> list[Row]:
        """See `Storage.rows`."""
        return await self.shelf.rows(identity.digest, branch, after, upto, limit, newest)

    async def row(self, identity: SessionIdentity, id: str) -> Row | None:
        """A message by id, on any branch."""
        return next(iter(await self.shelf.named(identity.digest, [id])), None)

    async def count(self, identity: SessionIdentity, branch: int | None = None) -> int:
        """See `Storage.count`."""
        if branch is not None:
            return await self.shelf.count(identity.digest, [branch])
        session = await self.session(identity)
        if session is None:
            return 0
        return await self.shelf.count(identity.digest, branches_of(session))

    async def rewrite(
        self,
        identity: SessionIdentity,
        *,
        replaced: Sequence[Entry] = (),
        removed: Sequence[str] = (),
        expected: int | None = None,
        fence: int | None = None,
    ) -> int:
        """See `Storage.rewrite`."""
        new = {each.id: each for each in replaced}
        ids = {**dict.fromkeys(removed), **dict.fromkeys(new)}

        async def rewritten(head: Session) -> Change:
            old = {row.id: row for row in await self.shelf.named(identity.digest, [*ids])}
            if len(old) < len(ids) or len({*removed}) < len(removed):
                raise NotFound(NO_MESSAGE)
            gone = {*removed}
            puts = [
                placed(each, old[id].seq, old[id].branch)
                for id, each in new.items()
                if id not in gone
            ]
            return Change(_next(head, -len(removed)), puts, [*ids])

        return (await self._made(identity, expected, fence, rewritten)).version

    async def clear(
        self,
        identity: SessionIdentity,
        *,
        at: float,
        expected: int | None = None,
        fence: int | None = None,
    ) -> int:
        """See `Storage.clear`."""

        def cleared(head: Session) -> Change:
            empty = replace(_tallied(head, 0), window=None, windows=None, seal=None)
            return Change(_next(empty, 0, at=at, branches=(MAIN, ())), is_emptied=True)

        return (await self._made(identity, expected, fence, cleared, at)).version

    async def fork(
        self,
        identity: SessionIdentity,
        *,
        parent: int,
        at: int,
        expected: int | None = None,
        fence: int | None = None,
    ) -> int:
        """See `Storage.fork`."""

        def forked(head: Session) -> Change:
            _expect_branch(head, parent)
            number = max((each.number for each in head.forks), default=MAIN) + 1
            forks = (*head.forks, Fork(number, parent, at))
            return Change(_next(head, 0, branches=(number, forks)))

        return (await self._made(identity, expected, fence, forked)).active

    async def activate(
        self,
        identity: SessionIdentity,
        branch: int,
        *,
        expected: int | None = None,
        fence: int | None = None,
    ) -> None:
        """See `Storage.activate`."""

        def activated(head: Session) -> Change:
            _expect_branch(head, branch)
            return Change(replace(head, active=branch))

        await self._made(identity, expected, fence, activated)

    async def keep_windows(self, identity: SessionIdentity, windows: bytes | None) -> None:
        """See `Storage.keep_windows`."""

        def kept(head: Session) -> Change:
            return Change(replace(head, window=None, windows=windows))

        await self._made(identity, None, None, kept)

    async def delete(self, identity: SessionIdentity) -> bool:
        """See `Storage.delete`. Another session that takes its name meanwhile is not deleted."""
        return await self._deleted(identity.digest) is not None

    async def _deleted(self, digest: str) -> int | None:
        """Deletes a session; the number of its messages, or `None` if there was none.

        0 if a reply was lost that would have told.
        """
        self._seen.pop(digest, None)
        born: int | None = None
        lost: LostReply | None = None
        losses = 0
        for _ in range(_TRIES):
            getting = self.shelf.get(digest)
            stored = await (getting if lost is None else _unless_it_fails(getting, lost))
            if stored is None or (lost is not None and _birth(stored) != born):
                return None if lost is None else 0
            born = _birth(stored)
            try:
                [gone] = await self.shelf.remove([(digest, stored.stamp)])
            except LostReply as error:
                losses += 1
                if losses == _LOST_TRIES or not error.is_repeatable:
                    raise
                lost = error
            else:
                if gone is not None:
                    return gone
        raise conflict(0, -1)

    async def restore(self, session: Session, rows: Sequence[Row]) -> bool:
        """See `Storage.restore`."""
        if session.chain is None:
            session = _tallied(session, len(rows))
        digest, identity = session.identity.digest, session.identity
        change = Change(session, [protected(row) for row in rows], is_emptied=True)
        stays_damaged = is_damaged(session)  # then it stays so, until it is repaired
        async with self._turn(digest):
            for _ in range(_TRIES):
                stored = await self.shelf.get(digest)
                there = None if stored is None else head_of(stored, identity)
                if there is not None and there.session.version >= session.version:
                    return False
                self._seen.pop(digest, None)
                if await self._commit(there, change, is_damaged=stays_damaged) is not None:
                    return True
        raise conflict(session.version, -1)

    async def set_aside(
        self,
        identity: SessionIdentity,
        seqs: Sequence[int],
        reason: str,
        *,
        expected: int | None = None,
    ) -> int:
        """See `Storage.set_aside`; also moves records without a readable position."""
        digest = identity.digest
        async with self._turn(digest):
            for _ in range(_TRIES):
                stored = await self.shelf.get(digest)
                if stored is None:
                    raise NotFound(NO_SESSION)
                head = repairing.salvaged(stored, identity)
                if expected is not None and head.session.version != expected:
                    raise conflict(expected, head.session.version)
                records = await self.shelf.records(digest)
                change = repairing.without(head.session, records, seqs, reason)
                self._seen.pop(digest, None)
                if await self._commit(head._replace(stamp=stored.stamp), change) is not None:
                    return len(change.aside)
        raise conflict(expected or 0, -1)

    # --- commits

    async def change(
        self,
        identity: SessionIdentity,
        change: Making | SlowMaking,
        *,
        at: float,
        is_cached: bool = True,
    ) -> Session:
        """Makes any change, which is computed again if another writer was faster.

        Creates the session if there is none; `is_cached` tells whether it may be computed first
        from what this writer wrote last.
        """
        if not is_cached:
            self._seen.pop(identity.digest, None)
        return await self._made(identity, None, None, change, at)

    async def touch(self, identity: SessionIdentity) -> None:
        """Writes a head again, as it is."""
        await self._made(identity, None, None, Change)

    async def whole(
        self, work: Callable[P, Awaitable[T]], *arguments: P.args, **named: P.kwargs
    ) -> T:
        """Runs what waits for nothing but this store: where it has a thread, as a whole on it."""
        return await work(*arguments, **named)

    def _turn(self, digest: str) -> AbstractAsyncContextManager[Any]:
        """One commit per session at a time, among the tasks of a loop."""
        return self._lock_of(digest) if self._takes_turns else nullcontext()

    def _lock_of(self, digest: str) -> asyncio.Lock:
        key = id(asyncio.get_running_loop()), digest
        lock = self._locks.get(key)
        if lock is None:
            lock = self._locks[key] = asyncio.Lock()
        return lock

    async def _made(
        self,
        identity: SessionIdentity,
        expected: int | None,
        fence: int | None,
        change: Making | SlowMaking,
        at: float | None = None,
    ) -> Session:
        """Makes a change to the newest version. With `at`, the session is created if necessary."""
        digest = identity.digest
        lock = self._lock_of(digest) if self._takes_turns else None
        if lock is not None:
            await lock.acquire()
        try:
            head = self._taken(digest, expected)
            for _ in range(_TRIES):
                if head is None:
                    stored = await self.shelf.get(digest)
                    head = None if stored is None else head_of(stored, identity)
                _expect_owner(head, fence)
                if head is None or (head.session.chain or "")[:3] != "n1-":
                    session = await self._session(head, identity, at)
                else:
                    session = head.session
                if expected is not None and session.version != expected:
                    raise conflict(expected, session.version)
                making = change(session)
                made = making if isinstance(making, Change) else await making
                # As `_commit`; a frame less for each write.
                now, stored = self._written(head, made)
                before = 0 if head is None else head.stamp
                lost: LostReply | None = None
                try:
                    done = await self.shelf.commit(before, stored, made)
                except LostReply as error:
                    lost, done = error, False
                if lost is not None:
                    done = await self._committed_after(lost, before, stored, made)
                if done:
                    self._remember(digest, now)
                    return now.session
                head = None
        finally:
            if lock is not None:
                lock.release()
        raise conflict(expected or 0, -1)

    def _taken(self, digest: str, expected: int | None) -> Head | None:
        """The head that this writer left, unless it is surely outdated."""
        head = self._seen.pop(digest, None)
        if head is not None and expected is not None and expected != head.session.version:
            return None
        return head

    async def _session(
        self, head: Head | None, identity: SessionIdentity, at: float | None
    ) -> Session:
        """The session to change, created or with a tally if necessary."""
        if head is None:
            if at is None:
                raise NotFound(NO_SESSION)
            return Session(identity, 0, 0, at, at, chain=_EMPTY)
        if tally_of(head.session) is not None:
            return head.session
        return _tallied(head.session, await self.shelf.count(identity.digest, None))

    def _remember(self, digest: str, head: Head) -> None:
        if len(self._seen) >= _CACHED:
            with suppress(RuntimeError):  # another thread has just changed it
                self._seen.pop(next(iter(self._seen), ""), None)
        self._seen[digest] = head

    async def _commit(
        self,
        before: Head | None,
        change: Change | None,
        lease: Lease | UnsetType | None = UNSET,
        *,
        is_damaged: bool = False,
    ) -> Head | None:
        """Writes a change, or returns `None` if the head is no longer the one `before`."""
        head, stored = self._written(before, change, lease)
        old = 0 if before is None else before.stamp
        if is_damaged:
            stored = without_checksum(stored)
        try:
            return head if await self.shelf.commit(old, stored, change) else None
        except LostReply as error:
            lost = error
        return head if await self._committed_after(lost, old, stored, change) else None

    def _written(
        self, before: Head | None, change: Change | None, lease: Lease | UnsetType | None = UNSET
    ) -> tuple[Head, Stored]:
        """The head that a change leads to, and its stored form."""
        stamp = self._stamp()
        if before is None:
            before = Head(cast("Change", change).head, 0, stamp)
        head = Head(
            before.session if change is None else change.head,
            stamp,
            before.born,
            _with_latest(before.recent, stamp),
            before.lease if lease is UNSET else lease,
        )
        return head, stored_of(head)

    async def _committed_after(
        self, lost: LostReply, old: int, stored: Stored, change: Change | None
    ) -> bool:
        """Finds out whether a commit was done whose reply was lost; sends it again if not."""
        for _ in range(_LOST_TRIES):
            there = await _unless_it_fails(self.shelf.get(stored.digest), lost)
            if there is not None and stored.stamp in _recent(there):
                return True
            if old != (0 if there is None else there.stamp):
                return False  # the lost attempt can't be done any more either
            if not lost.is_repeatable:
                break
            try:
                if await self.shelf.commit(old, stored, change):
                    return True
            except LostReply as error:
                lost = error
            except Conflict:
                raise  # what was sent first was not done
            except StoreError:
                break
        raise lost

    def _stamp(self) -> int:
        if self._forks != _forks[0]:
            # `_forks` last: other threads take stamps as soon as it says that there are some.
            forks = _forks[0]
            self._stamps = count(secrets.randbits(63 - _COUNTER) << _COUNTER | 1)
            self._seen.clear()
            self._forks = forks
        return next(self._stamps)

    # --- leases

    async def lease(self, identity: SessionIdentity, owner: str, seconds: float) -> Lease | None:
        """Takes a session's lease, if it is free, one's own, or has not been renewed in time.

        That of a process of this machine (`owners.this_process`) is free when the process is gone.

        Renewals are watched on the contender's own clock: the first attempt on a lease that
        another owner holds never takes it. Every owner gets a higher number: pass it as `fence`
        to writes, which then raise `Fenced` when another has taken the lease.
        """
        expect(owner, str, "the owner of a lease")
        if not owner or not seconds > 0:
            msg = "a lease needs an owner and a number of seconds greater than 0"
            raise InvalidInputError(msg)
        digest = identity.digest
        async with self._turn(digest):
            for _ in range(_TRIES):
                stored = await self.shelf.get(digest)
                if stored is None:
                    raise NotFound(NO_SESSION)
                head = head_of(stored, identity)
                held = head.lease
                is_free = held is None or held.owner in {"", owner} or is_gone(held.owner)
                if not (is_free or self._is_over(digest, cast("Lease", held))):
                    return None
                # Random at first, so that a deleted session's lease is not valid for the next.
                number = secrets.randbits(48) if held is None else held.number + 1
                taken = Lease(owner, number, float(seconds))
                if await self._commit(head, None, taken) is not None:
                    self._seen.pop(digest, None)
                    self._watched.pop(digest, None)
                    return taken
        raise conflict(0, -1)

    async def holder(self, identity: SessionIdentity) -> Lease | None:
        """The lease that a session's owner holds; None: it is free, as far as is known here."""
        stored = await self.shelf.get(identity.digest)
        held = None if stored is None else head_of(stored, identity).lease
        if held is None or not held.owner or is_gone(held.owner):
            return None
        return None if self._is_over(identity.digest, held) else held

    def _is_over(self, digest: str, held: Lease) -> bool:
        sign = held.number, held.beat
        seen, since = self._watched.setdefault(digest, (sign, monotonic()))
        if seen != sign:
            self._watched[digest] = sign, monotonic()
            return False
        return monotonic() - since >= held.seconds

    async def renew(self, identity: SessionIdentity, lease: Lease) -> Lease:
        """Keeps a lease for as long again; raises `Fenced` if another owner has taken it."""
        return await self._leased(identity, lease, lease._replace(beat=lease.beat + 1))

    async def release(self, identity: SessionIdentity, lease: Lease) -> None:
        """Gives a lease back; raises `Fenced` if another owner has taken it."""
        await self._leased(identity, lease, lease._replace(owner=""))

    async def _leased(self, identity: SessionIdentity, lease: Lease, wanted: Lease) -> Lease:
        digest = identity.digest
        async with self._turn(digest):
            for _ in range(_TRIES):
                stored = await self.shelf.get(digest)
                head = None if stored is None else head_of(stored, identity)
                if head is None or head.lease is None or head.lease.number != lease.number:
                    raise Fenced
                if await self._commit(head, None, wanted) is not None:
                    self._seen.pop(digest, None)
                    return wanted
        raise conflict(0, -1)

    # --- the feed of changes

    async def watch(self) -> None:
        """Starts the feed of changes, for all programs that use the store. Idempotent."""
        if not self._is_watching:
            await self.shelf.watch()
            self._is_watching = True

    async def changes(
        self, after: str = "", *, limit: int = 1000
    ) -> tuple[list[tuple[str, Session | None]], str]:
        """Sessions that changed after a cursor, oldest first, and the next cursor.

        Each with its digest and as it is now, `None` if it was deleted; its new messages are those
        above the last number that you have seen. A session may be told twice, but no change is
        missed, whatever order transactions commit in. Begin with the empty cursor. The first call
        starts the feed: list the sessions after it.
        """
        await self.watch()
        digests, cursor = await self.shelf.changes(after, limit)
        told: list[tuple[str, Session | None]] = []
        for digest in dict.fromkeys(digests):
            stored = await self.shelf.get(digest)
            told.append((digest, None if stored is None else listed(stored)))
        return told, cursor

    async def prune(self, upto: str) -> None:
        """Forgets the changes up to a cursor, once all that follow the feed are behind it."""
        await self.watch()
        await self.shelf.prune(upto)

    # --- many sessions

    async def sessions(
        self, which: Filter = EVERYTHING, *, limit: int | None = None, after: str = ""
    ) -> list[Session]:
        """See `Storage.sessions`. Damaged sessions are marked."""
        expect_query(which, limit=limit)
        made: list[Session] = []
        while limit is None or len(made) < limit:
            asked = None if limit is None else limit - len(made)
            page = await self.shelf.heads(which, asked, after)
            made += [each for each in map(listed, page) if each is not None]
            if asked is None or len(page) < asked:
                break
            after = page[-1].digest
        return made

    async def search(self, text: str, which: Filter = EVERYTHING, *, limit: int = 50) -> list[Hit]:
        """See `Storage.search`."""
        expect_query(which, text=text, limit=limit)
        words = words_of(text)
        if _is_searching(self.shelf):
            return await self.shelf.search(words, which, limit)
        return found(text, await self._everything(which), limit)

    async def totals(self, by: Group, which: Filter = EVERYTHING) -> list[Total]:
        """See `Storage.totals`."""
        expect_query(which, by=by)
        if _is_searching(self.shelf):
            return await self.shelf.totals(by, which)
        return summed(by, await self._everything(which))

    async def _everything(self, which: Filter) -> Iterable[tuple[Session, Row]]:
        return [
            (session, row)
            for session in await self.sessions(which)
            for branch in branches_of(session)
            for row in await self.rows(session.identity, branch=branch)
        ]

    async def forget(self, user: str) -> Erasure:
        """See `Storage.forget`."""
        expect(user, str, "the user to forget")
        sessions = messages = 0
        while page := await self.shelf.heads(Filter(user=user), _PAGE, ""):
            for digest in (each.digest for each in page):
                self._seen.pop(digest, None)
            try:
                gone = await self.shelf.remove([(each.digest, each.stamp) for each in page])
            except LostReply:
                gone = [await self._gone(each) for each in page]
            sessions += sum(each is not None for each in gone)
            messages += sum(each or 0 for each in gone)
        return Erasure(sessions, messages, await self.shelf.scrub(user))

    async def _gone(self, stored: Stored) -> int | None:
        """Deletes a session that a lost attempt may have deleted; the number of its messages."""
        deleted = await self._deleted(stored.digest)
        if deleted is not None:
            return deleted
        session = listed(stored)
        tally = None if session is None or is_damaged(session) else tally_of(session)
        return 0 if tally is None else tally.rows

    async def verify(self) -> list[str]:
        """See `Storage.verify`."""
        return await repairing.problems_of(self, self.shelf)


_forks = [0]  # of this process: a child must not count on where its parent does


def _forked() -> None:
    _forks[0] += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
_EMPTY = str(Tally(0, 0, 0))


def _expect_owner(head: Head | None, fence: int | None) -> None:
    if fence is not None and (head is None or head.lease is None or head.lease.number != fence):
        raise Fenced


def _is_whole(shelf: object) -> TypeGuard[RunningAsAWhole]:
    return hasattr(shelf, "run_as_a_whole")


def _is_searching(shelf: object) -> TypeGuard[Searching]:
    return hasattr(shelf, "search")


def _with_latest(recent: tuple[int, ...], stamp: int) -> tuple[int, ...]:
    """The latest commits of writers, with another one."""
    if recent and recent[-1] >> _COUNTER == stamp >> _COUNTER:
        return (stamp,) if len(recent) == 1 else (*recent[:-1], stamp)
    others = [each for each in recent if each >> _COUNTER != stamp >> _COUNTER]
    return (*others[1 - _WRITERS :], stamp)


async def _unless_it_fails(asked: Awaitable[Stored | None], lost: LostReply) -> Stored | None:
    """What a shelf has now; if it can't tell, the outcome of the lost write stays unknown."""
    try:
        return await asked
    except StoreError:
        pass
    raise lost


def _recent(stored: Stored) -> tuple[int, ...]:
    try:
        return head_of(stored).recent
    except Corrupt:
        return ()


def _birth(stored: Stored) -> int:
    """What tells a session from another of the same name, as far as it is readable."""
    try:
        return head_of(stored).born
    except Corrupt:
        return stored.stamp


def _tallied(head: Session, rows: int) -> Session:
    return replace(head, chain=str(Tally(head.version, head.last_seq, rows, len(head.forks))))


def _next(
    head: Session,
    more: int,
    *,
    at: float | None = None,
    added: int = 0,
    branches: tuple[int, tuple[Fork, ...]] | None = None,
) -> Session:
    """The next version of a head: with `more` messages, and so many `added` numbers."""
    version, last_seq = head.version + 1, head.last_seq + added
    active, forks = (head.active, head.forks) if branches is None else branches
    rows = int(cast("str", head.chain).split(".", 3)[2]) + more
    return Session(
        head.identity, version, last_seq, head.created_at, time() if at is None else at, active,
        forks, head.window, head.windows, f"n1-{version}.{last_seq}.{rows}.{len(forks)}",
        head.seal,
    )  # fmt: skip


def _expect_branch(head: Session, branch: int) -> None:
    if branch != MAIN and all(fork.number != branch for fork in head.forks):
        raise NotFound(NO_BRANCH)
