"""Detects damage to stored sessions: a checksum and position per row, and a tally per session.

A row's `checksum` (`c1-<8 hex digits>`) covers its content, and its `chain` (`p1-<branch>.<seq>`)
repeats its position. A session's `chain` (`n1-<version>.<last_seq>.<rows>.<forks>`) repeats its
counters and holds the number of its rows. Every backend updates them with each change. They don't
protect against an attacker, who can write them too; that is what encryption is for.

Rows and sessions stored by earlier versions have none, and are read without checks. The first write
to such a session counts its rows. Values with another prefix of this form are from later versions
and ignored; values of another form are damaged.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

import msgspec

from dragoman.errors import Corrupt

if TYPE_CHECKING:
    from dragoman.history.storage.protocol import Entry, Row, Session
    from dragoman.model.usage import Usage

_ALTERED = "the stored message was altered: its checksum does not match"
_MOVED = "the stored message was moved: its branch or sequence number does not match"
_CHECKSUM, _PLACE, _NUMBERS = "c1-", "p1-", "n1-"
_FORM = re.compile(r"[a-z][0-9]+(-|$)")


def described(entry: Entry) -> bytes:
    """Everything stored about a message except position and body, in a canonical form."""
    # With encryption, it is needed three times in a row for the same message, so the last result is
    # cached. Its inputs are immutable.
    id, at, model, used = entry.id, entry.at, entry.model, entry.usage
    last = _last[0]
    if last[0] is id and last[1] is at and last[2] is model and last[3] is used:
        return last[4]
    made = _described(id, at, model, used)
    _last[0] = (id, at, model, used, made)
    return made


def _described(id: str, at: float, model: str | None, used: Usage | None) -> bytes:
    # Optimised for speed. In this range, msgspec formats floats like `repr`, but faster.
    is_short = type(at) is float and 1.0 <= at < _EXPONENTS
    moment = _encoded(at) if is_short else repr(float(at)).encode()
    if model is None and used is None:
        return b"(%a, %b, None, ())" % (id, moment)
    counts = () if used is None else (
        used.input, used.output, used.cache_read, used.cache_write, used.thinking,
        used.reported_total,
    )  # fmt: skip
    return b"(%a, %b, %a, %a)" % (id, moment, model, counts)


_EXPONENTS = 1e15  # from about here on, floats are written with an exponent
_encoded = msgspec.json.Encoder().encode
_last: list[tuple[str | None, float, str | None, Usage | None, bytes]] = [
    (None, 0.0, None, None, b"")
]


def checksum_of(entry: Entry) -> str:
    """A checksum of everything stored about a message except its position.

    A CRC, because it is computed for every row that is read, and only has to detect accidents.
    """
    return _CHECKSUM + crc32(entry.body, crc32(described(entry))).to_bytes(4, "big").hex()


def place_of(branch: int, seq: int) -> str:
    """A row's position, as repeated in its `chain`."""
    return f"{_PLACE}{branch}.{seq}"


def damage_to(row: Row, about: bytes | None = None) -> str | None:
    """What is wrong with a row, or `None`.

    `about` is the result of `described`, if already known.
    """
    # Runs for every row that is read, so the usual case comes first and is inlined.
    place, checksum = row.chain, row.checksum
    here = f"{_PLACE}{row.branch}.{row.seq}"
    if place is not None and place != here and _is_checked(place, _PLACE):
        return _MOVED
    if checksum is not None:
        if about is None:
            about = _described(row.id, row.at, row.model, row.usage)
        found = crc32(row.body, crc32(about)).to_bytes(4, "big").hex()
        if checksum != _CHECKSUM + found and _is_checked(checksum, _CHECKSUM):
            return _ALTERED
    return None


def problem_with(row: Row) -> str | None:
    """Like `damage_to`, but also checks the body, unless it is encrypted."""
    from dragoman.history.records import is_sealed, message_of

    problem = damage_to(row)
    if problem is None and not is_sealed(row.body):
        try:
            message_of(row.body)
        except Corrupt as error:
            return str(error)
    return problem


def _is_checked(proof: str, own: str) -> bool:
    """Whether a proof must match: it has our form, or none at all, not that of a later version."""
    return proof.startswith(own) or _FORM.match(proof) is None


def protected(row: Row) -> Row:
    """The row with a checksum: its own, valid or not, or a new one if it has none."""
    if row.checksum is not None:
        return row
    return msgspec.structs.replace(
        row, checksum=checksum_of(row), chain=place_of(row.branch, row.seq)
    )


class Tally(NamedTuple):
    """A second copy of a session's counters, and the number of rows of all branches."""

    version: int
    last_seq: int
    rows: int
    forks: int = 0

    def __str__(self) -> str:
        return f"{_NUMBERS}{self.version}.{self.last_seq}.{self.rows}.{self.forks}"


def tally_of(session: Session) -> Tally | None:
    """Parses a session's `chain`; `None` if it has none.

    Raises `Corrupt` if it can't be parsed or does not match the session's counters.
    """
    if session.chain is None or not _is_checked(session.chain, _NUMBERS):
        return None
    try:
        tally = Tally(*map(int, session.chain.removeprefix(_NUMBERS).split(".")))
    except (TypeError, ValueError):
        tally = None
    # Compare the text too: `int` also accepts `1_0`, and the last number of a `Tally` is optional.
    numbers = (session.version, session.last_seq, len(session.forks))
    is_sound = tally is not None and numbers == (tally.version, tally.last_seq, tally.forks)
    if not is_sound or str(tally) != session.chain:
        raise damaged(session.identity.digest)
    return tally


def is_damaged(session: Session) -> bool:
    """Whether a listed session has damaged counters."""
    try:
        tally_of(session)
    except Corrupt:
        return True
    return False


def damaged(digest: str) -> Corrupt:
    """The error for a session whose counters or names are not those that were written."""
    return Corrupt(
        f"the counters of session {digest} are damaged; nothing was changed. Run"
        " `dragoman history repair` to recount its messages"
    )


def missing_rows(session: Session, found: int) -> str | None:
    """Compares the number of rows with the session's tally; `None` if they match."""
    tally = tally_of(session)
    if tally is None or tally.rows == found:
        return None
    if found < tally.rows:
        return f"{tally.rows - found} of its {tally.rows} messages are missing"
    return f"it has {found - tally.rows} messages more than were written to it"
