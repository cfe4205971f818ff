"""Checks the plausibility of stored sessions, and salvages what is possible.

A session's tally (`integrity`) covers its counters, but not where its branches start or which one
is active. If there are branches, a hash of these is stored with the session (`f1-<16 hex digits>`),
because a history must not silently open on other messages than were written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha1
from math import isfinite

from dragoman.errors import Corrupt
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.integrity import damaged, tally_of
from dragoman.history.storage.protocol import MAIN, Fork, Row, Session

_SHAPE = "f1-"
_HIGHEST = 1 << 53  # Redis counts in floating point
_NO_TALLY = "n1-"  # never valid: `tally_of` raises
_UNREADABLE = "c1-"  # a checksum that never matches


def shape_of(session: Session) -> str:
    """A hash of a session's branches; Redis computes the same one (`scripts`)."""
    forks = sorted((fork.number, fork.parent, fork.at) for fork in session.forks)
    text = "".join(f";{number}:{parent} {at}" for number, parent, at in forks)
    hashed = sha1(f"{session.active}{text}".encode(), usedforsecurity=False)
    return _SHAPE + hashed.hexdigest()[:16]


def expect_sound(session: Session, digest: str, shape: str | None) -> Session:
    """Returns the session; raises `Corrupt` if it is implausible or has the wrong digest."""
    numbers = (session.version, session.last_seq, session.active)
    is_sound = (
        session.identity.digest == digest
        and all(0 <= number <= _HIGHEST for number in numbers)
        and isfinite(session.created_at)
        and isfinite(session.updated_at)
        and session.active in {MAIN, *(fork.number for fork in session.forks)}
        and (shape is None or not shape.startswith(_SHAPE) or shape == shape_of(session))
    )
    tally = tally_of(session) if is_sound else None
    if not is_sound or (tally is not None and not 0 <= tally.rows <= _HIGHEST):
        raise damaged(digest)
    return session


def listed_as_damaged(identity: SessionIdentity) -> Session:
    """A placeholder for a session of which only the names are readable, for repair."""
    return Session(identity, 0, 0, 0.0, 0.0, chain=_NO_TALLY)


def is_damaged(session: Session) -> bool:
    """Whether a listed session has damaged counters."""
    try:
        tally_of(session)
    except Corrupt:
        return True
    return False


def unreadable_row(seq: int, branch: int, body: bytes = b"", id: str = "") -> Row:
    """A placeholder for an unreadable record; its damage can be detected."""
    return Row(id, body, 0.0, seq=seq, branch=branch, checksum=_UNREADABLE)


def highest(*numbers: object) -> int:
    """The highest plausible version or sequence number; 0 if there is none."""
    return max((n for n in numbers if type(n) is int and 0 <= n <= _HIGHEST), default=0)


def moment(value: object, otherwise: float) -> float:
    """A valid time, or a default."""
    return value if isinstance(value, float) and isfinite(value) else otherwise


def sound_forks(
    found: Iterable[tuple[int, int, int]], firsts: Mapping[int, int], last_seq: int
) -> tuple[Fork, ...]:
    """The plausible branches. If only the messages of a branch are left, it starts at the first.

    `firsts` has the number of each branch's first message. Such a branch then contains everything
    before that on the main branch: rather too much than too little.
    """
    sound: dict[int, Fork] = {}
    for number, parent, at in sorted(found):
        is_rooted = parent == MAIN or parent in sound  # parents have lower numbers
        if number > MAIN and number not in sound and is_rooted and 0 <= at <= last_seq:
            sound[number] = Fork(number, parent, at)
    for number, first in firsts.items():
        if number > MAIN and number not in sound:
            sound[number] = Fork(number, MAIN, first - 1)
    return tuple(sound[number] for number in sorted(sound))
