"""The lines of a file: its first, those of one write, and what was set aside."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from dragoman.errors import Corrupt, InvalidInputError
from dragoman.history.identity import SessionIdentity
from dragoman.history.records import read_line, row_line
from dragoman.history.storage.lines import refuse_newer
from dragoman.history.storage.protocol import Entry, Row, Session, placed
from dragoman.model import document
from dragoman.model.jsontext import dumps, loads


class Aside(msgspec.Struct, forbid_unknown_fields=True):
    """Bytes that could not stay in a file, with where they were and why they went."""

    identity: SessionIdentity
    at: float
    offset: int
    reason: str
    raw: bytes

    def __repr__(self) -> str:
        return f"Aside({self.reason!r}, {len(self.raw)} bytes)"


document.register("Aside", Aside)


def session_of(line: bytes) -> Session | None:
    """The session in a first line; None where it can't be read."""
    try:
        found = read_line(line)
    except Corrupt:
        found = None
    if isinstance(found, Session):
        return found
    refuse_newer(line)
    return None


def batch(entries: Sequence[Entry], seq: int, branch: int, version: int) -> list[bytes]:
    """The lines of one write, with their ends; each says how many are still to come."""
    last = len(entries) - 1
    return [
        line_of(placed(entry, seq + n, branch), version=version, more=last - n)
        for n, entry in enumerate(entries)
    ]


def line_of(row: Row, *, version: int = 0, more: int = 0) -> bytes:
    """A row as a line, with its end."""
    if b"\n" in row.body:
        row = msgspec.structs.replace(row, body=_on_one_line(row.body))
    return row_line(row, version=version, more=more) + b"\n"


def _on_one_line(body: bytes) -> bytes:
    try:
        return dumps(loads(body))
    except InvalidInputError:
        # Damaged elsewhere, and copied here: still no message, and still all there.
        return msgspec.json.encode(body.decode(errors="backslashreplace"))


def aside_line(aside: Aside) -> bytes:
    """What was set aside, as a line with its end."""
    return document.write("Aside", aside) + b"\n"


def aside_of(line: bytes) -> Aside | None:
    """What a line holds that was set aside; None where it can't be read."""
    try:
        found = document.read(line, "Aside")
    except ValueError:
        return None
    return found if isinstance(found, Aside) else None
