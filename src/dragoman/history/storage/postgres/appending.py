"""Appends messages in one statement and one round trip; durable when it returns.

The statement increments the session's counters, which locks its row, and inserts the messages with
their numbers. The preconditions are part of the statement; a second query finds out why it matched
nothing, only if it did not.
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
_KEY = "messages_pkey"  # a duplicate number: the session's last number was altered
_UNREADABLE_NUMBER = {"22P02", "22003"}  # a number in the tally is unreadable
_NUMBERS = "'n1-' || version || '.' || last_seq || '.'"
# Sessions of older versions have no tally: their rows are counted. The number of branches and what
# follows it are kept.
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
    """The arguments of `Storage.append`."""

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
    """Like `append`, for a retry whose first attempt may have succeeded."""
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
        return await _outcome_of_late(link, wanted, failed)
    if failed.state == DUPLICATE and failed.constraint != _KEY:
        raise DuplicateIds(await _known(link, wanted))
    if failed.state == DUPLICATE or failed.state in _UNREADABLE_NUMBER:
        await _expect(link, wanted)
    raise damaged(wanted.identity.digest) if failed.state == DUPLICATE else failed


async def _appended(link: Link, wanted: Wanted) -> Appended:
    for _ in range(_ROUNDS):  # more than one only if the session is concurrently created or deleted
        found = await _updated(link, wanted)
        if not found and wanted.branch == MAIN and not wanted.expected:
            found = await _created(link, wanted)
        if found:
            return Appended(*found[0])
        await _expect(link, wanted)
    msg = f"the session in {link.name} is repeatedly created and deleted; nothing was written"
    raise StoreError(msg)


async def _updated(link: Link, wanted: Wanted) -> list[tuple[Any, ...]]:
    entries, branch, count = wanted.entries, wanted.branch, len(wanted.entries)
    seal = () if wanted.seal is UNSET else (maybe(body_text, wanted.seal),)
    # For one entry the count is a literal in the statement; for many it is passed four times.
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
    """The values of one entry, or the columns of many; the server adds the numbers."""
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
    """Finds out why the statement matched nothing."""
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


async def _outcome_of_late(link: Link, wanted: Wanted, late: Late) -> Appended:
    """Finds out whether a statement that timed out was committed all the same."""
    if not link.is_idle:
        raise Late(link.name, late.seconds, UNKNOWN)
    found = await _stored(link, wanted)
    if found is None:
        raise late
    return found


async def _stored(link: Link, wanted: Wanted) -> Appended | None:
    """The result of an earlier attempt, if it succeeded."""
    found = await link.fetch(_STORED, (wanted.identity.digest, _ids(wanted)))
    # Compared by content: other messages may have been stored earlier with the same ids.
    if sorted(each[1] or "" for each in found) != sorted(map(checksum_of, wanted.entries)):
        return None
    last, _, version, is_latest = found[-1]
    if wanted.expected is not None:
        return Appended(wanted.expected + 1, last)
    # Somebody has written since: an outdated version makes writes that build on it conflict.
    return Appended(version if is_latest else version - 1, last)


async def _known(link: Link, wanted: Wanted) -> list[str]:
    found = await link.fetch(_KNOWN, (wanted.identity.digest, _ids(wanted)))
    known = {name_of(id) for (id,) in found}
    return [entry.id for entry in wanted.entries if entry.id in known]


def _ids(wanted: Wanted) -> list[str]:
    return [text_of(entry.id) for entry in wanted.entries]
