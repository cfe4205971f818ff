"""Appending: one statement, one round trip, durable when it returns.

It raises the session's numbers, which locks the session's row, and writes the messages under the
numbers it got. What is expected of the session is part of the statement; why it found nothing to
write to is only asked when it did not.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import UNSET

from dragoman.errors import Conflict, NotFound, StoreError
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.integrity import Tally, checksum_of, damaged, tally_of
from dragoman.history.storage.postgres.failures import DUPLICATE, UNKNOWN, Late, Refused
from dragoman.history.storage.postgres.values import (
    ENTRY,
    ENTRY_TYPES,
    OF_ENTRY,
    SESSION,
    body_text,
    columns_of_entry,
    maybe,
    name_of,
    place_prefix,
    session_of,
    text_of,
)
from dragoman.history.storage.protocol import (
    MAIN,
    NO_BRANCH,
    Appended,
    DuplicateIds,
    Entry,
    Seal,
    conflict,
)

if TYPE_CHECKING:
    from dragoman.history.storage.postgres.link import Link

_ROUNDS = 10
_KEY = "messages_pkey"  # a number that is taken: the session's last one was altered
_ODD = {"22P02", "22003"}  # the server can't read a number in the tally
_NUMBERS = "'n1-' || version || '.' || last_seq || '.'"
# What an older program wrote has no tally: its rows are counted. The number of branches, and what
# else is behind it, stays as it is.
_ROWS = """
(SELECT count(*) FROM our.messages m WHERE m.session = heads.id AND m.seq BETWEEN 1 AND
 heads.last_seq AND (m.branch = 0 OR m.branch = ANY (heads.forks[:][1:1])))"""
_TALLY = f"""
'n1-' || (version + 1) || '.' || (last_seq + {{n}}) || '.' || CASE WHEN starts_with(chain, 'n1-')
THEN (split_part(chain, '.', 3)::bigint + {{n}}) || '.' ||
    coalesce(nullif(split_part(chain, '.', 4), ''), '0')
ELSE ({_ROWS} + {{n}}) || '.' || coalesce(array_length(forks, 1), 0) END"""
_SOUND = f"""
CASE WHEN starts_with(chain, 'n1-') THEN starts_with(chain, {_NUMBERS}) ELSE NOT EXISTS
(SELECT 1 FROM our.messages m WHERE m.session = heads.id AND m.seq > heads.last_seq) END"""
_UPDATE = f"""
UPDATE our.heads SET version = version + 1, last_seq = last_seq + {{n}}, updated_at = %s,
chain = {_TALLY}{{seal}} WHERE digest = %s AND {_SOUND}"""
_SEAL = ", seal = %s"
_VERSION = " AND version = %s"
_BRANCH = " AND %s = ANY (forks[:][1:1])"
_CREATE = """
INSERT INTO our.heads (last_seq, updated_at, chain, seal, digest, version, created_at, agent, chat,
                       "user", "group", scope)
