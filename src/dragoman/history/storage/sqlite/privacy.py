"""Files that nobody else can read, in a place that nobody else has prepared.

A database and the files beside it are made with mode 0600, folders with 0700, whatever the umask:
SQLite gives its log the mode of the database, so that has to be there before SQLite opens it. In a
folder that everybody may write to, such as /tmp, somebody else may have put a file of theirs, or a
link, where ours is to be: nothing is written there.
"""

# ruff: noqa: PTH100, PTH114, PTH116, PTH120 - asked a dozen times per opening; pathlib is slow
from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from dragoman.errors import Corrupt, StoreError

BESIDE = ("-wal", "-shm", "-journal")
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)


def prepare(path: Path) -> bool:
    """Make the file and its folders, private, where they are not there.

    Returns whether others could put something beside it: `expect_files` is to be asked again when
    SQLite has made its own. What is ours by then, others can't replace.
    """
    name = os.path.abspath(path)
    is_there = os.path.lexists(name)
    if not is_there:
        make_private_folder(path.parent)
    is_exposed = _expect_place(name)
    if is_there and os.path.islink(name):  # ours, and it may lead to where there is nothing yet
        name = os.path.realpath(name)
        is_exposed |= _expect_place(name)
        is_there = os.path.lexists(name)
    if is_there:
        _expect_not_emptied(name)
    else:
        with suppress(FileExistsError):  # somebody else was quicker
            _make_file(name)
    return is_exposed


def _make_file(name: str) -> None:
    # Only ever a new one: closing a file that SQLite has open would let go of SQLite's locks.
    made = os.open(name, _NEW, 0o600)
    try:
        if hasattr(os, "fchmod"):
            os.fchmod(made, 0o600)  # a umask may have taken even the owner's rights
    finally:
        os.close(made)


def make_private_folder(folder: Path) -> None:
    """Make a folder, and those above it that are missing, for their owner alone."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        with suppress(FileExistsError):  # somebody else was quicker
            each.mkdir(mode=0o700)
    folder.mkdir(exist_ok=True)  # raises where it is no folder


def _expect_place(name: str) -> bool:
    """Raise where a folder of the way is another user's; whether everybody may write to one.

    Where nobody may but those whom their owner trusts, whatever is there is meant to be.
    """
    if not hasattr(os, "geteuid"):
        return False  # Windows keeps users apart by other means
    folders = _above(name)
    exposed = [n for n, each in enumerate(folders, 1) if os.stat(each).st_mode & stat.S_IWOTH]
    if not exposed:
        return False
    if any(os.lstat(each).st_uid not in {0, os.geteuid()} for each in folders[: exposed[-1]]):
        msg = (
            "the store is in a folder of another user, where everybody may make one; name a folder"
            " of your own"
        )
        raise StoreError(msg)
    expect_files(name)
    return True


def _above(name: str) -> list[str]:
    """All folders that a file is in, from the innermost."""
    folders: list[str] = []
    while (above := os.path.dirname(name)) != name:
        folders.append(above)
        name = above
    return folders


def expect_files(path: Path | str) -> None:
    """Raise where somebody else has put a file or a link under the name of one of ours."""
    everybody = os.stat(os.path.dirname(os.path.abspath(path))).st_mode & stat.S_IWOTH
    for found in _files(path):
        is_odd = not stat.S_ISREG(found.st_mode) or found.st_nlink > 1
        if found.st_uid not in {0, os.geteuid()} or (is_odd and everybody):
            msg = (
                "the store is below a folder that everybody may write to, and under its name there"
                " is a link or another user's file; name a folder of your own"
            )
            raise StoreError(msg)


def _files(path: Path | str) -> Iterator[os.stat_result]:
    """What there is of a database, and beside it."""
    for end in ("", *BESIDE):
        try:
            yield os.lstat(f"{path}{end}")
        except FileNotFoundError:
            continue


def _expect_not_emptied(name: str) -> None:
    """Raise where the database is empty but its log is not: SQLite would remove the log."""
    if os.stat(name).st_size:
        return
    with suppress(FileNotFoundError):
        if os.stat(f"{name}-wal").st_size:
            msg = (
                "the store's file was emptied, but not the log beside it; nothing has been touched:"
                " restore a copy, or move both away to start anew"
            )
            raise Corrupt(msg)


def problems(path: Path) -> list[str]:
    """What everybody could read, in plain words; for `verify`. A group may share it on purpose."""
    if hasattr(os, "geteuid") and any(found.st_mode & 0o007 for found in _files(path.resolve())):
        return ["every user of this machine may read or write the file: `chmod 600` it"]
    return []
