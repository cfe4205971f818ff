"""`FileStorage`: a directory with one file per session, a log of its commits.

When `append` returns, the messages survive a crash of the process; with `durability="power"`, at
the cost of one fsync per write, also a power failure. Any number of processes may use the directory
at the same time, on a local disk. Messages are lines as in an export: any tool can read them.

Appending, reading the last messages, a range or one by id, and changes to a session without its
messages cost the same at any length. Replacing and removing messages rewrites the session's file:
for long sessions that change a lot, SQLite is the better choice. Searching reads every file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from itertools import accumulate
from pathlib import Path
from typing import Any, TypeVar, cast
from zlib import crc32

from dragoman.errors import StoreError
from dragoman.history.storage.files import earlier, feed
from dragoman.history.storage.files.directory import (
    Directory,
    Kept,
    commit_of,
    explanation,
    forget_aside,
    keep_aside,
    kept_of,
    place,
    write_again,
    write_at_end,
)
from dragoman.history.storage.files.ids import Ids
from dragoman.history.storage.files.log import (
    Commit,
    Log,
    commit_in,
    commit_line,
    first_line,
    refuse_newer_log,
    row_in,
    row_line,
    strange_row,
)
from dragoman.history.storage.heads import Stored, identity_of
from dragoman.history.storage.ledger import Ledger
from dragoman.history.storage.memory import takes
from dragoman.history.storage.places import moved
from dragoman.history.storage.protocol import MAIN, DuplicateIds, Filter, Row
from dragoman.history.storage.shelf import Change, Record
from dragoman.history.storage.threaded import Durability, ThreadedShelf, expect_durability

T = TypeVar("T")
_CACHED = 128  # sessions whose ends and ids are cached
_SLACK = 64 * 1024  # bytes of heads that are always kept, besides four times those of rows
_REMOVED = (".ids", ".jsonl", ".tmp")
_TORN = "incomplete: the line, or the write that it belongs to, was never finished"
_UNREADABLE = "the line can't be read"
_OUTSIDE = "backups and snapshots of the directory, and freed blocks of the disk"
_ODD = (
    "the store {} can't store an id, a model name or a number of this message; nothing was written"
)


class FileShelf(ThreadedShelf[Directory]):
    """Heads and rows in logs. Calls run on a worker thread; with `blocking`, in the caller's."""

    def __init__(self, path: Path, durability: Durability, *, blocking: bool) -> None:
        expect_durability(durability)
        super().__init__("dragoman-files", blocking=blocking)
        self._path = path
        self._durability = durability
        self._logs: dict[str, Log] = {}
        self._ids: dict[str, Ids] = {}

    @property
    def name(self) -> str:
        """See `Shelf.name`."""
        return f"file:{self._path.name}"

    def _connect(self) -> Directory:
        is_synced = self._durability == "power"
        return self._explained(lambda: Directory(self._path, is_synced=is_synced))

    def _disconnect(self, opened: Directory) -> None:
        self._logs.clear()
        self._ids.clear()
        opened.close()

    # --- how calls run

    def _read(self, work: Callable[..., T], arguments: tuple[Any, ...]) -> T:
        with self._lock:
            directory = self._opened
            if not directory.holds():
                raise moved(self.name)
            return self._explained(work, directory, *arguments)

    _write = _read  # writers take the session's lock

    def _explained(self, action: Callable[..., T], *arguments: Any) -> T:
        try:
            return action(*arguments)
        except OSError as error:
            raised = explanation(error, self.name)
        except (UnicodeError, OverflowError):
            raised = StoreError(_ODD.format(self.name))
        raise raised

    @contextmanager
    def _log(
        self, directory: Directory, digest: str, *, is_locked: bool = False
    ) -> Generator[Log | None]:
        """The log of a session; `None` if there is none."""
        while True:
            flags = os.O_RDWR if is_locked else os.O_RDONLY
            fd = directory.opened(place(digest, ".jsonl"), flags, is_locked=is_locked)
            if fd is None:
                yield None
                return
            try:
                log = self._current(directory, digest, fd, is_locked=is_locked)
                if log.file or not earlier.is_earlier(log):
                    yield log
                    return
            finally:
                os.close(fd)
            with nullcontext() if is_locked else directory.locked(digest):
                earlier.migrate(directory, digest)

    def _current(self, directory: Directory, digest: str, fd: int, *, is_locked: bool) -> Log:
        known = self._logs.get(digest)
        if known is not None and known.is_unchanged(fd):
            return known
        log = Log(fd, digest)
        if not is_locked and (log.is_cut or not log.is_current):
            # Its first line may have been written over meanwhile.
            with suppress(OSError, StoreError), directory.locked(digest):
                return Log(fd, digest)
        return log

    def _remember(self, log: Log) -> None:
        if log.file and log.is_current:
            if len(self._logs) >= _CACHED and log.digest not in self._logs:
                gone = next(iter(self._logs))
                del self._logs[gone]
                self._ids.pop(gone, None)
            self._logs[log.digest] = log

    def _ids_of(self, directory: Directory, log: Log, *, is_locked: bool) -> Ids:
        ids = self._ids.get(log.digest)
        if ids is None or not log.file or not ids.is_of(log):
            ids = Ids(log)
        if log.file and log.is_current:
            self._remember(log)
            self._ids[log.digest] = ids
        ids.catch_up(directory, log, is_locked=is_locked)
        return ids

    # --- reading

    async def get(self, digest: str) -> Stored | None:
        """See `Shelf.get`."""
        return await self.read(self._head, digest)

    def _head(self, directory: Directory, digest: str) -> Stored | None:
        with self._log(directory, digest) as log:
            if log is None:
                return None
            self._remember(log)
            return log.stored

    async def rows(
        self,
        digest: str,
        branch: int,
        after: int,
        upto: int | None,
        limit: int | None,
        newest: bool,  # noqa: FBT001 - as in `Shelf`
    ) -> list[Row]:
        """See `Shelf.rows`."""
        return await self.read(self._rows, digest, branch, after, upto, limit, newest)

    def _rows(
        self,
        directory: Directory,
        digest: str,
        branch: int,
        after: int,
        upto: int | None,
        limit: int | None,
        newest: bool,  # noqa: FBT001 - as in `Shelf`
    ) -> list[Row]:
        with self._log(directory, digest) as log:
            if log is None:
                return []
            return log.rows(branch, after, upto, limit, newest=newest)

    async def named(self, digest: str, ids: Sequence[str]) -> list[Row]:
        """See `Shelf.named`."""
        return await self.read(self._named, digest, ids)

    def _named(self, directory: Directory, digest: str, ids: Sequence[str]) -> list[Row]:
        with self._log(directory, digest) as log:
            if log is None:
                return []
            known = self._ids_of(directory, log, is_locked=False)
            return [row for id in ids for row in known.rows(log, id)]

    async def count(self, digest: str, branches: Sequence[int] | None) -> int:
        """See `Shelf.count`."""
        return await self.read(self._count, digest, branches)

    def _count(self, directory: Directory, digest: str, branches: Sequence[int] | None) -> int:
        with self._log(directory, digest) as log:
            counts = {} if log is None else _counts(log)
            wanted = counts if branches is None else branches
            return sum(counts.get(branch, 0) for branch in wanted)

    async def records(self, digest: str) -> list[Record]:
        """See `Shelf.records`. A line that is no row, or out of order, has no position."""
        return await self.read(self._records, digest)

    def _records(self, directory: Directory, digest: str) -> list[Record]:
        with self._log(directory, digest) as log:
            found: list[Record] = []
            seq = 0
            for line in () if log is None else log.lines():
                if line.row is None or line.row.seq <= seq:
                    found.append(Record(line.start, strange_row(line, 0, MAIN)))
                else:
                    seq = line.row.seq
                    found.append(Record(line.start, line.row))
            return found

    async def heads(self, which: Filter, limit: int | None, after: str) -> list[Stored]:
        """See `Shelf.heads`."""
        return await self.read(self._heads, which, limit, after)

    def _heads(
        self, directory: Directory, which: Filter, limit: int | None, after: str
    ) -> list[Stored]:
        found: list[Stored] = []
        for digest in directory.digests(after=after):
            if limit is not None and len(found) >= limit:
                break
            with self._log(directory, digest) as log:
                stored = None if log is None else log.stored
            if stored is not None and takes(which, stored):
                found.append(stored)
        return found

    async def problems(self) -> list[str]:
        """Reports unreadable lines and ends, as `file:line: problem`."""
        return await self.read(self._problems)

    def _problems(self, directory: Directory) -> list[str]:
        return [
            f"{place(digest, '.jsonl')}{problem}"
            for digest in directory.digests()
            for problem in self._problems_of(directory, digest)
        ]

    def _problems_of(self, directory: Directory, digest: str) -> list[str]:
        try:
            with self._log(directory, digest) as log:
                found = [] if log is None else [*problems_of(log)]  # None: just deleted
                if log is None or log.end >= log.size:
                    return found
            with directory.locked(digest), self._log(directory, digest, is_locked=True) as log:
                if log is not None and log.end < log.size:  # else a write was in progress
                    found.append(f": {TORN}")
        except OSError as error:
            return [f": {explanation(error, 'file')}"]
        except StoreError as error:
            return [f": {error}"]
        return found

    # --- writing

    async def commit(self, before: int, stored: Stored, change: Change | None) -> bool:
        """See `Shelf.commit`."""
        if self.is_blocking:
            return self._write(self._commit, (before, stored, change))
        return await self._worker.run(self._write, self._commit, (before, stored, change))

    def _commit(
        self, directory: Directory, before: int, stored: Stored, change: Change | None
    ) -> bool:
        digest = stored.digest
        with directory.locked(digest), self._log(directory, digest, is_locked=True) as log:
            there = None if log is None else log.stored
            if (0 if there is None else there.stamp) != before:
                return False
            feed.tell(directory, digest)
            if log is None or _needs_rewriting(log, change):
                self._rewrite(directory, log, stored, change)
            else:
                self._add(directory, log, stored, () if change is None else change.puts)
            return True

    def _add(self, directory: Directory, log: Log, stored: Stored, puts: Sequence[Row]) -> None:
        """Adds a commit to the end of the log."""
        before = cast("Commit", log.commit)  # the log is sound
        ids = self._ids_of(directory, log, is_locked=True)
        known = [row.id for row in puts if any(ids.rows(log, row.id))]
        if known or len({row.id for row in puts}) < len(puts):
            raise DuplicateIds(known)
        if log.end < log.size:
            self._set_torn_aside(directory, log, stored)
            os.ftruncate(log.fd, log.end)
        start, tail = log.tail
        newline = b"\n" if start + len(tail) > log.end else b""
        lines = [row_line(row, log.mark) for row in puts]
        rows = b"".join(lines)
        begin = log.end + len(newline)
        counts = before.counts
        for row in puts:
            counts = {**counts, row.branch: counts.get(row.branch, 0) + 1}
        last = puts[-1].seq if puts else before.last
        held = before.held + len(rows)
        commit = commit_of(stored, counts, last, held, begin, len(rows), crc32(rows))
        line = commit_line(commit, log.digest)
        write_at_end(log.fd, log.end, [b"".join((newline, rows, line))], directory.sync)
        end = begin + len(rows) + len(line)
        # Only now, and not synced: an outdated size does no harm, so a failure does none either.
        with suppress(OSError):
            os.pwrite(log.fd, first_line(end, log.file), 0)
        log.grown(commit, line, end)
        self._remember(log)
        starts = accumulate(map(len, lines), initial=begin)
        ids.add(zip([row.id for row in puts], starts, strict=False), end)

    def _set_torn_aside(self, directory: Directory, log: Log, stored: Stored) -> None:
        for raw in log.torn().split(b"\n"):
            refuse_newer_log(raw)
        identity = identity_of(stored)
        if identity is not None:
            keep_aside(directory, identity, [(log.end, log.torn())], _TORN)

    def _rewrite(
        self, directory: Directory, log: Log | None, stored: Stored, change: Change | None
    ) -> None:
        """Replaces the file by one without what is dropped."""
        digest = stored.digest
        if log is not None:
            self._keep_unreadable(directory, log, stored, change)
        self._logs.pop(digest, None)
        self._ids.pop(digest, None)
        if log is None or (change is not None and change.is_emptied):
            kept: Kept = ()
        else:
            drops, aside = ((), ()) if change is None else (change.drops, change.aside)
            kept = kept_of(log, {*drops}, {*aside})
        write_again(directory, stored, kept, () if change is None else change.puts)

    def _keep_unreadable(
        self, directory: Directory, log: Log, stored: Stored, change: Change | None
    ) -> None:
        """Copies what is set aside, and what no rewritten file has."""
        identity = identity_of(stored)
        if identity is None:
            return
        if log.end < log.size:
            self._set_torn_aside(directory, log, stored)
        if not log.file:
            first = next(log.raw_lines(0), None)
            if first is not None and log.line_at(0).row is None:
                keep_aside(directory, identity, [first], _UNREADABLE)
        gone = set() if change is None else {*change.aside}
        if change is not None and gone:
            pieces = [(line.start, line.raw) for line in log.lines() if line.start in gone]
            keep_aside(directory, identity, pieces, change.reason)

    async def remove(self, which: Sequence[tuple[str, int]]) -> list[int | None]:
        """See `Shelf.remove`; records set aside are kept."""
        return await self.write(self._remove, which)

    def _remove(self, directory: Directory, which: Sequence[tuple[str, int]]) -> list[int | None]:
        return [self._remove_one(directory, digest, stamp) for digest, stamp in which]

    def _remove_one(self, directory: Directory, digest: str, stamp: int) -> int | None:
        with directory.locked(digest), self._log(directory, digest, is_locked=True) as log:
            there = None if log is None else log.stored
            if log is None or there is None or there.stamp != stamp:
                return None
            feed.tell(directory, digest)
            held = sum(_counts(log).values())
            self._logs.pop(digest, None)
            self._ids.pop(digest, None)
            directory.remove(digest, _REMOVED)
            return held

    async def scrub(self, user: str) -> tuple[str, ...]:
        """See `Shelf.scrub`. Files are removed, not overwritten."""
        return await self.write(self._scrub, user)

    def _scrub(self, directory: Directory, user: str) -> tuple[str, ...]:
        remains = [_OUTSIDE]
        stored = self._heads(directory, Filter(), None, "")
        unknown = sum(identity_of(each) is None for each in stored)
        if unknown:
            remains.append(f"{unknown} files without a readable head; see `verify`")
        unread = forget_aside(directory, user)
        if unread:
            remains.append(f"{unread} files of records set aside, with an unreadable line")
        return tuple(remains)

    # --- the feed of changes

    async def watch(self) -> None:
        """See `Shelf.watch`."""
        await self.write(feed.watch)

    async def changes(self, after: str, limit: int) -> tuple[Sequence[str], str]:
        """See `Shelf.changes`."""
        told, last = await self.read(feed.changes, int(after or 0), limit)
        return told, str(last) if told else after

    async def prune(self, upto: str) -> None:
        """See `Shelf.prune`."""
        await self.write(feed.prune, int(upto or 0))


