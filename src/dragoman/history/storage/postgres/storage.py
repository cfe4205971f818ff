"""`PostgresStorage`: a connection pool; one statement per append, one transaction per other write.

When `append` returns, the messages are as durable as a commit on the server: with its defaults,
they survive a crash. Any number of processes and machines may use the same schema at once.

With a pooler in transaction mode (PgBouncer), `prepared=no` is needed unless it supports prepared
statements (PgBouncer 1.21 and later does, if configured). A replica can be read with a store of its
own, which writes nothing as long as only reads are requested.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from dragoman.errors import ConfigError, StoreError
from dragoman.history.identity import escaped
from dragoman.history.storage import sql
from dragoman.history.storage.heads import Stored
from dragoman.history.storage.integrity import damage_to
from dragoman.history.storage.ledger import Ledger
from dragoman.history.storage.postgres import schema, search
from dragoman.history.storage.postgres.schema import (
    BEGINNING,
    TYPES,
    name_of,
    record_of,
    row_columns,
    row_of,
    text_of,
)
from dragoman.history.storage.postgres.search import words_in
from dragoman.history.storage.postgres.settings import DUPLICATE, Refused, Settings, settings
from dragoman.history.storage.protocol import DuplicateIds, Filter, Group, Hit, Row, Total
from dragoman.history.storage.shelf import Change, Record
from dragoman.history.storage.threaded import expect_open

if TYPE_CHECKING:
    from dragoman.history.storage.postgres.connections import Connections
    from dragoman.history.storage.postgres.pool import Link


_GET = sql.with_percents(sql.GET)
_NAMED = sql.with_percents(sql.NAMED).replace("m.id = %s", "m.id = ANY (%s::text[])")
_RECORDS = (
    f"SELECT {sql.ROW} FROM our.messages m JOIN our.heads s ON s.id = m.session WHERE s.digest = %s"
)
_KEYS = {
    "session": "s.digest",
    "user": 's."user"',
    "model": "m.model",
    # An altered time may be out of range: years 1 to 9999.
    "day": "CASE WHEN m.at >= -62135596800 AND m.at < 253402300800 THEN"
    " to_char(to_timestamp(m.at) AT TIME ZONE 'UTC', 'YYYY-MM-DD') END",
}
# Numbers are given out before commits: told is what is older than all transactions in progress.
_CHANGES = """
SELECT digest, written::text FROM our.feed WHERE written >= %s::text::xid8
AND written < pg_snapshot_xmin(pg_current_snapshot())
ORDER BY feed.written, digest OFFSET %s LIMIT %s"""
_INDEXED = {"user", "chat", "group"}
_FREE_SPACE = (
    "free space in the tables' files until it is overwritten, and rows that an older transaction"
    " can still see (VACUUM FULL rewrites the files)"
)
_OUTSIDE = (
    _FREE_SPACE,
    "the server's write-ahead log and its archive",
    "lagging replicas, backups and snapshots",
)
_DELAYED = "deleted rows in the tables, because VACUUM failed: {}"


class PostgresShelf:
    """Heads and rows in the tables of a schema."""

    is_blocking = False

    def __init__(self, given: Settings) -> None:
        self.settings = given
        self._opened: Connections | None = None

    @property
    def name(self) -> str:
        """The kind of backend and its location, without user and password."""
        return self.settings.name

    async def open(self) -> None:
        """Connects, and creates or migrates schema and tables if necessary."""
        if self._opened is None:
            await self._kept(await _connections().open(self.settings))

    async def _kept(self, opened: Connections) -> None:
        if self._opened is None:
            self._opened = opened
        else:  # another task was faster
            await opened.close()

    async def close(self) -> None:
        """Close all connections."""
        opened, self._opened = self._opened, None
        if opened is not None:
            await opened.close()

    @property
    def connections(self) -> Connections:
        """The open connections."""
        return expect_open(self._opened, self.name)

    # --- one session

    async def get(self, digest: str) -> Stored | None:
        """See `Shelf.get`."""
        found = await self.connections.read(_fetched, _GET, (digest,))
        return sql.stored_of_columns(found[0]) if found else None

    async def commit(self, before: int, stored: Stored, change: Change | None) -> bool:
        """See `Shelf.commit`."""
        connections = self.connections
        if change is None or is_simple(change):
            return await connections.send(append, before, stored, change)
        return await connections.write(commit, before, stored, change)

    async def rows(
        self,
        digest: str,
        branch: int,
        after: int,
        upto: int | None,
        limit: int | None,
        newest: bool,  # noqa: FBT001 - as in `Shelf`
    ) -> list[Row]:
        """See `Shelf.rows`."""
        query, values = sql.rows_query(digest, branch, after, upto, limit, newest=newest)
        found = await self.connections.read(_fetched, sql.with_percents(query), values)
        if newest:
            found.reverse()
        return [row_of(each) for each in found]

    async def named(self, digest: str, ids: Sequence[str]) -> list[Row]:
        """See `Shelf.named`."""
        values = (digest, [text_of(id) for id in ids])
        found = await self.connections.read(_fetched, _NAMED, values)
        return [row_of(each) for each in found]

    async def count(self, digest: str, branches: Sequence[int] | None) -> int:
        """See `Shelf.count`."""
        query, values = sql.count_query(digest, branches)
        [(number,)] = await self.connections.read(_fetched, sql.with_percents(query), values)
        return int(number)

    async def records(self, digest: str) -> list[Record]:
        """See `Shelf.records`."""
        found = await self.connections.read_slowly(_fetched, _RECORDS, (digest,))
        return [record_of(each) for each in found]

    # --- many sessions

    async def heads(self, which: Filter, limit: int | None, after: str) -> list[Stored]:
        """See `Shelf.heads`."""
        clause, values = where(which)
        tail = [] if limit is None else [limit]
        found = await self.connections.read_slowly(
            _planned, sql.with_percents(sql.list_query(clause, limit)), (after, *values, *tail)
        )
        return [sql.stored_of_columns(each) for each in found]

    async def search(self, words: Sequence[str], which: Filter, limit: int) -> list[Hit]:
        """See `Searching.search`."""
        clause, values = where(which)
        # In batches, so that writers are not blocked, and only if there is something to do, so that
        # a replica can be searched.
        after: int | None = 0
        while after is not None and await self.connections.read_slowly(
            search.is_behind, clause, values, after
        ):
            after = await self.connections.write_slowly(search.catch_up, clause, values, after)
        return await self.connections.read_slowly(search.found, words, clause, values, limit)

    async def totals(self, by: Group, which: Filter) -> list[Total]:
        """See `Searching.totals`."""
        clause, values = where(which)
        query = sql.with_percents(sql.totals_query(_KEYS[by], clause, "{}::bigint"))
        found = await self.connections.read_slowly(_planned, query, values)
        if by == "model":
            found = [(key if key is None else name_of(key), *rest) for key, *rest in found]
        return sql.in_order([sql.total_of(by, each) for each in found])

    async def remove(self, which: Sequence[tuple[str, int]]) -> list[int | None]:
        """See `Shelf.remove`."""
        return await self.connections.write_slowly(remove, which)

    async def scrub(self, user: str) -> tuple[str, ...]:
        """See `Shelf.scrub`; frees the space of deleted rows."""
        await self.connections.write(_forgotten, escaped(user))
        return await self.connections.read_slowly(_vacuumed)

    async def watch(self) -> None:
        """See `Shelf.watch`."""
        await self.connections.write(schema.make_feed)

    async def changes(self, after: str, limit: int) -> tuple[Sequence[str], str]:
        """See `Shelf.changes`."""
        start, _, skip = (after or "0.0").partition(".")
        found = await self.connections.read(_fetched, _CHANGES, (start, int(skip), limit))
        if not found:
            return [], after
        last = found[-1][1]
        same = sum(written == last for _, written in found) + (int(skip) if last == start else 0)
        return [digest for digest, _ in found], f"{last}.{same}"

    async def prune(self, upto: str) -> None:
        """See `Shelf.prune`."""
        await self.connections.write(_pruned, (upto or "0").partition(".")[0])

    async def problems(self) -> list[str]:
        """Problems of the tables, and of the server's durability settings."""
        return await self.connections.read_slowly(problems)


