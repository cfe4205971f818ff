"""Converts heads to the fields of a hash, and rows to lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from dragoman.history.identity import FIELDS
from dragoman.history.records import parsed, row_of
from dragoman.history.storage.earlier_heads import Earlier, migrated
from dragoman.history.storage.heads import Stored
from dragoman.history.storage.integrity import place_of
from dragoman.history.storage.protocol import MAIN, Row, unreadable_row

_DIGITS = re.compile(rb"[0-9]{1,16}")
_NOBODY = (None,) * len(FIELDS)


def identity_field(names: tuple[str | None, ...]) -> bytes:
    """The stored form of names."""
    return msgspec.json.encode(names)


def names_in(field: bytes | None) -> tuple[str | None, ...]:
    """Reads names from their stored form; nobody's, if they were altered."""
    try:
        names = msgspec.json.decode(field or b"", type=tuple[str | None, ...])
    except (msgspec.DecodeError, UnicodeError):
        return _NOBODY
    return names if len(names) == len(FIELDS) else _NOBODY


def stored_of(digest: str, stamp: int, fields: Mapping[bytes, bytes]) -> Stored:
    """A head from its hash, whatever is in it."""
    names = names_in(fields.get(b"identity"))
    if b"version" in fields and b"document" not in fields:
        return migrated(_earlier(digest, names, fields), stamp)
    return Stored(digest, names, stamp, _moment(fields.get(b"at")), fields.get(b"document", b""))


def _moment(text: bytes | None) -> float:
    try:
        return float(text or b"")
    except ValueError:
        return -1.0


def _earlier(digest: str, names: tuple[str | None, ...], fields: Mapping[bytes, bytes]) -> Earlier:
    """A head of November 2026, which had a field for each counter."""
    tally, shape = _text(fields.get(b"chain")), _text(fields.get(b"shape"))
    chain = tally if shape is None or tally is None else f"{tally} {shape}"
    forks = sorted(_forks(fields), key=repr)
    return Earlier._make(
        (
            digest, *names, *(_number(fields.get(name)) for name in (b"version", b"last_seq")),
            *(_moment(fields.get(name)) for name in (b"created_at", b"updated_at")),
            _number(fields.get(b"active", b"0")), fields.get(b"window"), fields.get(b"windows"),
            chain, fields.get(b"seal"), forks, 0,
        )
    )  # fmt: skip


def _forks(fields: Mapping[bytes, bytes]) -> Iterator[list[Any]]:
    for name, value in fields.items():
        if name.startswith(b"fork:"):
            yield [_number(each) for each in (name[5:], *value.split())]


def _number(text: bytes | None) -> int | bytes | None:
    """A number; anything else stays what it is, which shows that it was altered."""
    return int(text) if text is not None and _DIGITS.fullmatch(text) else text


def _text(raw: bytes | None) -> str | None:
    return None if raw is None else raw.decode(errors="replace")


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


def record_row(field: bytes, line: bytes, claim: tuple[str, int] | None) -> Row:
    """The row of a record, by its line, or by what the id says that points to it."""
    seq = int(field) if _DIGITS.fullmatch(field) else 0
    stored = parsed(line)
    if stored is not None and stored.branch >= 0:
        return row_at(seq, stored.branch, line)
    if claim is None:
        return unreadable_row(0, MAIN, line)
    return unreadable_row(seq, claim[1], line, claim[0])
