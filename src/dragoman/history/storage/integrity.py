"""What shows that a stored session was damaged: a checksum on each row, its place, and a tally.

A row's `checksum` (`c1-<8 hex digits>`) covers its content, its `chain` (`p1-<branch>.<seq>`)
repeats its place, and a session's `chain` (`n1-<version>.<last_seq>.<rows>.<forks>`) repeats its
numbers and says how many rows it has. Every backend writes them with each change. They are no
protection from an attacker, who can write them as well: that is what encryption is for.

Rows and sessions that were stored before have none, and are read as they are. The first write
to such a session counts its rows. What begins otherwise is of a later form, and not looked at.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

import msgspec

from dragoman.errors import Corrupt

if TYPE_CHECKING:
    from dragoman.history.storage.protocol import Entry, Row, Session, Storage
    from dragoman.model.usage import Usage

_ALTERED = "the stored message is not as it was written: its checksum does not match"
_MOVED = "the stored message is not where it was written: its branch or number was altered"
_CHECKSUM, _PLACE, _NUMBERS = "c1-", "p1-", "n1-"
_PAGE = 500


def described(entry: Entry) -> bytes:
    """Everything a backend stores of a message but its place and its body, in one way only."""
    # Under encryption it is asked for of the same message three times in a row: the last answer is
    # kept. What it was made of can't change.
    id, at, model, used = entry.id, entry.at, entry.model, entry.usage
    last = _last[0]
    if last[0] is id and last[1] is at and last[2] is model and last[3] is used:
        return last[4]
    made = _described(id, at, model, used)
    _last[0] = (id, at, model, used, made)
    return made


def _described(id: str, at: float, model: str | None, used: Usage | None) -> bytes:
    # Written for speed. Between these, msgspec writes a float as `repr` does, but quicker.
    is_short = type(at) is float and 1.0 <= at < _EXPONENTS
    moment = _encoded(at) if is_short else repr(float(at)).encode()
    if model is None and used is None:
        return b"(%a, %b, None, ())" % (id, moment)
    counts = () if used is None else (
        used.input, used.output, used.cache_read, used.cache_write, used.thinking,
        used.reported_total,
    )  # fmt: skip
    return b"(%a, %b, %a, %a)" % (id, moment, model, counts)


_EXPONENTS = 1e15  # from about here on floats are written with one
_encoded = msgspec.json.Encoder().encode
_last: list[tuple[str | None, float, str | None, Usage | None, bytes]] = [
    (None, 0.0, None, None, b"")
]


def checksum_of(entry: Entry) -> str:
    """A checksum of everything a backend stores of a message but its place.

    A CRC: it is made with every row that is read, and it is about accidents.
    """
    return _CHECKSUM + crc32(entry.body, crc32(described(entry))).to_bytes(4, "big").hex()


def place_of(branch: int, seq: int) -> str:
    """A row's place, as it is repeated in its `chain`."""
    return f"{_PLACE}{branch}.{seq}"


def damage_to(row: Row, about: bytes | None = None) -> str | None:
    """What is wrong with a row, in plain words; None where nothing is.

    What it is `described` as may be given, where that is at hand.
    """
    # It is asked of every row that is read: what is mostly so is asked first, and written out.
    place, checksum = row.chain, row.checksum
    here = f"{_PLACE}{row.branch}.{row.seq}"
    if place is not None and place != here and place.startswith(_PLACE):
        return _MOVED
    if checksum is not None:
        if about is None:
            about = _described(row.id, row.at, row.model, row.usage)
        found = crc32(row.body, crc32(about)).to_bytes(4, "big").hex()
        if checksum != _CHECKSUM + found and checksum.startswith(_CHECKSUM):
            return _ALTERED
    return None


def problem_with(row: Row) -> str | None:
    """As `damage_to`, looking into the body as well; one under encryption can't be looked into."""
    from dragoman.history.records import is_sealed, message_of

    problem = damage_to(row)
    if problem is None and not is_sealed(row.body):
        try:
            message_of(row.body)
        except Corrupt as error:
            return str(error)
    return problem


def protected(row: Row) -> Row:
    """The row with a checksum: its own, however that fits, or a new one where it has none."""
    if row.checksum is not None:
        return row
    return msgspec.structs.replace(
        row, checksum=checksum_of(row), chain=place_of(row.branch, row.seq)
    )


class Tally(NamedTuple):
    """A session's numbers, written a second time, and how many rows all its branches have."""

    version: int
    last_seq: int
    rows: int
    forks: int = 0

    def __str__(self) -> str:
        return f"{_NUMBERS}{self.version}.{self.last_seq}.{self.rows}.{self.forks}"


def tally_of(session: Session) -> Tally | None:
    """What a session's `chain` says; None where it has none.

    Raises `Corrupt` where it can't be read, or the session's numbers are not those it repeats.
    """
    if session.chain is None or not session.chain.startswith(_NUMBERS):
        return None
    try:
        tally = Tally(*map(int, session.chain.removeprefix(_NUMBERS).split(".")))
    except (TypeError, ValueError):
        tally = None
    # Nothing but what was written: `int` also reads `1_0`, and a `Tally` may do without its last.
    numbers = (session.version, session.last_seq, len(session.forks))
    is_sound = tally is not None and numbers == (tally.version, tally.last_seq, tally.forks)
    if not is_sound or str(tally) != session.chain:
        raise damaged(session.identity.digest)
    return tally


def damaged(digest: str) -> Corrupt:
    """The error for a session whose numbers or names are not those that were written."""
    return Corrupt(
        f"the numbers of session {digest} are damaged; nothing was changed:"
        " `dragoman history repair` counts its messages again"
    )


def missing_rows(session: Session, found: int) -> str | None:
    """What a number of rows says of a session, in plain words; None where it is as it should be."""
    tally = tally_of(session)
    if tally is None or tally.rows == found:
        return None
    if found < tally.rows:
        return f"{tally.rows - found} of its {tally.rows} messages are missing"
    return f"it has {found - tally.rows} messages more than were written to it"


async def damage_in(storage: Storage, session: Session) -> AsyncIterator[str]:
    """What is wrong with the rows and numbers of one session; for `Storage.verify`."""
    held = 0
    for branch in (0, *(fork.number for fork in session.forks)):
        after = 0
        while rows := await storage.rows(session.identity, branch=branch, after=after, limit=_PAGE):
            for row in rows:
                problem = problem_with(row)
                if problem is not None:
                    yield f"message {row.seq}: {problem}"
            held += sum(row.seq <= session.last_seq for row in rows)
            if rows[-1].seq <= after:  # damaged: numbers in no order must not be read for ever
                yield "its messages are in no order"
                break
            after = rows[-1].seq
    problem = missing_rows(session, held)
    now = await storage.session(session.identity) if problem else None
    if problem and now is not None and now.version == session.version:  # nobody wrote meanwhile
        yield problem