class PostgresStorage(Ledger):
    """A backend in a PostgreSQL database, in a separate schema.

    >>> PostgresStorage("postgresql://me:secret@db.example/chats?connections=8").name
    'postgresql://db.example/chats?schema=dragoman'

    The settings may also be in the URL, next to PostgreSQL's own parameters. `timeout` is the
    maximum number of seconds for a connection attempt or a statement.
    """

    shelf: PostgresShelf

    def __init__(
        self,
        url: str,
        *,
        schema: str | None = None,
        connections: int | None = None,
        timeout: float | None = None,
        prepared: bool | None = None,
    ) -> None:
        given = settings(
            url, schema=schema, connections=connections, timeout=timeout, prepared=prepared
        )
        super().__init__(PostgresShelf(given))


def where(which: Filter) -> tuple[str, list[Any]]:
    """A filter as conditions on `s`, each with its AND, and their values."""
    clause, values = sql.conditions(which, _beginnings)
    return sql.with_percents(clause), values


def _beginnings(field: str, name: str) -> tuple[str, Sequence[Any]]:
    """Names may be too long for an index, so only their beginnings are indexed."""
    if field not in _INDEXED:
        return "", ()
    return f'AND left(s."{field}", {BEGINNING}) = ?', (name[:BEGINNING],)


