"""kill -9, many processes, a full disk, broken connections: nothing acknowledged is lost.

A short version; `make torture` does it as often as was promised.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from random import Random
from shutil import which
from time import sleep
from typing import Any

import pytest

from dragoman import ChatHistory, Message
from dragoman.errors import StoreError
from tests.history.torture import IN_FULL, PLACES, Place, Told, Writer, check

KILLS = 200 if IN_FULL else 5
PROCESSES, APPENDS = 8, 1_000 if IN_FULL else 40
DROPS = 500 if IN_FULL else 20
ENDLESS = 1_000_000
ROOT = Path(__file__).parents[2]
chance = Random()


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """A new location on the requested backend."""
    with PLACES[request.param](tmp_path) as place:
        yield place


# --- kill -9


@pytest.mark.parametrize("place", ["sqlite", "files", "postgres"], indirect=True)
def test_acknowledged_messages_survive_kill_9(place: Place) -> None:
    """With one writer or two, whatever they were doing; the history is never broken."""
    writers: list[Writer] = []
    for kill in range(KILLS):
        labels = [f"{kill}:{number}" for number in range(chance.choice((1, 1, 2)))]
        with _started(place, labels, ENDLESS) as started:
            for writer in started:
                writer.wait_for(chance.randrange(20))
            sleep(chance.random() * 0.02)
        writers += started
        asyncio.run(check(place, writers))


@pytest.mark.parametrize("name", ["sqlite", "files", "postgres"])
def test_a_store_that_was_killed_while_it_was_created_opens(name: str, tmp_path: Path) -> None:
    """Its tables are there, or are created then."""
    for kill in range(KILLS // 4 + 1):
        with PLACES[name](tmp_path / str(kill)) as place:
            with _started(place, ["first"], 1) as first:
                sleep(chance.random() * 0.05)
            with _started(place, ["second"], 1) as second:
                second[0].wait_for(1)
            asyncio.run(check(place, [*first, *second]))


# --- many at once


@pytest.mark.parametrize("place", ["sqlite", "files", "postgres", "redis"], indirect=True)
def test_many_processes_append_to_one_session(place: Place) -> None:
    """Every message once, numbered without gaps."""
    with _started(place, map(str, range(PROCESSES)), APPENDS) as writers:
        for writer in writers:
            writer.wait_for(APPENDS)
    assert asyncio.run(check(place, writers)) == PROCESSES * APPENDS


@contextmanager
def _started(place: Place, labels: Iterable[str], count: int) -> Generator[list[Writer]]:
    """Running writers, one for each label; they are killed at the end."""
    with ExitStack() as running:
        writers = [running.enter_context(Writer(place, label, count)) for label in labels]
        for writer in writers:
            writer.wait_for_start()
        yield writers


# --- a full disk

_ON_A_SMALL_DISK = [
    "unshare",
    "-rm",
    "sh",
    "-c",
    'mount -t tmpfs -o size=1m none "$0" && exec "$@"',
]


@pytest.mark.parametrize("way", ["disk", "limit"])
@pytest.mark.parametrize("place", ["sqlite", "files"], indirect=True)
def test_a_full_disk_is_reported_and_loses_nothing(place: Place, way: str, tmp_path: Path) -> None:
    """Acknowledged messages are readable; the rejected one can be stored once there is room."""
    found = _written_until_full(place, way, tmp_path)
    error, again = found["errors"]
    words = "full" if way == "disk" else "written"
    assert words in error
    assert "nothing was written" in error
    assert again in {error, None}  # a little room may be left
    told = list(found["acknowledged"])
    assert found["stored"] == told
    assert len(told) > 30
    *before, _refused = told[:-20]
    assert found["while_full"] == before + ([found["refused"]] if again is None else [])


def _written_until_full(place: Place, way: str, tmp_path: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.history.torture_disk", place.url, str(tmp_path), way]
    if way == "disk":
        mounting = [*_ON_A_SMALL_DISK, str(tmp_path)]
        trial = [*mounting, "true"]
        if (
            which(trial[0]) is None
            or subprocess.run(trial, capture_output=True, check=False).returncode
        ):
            pytest.skip("no small disk can be mounted here (unshare -rm)")
        command = [*mounting, *command]
    ran = subprocess.run(command, stdout=subprocess.PIPE, cwd=ROOT, check=True)
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


# --- connections that break


class Insistent(Told):
    """A writer that adds each message until it is acknowledged."""

    def __init__(self, history: ChatHistory, label: str) -> None:
        super().__init__(label)
        self._history = history

    async def write(self, until: asyncio.Event) -> None:
        """Add messages one by one, until told to stop."""
        while not until.is_set():
            message = Message.user(f"{self.label} {len(self.acknowledged)}")
            assert (await self._safe(message)).id == message.id
            self.acknowledged.append(message.id)

    async def _safe(self, message: Message) -> Message:
        while True:
            try:
                return await self._history.add(message)
            except StoreError:
                await asyncio.sleep(0.001)


@pytest.mark.parametrize("place", ["postgres", "redis"], indirect=True)
async def test_a_connection_that_breaks_during_a_write_loses_nothing(
    place: Place, request: pytest.FixtureRequest
) -> None:
    """Nothing is stored twice; after an error the writer adds the same message again."""
    drop = _DROPPING[request.node.callspec.params["place"]]
    enough = asyncio.Event()
    async with _opened(place, 4) as histories, drop(place.mark) as dropped:
        writers = [Insistent(history, str(n)) for n, history in enumerate(histories)]
        writing = [asyncio.create_task(writer.write(enough)) for writer in writers]
        count = 0
        while count < DROPS:
            await asyncio.sleep(chance.random() * 0.02)
            count += await dropped()
        enough.set()
        await asyncio.gather(*writing)
    stored = await check(place, writers)
    assert stored == sum(len(writer.acknowledged) for writer in writers)


@asynccontextmanager
async def _opened(place: Place, count: int) -> AsyncGenerator[list[ChatHistory]]:
    """Histories of one session, each with its own connection."""
    histories = [await ChatHistory.open(place.session, place.url) for _ in range(count)]
    try:
        yield histories
    finally:
        for history in histories:
            await history.close()


@asynccontextmanager
async def _dropping_postgres(mark: str) -> AsyncGenerator[Callable[[], Awaitable[int]]]:
    from psycopg import AsyncConnection

    from tests.history.storage.backend_postgres import URL

    statement = (
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = %s"
    )
    async with await AsyncConnection.connect(URL, autocommit=True) as connection:

        async def dropped() -> int:
            found = await (await connection.execute(statement, (mark,))).fetchone()
            return found[0] if found else 0

        yield dropped


@asynccontextmanager
async def _dropping_redis(mark: str) -> AsyncGenerator[Callable[[], Awaitable[int]]]:
    from redis.asyncio import Redis

    from tests.history.storage.backend_redis import URL

    async with Redis.from_url(URL, decode_responses=True) as client:

        async def dropped() -> int:
            ours = [one["id"] for one in await client.client_list() if one["name"] == mark]
            return sum([int(await client.client_kill_filter(_id=id)) for id in ours])

        yield dropped


_DROPPING = {"postgres": _dropping_postgres, "redis": _dropping_redis}
