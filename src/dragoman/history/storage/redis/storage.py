"""`RedisStorage`: every commit is one script, which Redis runs atomically."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from dragoman.errors import StoreError
from dragoman.history.identity import escaped
from dragoman.history.records import row_line
from dragoman.history.storage.heads import Stored, identity_of
from dragoman.history.storage.integrity import damaged
from dragoman.history.storage.ledger import Ledger
from dragoman.history.storage.memory import takes
from dragoman.history.storage.protocol import (
    EVERYTHING,
    DuplicateIds,
    Filter,
    Row,
    branches_of,
    unreadable_row,
)
from dragoman.history.storage.redis import checking, scripts
from dragoman.history.storage.redis.connection import (
    HIGHEST,
    PAGE,
    Found,
    Lost,
    Server,
    client_of,
    cluster_of,
    in_pairs,
    place_of,
    promise_of,
    settings_of,
)
from dragoman.history.storage.redis.fields import (
    Keys,
    identity_field,
    names_in,
    place_in,
    record_row,
    row_at,
    stored_of,
)
from dragoman.history.storage.shelf import Change, Record
from dragoman.history.storage.threaded import expect_open

if TYPE_CHECKING:
    from redis.asyncio import Redis

_TRIES = 5
_ALL = 1 << 53
_OLD = (
    "the session was stored before the first release (version 1); this version of dragoman reads"
    " version 2 and later. Write to it once with the dragoman of November 2026, or export it with"
    " that"
)
_UNKNOWN = "{} sessions or lists of records set aside with unreadable names; see `verify`"
_OUTSIDE = "backups, and unreachable replicas"


class RedisShelf:
    """Heads and rows under a prefix."""

    is_blocking = False

    def __init__(self, url: str | Redis, prefix: str) -> None:
        self._url = url
        self.keys = Keys(prefix)
        self._server: Server | None = None
        self.settings: dict[str, str] = {}

    @property
    def name(self) -> str:
        """The kind of backend and its location, without user and password."""
        return place_of(self._url) if isinstance(self._url, str) else "redis"

    @property
    def opened(self) -> Server:
        """The open server."""
        return expect_open(self._server, self.name)

    async def open(self) -> None:
        """Connects to the server, or to the cluster that it belongs to."""
        if self._server is not None:
            return
        client: Any = client_of(self._url) if isinstance(self._url, str) else self._url
        self.keys.is_cluster = hasattr(client, "get_nodes")
        try:
            server = Server(client, self.keys, self.name)
            if isinstance(self._url, str) and await self._is_cluster(server):
                await self._disconnected(client)
                client, self.keys.is_cluster = cluster_of(self._url), True
                server = Server(client, self.keys, self.name)
            if self.keys.is_cluster:
                await _twice(server, client.initialize)
            self.settings = await server.ask(lambda: settings_of(client))
        except Lost:
            await self._disconnected(client)
        except BaseException:
            await self._disconnected(client)
            raise
        else:
            self._server = server
            return
        msg = (
            f"the store {self.name} can't be reached; check that the server is running and the"
            " address is right. Nothing was written"
        )
        raise StoreError(msg)

    async def close(self) -> None:
        """Closes the connections; those of a client that was passed in stay open."""
        server, self._server = self._server, None
        if server is not None:
            await self._disconnected(server.client)

    async def _disconnected(self, client: Any) -> None:
        if isinstance(self._url, str):
            await client.aclose()
            if hasattr(client, "connection_pool"):
                await client.connection_pool.disconnect()

    async def _is_cluster(self, server: Server) -> bool:
        try:
            told: Any = await _twice(server, lambda: server.client.info("server"))
        except Lost:
            raise
        except StoreError:
            return False  # it does not tell; scripts fail on a cluster
        return bool(told.get("redis_mode") == "cluster")

    # --- one session

    async def get(self, digest: str) -> Stored | None:
        """See `Shelf.get`."""
        return _stored(digest, await self.opened.head(digest))

    async def commit(self, before: int, stored: Stored, change: Change | None) -> bool:
        """See `Shelf.commit`."""
        if change is not None and change.is_repair:
            return await self._repair(before, stored, change)
        is_emptied = change is not None and change.is_emptied
        drops = () if change is None else change.drops
        rows = () if change is None else change.puts
        is_append = not (is_emptied or drops)
        fields = _fields(stored, is_append=is_append, has_names=not before)
        puts = [value for row in rows for value in (row.seq, row.branch, row.id, row_line(row))]
        counts = (int(is_emptied), len(fields) // 2, len(drops), len(rows))
        reply = await self.opened.run(
            scripts.COMMIT, stored.digest, str(before), *counts, *fields, *drops, *puts
        )
        if reply[0] == b"duplicate":
            raise DuplicateIds([])
        if reply[0] == b"damaged":
            raise damaged(stored.digest)
        return reply[0] == b"ok"

    async def _repair(self, before: int, stored: Stored, change: Change) -> bool:
        """Rebuilds what points to the records of a session, and its head."""
        gone = {*change.aside}
        kept = [row for key, row in await self.records(stored.digest) if key not in gone]
        places = [value for row in kept for value in (row.seq, row.branch, row.id)]
        known = {*branches_of(change.head), *await self._known_branches(stored.digest)}
        fields = _fields(stored, is_append=False, has_names=True)
        reason = change.reason.replace("\n", " ")
        about = (identity_field(stored.names), repr(stored.at), reason)
        counts = (len(fields) // 2, len(gone), len(known))
        reply = await self.opened.run(
            scripts.REPAIR, stored.digest, str(before), *about, *counts,
            *fields, *gone, *known, *places,
        )  # fmt: skip
        return reply[0] == b"ok"

    async def _known_branches(self, digest: str) -> set[int]:
        places = [place_in(text) for text in (await self._ids(digest)).values()]
        return {place[1] for place in places if place is not None}

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
        wanted = _ALL if limit is None else limit
        order = "newest" if newest else "oldest"
        high = HIGHEST if upto is None else str(upto)
        found: list[Found] | None = None
        for attempt in range(_TRIES):
            # Constantly rewritten: read it in one go, although others have to wait.
            size = _ALL if attempt == _TRIES - 1 else PAGE
            found = await self._in_pages(digest, branch, str(after), high, wanted, order, size)
            if found is not None:
                break
        listed = [row_at(each.number, branch, each.line) for each in found or []]
        last = int(high)
        # An altered position differs from its number.
        return [row for row in (listed[::-1] if newest else listed) if after < row.seq <= last]

    async def _in_pages(
        self, digest: str, branch: int, low: str, high: str, wanted: int, order: str, size: int
    ) -> list[Found] | None:
        """The messages between two positions; `None` if the session changed between two pages."""
        found: list[Found] = []
        begun: bytes | None = None
        while len(found) < wanted:
            asked = min(size, wanted - len(found))
            generation, page = await self.opened.page(digest, branch, low, high, asked, order)
            if begun not in {None, generation}:
                return None
            begun = generation
            found += page
            if len(page) < asked:
                break
            last = page[-1].place
            low, high = (low, f"({last}") if order == "newest" else (last, high)
        return found

    async def named(self, digest: str, ids: Sequence[str]) -> list[Row]:
        """See `Shelf.named`."""
        found = await self.opened.lines_by_id(digest, ids)
        return [_named(id, *each) for id, each in zip(ids, found, strict=True) if each[0]]

    async def count(self, digest: str, branches: Sequence[int] | None) -> int:
        """See `Shelf.count`."""
        client, keys = self.opened.client, self.keys
        if branches is None:
            held: Any = await self.opened.ask(lambda: client.hlen(keys.of(digest, "records")))
            return int(held)

        names = [keys.of(digest, f"branch:{branch}") for branch in branches]
        counts = await self.opened.each(
            names,
            lambda pipeline, name: pipeline.zcount(name, 1, "+inf"),
            is_atomic=not keys.is_cluster,
        )
        return sum(counts)

    async def records(self, digest: str) -> list[Record]:
        """See `Shelf.records`; a second record with the same id has no position."""
        claims: dict[bytes, list[tuple[str, int]]] = {}
        for id, text in (await self._ids(digest)).items():
            place = place_in(text)
            if place is not None:
                claim = id.decode("utf-8", "surrogatepass"), place[1]
                claims.setdefault(b"%d" % place[0], []).append(claim)
        found: list[Record] = []
        taken: set[str] = set()
        for field, line in (await self._hash(digest, "records")).items():
            sole = claims.get(field, [])
            row = record_row(field, line, sole[0] if len(sole) == 1 else None)
            if row.id in taken or not row.id:
                row = unreadable_row(0, 0, line)
            taken.add(row.id)
            found.append(Record(field, row))
        return found

    async def _ids(self, digest: str) -> dict[bytes, bytes]:
        return await self._hash(digest, "ids")

    async def _hash(self, digest: str, what: str) -> dict[bytes, bytes]:
        """A hash of a session; empty if the key has the wrong type."""
        client, key = self.opened.client, self.keys.of(digest, what)
        kind: Any = await self.opened.ask(lambda: client.type(key))
        if kind not in {b"hash", "hash"}:
            return {}
        found: Any = await self.opened.ask(lambda: client.hgetall(key))  # type: ignore[arg-type, unused-ignore]
        return dict(found)

    # --- many sessions

    async def heads(self, which: Filter, limit: int | None, after: str) -> list[Stored]:
        """See `Shelf.heads`."""
        found: list[Stored] = []
        if limit == 0:
            return found
        async for digests in checking.digests_above(self.opened, after):
            for each in await self._heads(digests):
                if each is not None and takes(which, each):
                    found.append(each)
                    if len(found) == limit:
                        return found
        return found

    async def _heads(self, digests: Sequence[str]) -> list[Stored | None]:
        async def ask() -> list[Any]:
            async with self.opened.client.pipeline(transaction=False) as pipeline:
                for digest in digests:
                    pipeline.hgetall(self.keys.of(digest, "session"))
                return await pipeline.execute(raise_on_error=False)

        found = await self.opened.ask(ask)
        return [
            stored_of(digest, int(fields[b"stamp"]), fields)
            if isinstance(fields, dict) and fields.get(b"stamp", b"").isdigit()
            else await self.get(digest)
            for digest, fields in zip(digests, found, strict=True)
        ]

    async def remove(self, which: Sequence[tuple[str, int]]) -> list[int | None]:
        """See `Shelf.remove`; one after another."""
        removed: list[int | None] = []
        for digest, stamp in which:
            reply = await self.opened.run(scripts.REMOVE, digest, str(stamp))
            removed.append(int(reply[1]) if reply[0] == b"ok" else None)
        return removed

    async def scrub(self, user: str) -> tuple[str, ...]:
        """See `Shelf.scrub`; also of deleted sessions. Rewrites the append-only file."""
        unknown = await self._forget_aside(escaped(user))
        heads = await self.heads(EVERYTHING, None, "")
        unknown += sum(identity_of(each) is None for each in heads)
        remains = [_UNKNOWN.format(unknown)] if unknown else []
        return (*remains, *await self._rewritten(), _OUTSIDE)

    async def _forget_aside(self, user: str) -> int:
        """Removes what was set aside; returns the number of lists whose owner is unknown."""
        server, keys = self.opened, self.keys
        client = server.client
        found = await server.each(
            keys.tags, lambda pipeline, tag: pipeline.smembers(keys.shared("asides", tag))
        )
        unknown = 0
        for digest in sorted(raw.decode("ascii", "replace") for each in found for raw in each):
            aside = keys.of(digest, "aside")
            first: Any = await server.ask(lambda aside=aside: client.lindex(aside, 0))  # type: ignore[misc]
            owner = names_in(first)
            if first is not None and not any(owner):
                unknown += 1
            elif first is None or owner[2] == user:
                gone = [aside, *(f"{aside}:{name}" for name in checking.ASIDES)]
                await server.ask(lambda gone=gone: client.unlink(*gone))  # type: ignore[misc]
                asides = keys.shared("asides", keys.tag_of(digest))
                await server.ask(lambda digest=digest, asides=asides: client.srem(asides, digest))  # type: ignore[misc]
        return unknown

    async def _rewritten(self) -> list[str]:
        """Rewrites the append-only file; returns what may be left on the server's disk."""
        if not self.settings:
            return ["the server's files: it does not reveal its settings (CONFIG GET)"]
        remains: list[str] = []
        if self.settings.get("appendonly") == "yes":
            try:
                await self.opened.ask(self._rewriting)  # type: ignore[arg-type, unused-ignore]
            except StoreError:
                what = "the append-only file, because it could not be rewritten (BGREWRITEAOF)"
                remains.append(what)
            else:
                remains.append("the append-only file, until the server has rewritten it")
        if self.settings.get("save"):
            remains.append("the last snapshot (RDB), until the server creates the next one")
        return remains

    async def _rewriting(self) -> None:
        client: Any = self.opened.client
        every = {"target_nodes": client.PRIMARIES} if self.keys.is_cluster else {}
        await client.bgrewriteaof(**every)

    async def watch(self) -> None:
        """See `Shelf.watch`."""
        keys = self.keys
        await self.opened.each(
            keys.tags, lambda pipeline, tag: pipeline.setnx(keys.shared("feed:last", tag), 0)
        )

    async def changes(self, after: str, limit: int) -> tuple[Sequence[str], str]:
        """See `Shelf.changes`. One script runs at a time, so a later commit has a higher number.

        In a cluster each tag has numbers of its own, and the cursor has one for each.
        """
        keys, lows = self.keys, _numbers(after)
        found = await self.opened.each(
            keys.tags,
            lambda pipeline, tag: pipeline.zrangebyscore(
                keys.shared("feed", tag), f"({lows.get(tag, 0)}", "+inf",
                start=0, num=limit, withscores=True,
            ),
        )  # fmt: skip
        digests: list[str] = []
        for tag, listed in zip(keys.tags, found, strict=True):
            taken = listed[: limit - len(digests)]
            digests += [raw.decode() for raw, _ in taken]
            if taken:
                lows[tag] = int(taken[-1][1])
        return digests, " ".join(f"{tag}{':' if tag else ''}{low}" for tag, low in lows.items())

    async def prune(self, upto: str) -> None:
        """See `Shelf.prune`."""
        keys, lows = self.keys, _numbers(upto)
        await self.opened.each(
            list(lows),
            lambda pipeline, tag: pipeline.zremrangebyscore(keys.shared("feed", tag), 0, lows[tag]),
        )

    async def problems(self) -> list[str]:
        """Reports dangling ids, inconsistent counts, and sessions missing in the list."""
        return await checking.problems(self.opened)


