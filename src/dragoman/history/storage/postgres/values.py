"""Converts values for PostgreSQL, whose text can't contain NULs or invalid UTF-8.

Such values are escaped, reversibly; everything else is stored as is, readable in psql.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any, TypeVar

from dragoman.errors import Corrupt
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.integrity import checksum_of, damaged, place_of
from dragoman.history.storage.protocol import Entry, Fork, Row, Session
from dragoman.history.storage.soundness import expect_sound, shape_of, unreadable_row
from dragoman.model.usage import Usage

A = TypeVar("A")
B = TypeVar("B")
_BINARY = "base64:"
_NO_USAGE = (None,) * 6


def text_of(name: str) -> str:
    """An id or model name, without NULs."""
    if "\0" in name or "\\" in name:
        return name.replace("\\", "\\\\").replace("\0", "\\0")
    return name


def name_of(text: str) -> str:
    """The inverse of `text_of`."""
    if "\\" not in text:
        return text
    return "\\".join(part.replace("\\0", "\0") for part in text.split("\\\\"))


def body_text(body: bytes) -> str:
    """A body as text: JSON as is, other bytes in base64."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        pass
    else:
        if "\0" not in text and not text.startswith(_BINARY):
            return text
    return _BINARY + b64encode(body).decode()


def body_bytes(text: str) -> bytes:
    """The inverse of `body_text`; raises ValueError if it was altered."""
    if text.startswith(_BINARY):
        return b64decode(text.removeprefix(_BINARY), validate=True)
    return text.encode()


def document_bytes(text: str) -> bytes:
    """Like `body_bytes` for a window or a seal; their readers detect invalid values."""
    try:
        return body_bytes(text)
    except ValueError:
        return text.encode()


def columns_of_entry(entry: Entry, chain: str = "") -> tuple[Any, ...]:
    """An entry in the order of `ENTRY`, with this `chain`."""
    used = entry.usage
    usage = _NO_USAGE if used is None else (
        used.input, used.output, used.cache_read, used.cache_write, used.thinking,
        used.reported_total,
    )  # fmt: skip
    model = None if entry.model is None else text_of(entry.model)
    proofs = (checksum_of(entry), chain)
    return (entry.at, text_of(entry.id), model, *usage, *proofs, body_text(entry.body))


def columns_of_row(row: Row) -> tuple[Any, ...]:
    """Like `columns_of_entry` for a row, with its own checksum and chain."""
    *columns, _, _, body = columns_of_entry(row)
    return (*columns, row.checksum, row.chain, body)


ENTRY = (
    "at, id, model, input, output, cache_read, cache_write, thinking, reported_total, checksum,"
    " chain, body"
)
OF_ENTRY = ", ".join(f"e.{column}" for column in ENTRY.split(", "))
ENTRY_TYPES = (
    "double precision", "text", "text", "bigint", "bigint", "bigint", "bigint", "bigint", "bigint",
    "text", "text", "text",
)  # fmt: skip
ROW = (
    "m.seq, m.branch, m.at, m.id, m.model, m.input, m.output, m.cache_read, m.cache_write,"
    " m.thinking, m.reported_total, m.checksum, m.chain, m.body"
)
SESSION = (
    's.digest, s.agent, s.chat, s."user", s."group", s.scope, s.version, s.last_seq, s.created_at,'
    ' s.updated_at, s.active, s.forks, s."window", s.windows, s.chain, s.seal'
)
_BEHIND_TALLY = " f1-"


def row_of(found: Sequence[Any]) -> Row:
    """A row from the columns of `ROW`; alterations are detectable."""
    seq, branch, at, id, model, *usage, checksum, chain, body = found
    try:
        # Without usage, all counts are NULL: totals would include any other.
        used = None if usage.count(None) == len(usage) else Usage(*usage)
        row = Row(
            name_of(id), body_bytes(body), at, maybe(name_of, model), used,
            seq=seq, branch=branch, checksum=checksum, chain=chain,
        )  # fmt: skip
    except (ValueError, TypeError, AttributeError):
        row = None
    if row is None or not isfinite(row.at):
        return unreadable_row(seq, branch, (body or "").encode(), name_of(id or ""))
    return row


def session_of(found: Sequence[Any]) -> Session:
    """A session from the columns of `SESSION`; raises `Corrupt` if it was altered."""
    digest = found[0]
    try:
        return expect_sound(*_parts(found))
    except Corrupt:
        raise
    except (ValueError, TypeError):
        problem = damaged(digest)
    raise problem


def identity_in(found: Sequence[Any]) -> SessionIdentity | None:
    """The identity in the columns of `SESSION`, whatever else is damaged; `None` if unreadable."""
    try:
        identity = SessionIdentity.from_columns(tuple(found[1:6]))
    except (ValueError, TypeError, AttributeError):
        return None
    return identity if identity.digest == found[0] else None


def _parts(found: Sequence[Any]) -> tuple[Session, str, str | None]:
    """A session as stored, its digest, and the hash of its branches."""
    digest, *names, version, last, created, updated, active, forks = found[:12]
    window, windows, proof, seal = found[12:]
    chain, shape = chain_and_shape(proof)
    session = Session(
        SessionIdentity.from_columns(tuple(names)), version, last, created, updated, active,
        tuple(Fork(*fork) for fork in forks), maybe(document_bytes, window),
        maybe(document_bytes, windows), chain, maybe(document_bytes, seal),
    )  # fmt: skip
    return session, digest, shape


def chain_and_shape(proof: str | None) -> tuple[str | None, str | None]:
    """The parts of the column `chain`: the tally, and the hash of the branches if there are any."""
    if proof is None:
        return None, None
    chain, mark, rest = proof.partition(_BEHIND_TALLY)
    return chain, (mark.strip() + rest if mark else None)


def proof_of(session: Session) -> str | None:
    """The value of the column `chain`."""
    if session.chain is None or not session.forks:
        return session.chain
    return f"{session.chain} {shape_of(session)}"


def maybe(convert: Callable[[A], B], value: A | None) -> B | None:
    """Converts a value; `None` stays `None`."""
    return None if value is None else convert(value)


def place_prefix(branch: int) -> str:
    """The part of a message's `chain` before its number."""
    return place_of(branch, 0)[:-1]
