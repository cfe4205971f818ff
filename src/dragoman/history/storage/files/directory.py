"""The directory of a store: safe opening, locks, atomic replacement of files.

Everything is opened relative to an open directory and never through a symbolic link, and files are
named after nothing but a session's digest:

    3f/3f…e1.jsonl   the session: a log of commits
    3f/3f…e1.ids     an index of messages by id; rebuilt if it is missing
    3f/3f…e1.aside   unreadable records, and where they were
    3f/3f…e1.tmp     a file that is being written
    3f/lock          held while writing to a file next to it
    feed             the sessions that changed, in order, once somebody watches
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from time import monotonic, sleep, time
from zlib import crc32

import msgspec

from dragoman.errors import ConfigError, StoreError
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.files.log import (
    BEGIN,
    Commit,
    Log,
    commit_line,
    first_line,
    mark_of,
    new_file,
    row_line,
)
from dragoman.history.storage.heads import Stored
from dragoman.history.storage.places import Anchor, make_private_folder
from dragoman.history.storage.protocol import DuplicateIds, Row
from dragoman.model import document

_LOCK_TIMEOUT = 30.0  # seconds to wait for another process's write: far longer than any takes
_SHARD = re.compile(r"[0-9a-f]{2}")
_DIGEST = re.compile(r"[0-9a-f]{40}")
_IS_POSIX = os.name == "posix"
_SAFE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)

SUFFIXES = (".ids", ".jsonl", ".aside", ".tmp")  # in the order of removal


class Directory:
    """An open directory of a store."""

    def __init__(self, path: Path, *, is_synced: bool) -> None:
        expect_locks()
        make_private_folder(path)
        self.is_synced = is_synced
        self._root = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        self.holds = Anchor(path).holds
        """Whether the directory is still where it was opened."""

    def close(self) -> None:
        """Closes the directory."""
        os.close(self._root)

    # --- opening

    def opened(self, name: str, flags: int = os.O_RDONLY, *, is_locked: bool = False) -> int | None:
        """Opens one of our files; `None` if it does not exist."""
        try:
            if not is_locked:  # taking the lock has already checked the directory
                self._expect_directory(name[:2])
            fd = os.open(name, flags | _SAFE, 0o600, dir_fd=self._root)
        except FileNotFoundError:
            return None
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise OSError(errno.ELOOP, "")
        return fd

    @contextmanager
    def reading(self, digest: str, suffix: str = ".jsonl") -> Generator[int | None]:
        """Opens a session's file for reading; `None` if it does not exist."""
        fd = self.opened(place(digest, suffix))
        try:
            yield fd
        finally:
            if fd is not None:
                os.close(fd)

    # --- writing

    @contextmanager
    def locked(self, digest: str) -> Generator[None]:
        """Holds the exclusive lock for writing to the session, across threads and processes."""
        self._make_directory(digest[:2])
        flags = os.O_RDWR | os.O_CREAT | _SAFE
        lock = os.open(f"{digest[:2]}/lock", flags, 0o600, dir_fd=self._root)
        try:
            wait_for(lock)
            yield
        finally:
            os.close(lock)  # also releases the lock

    def replace(
        self,
        digest: str,
        suffix: str,
        chunks: Iterable[bytes],
        amended: Callable[[], tuple[int, bytes]] | None = None,
    ) -> None:
        """Replaces a file atomically: it never appears half written.

        `amended` is called after everything else is written; returns bytes to write at an offset.
        """
        temporary = place(digest, ".tmp")
        self._unlink(temporary)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFE
        fd = os.open(temporary, flags, 0o600, dir_fd=self._root)
        try:
            with os.fdopen(fd, "wb", 1 << 16) as file:
                file.writelines(chunks)
                file.flush()
                if amended is not None:
                    at, raw = amended()
                    os.pwrite(fd, raw, at)
                self.sync(fd)
            target = place(digest, suffix)
            os.rename(temporary, target, src_dir_fd=self._root, dst_dir_fd=self._root)
        except BaseException:
            self._unlink(temporary)
            raise
        self._sync_shard(digest)

    def add(self, digest: str, suffix: str, raw: bytes) -> None:
        """Appends to a file, created if necessary."""
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | _SAFE
        fd = os.open(place(digest, suffix), flags, 0o600, dir_fd=self._root)
        try:
            size = os.fstat(fd).st_size
            if size and os.pread(fd, 1, size - 1) != b"\n":
                raw = b"\n" + raw  # a crash left an incomplete line
            write_at_end(fd, size, [raw], self.sync)
        finally:
            os.close(fd)
        self._sync_shard(digest)

    def remove(self, digest: str, suffixes: Iterable[str] = SUFFIXES) -> bool:
        """Removes a session's files; returns whether there were any."""
        removed = [self._unlink(place(digest, suffix)) for suffix in suffixes]
        self._sync_shard(digest)
        return any(removed)

    def sync(self, fd: int) -> None:
        """Flushes a file to disk, if configured."""
        if self.is_synced:
            os.fsync(fd)

    def _make_directory(self, shard: str) -> None:
        try:
            self._expect_directory(shard)
        except FileNotFoundError:
            with suppress(FileExistsError):  # another process was faster
                os.mkdir(shard, 0o700, dir_fd=self._root)
            self.sync(self._root)

    def _expect_directory(self, shard: str) -> None:
        # Opening a file in it would follow a link in its place.
        if not stat.S_ISDIR(os.stat(shard, dir_fd=self._root, follow_symlinks=False).st_mode):
            raise OSError(errno.ELOOP, "")

    def _sync_shard(self, digest: str) -> None:
        if not self.is_synced:
            return
        try:
            fd = os.open(digest[:2], os.O_RDONLY | os.O_DIRECTORY | _SAFE, dir_fd=self._root)
        except FileNotFoundError:
            return
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def _unlink(self, name: str) -> bool:
        try:
            os.unlink(name, dir_fd=self._root)
        except FileNotFoundError:
            return False
        return True

    def opened_in_root(self, name: str, flags: int) -> int | None:
        """Opens a file of the store itself; `None` if it does not exist."""
        return self.opened(name, flags, is_locked=True)

    def has(self, name: str) -> bool:
        """Whether there is a file of the store itself."""
        return os.access(name, os.F_OK, dir_fd=self._root)

    def is_current(self, name: str, fd: int) -> bool:
        """Whether an open file of the store itself still has its name."""
        try:
            about = os.stat(name, dir_fd=self._root, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return about.st_ino == os.fstat(fd).st_ino

    def renamed(self, temporary: str, name: str) -> None:
        """Gives a file of the store itself its name."""
        os.rename(temporary, name, src_dir_fd=self._root, dst_dir_fd=self._root)
        self.sync(self._root)

    # --- listing

    def digests(self, suffix: str = ".jsonl", after: str = "") -> Iterator[str]:
        """The sessions that have such a file, in order, starting after `after`."""
        for shard in sorted(filter(_SHARD.fullmatch, os.listdir(self._root))):  # noqa: PTH208 - open
            if shard >= after[:2]:
                for digest in self._in_shard(shard, suffix):
                    if digest > after:
                        yield digest

    def _in_shard(self, shard: str, suffix: str) -> list[str]:
        flags = os.O_RDONLY | os.O_DIRECTORY | _SAFE
        fd = os.open(shard, flags, dir_fd=self._root)
        try:
            listed = os.listdir(fd)  # noqa: PTH208 - open
        finally:
            os.close(fd)
        names = [name.removesuffix(suffix) for name in listed if name.endswith(suffix)]
        return sorted(name for name in names if _DIGEST.fullmatch(name) and name[:2] == shard)


def place(digest: str, suffix: str) -> str:
    """The path of a file, relative to the directory."""
    return f"{digest[:2]}/{digest}{suffix}"


def expect_locks() -> None:
    """Raise where the operating system has no POSIX file locks."""
    if not _IS_POSIX:
        msg = (
            "the file store needs POSIX file locks and renames, which Windows does not have; use"
            " SQLite there: sqlite:///path"
        )
        raise ConfigError(msg)


def wait_for(lock: int) -> None:
    """Takes the exclusive lock of an open file."""
    import fcntl

    # Polled, because a blocking wait can't be given up, and a stopped process may hold the lock.
    deadline, pause = monotonic() + _LOCK_TIMEOUT, 0.0002
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            held = monotonic() > deadline
        else:
            return
        if held:
            msg = (
                f"another process locked the session for over {_LOCK_TIMEOUT:.0f} seconds;"
                " nothing was written, try again"
            )
            raise StoreError(msg)
        sleep(pause)
        pause = min(pause * 2, 0.005)


def write_at_end(fd: int, size: int, chunks: Iterable[bytes], sync: Callable[[int], None]) -> None:
    """Writes at `size`, the end of a file; on failure, truncates what was written."""
    try:
        at = size
        for chunk in chunks:
            write_all(fd, chunk, at)
            sync(fd)
            at += len(chunk)
    except BaseException:
        with suppress(OSError):  # the rest will be seen as incomplete, and truncated later
            os.ftruncate(fd, size)
        raise


def write_all(fd: int, raw: bytes, at: int) -> None:
    """Writes all of it."""
    written = os.pwrite(fd, raw, at)
    while written < len(raw):
        written += os.pwrite(fd, memoryview(raw)[written:], at + written)


def explanation(error: OSError, name: str) -> StoreError:
    """What happened, and what to do about it."""
    reason = _REASONS.get(error.errno or 0, f"{error.strerror}; nothing was written")
    return StoreError(f"the store {name} failed: {reason}")


_REASONS = {
    errno.ENOSPC: "the disk is full; nothing was written, free some space and try again",
    errno.EDQUOT: "the disk quota is exceeded; nothing was written, free some space and try again",
    errno.EFBIG: "a file would exceed the maximum size; nothing was written",
    errno.ELOOP: "one of its files is a symbolic link or not a regular file; nothing was written,"
    " remove it",
    errno.ENOTDIR: "its directory is a file or a symbolic link; use another one",
    errno.EACCES: "permission denied; nothing was written",
    errno.EPERM: "permission denied; nothing was written",
    errno.EROFS: "the file system is read-only; nothing was written",
    errno.EIO: "the disk can't be read or written; nothing was acknowledged",
}


# --- writes a session's file anew: what was dropped from it does not stay on the disk


Kept = Iterable[tuple[bytes, Row | None]]
"""Lines without their newlines, each with its row; `None` if it is no row, or out of order."""


def write_again(directory: Directory, stored: Stored, kept: Kept, puts: Sequence[Row] = ()) -> None:
    """Replaces a session's file by one commit: these lines, rows among them, and a head."""
    digest = stored.digest
    new = _Rows(kept, puts, mark_of(digest))
    file = new_file()
    size = 0

    def lines() -> Iterator[bytes]:
        nonlocal size
        yield from new
        line = commit_line(
            commit_of(stored, new.counts, new.last, new.size, BEGIN, new.size, new.sum), digest
        )
        size = BEGIN + new.size + len(line)
        yield line

    room = first_line(0, file)  # a placeholder of the same length
    directory.replace(digest, ".jsonl", chain([room], lines()), lambda: (0, first_line(size, file)))


def kept_of(log: Log, dropped: Collection[str], aside: Collection[int]) -> Kept:
    """The lines of a log, without those with these ids, and those at these offsets."""
    seq = 0
    for line in log.lines():
        if line.start in aside or (line.row is not None and line.row.id in dropped):
            continue
        if line.start == 0 and line.row is None:
            continue  # the first line, which is damaged
        is_in_order = line.row is not None and line.row.seq > seq
        if line.row is not None and is_in_order:
            seq = line.row.seq
        yield line.raw, line.row if is_in_order else None


class _Rows:
    """The lines of rows, in order; what is known of them once they are read."""

    def __init__(self, kept: Kept, puts: Sequence[Row], mark: str) -> None:
        self._kept = kept
        self._puts = sorted(puts, key=_seq)
        self._mark = mark
        self.counts: dict[int, int] = {}
        self.last = self.size = self.sum = 0

    def __iter__(self) -> Iterator[bytes]:
        wanted = {row.id for row in self._puts}
        if len(wanted) < len(self._puts):
            raise DuplicateIds([])
        puts = iter(self._puts)
        put = next(puts, None)
        for raw, row in self._kept:
            if row is not None and row.id in wanted:
                raise DuplicateIds([row.id])
            while put is not None and row is not None and put.seq < row.seq:
                yield self._counted(row_line(put, self._mark), put)
                put = next(puts, None)
            yield self._counted(raw + b"\n", row)
        while put is not None:
            yield self._counted(row_line(put, self._mark), put)
            put = next(puts, None)

    def _counted(self, line: bytes, row: Row | None) -> bytes:
        if row is not None:
            self.counts[row.branch] = self.counts.get(row.branch, 0) + 1
            self.last = max(self.last, row.seq)
        self.size += len(line)
        self.sum = crc32(line, self.sum)
        return line


def commit_of(
    stored: Stored,
    counts: dict[int, int],
    last: int,
    held: int,
    begin: int,
    size: int,
    checksum: int,
) -> Commit:
    """What is written behind rows."""
    _, names, stamp, at, document = stored
    return Commit(stamp, at, names, document, counts, last, held, begin, size, checksum)


def _seq(row: Row) -> int:
    return row.seq


# --- records set aside: what was removed from a session's file because it could not be read


class Aside(msgspec.Struct, forbid_unknown_fields=True):
    """Bytes removed from a file, with their offset and the reason."""

    identity: SessionIdentity
    at: float
    offset: int
    reason: str
    raw: bytes

    def __repr__(self) -> str:
        return f"Aside({self.reason!r}, {len(self.raw)} bytes)"


document.register("Aside", Aside)


def keep_aside(
    directory: Directory,
    identity: SessionIdentity,
    pieces: Iterable[tuple[int, bytes]],
    reason: str,
) -> None:
    """Appends to the records set aside of a session; never overwrites any."""
    now = time()
    lines = [
        document.write("Aside", Aside(identity, now, at, reason, raw)) + b"\n" for at, raw in pieces
    ]
    if lines:
        directory.add(identity.digest, ".aside", b"".join(lines))


def aside_of(line: bytes) -> Aside | None:
    """The record set aside in a line; `None` if unreadable."""
    try:
        found = document.read(line, "Aside")
    except ValueError:
        return None
    return found if isinstance(found, Aside) else None


def forget_aside(directory: Directory, user: str) -> int:
    """Removes a user's; returns the number of files whose owner is unclear."""
    unread = 0
    for digest in [*directory.digests(".aside")]:
        with directory.locked(digest):
            with directory.reading(digest, ".aside") as fd:
                if fd is None:
                    continue
                with open(fd, "rb", closefd=False) as file:
                    found = [*map(aside_of, file)]
            if any(aside is not None and aside.identity.user == user for aside in found):
                directory.remove(digest, [".aside"])
            elif None in found:
                unread += 1
    return unread
