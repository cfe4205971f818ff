"""Runs several tasks with limited concurrency; cancels all of them if one fails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


async def gathered(works: Sequence[Callable[[], Awaitable[T]]], at_once: int) -> list[T]:
    """Returns the results in order; raises the first failure and cancels the others."""
    slots = asyncio.Semaphore(at_once)

    async def one(work: Callable[[], Awaitable[T]]) -> T:
        async with slots:
            return await work()

    tasks = [asyncio.ensure_future(one(work)) for work in works]
    try:
        return await asyncio.gather(*tasks)
    finally:
        await _stopped(tasks)


async def merged(
    sources: Sequence[Callable[[], AsyncIterator[T]]], at_once: int
) -> AsyncGenerator[tuple[int, T]]:
    """Yields the items of several iterators as they arrive, each with the index of its source."""
    slots = asyncio.Semaphore(at_once)
    # A queue of one item: a client that reads slowly slows the sources down.
    queue: asyncio.Queue[tuple[int, T] | BaseException | None] = asyncio.Queue(1)

    async def one(number: int, source: Callable[[], AsyncIterator[T]]) -> None:
        try:
            async with slots:
                async for item in source():
                    await queue.put((number, item))
        except Exception as error:  # noqa: BLE001 - raised in the reader
            await queue.put(error)
        else:
            await queue.put(None)

    tasks = [asyncio.ensure_future(one(*each)) for each in enumerate(sources)]
    try:
        left = len(tasks)
        while left:
            found = await queue.get()
            if isinstance(found, BaseException):
                raise found
            if found is None:
                left -= 1
            else:
                yield found
    finally:
        await _stopped(tasks)


async def _stopped(tasks: Sequence[asyncio.Future[T]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