VALUES (%s, %s, %s, %s, %s, 1, %s, %s, %s, %s, %s, %s) ON CONFLICT (digest) DO NOTHING"""
_HEAD = f"SELECT {SESSION} FROM our.heads s WHERE digest = %s"
_STORED = """
SELECT m.seq, m.checksum, s.version, s.xmin::text = m.xmin::text
FROM our.heads s JOIN our.messages m ON m.session = s.id
WHERE s.digest = %s AND m.id = ANY (%s) ORDER BY m.seq"""
_KNOWN = """
SELECT m.id FROM our.heads s JOIN our.messages m ON m.session = s.id
WHERE s.digest = %s AND m.id = ANY (%s)"""
_IS_BEHIND = """
SELECT EXISTS (SELECT 1 FROM our.heads s JOIN our.messages m ON m.session = s.id
               WHERE s.digest = %s AND m.seq > s.last_seq)"""


class Wanted(NamedTuple):
    """What `Storage.append` was asked for."""

    identity: SessionIdentity
    entries: Sequence[Entry]
    branch: int
    expected: int | None
    seal: Seal


async def append(
    link: Link,
    identity: SessionIdentity,
    entries: Sequence[Entry],
    branch: int,
    expected: int | None,
    seal: Seal,
) -> Appended:
    """See `Storage.append`."""
    return await _append(link, Wanted(identity, entries, branch, expected, seal))


async def append_again(
    link: Link,
    identity: SessionIdentity,
    entries: Sequence[Entry],
    branch: int,
    expected: int | None,
    seal: Seal,
) -> Appended:
    """The same, where an earlier attempt may have come through."""
    wanted = Wanted(identity, entries, branch, expected, seal)
    try:
        return await _append(link, wanted)
    except Conflict as error:
        failed = error
    found = await _stored(link, wanted)
    if found is None:
        raise failed
    return found


async def _append(link: Link, wanted: Wanted) -> Appended:
    try:
        return await _appended(link, wanted)
    except (Refused, Late) as error:
        failed = error
    if isinstance(failed, Late):
        return await _after_all(link, wanted, failed)
    if failed.state == DUPLICATE and failed.constraint != _KEY:
        raise DuplicateIds(await _known(link, wanted))
    if failed.state == DUPLICATE or failed.state in _ODD:
        await _expect(link, wanted)
    raise damaged(wanted.identity.digest) if failed.state == DUPLICATE else failed


async def _appended(link: Link, wanted: Wanted) -> Appended:
    for _ in range(_ROUNDS):  # more than one only where the session is being made or deleted
        found = await _updated(link, wanted)
        if not found and wanted.branch == MAIN and not wanted.expected:
            found = await _created(link, wanted)
        if found:
            return Appended(*found[0])
        await _expect(link, wanted)
    msg = f"the session in {link.name} is deleted as often as it is made; nothing was written"
    raise StoreError(msg)


async def _updated(link: Link, wanted: Wanted) -> list[tuple[Any, ...]]:
    entries, branch, count = wanted.entries, wanted.branch, len(wanted.entries)
    seal = () if wanted.seal is UNSET else (maybe(body_text, wanted.seal),)
    # Its number of entries is part of the statement for one, and said four times for many.
    before, within = ((), ()) if count == 1 else ((count,), (count,) * 3)
    head: tuple[Any, ...] = (
        *before, entries[-1].at, *within, *seal, wanted.identity.digest,
    )  # fmt: skip
    if wanted.expected is not None:
        head = (*head, wanted.expected)
    if branch != MAIN:
        head = (*head, branch)
    template = _update(
        is_one=count == 1,
        versioned=wanted.expected is not None,
        main=branch == MAIN,
        sealed=wanted.seal is not UNSET,
    )
    return await link.fetch(template, (*head, branch, *_columns(wanted)))


async def _created(link: Link, wanted: Wanted) -> list[tuple[Any, ...]]:
    identity, entries = wanted.identity, wanted.entries
    tally = str(Tally(1, len(entries), len(entries)))
    seal = None if wanted.seal is UNSET else maybe(body_text, wanted.seal)
    times = (entries[-1].at, tally, seal, identity.digest, entries[0].at)
    template = _create(is_one=len(entries) == 1)
    return await link.fetch(
        template, (len(entries), *times, *identity.columns, MAIN, *_columns(wanted))
    )


def _columns(wanted: Wanted) -> Sequence[Any]:
    """The values of one entry, or the columns of many; the server adds their numbers."""
    chain = place_prefix(wanted.branch)
    if len(wanted.entries) == 1:
        return columns_of_entry(wanted.entries[0], chain)
    columns = zip(*(columns_of_entry(entry, chain) for entry in wanted.entries), strict=True)
    return [list(column) for column in columns]


@lru_cache
def _update(*, is_one: bool, versioned: bool, main: bool, sealed: bool) -> str:
    head = _UPDATE.format(n="1" if is_one else "%s::bigint", seal=_SEAL if sealed else "")
    return _with_messages(
        head + (_VERSION if versioned else "") + ("" if main else _BRANCH), is_one
    )


@lru_cache
def _create(*, is_one: bool) -> str:
    return _with_messages(_CREATE, is_one)


def _with_messages(head: str, is_one: bool) -> str:  # noqa: FBT001 - two private callers
    if is_one:
        kinds = zip(ENTRY.split(", "), ENTRY_TYPES, strict=True)
        values = ", ".join(
            f"%s::{kind} || s.last_seq" if column == "chain" else f"%s::{kind}"
            for column, kind in kinds
        )
        rows = f"SELECT s.id, s.last_seq, %s::integer, {values} FROM s"
    else:
        arrays = ", ".join(f"%s::{kind}[]" for kind in ENTRY_TYPES)
        seq = "(s.last_seq - count(*) OVER () + e.n)"
        values = OF_ENTRY.replace("e.chain", f"e.chain || {seq}")
        rows = (
            f"SELECT s.id, {seq}, %s::integer, {values}"
            f" FROM s, unnest({arrays}) WITH ORDINALITY AS e ({ENTRY}, n)"
        )
    return (
        f"WITH s AS ({head} RETURNING id, version, last_seq), m AS ("
        f"INSERT INTO our.messages (session, seq, branch, {ENTRY}) {rows}"
        ") SELECT version, last_seq FROM s"
    )


async def _expect(link: Link, wanted: Wanted) -> None:
    """Say why there was nothing to write to."""
    found = await link.fetch(_HEAD, (wanted.identity.digest,))
    session = session_of(found[0]) if found else None
    version = 0 if session is None else session.version
    forks = () if session is None else session.forks
    if wanted.expected is not None and version != wanted.expected:
        raise conflict(wanted.expected, version)
    if wanted.branch != MAIN and wanted.branch not in {fork.number for fork in forks}:
        raise NotFound(NO_BRANCH)
    if session is not None and tally_of(session) is None:
        [(is_behind,)] = await link.fetch(_IS_BEHIND, (wanted.identity.digest,))
        if is_behind:
            raise damaged(wanted.identity.digest)


async def _after_all(link: Link, wanted: Wanted, late: Late) -> Appended:
    """Whether a statement that was given up came through nevertheless."""
    if not link.is_idle:
        raise Late(link.name, late.seconds, UNKNOWN)
    found = await _stored(link, wanted)
    if found is None:
        raise late
    return found


async def _stored(link: Link, wanted: Wanted) -> Appended | None:
    """What an earlier attempt made, if it came through."""
    found = await link.fetch(_STORED, (wanted.identity.digest, _ids(wanted)))
    # By their content: others may have been stored before under the same ids.
    if sorted(each[1] or "" for each in found) != sorted(map(checksum_of, wanted.entries)):
        return None
    last, _, version, is_latest = found[-1]
    if wanted.expected is not None:
        return Appended(wanted.expected + 1, last)
    # Somebody wrote since: a version that is not the latest makes what builds on it a conflict.
    return Appended(version if is_latest else version - 1, last)


async def _known(link: Link, wanted: Wanted) -> list[str]:
    found = await link.fetch(_KNOWN, (wanted.identity.digest, _ids(wanted)))
    known = {name_of(id) for (id,) in found}
    return [entry.id for entry in wanted.entries if entry.id in known]


def _ids(wanted: Wanted) -> list[str]:
    return [text_of(entry.id) for entry in wanted.entries]
