"""`MariaDBStorage`: sessions in a MariaDB or MySQL database; a commit is one transaction.

Ids and models are stored as bytes: collations ignore spaces at the end, or the case.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from importlib.util import find_spec
from ssl import create_default_context
from typing import Any, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

from dragoman.errors import ConfigError, InvalidInputError, StoreError
from dragoman.history.identity import escaped
from dragoman.history.storage import sql
from dragoman.history.storage.heads import Stored
from dragoman.history.storage.ledger import Ledger
from dragoman.history.storage.protocol import DuplicateIds, Filter, Row
from dragoman.history.storage.shelf import Change, LostReply, Record
from dragoman.history.storage.threaded import expect_open

T = TypeVar("T")
_NAME = "LONGTEXT CHARACTER SET ascii COLLATE ascii_bin"
_TABLES = f"""
CREATE TABLE IF NOT EXISTS our.heads (id BIGINT PRIMARY KEY AUTO_INCREMENT,
    digest CHAR(40) CHARACTER SET ascii COLLATE ascii_bin NOT NULL UNIQUE,
    agent {_NAME}, chat {_NAME}, "user" {_NAME}, "group" {_NAME}, scope {_NAME},
    stamp BIGINT NOT NULL, at DOUBLE NOT NULL, document LONGBLOB NOT NULL,
    KEY by_user ("user"(200)));
CREATE TABLE IF NOT EXISTS our.messages (session BIGINT NOT NULL, seq BIGINT NOT NULL,
    branch INT NOT NULL, id VARBINARY(3000) NOT NULL, at DOUBLE NOT NULL, model LONGBLOB,
    input BIGINT, output BIGINT, cache_read BIGINT, cache_write BIGINT, thinking BIGINT,
    reported_total BIGINT, checksum LONGTEXT, chain LONGTEXT, body LONGBLOB NOT NULL,
    PRIMARY KEY (session, seq, branch), UNIQUE KEY by_id (session, id));
