"""Whether what a server holds of a session can be right, and what can be saved of it if not.

A session's tally (`integrity`) has its numbers, not where its branches begin nor which of them is
active. Where there are branches, a hash of these goes with the session (`f1-<16 hex digits>`): a
history must not silently open on other messages than were written.
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
_NO_TALLY = "n1-"  # of no session: `tally_of` raises
_UNREADABLE = "c1-"  # a checksum that no content has


def shape_of(session: Session) -> str:
    """A hash of a session's branches; Redis makes the same (`scripts`)."""
    forks = sorted((fork.number, fork.parent, fork.at) for fork in session.forks)
    text = "".join(f";{number}:{parent} {at}" for number, parent, at in forks)
    hashed = sha1(f"{session.active}{text}".encode(), usedforsecurity=False)
    return _SHAPE + hashed.hexdigest()[:16]


def expect_sound(session: Session, digest: str, shape: str | None) -> Session:
    """The session; raises `Corrupt` where it can't be what was written under its digest."""
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
    """What a listing has for a session of which only the names can be read: so it can be mended."""
    return Session(identity, 0, 0, 0.0, 0.0, chain=_NO_TALLY)


def is_damaged(session: Session) -> bool:
    """Whether a session, as it was listed, is one whose numbers are not those that were written."""
    try:
        tally_of(session)
    except Corrupt:
        return True
    return False


def unreadable_row(seq: int, branch: int, body: bytes = b"", id: str = "") -> Row:
    """What stands for a record that is no row: whoever looks at it is told so."""
    return Row(id, body, 0.0, seq=seq, branch=branch, checksum=_UNREADABLE)


def highest(*numbers: object) -> int:
    """The highest of those that can be a version or a message's number; 0 if there is none."""
    return max((n for n in numbers if type(n) is int and 0 <= n <= _HIGHEST), default=0)


def moment(value: object, otherwise: float) -> float:
    """A time, or another where it is none."""
    return value if isinstance(value, float) and isfinite(value) else otherwise


def sound_forks(
    found: Iterable[tuple[int, int, int]], firsts: Mapping[int, int], last_seq: int
) -> tuple[Fork, ...]:
    """The branches that can be; one of which only the messages are left begins at the first.

    `firsts` has the number of each branch's first message. What stood before that on the main
    branch is then before it: nothing is lost, if in doubt there is more.
    """
    sound: dict[int, Fork] = {}
    for number, parent, at in sorted(found):
        is_rooted = parent == MAIN or parent in sound  # lower ones come first
        if number > MAIN and number not in sound and is_rooted and 0 <= at <= last_seq:
            sound[number] = Fork(number, parent, at)
    for number, first in firsts.items():
        if number > MAIN and number not in sound:
            sound[number] = Fork(number, MAIN, first - 1)
    return tuple(sound[number] for number in sorted(sound))