async def _fetched(link: Link, statement: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
    return await link.fetch(statement, values)


async def _planned(link: Link, statement: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
    return await link.fetch(statement, values, plan=False)


async def _pruned(link: Link, upto: str) -> None:
    await link.run("DELETE FROM our.feed WHERE written < %s::text::xid8", (upto,))


async def _forgotten(link: Link, user: str) -> None:
    await link.run('DELETE FROM our.aside WHERE "user" = %s', (user,))


async def _vacuumed(link: Link) -> tuple[str, ...]:
    try:
        await link.run("VACUUM our.heads, our.messages, our.texts, our.aside")
    except StoreError as error:
        return (_DELAYED.format(error), *_OUTSIDE)
    return _OUTSIDE


def _connections() -> type[Connections]:
    try:
        from dragoman.history.storage.postgres.connections import Connections
    except ImportError:
        pass  # psycopg or its C library is missing
    else:
        return Connections
    msg = "PostgreSQL support requires another package: pip install 'dragoman[postgres]'"
    raise ConfigError(msg)


# --- writes a commit: an append as one statement and one round trip, others in a transaction


_BATCH = 1000
_MAKE = f"""
INSERT INTO our.heads ({sql.HEAD_COLUMNS}, last_seq)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT (digest) DO NOTHING RETURNING id"""
_MOVE = f"""
UPDATE our.heads SET stamp = %s, at = %s, document = %s{{}}
WHERE digest = %s AND {sql.SAME_STAMP} = %s RETURNING id"""
_LAST = ", last_seq = %s"
_LOCK = f"SELECT id FROM our.heads WHERE digest = %s AND {sql.SAME_STAMP} = %s FOR UPDATE"
_NAME = """
UPDATE our.heads SET agent = %s, chat = %s, "user" = %s, "group" = %s, scope = %s WHERE id = %s"""
_ARRAYS = ", ".join(f"%s::{kind}[]" for kind in TYPES)
_VALUES = ", ".join(f"%s::{kind}" for kind in TYPES)
_PUT = f"""
INSERT INTO our.messages (session, {sql.ROW_COLUMNS}) SELECT %s, e.* FROM unnest({_ARRAYS}) AS e"""
_GONE = (
    "DELETE FROM our.messages WHERE session = %s AND id = ANY (%s::text[]) RETURNING branch, seq"
)
_ASIDE = """
INSERT INTO our.aside SELECT s.digest, s."user", m.seq, m.branch, m.at, m.id, %s, m.body
FROM our.messages m JOIN our.heads s ON s.id = m.session
WHERE s.id = %s AND m.id = ANY (%s::text[])"""


def is_simple(change: Change) -> bool:
    """Whether a change takes one statement."""
    return not (change.drops or change.is_emptied or change.is_repair)


async def append(link: Link, before: int, stored: Stored, change: Change | None) -> bool:
    """Writes a head, and rows, in one statement."""
    rows = () if change is None else change.puts
    values = _head_values(before, stored, change)
    if len(rows) == 1:
        values += row_columns(rows[0])
    elif rows:
        values += map(list, zip(*map(row_columns, rows), strict=True))
    template = _statement(is_new=not before, has_last=change is not None, rows=min(len(rows), 2))
    try:
        return bool(await link.fetch(template, values))
    except Refused as error:
        refused = error
    raise _reason(refused)


async def commit(link: Link, before: int, stored: Stored, change: Change) -> bool:
    """Writes a head, drops rows and puts others; within the caller's transaction."""
    found = await link.fetch(
        _head(is_new=not before, has_last=True), _head_values(before, stored, change)
    )
    if not found:
        return False
    [(session,)] = found
    if change.is_emptied:
        await _empty(link, session)
    await _drop(link, session, [text_of(id) for id in change.drops])
    if change.is_repair:
        keys = [*change.aside]
        await link.run(_ASIDE, (text_of(change.reason), session, keys))
        await _drop(link, session, keys)
        await link.run(_NAME, (*stored.names, session))
        # The index may contain altered rows: the next search rebuilds it.
        await search.unindex_session(link, session)
    for batch in _batches(change.puts):
        columns = map(list, zip(*map(row_columns, batch), strict=True))
        try:
            await link.run(_PUT, (session, *columns))
        except Refused as error:
            refused = error
        else:
            continue
        raise _reason(refused)
    if change.drops:
        await search.index_anew(link, session, change.puts)
    return True


def _reason(error: Refused) -> StoreError:
    return DuplicateIds([]) if error.state == DUPLICATE else error


async def _empty(link: Link, session: int) -> int:
    await search.unindex_session(link, session)
    return await link.run("DELETE FROM our.messages WHERE session = %s", (session,))


async def _drop(link: Link, session: int, ids: list[str]) -> None:
    if ids:
        await search.unindex(link, session, await link.fetch(_GONE, (session, ids)))


async def remove(link: Link, which: Sequence[tuple[str, int]]) -> list[int | None]:
    """See `Shelf.remove`; within the caller's transaction."""
    return [await _removed(link, *each) for each in which]


async def _removed(link: Link, digest: str, stamp: int) -> int | None:
    found = await link.fetch(_LOCK, (digest, stamp))
    if not found:
        return None
    [(session,)] = found
    messages = await _empty(link, session)
    await link.run("DELETE FROM our.heads WHERE id = %s", (session,))
    return messages


def _head_values(before: int, stored: Stored, change: Change | None) -> list[Any]:
    digest, names, stamp, at, document = stored
    last = [] if change is None else [change.head.last_seq]
    if before:
        return [stamp, at, document, *last, digest, before]
    return [digest, *names, stamp, at, document, *last]


def _head(*, is_new: bool, has_last: bool) -> str:
    return _MAKE if is_new else _MOVE.format(_LAST if has_last else "")


@lru_cache
def _statement(*, is_new: bool, has_last: bool, rows: int) -> str:
    """A head and no row, one, or several."""
    head = _head(is_new=is_new, has_last=has_last)
    if not rows:
        return head
    chosen = f"{_VALUES} FROM h" if rows == 1 else f"e.* FROM h, unnest({_ARRAYS}) AS e"
    return (
        f"WITH h AS ({head}), m AS (INSERT INTO our.messages (session, {sql.ROW_COLUMNS})"
        f" SELECT h.id, {chosen}) SELECT id FROM h"
    )


def _batches(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    for start in range(0, len(rows), _BATCH):
        yield rows[start : start + _BATCH]


# --- checks the tables, and the server's durability settings. Sessions are checked by the ledger


_AT_ONCE = 200
_UNSEARCHABLE = f"""
SELECT m.session, t.words, t.at = m.at, {sql.ROW} FROM our.messages m
JOIN our.heads s ON s.id = m.session
LEFT JOIN our.texts t ON t.session = m.session AND t.branch = m.branch AND t.seq = m.seq
WHERE m.seq > 0 AND m.seq <= s.indexed AND (m.session, m.branch, m.seq) > (%s, %s, %s)
ORDER BY m.session, m.branch, m.seq LIMIT {_AT_ONCE}"""
_UNINDEXED = (
    "messages are missing in the search index or outdated, and a search may miss them ({} of"
    " them); run `dragoman history repair` to rebuild it"
)


async def problems(link: Link) -> list[str]:
    """Problems of the store as a whole."""
    found: list[str] = []
    for text, template in _CHECKS.items():
        [(number,)] = await link.fetch(template, plan=False)
        if number:
            found.append(text.format(number))
    if wrong := await _index_problems(link):
        found.append(_UNINDEXED.format(wrong))
    return found


async def _index_problems(link: Link) -> int:
    """The number of messages that the index has wrong; damaged ones are reported elsewhere."""
    wrong, session, branch, seq = 0, -1, 0, 0
    while found := await link.fetch(_UNSEARCHABLE, (session, branch, seq), plan=False):
        for number, words, is_dated, *columns in found:
            row = row_of(columns)
            session, branch, seq = number, row.branch, row.seq
            # An altered array may contain arrays.
            texts = {word for word in words or () if isinstance(word, str)}
            is_right = is_dated and words is not None and texts == words_in(row)
            wrong += not is_right and damage_to(row) is None
    return wrong


_CHECKS = {
    "the server runs with fsync off: a power cut can destroy the store": """
SELECT count(*) FROM pg_settings WHERE name = 'fsync' AND setting = 'off'""",
    "the server runs with synchronous_commit off: a crash loses the last messages": """
SELECT count(*) FROM pg_settings WHERE name = 'synchronous_commit' AND setting = 'off'""",
    "indexes are invalid ({} of them); run REINDEX on them": """
SELECT count(*) FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid WHERE NOT i.indisvalid
AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'our.texts'::regclass)""",
    sql.ORPHANED: sql.ORPHANS,
    "sessions have messages beyond their last number ({} of them)": """
SELECT count(*) FROM our.heads s WHERE s.last_seq <
(SELECT max(seq) FROM our.messages m WHERE m.session = s.id)""",
    "sessions are indexed beyond their last number ({} of them)": """
SELECT count(*) FROM our.heads s WHERE s.indexed > s.last_seq""",
    "the search index has messages that don't exist ({} of them)": """
SELECT count(*) FROM our.texts t WHERE NOT EXISTS (SELECT 1 FROM our.messages m
JOIN our.heads s ON s.id = m.session WHERE m.session = t.session AND m.branch = t.branch
AND m.seq = t.seq AND m.seq <= s.indexed)""",
}
