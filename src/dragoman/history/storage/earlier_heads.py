"""Heads as databases stored them until November 2026, column by column: made documents, once.

A tally repeated the counters in the column `chain`, followed by a hash of the branches if there
were any. What does not fit stays damaged: it is migrated as it is, and waits for a repair.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from hashlib import sha1
from math import isfinite
from typing import Any, NamedTuple

from dragoman.errors import Corrupt, InvalidInputError
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.heads import Head, Stored, plausible, stored_of, without_checksum
from dragoman.history.storage.integrity import Tally, tally_of
from dragoman.history.storage.protocol import MAIN, Fork, Session

_SHAPE = "f1-"


class Earlier(NamedTuple):
    """The columns of a session; a damaged one may hold anything."""

    digest: Any
    agent: Any
    chat: Any
    user: Any
    group: Any
    scope: Any
    version: Any
    last_seq: Any
    created_at: Any
    updated_at: Any
    active: Any
    window: Any
    windows: Any
    chain: Any
    seal: Any
    forks: Sequence[Sequence[Any]]
    rows: int
    """The number of its messages."""


def migrated(of: Earlier, stamp: int | None = None) -> Stored:
    """The head of a session, for its first commit; damaged if its columns are."""
    names = (of.agent, of.chat, of.user, of.group, of.scope)
    if stamp is None:
        stamp = secrets.randbits(62) + 1
    session = _session(of, names)
    if session is not None:
        return stored_of(Head(session, stamp, stamp))
    rescued = stored_of(Head(_readable(of), stamp, stamp))
    return without_checksum(rescued._replace(digest=of.digest, names=names))


def _session(of: Earlier, names: tuple[Any, ...]) -> Session | None:
    """The session, if its columns are those that were written."""
    numbers = (of.version, of.last_seq, of.active, *(each for fork in of.forks for each in fork))
    tally, _, rest = _chain(of).partition("/" if "/" in _chain(of) else " ")
    try:
        identity = SessionIdentity.from_columns(names)
        is_sound = (
            (identity.digest, identity.columns) == (of.digest, names)
            and all(map(_is_number, numbers))
            and all(_is_moment(each) for each in (of.created_at, of.updated_at))
            and all(_is_document(each) for each in (of.window, of.windows, of.seal))
            and type(of.chain) in {str, type(None)}
            and of.active in {MAIN, *(fork[0] for fork in of.forks)}
        )
        session = _made(of, identity, tally or None) if is_sound else None
        if session is None or (tally_of(session) is not None and not _is_shape(rest, session)):
            return None
    except (Corrupt, InvalidInputError, ValueError, TypeError, AttributeError):
        return None
    if session.chain is None:
        counted = Tally(session.version, session.last_seq, of.rows, len(session.forks))
        return _made(of, identity, str(counted))
    return session


def _chain(of: Earlier) -> str:
    return of.chain if type(of.chain) is str else ""


def _made(of: Earlier, identity: SessionIdentity, chain: str | None) -> Session:
    return Session(
        identity, of.version, of.last_seq, of.created_at, of.updated_at, of.active,
        tuple(Fork(*each) for each in of.forks), of.window, of.windows, chain, of.seal,
    )  # fmt: skip


def _is_shape(told: str, session: Session) -> bool:
    if not session.forks and session.active == MAIN:
        return not told
    return not told.startswith(_SHAPE) or told == _shape_of(session)


def _shape_of(session: Session) -> str:
    """A hash of a session's branches."""
    forks = sorted((fork.number, fork.parent, fork.at) for fork in session.forks)
    text = "".join(f";{number}:{parent} {at}" for number, parent, at in forks)
    hashed = sha1(f"{session.active}{text}".encode(), usedforsecurity=False)
    return _SHAPE + hashed.hexdigest()[:16]


def _readable(of: Earlier) -> Session:
    """What is readable of a damaged session."""
    forks = [Fork(*each) for each in of.forks if all(map(_is_number, each))]
    return Session(
        SessionIdentity(chat="unreadable"),
        of.version if _is_number(of.version) else 0,
        of.last_seq if _is_number(of.last_seq) else 0,
        of.created_at if _is_moment(of.created_at) else 0.0,
        of.updated_at if _is_moment(of.updated_at) else 0.0,
        of.active if _is_number(of.active) else MAIN,
        tuple(forks),
        of.window if _is_document(of.window) else None,
        of.windows if _is_document(of.windows) else None,
        None,
        of.seal if _is_document(of.seal) else None,
    )


def _is_number(value: Any) -> bool:
    return type(value) is int and value == plausible(value)


def _is_moment(value: Any) -> bool:
    return type(value) is float and isfinite(value)


def _is_document(value: Any) -> bool:
    return value is None or type(value) is bytes
