"""The backend: every write is one script, which Redis runs as a whole or not at all."""

from __future__ import annotations

import re
from collections.abc import Sequence
from secrets import token_hex
from time import time
from typing import TYPE_CHECKING, Any

from dragoman.errors import StoreError
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.protocol import (
    EVERYTHING,
    MAIN,
    Appended,
    Entry,
    Erasure,
    Filter,
    Group,
    Hit,
    Row,
    Session,
    Total,
    expect_query,
)
from dragoman.history.storage.redis import checking, erasing, listing, reading, scripts
from dragoman.history.storage.redis.connection import (
    client_of,
    place_of,
    promise_of,
    settings_of,
)
from dragoman.history.storage.redis.fields import (
    fields_of,
    halves,
    identity_field,
    placed_rows,
)
from dragoman.history.storage.redis.keys import Keys
from dragoman.history.storage.redis.server import Expected, Lost, Server, checked
from dragoman.model.value import expect

if TYPE_CHECKING:
    from redis.asyncio import Redis

_VERSION = re.compile(rb'\{"seq":(\d+),.*?,"version":(\d+),')


class RedisStorage:
    """A backend on a Redis server, for any number of processes and machines.

    >>> RedisStorage("redis://user:secret@cache:6379/0").name
    'redis:cache:6379/0'

    What was acknowledged is in the server's memory. Whether it outlives the server is the
    server's matter, and `durability` says what its settings give:

    - `appendonly yes` with `appendfsync always`: it survives a power cut;
    - with `everysec` (the default of an append-only file): it survives the server's death; a
      power cut may take the last second or two;
    - snapshots (RDB) alone: what came after the last one is lost when the server dies;
    - a replica that takes over (Sentinel) may lack what was written last; `min-replicas-to-write`
      narrows that.

    One server or Sentinel: for the latter, give a client in the place of an address
    (`Sentinel(…).master_for("name", retry=Retry(NoBackoff(), 0))`, not decoding responses): one
    that repeats commands by itself may take its own first try for a duplicate. A cluster is
    refused: the list of sessions is in another slot than they are. Set `maxmemory-policy
    noeviction`, or Redis drops sessions when its memory is full.

    Searching reads every message. A `restore` is one script: at 100,000 messages it holds up the
    server for a second or so.
    """

    def __init__(self, url: str | Redis, *, prefix: str = "dragoman") -> None:
        self._url = url
        self._keys = Keys(prefix)
        self._server: Server | None = None
        self._settings: dict[str, str] = {}

    @property
    def name(self) -> str:
        """What it is and where, without user and password."""
        return place_of(self._url) if isinstance(self._url, str) else "redis"

    @property
    def is_blocking(self) -> bool:
        """It waits for the server on an event loop."""
        return False

    @property
    def durability(self) -> str:
        """What the server's settings promise for an acknowledged message; known once it is open."""
        return promise_of(self._settings)

    async def open(self) -> None:
        """Connect."""
        if self._server is not None:
            return
        client = client_of(self._url) if isinstance(self._url, str) else self._url
        server = Server(client, self._keys, self.name)
        try:
            await self._refuse_cluster(server)
            self._settings = await server.once(lambda: settings_of(client))
        except Lost:
            await self._disconnected(client)
        except BaseException:
            await self._disconnected(client)
            raise
        else:
            self._server = server
            return
        msg = (
            f"the store {self.name} can't be reached: is the server running, and the address"
            " right? Nothing was written"
        )
        raise StoreError(msg)

    async def close(self) -> None:
        """Let go of the connections; those of a client that was given are its owner's."""
        server, self._server = self._server, None
        if server is not None:
            await self._disconnected(server.client)

    async def _disconnected(self, client: Redis) -> None:
        if isinstance(self._url, str):
            await client.aclose()
            await client.connection_pool.disconnect()

    async def _refuse_cluster(self, server: Server) -> None:
        try:
            told: Any = await server.once(lambda: server.client.info("server"))
        except Lost:
            raise
        except StoreError:
            return  # it does not tell; scripts will fail there
        if told.get("redis_mode") == "cluster":
            msg = f"the store {self.name} is a cluster, which is not supported: use one server"
            raise StoreError(msg)

    @property
    def _opened(self) -> Server:
        if self._server is None:
            msg = f"the store {self.name} is not open"
            raise StoreError(msg)
        return self._server

    # --- one session

    async def session(self, identity: SessionIdentity) -> Session | None:
        """The session; None where there is none."""
        return await self._opened.session(identity.digest)

    async def append(
        self,
        identity: SessionIdentity,
        entries: Sequence[Entry],
        *,
        branch: int = MAIN,
        expected: int | None = None,
    ) -> Appended:
        """See `Storage.append`. Where the connection breaks, it finds out what became of it."""
        parts = [halves(entry) for entry in entries]
        times = (repr(entries[0].at), repr(entries[-1].at))
        values = [identity_field(identity), Expected.of(expected), branch, *times]
        flat = [value for part in parts for value in part]
        server = self._opened
        call = server.prepared(scripts.APPEND, identity, token_hex(8), *values, *flat)
        try:
            reply = await server.once(call)
        except Lost:
            reply = []
        if not reply:
            done = await self._done(identity, parts)
            if done is not None:
                return done
            reply = await server.again(call)
            if reply[0] in {b"duplicate", b"conflict"}:
                # One of these attempts may have come through, its answer lost as well, and the
                # token overwritten by somebody else's append since.
                done = await self._done(identity, parts)
                if done is not None:
                    return done
        version, last = checked(reply, values)
        return Appended(int(version), int(last))

    async def _done(
        self, identity: SessionIdentity, parts: Sequence[tuple[str, bytes, bytes]]
    ) -> Appended | None:
        """What an append made whose answer was lost; None where it was not done."""
        lines = await self._opened.lines_by_id(identity.digest, [id for id, _, _ in parts])
        pairs = zip(lines, parts, strict=True)
        if not all(front in line and line.endswith(back) for line, (_, front, back) in pairs):
            return None
        place = _VERSION.search(lines[-1])
        return None if place is None else Appended(int(place[2]), int(place[1]))

    async def rows(
        self,
        identity: SessionIdentity,
        *,
        branch: int = MAIN,
        after: int = 0,
        upto: int | None = None,
        limit: int | None = None,
        newest: bool = False,
    ) -> list[Row]:
        """See `Storage.rows`."""
        return await reading.rows(
            self._opened, identity.digest, branch, after, upto, limit, newest=newest
        )

    async def row(self, identity: SessionIdentity, id: str) -> Row | None:
        """One message, on any branch."""
        return await reading.row(self._opened, identity.digest, id)

    async def count(self, identity: SessionIdentity, branch: int | None = None) -> int:
        """See `Storage.count`."""
        return await reading.count(self._opened, identity.digest, branch)

    async def rewrite(
        self,
        identity: SessionIdentity,
        *,
        replaced: Sequence[Entry] = (),
        removed: Sequence[str] = (),
        expected: int | None = None,
    ) -> int:
        """See `Storage.rewrite`."""
        flat = [value for entry in replaced for value in halves(entry)]
        (version,) = await self._opened.run(
            scripts.REWRITE, identity,
            Expected.of(expected), repr(time()), len(replaced), *flat, *removed,
        )  # fmt: skip
        return int(version)

    async def clear(
        self, identity: SessionIdentity, *, at: float, expected: int | None = None
    ) -> int:
        """See `Storage.clear`."""
        (version,) = await self._opened.run(
            scripts.CLEAR, identity, identity_field(identity), Expected.of(expected), repr(at)
        )
        return int(version)

    async def fork(
        self, identity: SessionIdentity, *, parent: int, at: int, expected: int | None = None
    ) -> int:
        """See `Storage.fork`."""
        (number,) = await self._opened.run(
            scripts.FORK, identity, Expected.of(expected), repr(time()), parent, at
        )
        return int(number)

    async def activate(self, identity: SessionIdentity, branch: int) -> None:
        """See `Storage.activate`."""
        await self._opened.run(scripts.ACTIVATE, identity, branch)

    async def keep_window(self, identity: SessionIdentity, window: bytes | None) -> None:
        """See `Storage.keep_window`."""
        values = ("", "") if window is None else ("1", window)
        await self._opened.run(scripts.WINDOW, identity, *values)

    async def delete(self, identity: SessionIdentity) -> bool:
        """See `Storage.delete`; what was set aside stays."""
        there, _ = await self._opened.run(scripts.DELETE, identity)
        return there == b"1"

    async def restore(self, session: Session, rows: Sequence[Row]) -> bool:
        """See `Storage.restore`."""
        fields = fields_of(session, rows)
        flat = [value for pair in fields.items() for value in pair]
        (did,) = await self._opened.run(
            scripts.RESTORE, session.identity,
            session.version, len(fields), *flat, *placed_rows(rows),
        )  # fmt: skip
        return did == b"1"

    async def set_aside(self, identity: SessionIdentity, seqs: Sequence[int], reason: str) -> int:
        """See `Storage.set_aside`; they are kept in a list beside the session."""
        (moved,) = await self._opened.run(
            scripts.SET_ASIDE, identity,
            identity_field(identity), repr(time()), reason.replace("\n", " "), *seqs,
        )  # fmt: skip
        return int(moved)

    # --- many sessions

    async def sessions(
        self, which: Filter = EVERYTHING, *, limit: int | None = None, after: str = ""
    ) -> list[Session]:
        """See `Storage.sessions`."""
        expect_query(which, limit=limit)
        return await listing.sessions(self._opened, which, limit, after)

    async def search(self, text: str, which: Filter = EVERYTHING, *, limit: int = 50) -> list[Hit]:
        """See `Storage.search`; every message is read."""
        expect_query(which, text=text, limit=limit)
        return await listing.search(self._opened, text, which, limit)

    async def totals(self, by: Group, which: Filter = EVERYTHING) -> list[Total]:
        """See `Storage.totals`; every message is read."""
        expect_query(which, by=by)
        return await listing.totals(self._opened, by, which)

    async def forget(self, user: str) -> Erasure:
        """See `Storage.forget`: an append-only file is written anew as well."""
        expect(user, str, "the user to forget")
        return await erasing.forget(self._opened, user, self._settings)

    async def verify(self) -> list[str]:
        """Ids that lead nowhere, counts that don't agree, records that can't be read."""
        return await checking.verify(self._opened)
