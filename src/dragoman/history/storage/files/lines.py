"""The lines of a file's rows, and of records set aside.

In a file, a row's `chain` has the form `f1-<session>.<branch>.<seq>.<version>.<more>`, with the
first eight digits of the session's digest, so that moved lines and lines of other sessions are
detected. The last row of a write carries the session's seal after it, in base64: both are written
or neither is.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from collections.abc import Sequence

import msgspec
from msgspec import UNSET

from dragoman.errors import InvalidInputError
from dragoman.history.identity import SessionIdentity
from dragoman.history.records import StoredRow, row_line
from dragoman.history.storage.integrity import checksum_of, damage_to, place_of
from dragoman.history.storage.lines import parsed
from dragoman.history.storage.protocol import Entry, Row, Seal
from dragoman.model import document
from dragoman.model.jsontext import dumps, loads

_FORM = "f1-"


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


# --- rows


def batch(
    entries: Sequence[Entry],
    seq: int,
    branch: int,
    version: int,
    digest: str,
    seal: Seal = UNSET,
) -> tuple[list[bytes], StoredRow]:
    """The lines of one write, with their newlines, and the last row.

    Each line records how many are still to come.
    """
    mark, last = mark_of(digest), len(entries) - 1
    rows: list[StoredRow] = []
    for number, entry in enumerate(entries):
        more = last - number
        chain = f"{mark}{branch}.{seq + number}.{version}.{more}"
        if seal is not UNSET and not more:
            chain = f"{chain}-{urlsafe_b64encode(seal or b'').decode()}"
        if b"\n" in entry.body:
            entry = msgspec.structs.replace(entry, body=_on_one_line(entry))  # noqa: PLW2901
        rows.append(StoredRow(
            seq=seq + number, id=entry.id, at=entry.at, branch=branch, version=version, more=more,
            model=entry.model, usage=entry.usage, checksum=checksum_of(entry), chain=chain,
            message=msgspec.Raw(entry.body),
        ))  # fmt: skip
    return [document.write("Record", row) + b"\n" for row in rows], rows[-1]


def line_of(row: Row, digest: str) -> bytes:
    """A row as a line with its newline, for a file that is rewritten."""
    if row.chain == place_of(row.branch, row.seq):
        chain = f"{mark_of(digest)}{row.branch}.{row.seq}.0.0"
        row = msgspec.structs.replace(row, chain=chain)
    if b"\n" in row.body:
        changed = msgspec.structs.replace(row, body=_on_one_line(row))
        if (row.checksum or "").startswith("c1-") and damage_to(row) is None:
            changed = msgspec.structs.replace(changed, checksum=checksum_of(changed))
        row = changed
    return row_line(row) + b"\n"


def mark_of(digest: str) -> str:
    """The prefix of the chains of a session's rows, in its file."""
    return f"{_FORM}{digest[:8]}."


def row_in(raw: bytes, mark: str) -> StoredRow | None:
    """The row in a line; `None` if it is unreadable, or not where it was written."""
    row = parsed(raw)
    if row is None or row.chain is None:
        return row
    chain = f"{mark}{row.branch}.{row.seq}.{row.version}.{row.more}"
    if row.chain == chain or row.chain.startswith(f"{chain}-"):
        return row
    if row.chain.startswith((_FORM, "p1-")) and row.chain != place_of(row.branch, row.seq):
        return None
    return row


def row_of(stored: StoredRow) -> Row:
    """Converts a stored row to a `Row`."""
    chain = stored.chain
    if chain is not None and chain.startswith(_FORM):
        chain = place_of(stored.branch, stored.seq)
    return Row(
        stored.id, bytes(stored.message), stored.at, stored.model, stored.usage,
        seq=stored.seq, branch=stored.branch, checksum=stored.checksum, chain=chain,
    )  # fmt: skip


def seal_in(row: StoredRow) -> Seal:
    """The seal that was written with a row; UNSET if there was none."""
    chain = row.chain or ""
    if not chain.startswith(_FORM):
        return UNSET
    _, mark, coded = chain[len(_FORM) :].partition("-")
    if not mark:
        return UNSET
    try:
        return urlsafe_b64decode(coded) or None
    except (Error, ValueError):
        return None  # the reader of the seal will notice


def _on_one_line(entry: Entry) -> bytes:
    """A body without newlines."""
    try:
        return dumps(loads(entry.body))
    except InvalidInputError:
        # Damaged elsewhere and copied here: still not a message, but nothing is lost.
        return msgspec.json.encode(entry.body.decode(errors="backslashreplace"))


# --- records set aside


def aside_line(aside: Aside) -> bytes:
    """A record set aside, as a line with its newline."""
    return document.write("Aside", aside) + b"\n"


def aside_of(line: bytes) -> Aside | None:
    """The record set aside in a line; `None` if unreadable."""
    try:
        found = document.read(line, "Aside")
    except ValueError:
        return None
    return found if isinstance(found, Aside) else None
