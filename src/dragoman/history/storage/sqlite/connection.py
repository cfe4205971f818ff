"""Opens the file, migrates its tables, and translates errors."""

from __future__ import annotations

import os
import sqlite3
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from dragoman.errors import Corrupt, StoreError
from dragoman.history.storage.places import Anchor, make_private_folder
from dragoman.history.storage.sqlite import schema

_LOCK_TIMEOUT = 30.0  # seconds to wait for another process's write: far longer than any takes
APPLICATION = 0x44726167
"""\"Drag\", in the file's header: marks the database as one of histories."""
_SYNCHRONOUS = {"process": "NORMAL", "power": "FULL"}


class Connection(sqlite3.Connection):
    """A connection, and what is known of its file."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.numbers: dict[str, int] = {}
        """The numbers of heads last written to, by digest. The digest is compared with each use."""
        self.has_stale_words = False
        """Whether the search index may contain words of deleted messages."""
        self.application = APPLICATION
        """What its file's header must say."""
        self.holds: Callable[[], bool] = lambda: True
        """Whether its file is still where it was opened."""


def connect(path: Path, durability: str, application: int = APPLICATION) -> Connection:
    """Opens a file, created or migrated if necessary."""
    is_exposed = str(path) != ":memory:" and prepare(path)
    connection = sqlite3.connect(
        path,
        timeout=_LOCK_TIMEOUT,
        isolation_level=None,
        check_same_thread=False,
        factory=Connection,
    )
    connection.application = application
    if str(path) != ":memory:":
        connection.holds = Anchor(path).holds
    try:
        _harden(connection)
        before = _checked_version(connection)
        _retried(connection, "PRAGMA journal_mode=WAL")
        connection.execute(f"PRAGMA synchronous={_SYNCHRONOUS[durability]}")
        connection.execute("PRAGMA secure_delete=ON")  # overwrites deleted content
        done = _checked_version(connection, before)
        if is_exposed:
            expect_files(path)  # again, now that the log exists too
        if done < schema.VERSION:
            _migrate(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _harden(connection: sqlite3.Connection) -> None:
    """Treats the schema as untrusted: the file may come from somebody else."""
    connection.execute("PRAGMA trusted_schema=OFF")
    if sys.version_info >= (3, 12):
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)  # noqa: FBT003 - positional only


def _checked_version(connection: Connection, before: int = 0) -> int:
    """The schema version; raises if the file is not ours, before anything is changed.

    Tables that were checked `before` are not checked again.
    """
    connection.execute("BEGIN")  # a consistent view of everything that is checked
    version = _version(connection)
    if version != before:
        schema.expect_ours(connection, version)
    connection.execute("COMMIT")
    return version


def _retried(connection: sqlite3.Connection, statement: str) -> None:
    # Switching to write-ahead logging does not wait for locks, unlike other statements.
    deadline = monotonic() + _LOCK_TIMEOUT
    while True:
        try:
            connection.execute(statement)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or monotonic() > deadline:
                raise
            sleep(0.01)
        else:
            return


