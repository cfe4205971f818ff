"""Stores as a program of version 1 of the stored form left them, and how it reacts to ours.

Frozen: neither changes with the code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from dragoman.history.records import row_line, session_line
from dragoman.history.storage.chain import ChainStorage
from dragoman.history.storage.files import FileStorage
from dragoman.history.storage.memory import MemoryStorage
from dragoman.history.storage.postgres import PostgresStorage
from dragoman.history.storage.protocol import MAIN, Row, Session, Storage
from dragoman.history.storage.redis import RedisStorage
from dragoman.history.storage.sealed import SealedStorage
from dragoman.history.storage.sealed.binding import message_bound, window_bound
from dragoman.history.storage.sqlite import SQLiteStorage
from tests.history.storage import backend_redis

_LINE_2, _LINE_1 = b'{"dragoman":2,', b'{"dragoman":1,'


async def plant(storage: Storage, session: Session, rows: Sequence[Row]) -> None:
    """Create a store of version 1 where this storage, not opened yet, will look for its own."""
    if isinstance(storage, SealedStorage):
        session, rows = sealed_then(storage, session, rows)
    for each in _parts(storage):
        if isinstance(each, MemoryStorage):
            await each.restore(session, rows)
        elif isinstance(each, FileStorage):
            _plant_file(each, session, rows)
        elif isinstance(each, (SQLiteStorage, PostgresStorage)):
            pytest.skip("it has no stores of version 1: see test_migration.py")
        else:
            _plant_redis(each, session, rows)


def state(storage: Storage, session: Session) -> list[Any]:
    """What a program of version 1 reads first in each store: it shows whether it was changed."""
    return [_state(each, session) for each in _parts(storage)]


def is_refused(storage: Storage, session: Session) -> bool:
    """Whether a program of version 1 would reject the session, open or still to open."""
    return all(_REFUSED[type(each)](_state(each, session)) for each in _parts(storage))


_REFUSED: dict[type, Callable[[Any], bool]] = {
    MemoryStorage: lambda _: True,
    # It reads the first line and the last, and rejects those of a newer version.
    FileStorage: lambda found: any(line.startswith(_LINE_2) for line in (found[0], found[-1])),
    SQLiteStorage: lambda _: True,
    PostgresStorage: lambda _: True,
    # Whatever it does begins with one of the two, as hashes.
    RedisStorage: lambda found: found == [b"string", b"string"],
}


def _parts(storage: Storage) -> list[Any]:
    if isinstance(storage, SealedStorage):
        return _parts(storage._storage)
    if isinstance(storage, ChainStorage):
        return [part for m in storage._replicas.members for part in _parts(m.storage)]
    return [storage]


def _state(storage: Any, session: Session) -> Any:
    if isinstance(storage, FileStorage):
        return _file(storage, session).read_bytes().rstrip(b"\n").split(b"\n")
    if isinstance(storage, RedisStorage):
        import redis

        with redis.Redis.from_url(backend_redis.URL) as client:
            return [client.type(_key(storage, session, what)) for what in ("head", "rows")]
    return None


# --- files


def _file(storage: FileStorage, session: Session) -> Any:
    digest = session.identity.digest
    return storage._path / digest[:2] / f"{digest}.jsonl"


def _plant_file(storage: FileStorage, session: Session, rows: Sequence[Row]) -> None:
    path = _file(storage, session)
    path.parent.mkdir(parents=True)
    lines = [session_line(session), *(row_line(row, version=session.version) for row in rows)]
    path.write_bytes(b"".join(_as_version_1(line) + b"\n" for line in lines))


def _as_version_1(line: bytes) -> bytes:
    assert line.startswith(_LINE_2)
    return _LINE_1 + line.removeprefix(_LINE_2)


# --- Redis


def _key(storage: RedisStorage, session: Session, what: str) -> str:
    return f"{storage._keys._prefix}:{{{session.identity.digest}}}:{what}"


def _plant_redis(storage: RedisStorage, session: Session, rows: Sequence[Row]) -> None:
    import redis

    head: Any = {
        "identity": msgspec.json.encode(session.identity.columns),
        "version": session.version,
        "last_seq": session.last_seq,
        "created_at": repr(session.created_at),
        "updated_at": repr(session.updated_at),
        "active": session.active,
        "forks": max((fork.number for fork in session.forks), default=MAIN),
        "generation": "g",
        **{f"fork:{fork.number}": f"{fork.parent} {fork.at}" for fork in session.forks},
    }
    if session.window is not None:
        head["window"] = session.window
    with redis.Redis.from_url(backend_redis.URL) as client:
        client.hset(_key(storage, session, "head"), mapping=head)
        client.zadd(f"{storage._keys._prefix}:sessions", {session.identity.digest: 0})
        for row in rows:
            line = _as_version_1(row_line(row, version=session.version))
            client.hset(_key(storage, session, "rows"), str(row.seq), line)
            client.hset(_key(storage, session, "ids"), row.id, f"{row.seq} {row.branch}")
            client.zadd(_key(storage, session, f"branch:{row.branch}"), {str(row.seq): row.seq})


def sealed_then(
    storage: SealedStorage, session: Session, rows: Sequence[Row]
) -> tuple[Session, list[Row]]:
    """A session as it was sealed before records were bound to their positions."""
    keyring, identity = storage._records.keyring, session.identity

    def sealed(row: Row) -> Row:
        body = keyring.seal("SealedMessage", row.body, message_bound(identity, row, None))
        return msgspec.structs.replace(row, body=body)

    window = session.window
    if window is not None:
        window = keyring.seal("SealedWindow", window, window_bound(identity, "window", None))
    return msgspec.structs.replace(session, window=window), [sealed(row) for row in rows]
