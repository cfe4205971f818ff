"""Backends under stress, the processes that are killed, and checks of what remains."""

from __future__ import annotations

import multiprocessing
import os
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from dragoman import ChatHistory, Message, SessionIdentity
from dragoman.history.records import message_of

IN_FULL = os.environ.get("DRAGOMAN_PROFILE") == "torture"
IN_SHORT = os.environ.get("DRAGOMAN_PROFILE") == "quick"
"""Whether as often as was promised (`make torture`), or as often as every test run can afford."""
_READY = b"ready"


# --- where


class Place(NamedTuple):
    """A new session, in a store that any process can open."""

    url: str
    session: SessionIdentity
    mark: str = ""
    """What its connections to a server are named."""


@contextmanager
def _sqlite(tmp_path: Path) -> Generator[Place]:
    yield Place(f"sqlite:///{tmp_path / 'histories.db'}", SessionIdentity(chat="1"))


@contextmanager
def _files(tmp_path: Path) -> Generator[Place]:
    yield Place(f"file://{tmp_path / 'histories'}", SessionIdentity(chat="1"))


@contextmanager
def _postgres(_tmp_path: Path) -> Generator[Place]:
    from tests.history.storage import backend_postgres

    with backend_postgres.schema() as name:
        settings = f"schema={name}&connections=4&application_name={name}"
        yield Place(f"{backend_postgres.URL}?{settings}", SessionIdentity(chat="1"), name)


@contextmanager
def _redis(_tmp_path: Path) -> Generator[Place]:
    from tests.history.storage import backend_redis

    with backend_redis.fresh_prefix() as name:
        url = f"{backend_redis.URL}?prefix={name}&client_name={name}"
        yield Place(url, SessionIdentity(chat="1"), name)


PLACES: Mapping[str, Callable[[Path], AbstractContextManager[Place]]] = {
    "sqlite": _sqlite,
    "files": _files,
    "postgres": _postgres,
    "redis": _redis,
}
"""By the backend's name; they skip where there is no server."""


# --- who

# Forked from a process with everything imported: a start takes milliseconds.
_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(
    ["dragoman.history", "dragoman.history.storage.files", "psycopg", "redis"]
)


class Told:
    """A writer's label, and the ids of its acknowledged messages."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.acknowledged: list[str] = []


class Writer(Told):
    """A process that adds messages one by one, and reports the id of each acknowledged one."""

    def __init__(self, place: Place, label: str, count: int) -> None:
        super().__init__(label)
        self._told, telling = _processes.Pipe(duplex=False)
        self._process = _processes.Process(target=_write, args=(place, label, count, telling))
        self._process.start()
        telling.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self.kill()

    def wait_for_start(self) -> None:
        """Wait until it is about to open its store."""
        assert self._told.recv_bytes() == _READY

    def wait_for(self, count: int) -> None:
        """Wait for that many more acknowledgements; EOFError if it ended before."""
        for _ in range(count):
            self.acknowledged.append(self._told.recv_bytes().decode())

    def kill(self) -> None:
        """End it with SIGKILL; acknowledgements until then count."""
        self._process.kill()
        self._process.join()
        with suppress(EOFError), self._told:
            while True:
                self.wait_for(1)


def _write(place: Place, label: str, count: int, told: Connection) -> None:
    told.send_bytes(_READY)
    history = ChatHistory.open_sync(place.session, storage=place.url)
    try:
        for number in range(count):
            told.send_bytes(history.add(Message.user(f"{label} {number}")).id.encode())
    finally:
        history.close()


# --- what remains


async def check(place: Place, writers: Iterable[Told]) -> int:
    """The history opens, and has all acknowledged messages and at most one more of each writer.

    Each once, in order, numbered without gaps. Returns the number of messages.
    """
    history = await ChatHistory.open(place.session, storage=place.url)
    try:
        await history.messages()
        assert history.damaged == ()
        rows = await history.storage.rows(place.session)
    finally:
        await history.close()
    assert [row.seq for row in rows] == list(range(1, len(rows) + 1))
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for row in rows:
        label, number = message_of(row.body).text.split()
        found[label].append((number, row.id))
    for writer in writers:
        _check(writer.acknowledged, found.pop(writer.label, []))
    assert not found
    return len(rows)


def _check(told: list[str], found: list[tuple[str, str]]) -> None:
    assert [number for number, _ in found] == [str(n) for n in range(len(found))]
    assert [id for _, id in found[: len(told)]] == told
    assert len(found) - len(told) in {0, 1}
