"""A file's first line: the session, and counters that every append overwrites in place.

    {"dragoman":2,"kind":"Session","value":{"version":7,"last_seq":9,"updated_at":1763294400.5,
    "chain":"f1-9.3.4711-5ac0be11-0123456789abcdef"        ,"identity":{…},"created_at":…}}

What changes with an append comes first, in a fixed area padded with spaces, within the first 512
bytes, which a disk writes atomically. `chain` holds the number of rows, the version at which the
file was last rewritten, the size of the rows in bytes, the generation of the file, and a checksum
of the line. Rows are written first, then the counters: after a crash, the counters may be behind,
but never ahead. If they are ahead, rows are missing.

A line of another layout, as in version 1 and in exports, is read as is; the next write replaces it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from hashlib import blake2b
from math import isfinite
from os import urandom
from typing import Any, NamedTuple

import msgspec

from dragoman.errors import Corrupt
from dragoman.history.identity import SessionIdentity
from dragoman.history.records import StoredFork, read_line, session_line
from dragoman.history.storage.integrity import Tally, tally_of
from dragoman.history.storage.lines import refuse_newer
from dragoman.history.storage.protocol import MAIN, Session
from dragoman.model.jsontext import dumps

_OPENING = b'{"dragoman":2,"kind":"Session","value":{'
_OURS = _OPENING + b'"version":'  # other layouts start with the identity
_FIXED = b',"identity":'
_ROOM = 208  # enough for numbers of up to 20 digits
PLACE = len(_OPENING)
"""The offset of the counters that are overwritten."""
_FORM = "f1-"
_NUMBERS = re.compile(
    rb'("version":(-?\d{1,20}),"last_seq":(-?\d{1,20}),"updated_at":(-?[\d.e+-]{1,24})'
    rb',"chain":"f1-(\d{1,20})\.(-?\d{1,20})\.(\d{1,20})-([0-9a-f]{8})-)([0-9a-f]{16})" *'
)
_MAX_CACHED = 128  # first lines that are cached
_ABSENT = msgspec.Raw()


class Marks(NamedTuple):
    """What a first line records in addition to the session's counters."""

    rows: int
    """The number of rows, on all branches."""
    written: int
    """The session's version when the file was last rewritten."""
    size: int
    """The size of the rows in bytes; all of them were acknowledged."""
    generation: bytes
    """A new value each time the file is rewritten."""


class Head(NamedTuple):
    """The content of a first line."""

    fixed: Session
    """The session; in a line with marks, the counters below apply."""
    version: int
    last_seq: int
    updated_at: float
    marks: Marks | None
    room: int = 0
    """The number of bytes available for the counters."""

    def tally(self) -> Tally | None:
        """The expected number of rows; `None` if it was never counted.

        Raises `Corrupt` if the counters are inconsistent.
        """
        if self.marks is None:
            return tally_of(self.fixed)
        return Tally(self.version, self.last_seq, self.marks.rows, len(self.fixed.forks))


class _Fixed(msgspec.Struct, omit_defaults=True, gc=False):
    """The part of a first line that an append does not change."""

    identity: SessionIdentity
    created_at: float
    active: int = MAIN
    forks: tuple[StoredFork, ...] = ()
    window: msgspec.Raw = _ABSENT
    windows: msgspec.Raw = _ABSENT
    seal: msgspec.Raw = _ABSENT


# --- writing


def first_line(session: Session, marks: Marks) -> bytes:
    """A first line, with its newline."""
    fixed = _fixed_of(session)
    said = session.version, session.last_seq, session.updated_at
    text = _numbers(*said, marks, blake2b(fixed, digest_size=8))
    return _OPENING + _padded(text, max(_ROOM, len(text))) + b"," + fixed + b"}\n"


def written_over(
    raw: bytes,
    digest: str,
    head: Head,
    version: int,
    last_seq: int,
    updated_at: float,
    marks: Marks,
) -> bytes | None:
    """The bytes to write over the counters of a first line; `None` if they don't fit."""
    room = head.room
    _, hashed = _fixed_in(raw[PLACE + room + 1 : -1])
    text = _numbers(version, last_seq, updated_at, marks, hashed)
    if len(text) > room:
        return None
    text = _padded(text, room)
    # The next append will read it again.
    later = Head(head.fixed, version, last_seq, float(updated_at), marks, room)
    _remember(raw[:PLACE] + text + raw[PLACE + room :], digest, later)
    return text


