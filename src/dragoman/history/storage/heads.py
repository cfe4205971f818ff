"""Heads: a session without its messages, as the one document that a shelf keeps of it.

A document is msgpack behind a checksum, which covers the session's names too: a head is what was
written, or damaged. The names and the time of the last write stand beside it for queries, and the
stamp for comparing.
"""

from __future__ import annotations

from math import isfinite
from typing import NamedTuple
from zlib import crc32

import msgspec

from dragoman.errors import Corrupt, InvalidInputError
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.integrity import damaged
from dragoman.history.storage.protocol import Fork, Session

_CHECKSUM = 4  # bytes
_HIGHEST = 1 << 53  # larger numbers can't be ours
_NO_TALLY = "n1-"  # never valid: `tally_of` raises


class Stored(NamedTuple):
    """A head as a shelf keeps it."""

    digest: str
    names: tuple[str | None, ...]
    """As `SessionIdentity.columns`."""
    stamp: int
    """Unique to the commit that wrote it; never 0."""
    at: float
    """When it was last written to."""
    document: bytes


class Lease(NamedTuple):
    """Who may write. Without times, because clocks differ and jump."""

    owner: str
    number: int
    """Grows with every owner."""
    seconds: float
    beat: int = 0


class Head(NamedTuple):
    """A session, and what the ledger keeps beside it."""

    session: Session
    stamp: int
    born: int
    """The stamp of the commit that created the session: tells it from another of the same name."""
    recent: tuple[int, ...] = ()
    """The latest commit of each of the last writers; settles what became of a lost reply."""
    lease: Lease | None = None


class _Document(msgspec.Struct, array_like=True, gc=False):
    stamp: int
    at: float
    version: int
    last_seq: int
    created_at: float
    active: int
    forks: list[tuple[int, int, int]]
    window: bytes | None
    windows: bytes | None
    chain: str | None
    seal: bytes | None
    born: int
    recent: list[int]
    lease: tuple[str, int, float, int] | None


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Document).decode


def stored_of(head: Head) -> Stored:
    """A head as it is stored."""
    of, stamp, born, recent, lease = head
    identity, at = of.identity, float(of.updated_at)
    forks = [(fork.number, fork.parent, fork.at) for fork in of.forks] if of.forks else ()
    raw = _encode(
        (
            stamp, at, of.version, of.last_seq, float(of.created_at), of.active, forks, of.window,
            of.windows, of.chain, of.seal, born, recent, lease,
        )
    )  # fmt: skip
    return Stored(identity.digest, identity.columns, stamp, at, _checked(identity, raw))


def _checked(identity: SessionIdentity, raw: bytes) -> bytes:
    return crc32(raw, crc32(identity.key.encode())).to_bytes(_CHECKSUM, "big") + raw


def without_checksum(stored: Stored) -> Stored:
    """A head that stays unreadable until it is repaired: what it says may be wrong."""
    document = stored.document
    inverted = bytes(each ^ 0xFF for each in document[:_CHECKSUM])
    return stored._replace(document=inverted + document[_CHECKSUM:])


def head_of(stored: Stored, identity: SessionIdentity | None = None) -> Head:
    """The head in a document; raises `Corrupt` unless it is what was written.

    With the session's `identity`, which need not be made from the names then.
    """
    digest, names, stamp, at, document = stored
    if identity is None:
        identity = identity_of(stored)
    if identity is None or identity.columns != names or type(document) is not bytes:
        raise damaged(digest)
    raw = document[_CHECKSUM:]
    of = _decode(raw) if document == _checked(identity, raw) else None
    if of is None or of.stamp != stamp or of.at != at:
        raise damaged(digest)
    return _head(of, identity, at)


def _head(of: _Document, identity: SessionIdentity, at: float) -> Head:
    return Head(
        Session(
            identity, of.version, of.last_seq, of.created_at, at, of.active,
            tuple([Fork(*each) for each in of.forks]), of.window, of.windows, of.chain, of.seal,
        ),
        of.stamp,
        of.born,
        tuple(of.recent),
        None if of.lease is None else Lease(*of.lease),
    )  # fmt: skip


def identity_of(stored: Stored) -> SessionIdentity | None:
    """Whose head it is; `None` if its names were altered."""
    try:
        identity = SessionIdentity.from_columns(stored.names)
    except (InvalidInputError, ValueError, TypeError, AttributeError):
        return None
    return identity if identity.digest == stored.digest else None


def readable_in(stored: Stored, identity: SessionIdentity) -> Head:
    """What is plausible in a damaged document: for a repair, which compares it with the rows."""
    try:
        of = _decode(stored.document[_CHECKSUM:])
    except (msgspec.DecodeError, UnicodeError, TypeError, ValueError):
        of = None
    if of is None:
        return Head(Session(identity, 0, 0, 0.0, 0.0), 0, 0)
    head = _head(of, identity, 0.0)
    told = [int(each) for each in (of.chain or "").split(".")[1:2] if each.isdecimal()]
    session = msgspec.structs.replace(
        head.session,
        version=plausible(of.version),
        last_seq=min(filter(None, map(plausible, [of.last_seq, *told])), default=0),
        created_at=of.created_at if isfinite(of.created_at) else 0.0,
        updated_at=of.at if isfinite(of.at) else 0.0,
    )
    return head._replace(session=session)


def plausible(number: int) -> int:
    """A number that may be ours, or 0."""
    return number if 0 <= number < _HIGHEST else 0


def listed(stored: Stored) -> Session | None:
    """A session in a list. A damaged one is marked; `None` if nobody knows whose it is."""
    try:
        return head_of(stored).session
    except Corrupt:
        identity = identity_of(stored)
    if identity is None:
        return None  # `verify` reports it
    return Session(identity, 0, 0, 0.0, 0.0, chain=_NO_TALLY)
