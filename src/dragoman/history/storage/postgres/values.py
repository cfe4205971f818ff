"""Texts that PostgreSQL can hold: it takes any but those with a NUL, and bytes that are no text.

What it can't take is escaped, reversibly; everything else is stored as it is, to be read in psql.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.protocol import Entry, Fork, Row, Session
from dragoman.model.usage import Usage

A = TypeVar("A")
B = TypeVar("B")
_BINARY = "base64:"
_NO_USAGE = (None,) * 6


def text_of(name: str) -> str:
    """An id or a model's name, without NULs."""
    if "\0" in name or "\\" in name:
        return name.replace("\\", "\\\\").replace("\0", "\\0")
    return name


def name_of(text: str) -> str:
    """The name that was made a text."""
    if "\\" not in text:
        return text
    return "\\".join(part.replace("\\0", "\0") for part in text.split("\\\\"))


def body_text(body: bytes) -> str:
    """A body as text: JSON as it is, anything that is no text in base64."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        pass
    else:
        if "\0" not in text and not text.startswith(_BINARY):
            return text
    return _BINARY + b64encode(body).decode()


def body_bytes(text: str) -> bytes:
    """The body that was made a text."""
    if text.startswith(_BINARY):
        return b64decode(text.removeprefix(_BINARY))
    return text.encode()


def columns_of_entry(entry: Entry) -> tuple[Any, ...]:
    """An entry in the order of `ENTRY`."""
    used = entry.usage
    usage = _NO_USAGE if used is None else (
        used.input, used.output, used.cache_read, used.cache_write, used.thinking,
        used.reported_total,
    )  # fmt: skip
    model = None if entry.model is None else text_of(entry.model)
    proofs = (entry.checksum, entry.chain) if isinstance(entry, Row) else (None, None)
    return (entry.at, text_of(entry.id), model, *usage, *proofs, body_text(entry.body))


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
    's.agent, s.chat, s."user", s."group", s.scope, s.version, s.last_seq, s.created_at,'
    ' s.updated_at, s.active, s.forks, s."window", s.windows, s.chain, s.seal'
)


def row_of(found: Sequence[Any]) -> Row:
    """A row from the columns of `ROW`."""
    seq, branch, at, id, model, *usage, checksum, chain, body = found
    used = None if usage[0] is None else Usage(*usage)
    model = None if model is None else name_of(model)
    return Row(
        name_of(id), body_bytes(body), at, model, used,
        seq=seq, branch=branch, checksum=checksum, chain=chain,
    )  # fmt: skip


def session_of(found: Sequence[Any]) -> Session:
    """A session from the columns of `SESSION`."""
    *columns, version, last, created, updated, active, forks, window, windows, chain, seal = found
    return Session(
        SessionIdentity.from_columns(tuple(columns)), version, last, created, updated, active,
        tuple(Fork(*fork) for fork in forks), maybe(body_bytes, window),
        maybe(body_bytes, windows), chain, maybe(body_bytes, seal),
    )  # fmt: skip


def maybe(convert: Callable[[A], B], value: A | None) -> B | None:
    """The value in its other form; None stays None."""
    return None if value is None else convert(value)
