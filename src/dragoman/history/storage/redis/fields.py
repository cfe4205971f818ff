"""Sessions as the fields of a hash, and entries as what a script makes lines of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from dragoman.errors import Corrupt
from dragoman.history.identity import SessionIdentity
from dragoman.history.records import row_line
from dragoman.history.storage.protocol import MAIN, Entry, Fork, Row, Session, placed
from dragoman.model import document

_FRONT = b'{"dragoman":%d,"kind":"Record","value":{"seq":0' % document.VERSION
_VERSION = b',"version":1,'


def halves(entry: Entry) -> tuple[str, bytes, bytes]:
    """An entry's id, and what is in its line before and behind its place in the session."""
    line = row_line(placed(entry, 0, MAIN), version=1)
    # Quotes in an id are escaped, so the first one found is the field itself.
    front, _, back = line.partition(_VERSION)
    return entry.id, front.removeprefix(_FRONT), b"," + back


def placed_rows(rows: Iterable[Row]) -> list[bytes | str]:
    """Rows as a script puts them: seq, branch, id, line."""
    return [
        value for row in rows for value in (str(row.seq), str(row.branch), row.id, row_line(row))
    ]


def identity_field(identity: SessionIdentity) -> bytes:
    """An identity as it is kept."""
    return msgspec.json.encode(identity.columns)


def identity_of(field: bytes) -> SessionIdentity:
    """The identity in a field."""
    return SessionIdentity.from_columns(tuple(msgspec.json.decode(field, type=list[str | None])))


def fields_of(session: Session, rows: Iterable[Row]) -> dict[str, bytes | str]:
    """A whole session as fields."""
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
    kept = {
        "window": session.window,
        "windows": session.windows,
        "chain": session.chain,
        "seal": session.seal,
    }
    return fields | {name: value for name, value in kept.items() if value is not None}


def session_of(fields: Mapping[bytes, bytes]) -> Session:
    """The session in a hash."""
    try:
        return Session(
            identity_of(fields[b"identity"]),
            int(fields[b"version"]),
            int(fields[b"last_seq"]),
            float(fields[b"created_at"]),
            float(fields[b"updated_at"]),
            int(fields.get(b"active", MAIN)),
            tuple(sorted(_forks(fields), key=lambda fork: fork.number)),
            fields.get(b"window"),
            fields.get(b"windows"),
            fields[b"chain"].decode() if b"chain" in fields else None,
            fields.get(b"seal"),
        )
    except (KeyError, ValueError, msgspec.DecodeError):
        problem = "a session's head in Redis can't be read; nothing was changed"
    raise Corrupt(problem)


def _forks(fields: Mapping[bytes, bytes]) -> Iterable[Fork]:
    for name, value in fields.items():
        if name.startswith(b"fork:"):
            parent, at = value.split()
            yield Fork(int(name[5:]), int(parent), int(at))
