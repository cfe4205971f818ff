"""Converts heads to the fields of a hash, and rows to lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from dragoman.errors import InvalidInputError
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


# --- the names of keys. Of a session's names, only the digest is part of one


_COMMITTED = 7
_NO_TAGS = ("",)
_TAGS = tuple(f"{number:02x}" for number in range(256))
_PREFIX = re.compile(r"[A-Za-z0-9_.:-]{1,100}")


class Keys:
    """The keys of a store.

    In a cluster, the keys of a script must be in one slot. There the braces hold the first two
    digits of the digest, and each of these tags has a list of sessions, a feed, and so on: sorted
    by their tags, the lists are one list in order.
    """

    def __init__(self, prefix: str) -> None:
        if not _PREFIX.fullmatch(prefix):
            msg = "a key prefix must be up to 100 ASCII letters, digits, '_', '-', '.' and ':'"
            raise InvalidInputError(msg)
        self._prefix = prefix
        self._last: tuple[str, list[str]] = "", []  # most calls are about the same session again
        self.is_cluster = False

    @property
    def tags(self) -> Sequence[str]:
        """The tags of all lists: a single empty one outside a cluster."""
        return _TAGS if self.is_cluster else _NO_TAGS

    def tag_of(self, digest: str) -> str:
        """The tag of a session's lists."""
        return digest[:2] if self.is_cluster else ""

    def shared(self, what: str, tag: str) -> str:
        """A key that sessions share: `sessions`, `asides`, `feed` or `feed:last`."""
        return f"{self._prefix}:{{{tag}}}:{what}" if tag else f"{self._prefix}:{what}"

    def of(self, digest: str, what: str) -> str:
        """One key of a session; the braces put all of them into one slot."""
        if self.is_cluster:
            return f"{self._prefix}:{{{digest[:2]}}}:{digest}:{what}"
        return f"{self._prefix}:{{{digest}}}:{what}"

    def written(self, digest: str) -> list[str]:
        """The keys for a script: those of a session, and those that it shares."""
        if digest == self._last[0]:
            return self._last[1]
        tag = self.tag_of(digest)
        own = [self.of(digest, what) for what in ("session", "records", "ids")]
        shared = [self.shared(what, tag) for what in ("sessions", "feed", "feed:last")]
        later = [self.of(digest, what) for what in ("done", "head", "rows", "aside")]
        keys = [*own, *shared, *later, self.shared("asides", tag)]
        self._last = digest, keys
        return keys

    def committed(self, digest: str) -> list[str]:
        """The first of these, for a commit."""
        return self.written(digest)[:_COMMITTED]

    def heads(self) -> str:
        """A pattern that matches all heads."""
        return (
            f"{self._prefix}:{{??}}:*:session"
            if self.is_cluster
            else f"{self._prefix}:{{*}}:session"
        )

    def digest_of(self, head: str) -> str:
        """The digest in the name of a head."""
        tagged = head[len(self._prefix) + 2 :]
        return tagged.split(":")[1] if self.is_cluster else tagged.partition("}")[0]
