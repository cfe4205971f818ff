"""Converts values for PostgreSQL, whose text can't contain NULs or invalid UTF-8.

Such values are escaped, reversibly; everything else is stored as is, readable in psql.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Sequence
from math import isfinite
from typing import Any

from dragoman.history.storage import sql
from dragoman.history.storage.protocol import Row
from dragoman.history.storage.shelf import Record
from dragoman.model.usage import Usage

_BINARY = "base64:"


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


TYPES = (
    "bigint", "integer", "text", "double precision", "text", *["bigint"] * 6, "text", "text",
    "text",
)  # fmt: skip
"""The types of the columns of a row."""


def row_columns(row: Row) -> tuple[Any, ...]:
    """The columns of a row, in the order of `sql.ROW_COLUMNS`."""
    model = None if row.model is None else text_of(row.model)
    return (
        row.seq, row.branch, text_of(row.id), row.at, model, *sql.usage_columns(row), row.checksum,
        row.chain, body_text(row.body),
    )  # fmt: skip


def row_of(found: Sequence[Any]) -> Row:
    """A row from the columns of `sql.ROW`; alterations are detectable."""
    # Inlined for speed, as `sql.row_of`.
    seq, branch, id, at, model, used, out, read, write, thought, total, checksum, chain, body = (
        found
    )
    try:
        is_absent = used is out is read is write is thought is total is None
        usage = None if is_absent else Usage(used, out, read, write, thought, total)
        raw = body_bytes(body)
    except (ValueError, TypeError):
        return sql.salvaged_row(seq, branch, name_of(id), body.encode())
    if "\\" in id:
        id = name_of(id)
    if model is not None:
        model = name_of(model)
    if not isfinite(at):
        return sql.salvaged_row(seq, branch, id, raw)
    return Row(id, raw, at, model, usage, seq=seq, branch=branch, checksum=checksum, chain=chain)


def record_of(found: Sequence[Any]) -> Record:
    """A record from the columns of `sql.ROW`; its key is its id as stored."""
    return Record(found[2], row_of(found))