class RedisStorage(Ledger):
    """A backend on a Redis server, for any number of processes and machines.

    >>> RedisStorage("redis://user:secret@cache:6379/0").name
    'redis:cache:6379/0'

    Acknowledged messages are in the server's memory. Whether they survive a crash of the server
    depends on its settings, which `durability` describes:

    - `appendonly yes` with `appendfsync always`: they survive a power cut;
    - with `everysec` (the default of an append-only file): they survive a crash of the server; a
      power cut may lose the last second or two;
    - snapshots (RDB) only: everything after the last one is lost if the server crashes;
    - a replica that takes over (Sentinel) may lack the latest writes; `min-replicas-to-write`
      reduces that risk.

    It supports a single server, a cluster (the URL of any of its nodes), or Sentinel. For Sentinel,
    pass a client instead of a URL (`Sentinel(…).master_for("name", retry=Retry(NoBackoff(), 0))`,
    not decoding responses). In a cluster, the sessions are spread by the first digits of their
    digests, and a list of all asks all nodes. Set `maxmemory-policy noeviction`, or Redis drops
    sessions when its memory is full.

    Searching reads every message. `restore` is one script: with 100,000 messages, it blocks the
    server for about a second.
    """

    shelf: RedisShelf

    def __init__(self, url: str | Redis, *, prefix: str = "dragoman") -> None:
        super().__init__(RedisShelf(url, prefix))

    @property
    def durability(self) -> str:
        """What the server's settings guarantee for acknowledged messages; known once open."""
        return promise_of(self.shelf.settings)


