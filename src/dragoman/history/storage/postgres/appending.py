"""Appending: one statement, one round trip, durable when it returns.

It raises the session's numbers, which locks the session's row, and writes the messages under the
numbers it got. What is expected of the session is part of the statement; why it found nothing to
write to is only asked when it did not.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from dragoman.errors import Conflict, NotFound, StoreError
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.postgres.failures import DUPLICATE, UNKNOWN, Late, Refused
from dragoman.history.storage.postgres.values import (
    ENTRY,
    ENTRY_TYPES,
    OF_ENTRY,
    columns_of_entry,
    name_of,
    text_of,
)
from dragoman.history.storage.protocol import (
    MAIN,
    NO_BRANCH,
    Appended,
    DuplicateIds,
    Entry,
    conflict,
)

if TYPE_CHECKING:
    from dragoman.history.storage.postgres.link import Link

_ROUNDS = 10
_UPDATE = """
UPDATE our.heads SET version = version + 1, last_seq = last_seq + %s, updated_at = %s
WHERE digest = %s"""
_VERSION = " AND version = %s"
_BRANCH = " AND %s = ANY (forks[:][1:1])"
_CREATE = """
INSERT INTO our.heads (last_seq, updated_at, digest, version, created_at, agent, chat, "user",
                       "group", scope)
