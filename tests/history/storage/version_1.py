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
from dragoman.history.storage.protocol import Row, Session, Storage
from dragoman.history.storage.redis import RedisStorage
from dragoman.history.storage.sealed import SealedStorage
from dragoman.history.storage.sealed.binding import message_bound, window_bound
from dragoman.history.storage.sqlite import SQLiteStorage

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
        else:
            pytest.skip("it has no stores of version 1: see test_migration.py")


def state(storage: Storage, session: Session) -> list[Any]:
    """What a program of version 1 reads first in each store: it shows whether it was changed."""
    return [_state(each, session) for each in _parts(storage)]


def is_refused(storage: Storage, session: Session) -> bool:
    """Whether a program of version 1 would reject the session, open or still to open."""
    return all(
        _REFUSED.get(type(each), lambda _: True)(_state(each, session)) for each in _parts(storage)
    )


_REFUSED: dict[type, Callable[[Any], bool]] = {
    MemoryStorage: lambda _: True,
    # It reads the first line and the last, and rejects those of a newer version.
    FileStorage: lambda found: any(line.startswith(_LINE_2) for line in (found[0], found[-1])),
    SQLiteStorage: lambda _: True,
    PostgresStorage: lambda _: True,
    RedisStorage: lambda _: True,
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