def _migrate(connection: Connection) -> None:
    """Creates or migrates the tables; safe if many processes start at once."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        done = _version(connection)  # another process may have been faster
        if done:
            schema.expect_ours(connection, done)
        else:
            schema.create(connection)
        if done < schema.VERSION:
            schema.migrate(connection)
        connection.execute(f"PRAGMA application_id={connection.application}")
        connection.execute(f"PRAGMA user_version={schema.VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def _version(connection: Connection) -> int:
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    if application != connection.application and (version or _tables(connection)):
        msg = "the file is another program's database; use a separate file for the store"
        raise StoreError(msg)
    if application == connection.application and version < 1:
        raise Corrupt(schema.INCOMPLETE)
    if version > schema.VERSION:
        msg = (
            f"the store has schema version {version}, but this version of dragoman supports only"
            f" {schema.VERSION}: it was written by a newer dragoman, which is needed to read it"
        )
        raise StoreError(msg)
    if 0 < version < schema.EARLIER:
        msg = (
            f"the store has schema version {version}, from before the first release; this version"
            f" of dragoman reads version {schema.EARLIER} and later. Open it once with the dragoman"
            " of November 2026, or export its sessions with that"
        )
        raise StoreError(msg)
    return version


def _tables(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])


# The last two are caused by arguments: an id with a lone surrogate, a count beyond 64 bits.
FAILURES = (sqlite3.Error, UnicodeError, OverflowError)


def explanation(error: Exception, name: str, *, is_opening: bool = False) -> StoreError:
    """What happened, and what to do about it. Raise it outside the handler of `error`."""
    if isinstance(error, OSError):
        return StoreError(f"the store {name} can't be opened: {error.strerror}")
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    is_unreadable = is_opening and (isinstance(error, UnicodeError) or not code)
    if is_unreadable or code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
        return Corrupt(
            f"the store {name} is damaged or not a SQLite file; it was not changed. Restore a"
            " backup, or recover what is readable with `sqlite3 FILE .recover`"
        )
    if not isinstance(error, sqlite3.Error):
        return StoreError(
            f"the store {name} can't store an id, a model name or a number of this message;"
            " nothing was written"
        )
    return StoreError(f"the store {name} failed: {_REASONS.get(code, type(error).__name__)}")


_REASONS = {
    sqlite3.SQLITE_BUSY: f"another process locked it for over {_LOCK_TIMEOUT:.0f} seconds;"
    " nothing was written, try again",
    sqlite3.SQLITE_LOCKED: "another connection locked it; nothing was written, try again",
    sqlite3.SQLITE_FULL: "the disk is full; nothing was written, free some space and try again",
    sqlite3.SQLITE_IOERR: "the disk can't be read or written; nothing was written",
    sqlite3.SQLITE_READONLY: "the file or its directory is read-only",
    sqlite3.SQLITE_CANTOPEN: "the file can't be opened or created; check that its directory exists"
    " and is writable",
    sqlite3.SQLITE_PERM: "permission denied",
    sqlite3.SQLITE_TOOBIG: "a message is larger than SQLite supports",
}


# --- creates files that only their owner can read, in places that nobody else has prepared
#
# A database and the files next to it get mode 0600, directories 0700, whatever the umask. SQLite
# gives its log the mode of the database, so the database must exist before SQLite opens it. In a
# directory that everybody may write to, such as /tmp, another user may have placed a file or a link
# under our name: then nothing is written.


# ruff: noqa: PTH100, PTH114, PTH116, PTH120 - called a dozen times per open; pathlib is slow


BESIDE = ("-wal", "-shm", "-journal")
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)


def prepare(path: Path) -> bool:
    """Creates the file and its directories, private, if they don't exist.

    Returns whether others could create files next to it; then `expect_files` must be called again
    after SQLite has created its own. Files that are ours by then can't be replaced by others.
    """
    name = os.path.abspath(path)
    is_there = os.path.lexists(name)
    if not is_there:
        make_private_folder(path.parent)
    is_exposed = _expect_place(name)
    if is_there and os.path.islink(name):  # our own link; its target may not exist yet
        name = os.path.realpath(name)
        is_exposed |= _expect_place(name)
        is_there = os.path.lexists(name)
    if is_there:
        _expect_not_emptied(name)
    else:
        with suppress(FileExistsError):  # another process was faster
            _make_file(name)
    return is_exposed


def _make_file(name: str) -> None:
    # Only new files: closing a file that SQLite has open would release SQLite's locks.
    made = os.open(name, _NEW, 0o600)
    try:
        if hasattr(os, "fchmod"):
            os.fchmod(made, 0o600)  # the umask may have removed even the owner's permissions
    finally:
        os.close(made)


def _expect_place(name: str) -> bool:
    """Raises if a directory on the path is another user's; returns whether one is world-writable.

    If none is, the content of the path is trusted.
    """
    if not hasattr(os, "geteuid"):
        return False  # Windows separates users by other means
    folders = _above(name)
    exposed = [n for n, each in enumerate(folders, 1) if os.stat(each).st_mode & stat.S_IWOTH]
    if not exposed:
        return False
    if any(os.lstat(each).st_uid not in {0, os.geteuid()} for each in folders[: exposed[-1]]):
        msg = (
            "the store is in a directory of another user, below a world-writable one; use a"
            " directory of your own"
        )
        raise StoreError(msg)
    expect_files(name)
    return True


def _above(name: str) -> list[str]:
    """All directories that contain a file, innermost first."""
    folders: list[str] = []
    while (above := os.path.dirname(name)) != name:
        folders.append(above)
        name = above
    return folders


def expect_files(path: Path | str) -> None:
    """Raises if another user has placed a file or a link under the name of one of ours."""
    everybody = os.stat(os.path.dirname(os.path.abspath(path))).st_mode & stat.S_IWOTH
    for found in _files(path):
        is_odd = not stat.S_ISREG(found.st_mode) or found.st_nlink > 1
        if found.st_uid not in {0, os.geteuid()} or (is_odd and everybody):
            msg = (
                "the store is below a world-writable directory, and one of its files is a link or"
                " belongs to another user; use a directory of your own"
            )
            raise StoreError(msg)


def _files(path: Path | str) -> Iterator[os.stat_result]:
    """The existing files of a database."""
    for end in ("", *BESIDE):
        try:
            yield os.lstat(f"{path}{end}")
        except FileNotFoundError:
            continue


def _expect_not_emptied(name: str) -> None:
    """Raises if the database is empty but its log is not: SQLite would delete the log."""
    if os.stat(name).st_size:
        return
    with suppress(FileNotFoundError):
        if os.stat(f"{name}-wal").st_size:
            msg = (
                "the store's file is empty, but the log next to it is not; nothing was changed."
                " Restore a backup, or move both away to start over"
            )
            raise Corrupt(msg)


def exposed_files(path: Path) -> list[str]:
    """Reports world-readable files, for `verify`. Group access may be intended."""
    if hasattr(os, "geteuid") and any(
        found.st_mode & 0o007 for found in _files(os.path.realpath(path))
    ):
        return ["every user of this machine can read or write the file; run `chmod 600` on it"]
    return []
