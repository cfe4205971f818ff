"""Converts sessions to the fields of a hash, and entries to the arguments of scripts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from dragoman.history.identity import SessionIdentity
from dragoman.history.records import row_line, row_of
from dragoman.history.storage.integrity import Tally, damaged, place_of
from dragoman.history.storage.lines import parsed
from dragoman.history.storage.protocol import MAIN, Entry, Fork, Row, Session, placed
from dragoman.history.storage.soundness import (
    expect_sound,
    shape_of,
    unreadable_row,
)
from dragoman.model import document

_FRONT = b'{"dragoman":%d,"kind":"Record","value":{"seq":0' % document.VERSION
_VERSION = b',"version":1,'
_NO_PLACE = place_of(MAIN, 0).encode()
_DIGITS = re.compile(rb"[0-9]{1,16}")


def halves(entry: Entry) -> tuple[str, bytes, bytes, bytes]:
    """An entry's id, and the parts of its line before, between and after its position."""
    row = placed(entry, 0, MAIN)
    line = row_line(row, version=1)
    # Quotes in an id are escaped, so the first one found is the field itself.
    front, _, rest = line.partition(_VERSION)
    # The checksum covers everything that might look like it.
    before = b'"checksum":"%s","chain":"' % (row.checksum or "").encode()
    middle, _, back = rest.partition(before + _NO_PLACE)
    place = before + _NO_PLACE[: -len("0.0")]
    return entry.id, front.removeprefix(_FRONT), b"," + middle + place, back


def placed_rows(rows: Iterable[Row]) -> list[bytes | str]:
    """Rows as script arguments: seq, branch, id, line."""
    return [
        value for row in rows for value in (str(row.seq), str(row.branch), row.id, row_line(row))
    ]


def identity_field(identity: SessionIdentity) -> bytes:
    """The stored form of an identity."""
    return msgspec.json.encode(identity.columns)


def identity_of(field: bytes) -> SessionIdentity:
    """Reads an identity from its stored form."""
    return SessionIdentity.from_columns(tuple(msgspec.json.decode(field, type=list[str | None])))


def fields_of(session: Session, rows: Sequence[Row]) -> dict[str, bytes | str]:
    """A whole session as fields."""
    if session.chain is None:
        tally = Tally(session.version, session.last_seq, len(rows), len(session.forks))
        session = msgspec.structs.replace(session, chain=str(tally))
    forks = {f"fork:{fork.number}": f"{fork.parent} {fork.at}" for fork in session.forks}
    strays = {f"stray:{row.branch}": "" for row in rows if row.branch != MAIN}
    fields: dict[str, bytes | str] = {
        "identity": identity_field(session.identity),
        "version": str(session.version),
        "last_seq": str(session.last_seq),
        "created_at": repr(session.created_at),
        "updated_at": repr(session.updated_at),
        "active": str(session.active),
        "forks": str(max((fork.number for fork in session.forks), default=MAIN)),
        **strays,
        **forks,
    }
    if session.forks:
        fields["shape"] = shape_of(session)
    kept = {
        "window": session.window,
        "windows": session.windows,
        "chain": session.chain,
        "seal": session.seal,
    }
    return fields | {name: value for name, value in kept.items() if value is not None}


def identity_in(fields: Mapping[bytes, bytes], digest: str) -> SessionIdentity | None:
    """The identity in a hash, whatever else is damaged; `None` if unreadable."""
    try:
        identity = identity_of(fields[b"identity"])
    except (KeyError, ValueError, TypeError, AttributeError, msgspec.DecodeError):
        return None
    return identity if identity.digest == digest else None


def session_of(fields: Mapping[bytes, bytes], digest: str) -> Session:
    """The session in a hash; raises `Corrupt` if it was altered."""
    try:
        session = Session(
            identity_of(fields[b"identity"]),
            _whole(fields[b"version"]),
            _whole(fields[b"last_seq"]),
            float(fields[b"created_at"]),
            float(fields[b"updated_at"]),
            _whole(fields.get(b"active", b"0")),
            tuple(sorted(_forks(fields), key=lambda fork: fork.number)),
            fields.get(b"window"),
            fields.get(b"windows"),
            fields[b"chain"].decode() if b"chain" in fields else None,
            fields.get(b"seal"),
        )
        shape = fields[b"shape"].decode() if b"shape" in fields else None
    except (KeyError, ValueError, TypeError, msgspec.DecodeError):
        problem = damaged(digest)
    else:
        return expect_sound(session, digest, shape)
    raise problem


def _forks(fields: Mapping[bytes, bytes]) -> Iterable[Fork]:
    for name, value in fields.items():
        if name.startswith(b"fork:"):
            parent, at = value.split()
            yield Fork(_whole(name[5:]), _whole(parent), _whole(at))


def _whole(text: bytes) -> int:
    if not _DIGITS.fullmatch(text):
        raise ValueError
    return int(text)


def place_in(text: bytes) -> tuple[int, int] | None:
    """The number and branch that an id points to; `None` if that was altered."""
    seq, _, branch = text.partition(b" ")
    if not (_DIGITS.fullmatch(seq) and _DIGITS.fullmatch(branch)):
        return None
    return int(seq), int(branch)


def row_at(seq: int, branch: int, line: bytes, id: str | None = None) -> Row:
    """The row in a line found at a position; inconsistencies are detectable."""
    stored = parsed(line) if line else None
    if stored is None or (id is not None and stored.id != id):
        return unreadable_row(seq, branch, line, id or "")
    row = row_of(stored)
    if row.seq == seq and row.branch == branch:
        return row
    moved = place_of(row.branch, row.seq)
    if row.chain == place_of(branch, seq):  # the number next to it was altered
        return unreadable_row(seq, branch, row.body, row.id)
    return msgspec.structs.replace(row, seq=seq, branch=branch, chain=row.chain or moved)