VALUES (%s, %s, %s, 1, %s, %s, %s, %s, %s, %s) ON CONFLICT (digest) DO NOTHING"""
_HEAD = "SELECT version, forks FROM our.heads WHERE digest = %s"
_STORED = """
SELECT m.seq, m.at, s.version, s.xmin::text = m.xmin::text
FROM our.heads s JOIN our.messages m ON m.session = s.id
WHERE s.digest = %s AND m.id = ANY (%s) ORDER BY m.seq"""
_KNOWN = """
SELECT m.id FROM our.heads s JOIN our.messages m ON m.session = s.id
WHERE s.digest = %s AND m.id = ANY (%s)"""


async def append(
    link: Link,
    identity: SessionIdentity,
    entries: Sequence[Entry],
    branch: int,
    expected: int | None,
) -> Appended:
    """See `Storage.append`."""
    try:
        return await _appended(link, identity, entries, branch, expected)
    except (Refused, Late) as error:
        failed = error
    if isinstance(failed, Late):
        return await _after_all(link, identity, entries, expected, failed)
    if failed.state == DUPLICATE:
        raise DuplicateIds(await _known(link, identity, entries))
    raise failed


async def append_again(
    link: Link,
    identity: SessionIdentity,
    entries: Sequence[Entry],
    branch: int,
    expected: int | None,
) -> Appended:
    """The same, where an earlier attempt may have come through."""
    try:
        return await append(link, identity, entries, branch, expected)
    except Conflict as error:
        failed = error
    found = await _stored(link, identity, entries, expected)
    if found is None:
        raise failed
    return found


async def _appended(
    link: Link,
    identity: SessionIdentity,
    entries: Sequence[Entry],
    branch: int,
    expected: int | None,
) -> Appended:
    for _ in range(_ROUNDS):  # more than one only where the session is being made or deleted
        found = await _updated(link, identity, entries, branch, expected)
        if not found and branch == MAIN and not expected:
            found = await _created(link, identity, entries)
        if found:
            return Appended(*found[0])
        await _expect(link, identity, branch, expected)
    msg = f"the session in {link.name} is deleted as often as it is made; nothing was written"
    raise StoreError(msg)


async def _updated(
    link: Link,
    identity: SessionIdentity,
    entries: Sequence[Entry],
    branch: int,
    expected: int | None,
) -> list[tuple[Any, ...]]:
    head: tuple[Any, ...] = (len(entries), entries[-1].at, identity.digest)
    if expected is not None:
        head = (*head, expected)
    if branch != MAIN:
        head = (*head, branch)
    template = _update(
        is_one=len(entries) == 1, versioned=expected is not None, main=branch == MAIN
    )
    return await link.fetch(template, (*head, branch, *_columns(entries)))


async def _created(
    link: Link, identity: SessionIdentity, entries: Sequence[Entry]
) -> list[tuple[Any, ...]]:
    head = (len(entries), entries[-1].at, identity.digest, entries[0].at, *identity.columns)
    template = _create(is_one=len(entries) == 1)
    return await link.fetch(template, (*head, MAIN, *_columns(entries)))


def _columns(entries: Sequence[Entry]) -> Sequence[Any]:
    """The values of one entry, or the columns of many."""
    if len(entries) == 1:
        return columns_of_entry(entries[0])
    return [list(column) for column in zip(*map(columns_of_entry, entries), strict=True)]


@lru_cache
def _update(*, is_one: bool, versioned: bool, main: bool) -> str:
    conditions = (_VERSION if versioned else "") + ("" if main else _BRANCH)
    return _with_messages(_UPDATE + conditions, is_one)


@lru_cache
def _create(*, is_one: bool) -> str:
    return _with_messages(_CREATE, is_one)


def _with_messages(head: str, is_one: bool) -> str:  # noqa: FBT001 - two private callers
    if is_one:
        values = ", ".join(f"%s::{kind}" for kind in ENTRY_TYPES)
        rows = f"SELECT s.id, s.last_seq, %s::integer, {values} FROM s"
    else:
        arrays = ", ".join(f"%s::{kind}[]" for kind in ENTRY_TYPES)
        rows = (
            f"SELECT s.id, s.last_seq - count(*) OVER () + e.n, %s::integer, {OF_ENTRY}"
            f" FROM s, unnest({arrays}) WITH ORDINALITY AS e ({ENTRY}, n)"
        )
    return (
        f"WITH s AS ({head} RETURNING id, version, last_seq), m AS ("
        f"INSERT INTO our.messages (session, seq, branch, {ENTRY}) {rows}"
        ") SELECT version, last_seq FROM s"
    )


async def _expect(link: Link, identity: SessionIdentity, branch: int, expected: int | None) -> None:
    """Say why there was nothing to write to."""
    found = await link.fetch(_HEAD, (identity.digest,))
    version, forks = found[0] if found else (0, [])
    if expected is not None and version != expected:
        raise conflict(expected, version)
    if branch != MAIN and branch not in {number for number, _, _ in forks}:
        raise NotFound(NO_BRANCH)


async def _after_all(
    link: Link,
    identity: SessionIdentity,
    entries: Sequence[Entry],
    expected: int | None,
    late: Late,
) -> Appended:
    """Whether a statement that was given up came through nevertheless."""
    if not link.is_idle:
        raise Late(link.name, late.seconds, UNKNOWN)
    found = await _stored(link, identity, entries, expected)
    if found is None:
        raise late
    return found


async def _stored(
    link: Link, identity: SessionIdentity, entries: Sequence[Entry], expected: int | None
) -> Appended | None:
    """What an earlier attempt made, if it came through."""
    found = await link.fetch(_STORED, (identity.digest, _ids(entries)))
    if sorted(at for _, at, _, _ in found) != sorted(entry.at for entry in entries):
        return None
    last, _, version, is_latest = found[-1]
    if expected is not None:
        return Appended(expected + 1, last)
    # Somebody wrote since: a version that is not the latest makes what builds on it a conflict.
    return Appended(version if is_latest else version - 1, last)


async def _known(link: Link, identity: SessionIdentity, entries: Sequence[Entry]) -> list[str]:
    found = {name_of(id) for (id,) in await link.fetch(_KNOWN, (identity.digest, _ids(entries)))}
    return [entry.id for entry in entries if entry.id in found]


def _ids(entries: Sequence[Entry]) -> list[str]:
    return [text_of(entry.id) for entry in entries]
