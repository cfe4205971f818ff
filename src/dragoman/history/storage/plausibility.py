"""Checks what nothing else in a session's record repeats: its times, windows and seal.

Its times are compared with those of its messages, which a checksum covers. Clocks differ, and are
set right: only what no clock explains is a problem.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from time import time
from typing import Any

import msgspec

from dragoman.history.records import is_sealed
from dragoman.history.storage.protocol import Row, Session
from dragoman.model import document

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
    return msgspec.structs.replace(session, **changes)
