"""Concurrent access on every backend: nothing is lost, duplicated or out of order."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from threading import Thread

from dragoman.errors import Conflict
from dragoman.history.storage.protocol import (
    Storage,
)
from dragoman.testing.conformance.loops import in_loop
from dragoman.testing.conformance.stores.backends import Backend
from dragoman.testing.conformance.stores.data import (
    ONE,
    entry,
    fill,
    head,
    texts,
)


@in_loop
async def test_many_tasks_append_without_gaps(backend: Backend) -> None:
    """Four storages, fifty messages each: every one once, in order, contiguous."""
    async with AsyncExitStack() as stack:
        storages = [await stack.enter_async_context(backend.opened()) for _ in range(4)]

        async def write(storage: Storage, writer: int) -> None:
            for number in range(50):
                await storage.append(ONE, [entry(f"{writer} {number}")])

        await asyncio.gather(*(write(each, n) for n, each in enumerate(storages)))
        await all_there(storages[0])


@in_loop
async def test_many_threads_append_without_gaps(backend: Backend) -> None:
    """Each with its own loop and storage, as in several processes."""
    problems: list[BaseException] = []

    async def write(writer: int) -> None:
        async with backend.opened() as storage:
            for number in range(50):
                await storage.append(ONE, [entry(f"{writer} {number}")])

    def run(writer: int) -> None:
        try:
            asyncio.run(write(writer))
        except BaseException as problem:  # noqa: BLE001 - handed to the test
            problems.append(problem)

    threads = [Thread(target=run, args=(writer,)) for writer in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    async with backend.opened() as storage:
        await all_there(storage)


async def all_there(storage: Storage) -> None:
    """Assert that fifty messages of each of four writers are there, each writer's in order."""
    rows = await storage.rows(ONE)
    assert [row.seq for row in rows] == list(range(1, 201))
    session = await head(storage)
    assert (session.version, session.last_seq) == (200, 200)
    for writer in range(4):
        own = [text for text in texts(rows) if text.startswith(f"{writer} ")]
        assert own == [f"{writer} {number}" for number in range(50)]


@in_loop
async def test_of_many_that_expect_the_same_version_one_succeeds(backend: Backend) -> None:
    """The others get a conflict, and have written nothing."""
    async with AsyncExitStack() as stack:
        storages = [await stack.enter_async_context(backend.opened()) for _ in range(4)]
        await fill(storages[0], "a")
        results = await asyncio.gather(
            *(each.append(ONE, [entry("b")], expected=1) for each in storages),
            return_exceptions=True,
        )
        lost = [each for each in results if isinstance(each, Conflict)]
        assert len(lost) == 3
        assert all((each.expected, each.actual) == (1, 2) for each in lost)
        assert texts(await storages[0].rows(ONE)) == ["a", "b"]


@in_loop
async def test_a_cancelled_write_is_complete_or_absent(backend: Backend) -> None:
    """At whichever moment; the storage can still be used."""
    async with backend.opened() as storage:
        for turns in range(12):
            task = asyncio.create_task(storage.append(ONE, [entry("a"), entry("b")]))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await fill(storage, "end")
        rows = await storage.rows(ONE)
        assert texts(rows)[-1] == "end"
        assert texts(rows)[:-1] == ["a", "b"] * (len(rows) // 2)
        session = await head(storage)
        assert session.last_seq == len(rows)
        assert session.version == len(rows) // 2 + 1


__all__ = [name for name in globals() if name.startswith("test_")]