CREATE TABLE IF NOT EXISTS our.aside (digest CHAR(40), "user" {_NAME}, seq BIGINT, branch INT,
    id VARBINARY(3000), at DOUBLE, reason LONGTEXT, body LONGBLOB, KEY by_user ("user"(200)))"""
_FEED = (
    "CREATE TABLE IF NOT EXISTS our.feed (number BIGINT PRIMARY KEY, digest CHAR(40) NOT NULL)",
    "CREATE TABLE IF NOT EXISTS our.feed_turn (one INT PRIMARY KEY, last BIGINT NOT NULL)",
    "INSERT IGNORE INTO our.feed_turn VALUES (1, 0)",
    # Who writes has the only row of `feed_turn` until the commit: so numbers are in that order.
    *(
        f"""CREATE TRIGGER IF NOT EXISTS our.feed_{event} AFTER {event} ON our.heads FOR EACH ROW
        BEGIN UPDATE our.feed_turn SET last = last + 1;
        INSERT INTO our.feed SELECT last, {row}.digest FROM our.feed_turn; END"""
        for event, row in (("insert", "new"), ("update", "new"), ("delete", "old"))
    ),
)
_MAKE = f"""INSERT INTO our.heads ({sql.HEAD_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON DUPLICATE KEY UPDATE id = id"""
# The driver logs the server's warnings: nothing is created that is there.
_HAS_TABLES = """SELECT 1 FROM information_schema.tables
WHERE table_schema = database() AND table_name = 'our.aside'"""
_HAS_FEED = """SELECT 1 FROM information_schema.triggers
WHERE trigger_schema = database() AND trigger_name = 'our.feed_delete'"""
_MOVE = f"""UPDATE our.heads SET stamp = ?, at = ?, document = ?, id = last_insert_id(id)
WHERE digest = ? AND {sql.SAME_STAMP} = ?"""
_NAMED = 'UPDATE our.heads SET agent = ?, chat = ?, "user" = ?, "group" = ?, scope = ? WHERE id = ?'
_PUT = f"INSERT INTO our.messages (session, {sql.ROW_COLUMNS}) VALUES ({', '.join('?' * 15)})"
_EMPTY, _PLACE = "DELETE FROM our.messages WHERE session = ?", " AND branch = ? AND seq = ?"
_ASIDE = f"""INSERT INTO our.aside SELECT s.digest, s."user", seq, branch, m.id, m.at, ?, body
FROM our.messages m JOIN our.heads s ON s.id = m.session WHERE m.session = ?{_PLACE}"""
_RECORDS = (
    f"SELECT {sql.ROW} FROM our.messages m JOIN our.heads s ON s.id = session WHERE digest = ?"
)
_LOCK = f"SELECT id FROM our.heads WHERE digest = ? AND {sql.SAME_STAMP} = ? FOR UPDATE"
_CHANGES = "SELECT digest, number FROM our.feed WHERE number > ? ORDER BY number LIMIT ?"
_DUPLICATE, _AGAIN = 1062, {1205, 1213}  # the latter: a lock took too long, or a deadlock
_LOST = {0, 1053, 1927, 2003, 2006, 2013, 2014, 2055, 4031}
_TRIES, _SLOW = 4, 20
_OUTSIDE = ("the server's undo and binary logs", "replicas, backups and snapshots")
_PACKAGE = "MariaDB and MySQL need another package: pip install 'dragoman[mariadb]'"
_INVALID = (
    "the URL of a MariaDB or MySQL store must be mariadb://user:password@host:port/database, with"
    " no options except connections, timeout (in seconds) and tls (yes or no)"
)
_OPTIONS = {"connections": "8", "timeout": "30", "tls": "no"}


class MariaDBShelf:
    """Heads and rows in tables of a database."""

    is_blocking = False

    def __init__(self, url: str, prefix: str) -> None:
        parts = urlsplit(url)
        self._prefix = f"{prefix}_"
        given = {**_OPTIONS, **dict(parse_qsl(parts.query, keep_blank_values=True))}
        try:
            host, port = parts.hostname or "127.0.0.1", parts.port or 3306
            connections, self._seconds = int(given["connections"]), float(given["timeout"])
        except ValueError:
            host, port, connections = "", 0, 0
        is_known = {*given} == {*_OPTIONS} and given["tls"] in {"yes", "no"}
        if connections < 1 or not (is_known and self._seconds > 0 and parts.path.strip("/")):
            raise InvalidInputError(_INVALID)
        self._options: dict[str, Any] = {
            "host": host, "port": port, "database": unquote(parts.path[1:]), "charset": "utf8mb4",
            "user": unquote(parts.username or "root"), "password": unquote(parts.password or ""),
            "autocommit": True, "binary_prefix": True, "connect_timeout": min(10, self._seconds),
            "init_command": "SET SESSION sql_mode = 'ANSI_QUOTES,STRICT_ALL_TABLES'",
            "ssl": create_default_context() if given["tls"] == "yes" else None,
        }  # fmt: skip
        self._turns = asyncio.Semaphore(connections)
        self._free: list[Any] | None = None
        self.name = f"mariadb://{host}:{port}{parts.path}"

    async def open(self) -> None:
        """See `Shelf.open`."""
        if self._free is None:
            self._free = []
            try:
                await self._make(_HAS_TABLES, _TABLES.split(";"))
            except BaseException:
                await self.close()
                raise

    async def close(self) -> None:
        """See `Shelf.close`."""
        free, self._free = self._free, None
        for link in free or ():
            link.close()

    # --- connections

    async def _run(self, work: Callable[[Any], Awaitable[T]], kind: str = "read") -> T:
        """Runs `work`: "read", "write" (one statement), or "change" (a transaction)."""
        raised: StoreError = LostReply("")
        for _ in range(_TRIES):
            free, link = expect_open(self._free, self.name), None
            async with self._turns:
                try:
                    async with asyncio.timeout(self._seconds):
                        # A restart of the server breaks all idle connections.
                        link = await self._connected() if raised.args[0] or not free else free.pop()
                        done = await _done(link, self._prefix, work, kind == "change")
                except StoreError:
                    raise
                except Exception as error:  # noqa: BLE001 - of the driver, and of sockets
                    code = error.args[0] if error.args and type(error.args[0]) is int else None
                    is_lost = code in _LOST or isinstance(error, (OSError, EOFError))
                    raised = self._reason(error, code, is_lost=is_lost and link is not None)
                else:
                    kept, link = link, None
                    free.append(kept)
                    return done
                finally:
                    if link is not None:
                        link.close()  # in the middle of a transaction: the server rolls it back
            if code not in _AGAIN and not (is_lost and kind == "read"):
                break
        raise raised

    def _reason(self, error: Exception, code: int | None, *, is_lost: bool) -> StoreError:
        """What happened; the server's own message may quote values."""
        if isinstance(error, TimeoutError):
            msg = f"the store {self.name} did not respond within {self._seconds:g} seconds"
            return LostReply(msg, is_repeatable=False)
        if is_lost:
            return LostReply(f"the connection to the store {self.name} broke")
        if code == _DUPLICATE:
            return DuplicateIds([])
        if isinstance(error, OSError) or code in {*_LOST, 1044, 1045, 1049, 1698}:
            reason = "no server, no such database, or the user or password is wrong"
            return StoreError(f"the store {self.name} can't be reached: {reason}")
        told = f"failed with error {code}" if code else "can't store a value of this message"
        return StoreError(f"the store {self.name} {told}; nothing was written")

    async def _connected(self) -> Any:
        if find_spec("asyncmy") is None:
            raise ConfigError(_PACKAGE)
        from asyncmy import connect

        return await connect(**self._options)

    async def _make(self, has_last: str, statements: Sequence[str]) -> None:
        for statement in () if await self._fetch(has_last) else statements:
            await self._run(partial(_once, statement, ()))

    async def _fetch(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        async def work(run: Any) -> list[Any]:
            return list(await (await run(statement, values)).fetchall())

        return await self._run(work)

    # --- one session

    async def get(self, digest: str) -> Stored | None:
        """See `Shelf.get`."""
        found = await self._fetch(sql.GET, (digest,))
        return sql.stored_of_columns(found[0]) if found else None

    async def commit(self, before: int, stored: Stored, change: Change | None) -> bool:
        """See `Shelf.commit`."""
        digest, names, *state = stored

        async def work(run: Any) -> bool:
            values = (*state, digest, before) if before else (digest, *names, *state)
            cursor = await run(_MOVE if before else _MAKE, values)
            if cursor.rowcount == 1 and change is not None:
                number = cursor.lastrowid
                if not number:  # not told by an UPDATE with a trigger, such as that of the feed
                    [[number]] = await (await run("SELECT last_insert_id()", ())).fetchall()
                await _written(run, number, stored, change)
                return True
            return bool(cursor.rowcount == 1)

        return await self._run(work, "write" if change is None else "change")

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
        found = await self._fetch(
            *sql.rows_query(digest, branch, after, upto, limit, newest=newest)
        )
        return [_row(each) for each in (reversed(found) if newest else found)]

    async def named(self, digest: str, ids: Sequence[str]) -> list[Row]:
        """See `Shelf.named`."""
        found = [await self._fetch(sql.NAMED, (digest, id.encode())) for id in ids]
        return [_row(each) for rows in found for each in rows]

    async def count(self, digest: str, branches: Sequence[int] | None) -> int:
        """See `Shelf.count`."""
        [(number,)] = await self._fetch(*sql.count_query(digest, branches))
        return int(number)

    async def records(self, digest: str) -> list[Record]:
        """See `Shelf.records`."""
        rows = [_row(each) for each in await self._fetch(_RECORDS, (digest,))]
        return [Record((row.branch, row.seq), row) for row in rows]

    # --- many sessions

    async def heads(self, which: Filter, limit: int | None, after: str) -> list[Stored]:
        """See `Shelf.heads`."""
        clause, values = sql.conditions(which)
        tail = [] if limit is None else [limit]
        found = await self._fetch(sql.list_query(clause, limit), (after, *values, *tail))
        return [sql.stored_of_columns(each) for each in found]

    async def remove(self, which: Sequence[tuple[str, int]]) -> list[int | None]:
        """See `Shelf.remove`."""

        async def work(run: Any) -> list[int | None]:
            return [await _removed(run, *each) for each in which]

        return await self._run(work, "change")

    async def scrub(self, user: str) -> tuple[str, ...]:
        """See `Shelf.scrub`."""
        forget = 'DELETE FROM our.aside WHERE "user" = ?'
        await self._run(partial(_once, forget, (escaped(user),)))
        return _OUTSIDE

    async def watch(self) -> None:
        """See `Shelf.watch`."""
        await self._make(_HAS_FEED, _FEED)

    async def changes(self, after: str, limit: int) -> tuple[Sequence[str], str]:
        """See `Shelf.changes`."""
        found = await self._fetch(_CHANGES, (int(after or 0), limit))
        return [digest for digest, _ in found], str(found[-1][1]) if found else after

    async def prune(self, upto: str) -> None:
        """See `Shelf.prune`."""
        await self._run(partial(_once, "DELETE FROM our.feed WHERE number <= ?", (int(upto or 0),)))

    async def problems(self) -> list[str]:
        """See `Shelf.problems`."""
        [(lost,)] = await self._fetch(sql.ORPHANS)
        return [sql.ORPHANED.format(lost)] if lost else []


class MariaDBStorage(Ledger):
    """A backend in a MariaDB or MySQL database, for any number of processes and machines.

    >>> MariaDBStorage("mariadb://me:secret@db.example/chats?connections=4").name
    'mariadb://db.example:3306/chats'
    """

    def __init__(self, url: str, *, prefix: str = "dragoman") -> None:
        """`prefix` begins the names of the tables."""
        super().__init__(MariaDBShelf(url, prefix))


async def _once(statement: str, values: Sequence[Any], run: Any) -> None:
    await run(statement, values)


async def _done(link: Any, prefix: str, work: Callable[[Any], Awaitable[T]], is_change: bool) -> T:  # noqa: FBT001 - one caller
    async with link.cursor() as cursor:

        async def run(statement: str, values: Sequence[Any] = ()) -> Any:
            text = statement.replace("our.", prefix).replace("?", "%s")
            await cursor.execute(text, values or None)
            return cursor

        if is_change:
            await link.begin()
        done = await work(run)
        if is_change:
            await link.commit()
        return done


async def _written(run: Any, session: int, stored: Stored, change: Change) -> None:
    """Writes the rows of a commit."""
    if change.is_emptied:
        await run(_EMPTY, (session,))
    for id in change.drops:
        await run(f"{_EMPTY} AND id = ?", (session, id.encode()))
    for branch, seq in change.aside:
        await run(_ASIDE, (change.reason, session, branch, seq))
        await run(_EMPTY + _PLACE, (session, branch, seq))
    if change.is_repair:
        await run(_NAMED, (*stored.names, session))
    for row in change.puts:
        seq, branch, id, at, model, *rest = sql.row_columns(row)
        encoded = None if model is None else model.encode()
        await run(_PUT, (session, seq, branch, id.encode(), at, encoded, *rest))


async def _removed(run: Any, digest: str, stamp: int) -> int | None:
    found = await (await run(_LOCK, (digest, stamp))).fetchall()
    if not found:
        return None
    gone = (await run(_EMPTY, found[0])).rowcount
    await run("DELETE FROM our.heads WHERE id = ?", found[0])
    return int(gone)


def _row(found: Sequence[Any]) -> Row:
    seq, branch, id, at, model, *rest = found
    name = None if model is None else model.decode(errors="replace")
    return sql.row_of((seq, branch, id.decode(errors="replace"), at, name, *rest))
