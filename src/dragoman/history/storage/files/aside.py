"""Records set aside: what was removed from a session's file because it could not be read."""

from __future__ import annotations

from collections.abc import Iterable
from time import time

import msgspec

from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.files.directory import Directory
from dragoman.model import document


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
