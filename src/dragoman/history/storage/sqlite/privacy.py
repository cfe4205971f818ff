"""Creates files that only their owner can read, in places that nobody else has prepared.

A database and the files next to it get mode 0600, directories 0700, whatever the umask. SQLite
gives its log the mode of the database, so the database must exist before SQLite opens it. In a
directory that everybody may write to, such as /tmp, another user may have placed a file or a link
under our name: then nothing is written.
"""

# ruff: noqa: PTH100, PTH114, PTH116, PTH120 - called a dozen times per open; pathlib is slow
from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from dragoman.errors import Corrupt, StoreError
from dragoman.history.storage.places import make_private_folder

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


def problems(path: Path) -> list[str]:
    """Reports world-readable files, for `verify`. Group access may be intended."""
    if hasattr(os, "geteuid") and any(
        found.st_mode & 0o007 for found in _files(os.path.realpath(path))
    ):
        return ["every user of this machine can read or write the file; run `chmod 600` on it"]
    return []