class FileStorage(Ledger):
    """A backend in a directory. Its calls run on a worker thread; with `blocking`, in the caller's.

    >>> FileStorage("chats").name
    'file:chats'
    """

    shelf: FileShelf

    def __init__(
        self, directory: str | Path, *, durability: Durability = "process", blocking: bool = False
    ) -> None:
        super().__init__(FileShelf(Path(directory), durability, blocking=blocking))


def _needs_rewriting(log: Log, change: Change | None) -> bool:
    commit = log.commit
    if commit is None or not log.is_current or not log.file:
        return True
    if change is not None:
        if change.is_emptied or change.drops or change.aside or change.is_repair:
            return True
        if change.puts and change.puts[0].seq <= commit.last:
            return True
    return log.end - commit.held > _SLACK + 4 * commit.held


def _counts(log: Log) -> dict[int, int]:
    if log.commit is not None and log.is_current:
        return log.commit.counts
    counts: dict[int, int] = {}
    for line in log.lines():
        if line.row is not None:
            counts[line.row.branch] = counts.get(line.row.branch, 0) + 1
    return counts


# --- checks the lines of a log, as far as reading its messages does not


TORN = "the end is incomplete because of a crash; the next write sets it aside"
_NO_FORM = "the line can't be read, or belongs elsewhere"


def problems_of(log: Log) -> Iterator[str]:
    """What is wrong with a file."""
    if log.size == 0:
        yield ": the file is empty"
        return
    found = [*_unreadable(log)]
    yield from found
    if log.is_cut and not found:
        yield ": the file is shorter than it was: messages, or the latest changes, are missing"


def _unreadable(log: Log) -> Iterator[str]:
    if not log.file:
        yield ":1: the line can't be read"
    seq, seen = 0, set[str]()
    for number, (_, raw) in enumerate(log.raw_lines(log.begin), 2 if log.file else 1):
        row = row_in(raw, log.mark)
        if row is None:
            is_told = not log.file and number == 1
            if not is_told and commit_in(raw, log.digest) is None:
                yield f":{number}: {_NO_FORM}"
        elif row.id in seen:
            yield f":{number}: its id is used twice"
        elif row.seq <= seq:
            yield f":{number}: its number is not above the previous one"
        else:
            seq = row.seq
            seen.add(row.id)