def plain_line(session: Session) -> bytes:
    """A first line as in exports, for copies whose counters must not be interpreted."""
    return session_line(session) + b"\n"


def new_generation() -> bytes:
    """A new generation, for a file that is rewritten."""
    return urandom(4).hex().encode()


def _fixed_of(session: Session) -> bytes:
    forks = tuple(StoredFork(fork.number, fork.parent, fork.at) for fork in session.forks)
    documents = [
        _ABSENT if raw is None else msgspec.Raw(raw)
        for raw in (session.window, session.windows, session.seal)
    ]
    return dumps(_Fixed(session.identity, session.created_at, session.active, forks, *documents))[
        1:
    ]


def _numbers(version: int, last_seq: int, updated_at: float, marks: Marks, fixed: Any) -> bytes:
    at = float(updated_at)
    text = b'"version":%d,"last_seq":%d,"updated_at":%b,"chain":"f1-%d.%d.%d-%b-' % (
        version, last_seq, repr(at if isfinite(at) else 0.0).encode(),
        marks.rows, marks.written, marks.size, marks.generation,
    )  # fmt: skip
    return text + _checksum(fixed, text) + b'"'


def _padded(text: bytes, room: int) -> bytes:
    return text + b" " * (room - len(text))


def _checksum(fixed: Any, text: bytes) -> bytes:
    hashed = fixed.copy()
    hashed.update(text)
    return hashed.hexdigest().encode()  # type: ignore[no-any-return]  # a hash of hashlib's


# --- reading


_known: dict[str, tuple[bytes, Head]] = {}  # by digest: the line last read or written


def _remember(raw: bytes, digest: str, head: Head) -> None:
    if len(_known) >= _MAX_CACHED:
        _known.clear()
    _known[digest] = raw, head


def head_in(raw: bytes, digest: str) -> Head | None:
    """Parses a first line; `None` if it is unreadable, or another session's."""
    known = _known.get(digest)
    if known is not None and known[0] == raw:
        return known[1]
    found = _head_in(raw, digest)
    if found is not None:
        _remember(raw, digest, found)
    return found


def _head_in(raw: bytes, digest: str) -> Head | None:
    if not raw.startswith(_OURS):
        return _plain(raw, digest)
    end = raw.find(_FIXED, PLACE)
    found = _NUMBERS.fullmatch(raw, PLACE, end) if end > 0 else None
    if found is None:
        return None
    session, hashed = _fixed_in(raw[end + 1 : -1])
    text, version, last_seq, at, rows, written, size, generation, checksum = found.groups()
    if session is None or session.identity.digest != digest or raw[-1:] != b"}":
        return None
    if _checksum(hashed, text) != checksum:
        return None
    marks = Marks(int(rows), int(written), int(size), generation)
    return Head(session, int(version), int(last_seq), float(at), marks, end - PLACE)


@lru_cache(_MAX_CACHED)  # unchanged between appends
def _fixed_in(fixed: bytes) -> tuple[Session | None, Any]:
    """The session in the unchanging part of a first line, and its hash."""
    zeros = b'"version":0,"last_seq":0,"updated_at":0,'
    return _session_in(_OPENING + zeros + fixed + b"}"), blake2b(fixed, digest_size=8)


def _plain(raw: bytes, digest: str) -> Head | None:
    session = _session_in(raw)
    if session is None or session.identity.digest != digest:
        return None
    if (session.chain or "").startswith(_FORM):
        return None  # ours, but its layout is damaged
    return Head(session, session.version, session.last_seq, session.updated_at, None)


def _session_in(raw: bytes) -> Session | None:
    try:
        found = read_line(raw)
    except Corrupt:
        found = None
    if isinstance(found, Session):
        return found
    refuse_newer(raw)
    return None


def without_form(session: Session) -> Session:
    """The session without marks, for a copy that was taken from a file directly."""
    if (session.chain or "").startswith(_FORM):
        return msgspec.structs.replace(session, chain=None)
    return session