def _numbers(cursor: str) -> dict[str, int]:
    """The number of each tag in a cursor."""
    pairs = [each.rpartition(":") for each in cursor.split()]
    return {tag: int(number) for tag, _, number in pairs}


def _stored(digest: str, reply: Sequence[Any]) -> Stored | None:
    stamp, *fields = reply
    if stamp == b"old":
        raise StoreError(_OLD)
    if stamp == b"0":
        return None
    return stored_of(digest, int(stamp), in_pairs(fields[0]))


def _fields(stored: Stored, *, is_append: bool, has_names: bool) -> list[Any]:
    """The fields of a head to set, with their values."""
    fields: list[Any] = [
        "stamp", str(stored.stamp), "at", repr(stored.at), "document", stored.document,
    ]  # fmt: skip
    if has_names:
        fields += ["identity", identity_field(stored.names)]
    if has_names or not is_append:
        fields += ["generation", str(stored.stamp)]
    return fields


def _named(id: str, place: bytes, line: bytes) -> Row:
    found = place_in(place)
    return unreadable_row(0, 0, line, id) if found is None else row_at(*found, line, id)


async def _twice(server: Server, call: Callable[[], Any]) -> Any:
    """Makes a call, with one retry: a client that was passed in may have a broken connection."""
    try:
        return await server.once(call)
    except Lost:
        pass
    return await server.once(call)
