"""Threads for blocking functions: reused, abandoned, never waited for."""

from __future__ import annotations

import asyncio
import gc
import inspect
import threading
import time
import weakref
from collections.abc import Coroutine
from typing import Any

import pytest

from dragoman.agent import thread_pool
from dragoman.agent.thread_pool import in_thread


def test_threads_are_reused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sequential calls share a thread, and keep nothing of each other alive."""
    monkeypatch.setattr(thread_pool, "_crew", thread_pool._Crew())

    class Thing:
        pass

    def use(_thing: Thing) -> int:
        return threading.get_ident()

    async def main() -> tuple[set[int], weakref.ref[Thing]]:
        thing = Thing()
        kept = weakref.ref(thing)
        seen = set()
        for _ in range(20):
            seen.add(await in_thread(use, thing))
            await asyncio.sleep(0.001)
        del thing
        return seen, kept

    seen, kept = asyncio.run(main())
    assert len(seen) < 20
    gc.collect()
    assert kept() is None


def test_idle_threads_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next call gets a new one."""
    monkeypatch.setattr(thread_pool, "_IDLE_SECONDS", 0.001)
    monkeypatch.setattr(thread_pool, "_crew", thread_pool._Crew())

    async def main() -> None:
        for _ in range(50):
            await in_thread(threading.current_thread)
            await asyncio.sleep(0.0005)
        thread = await in_thread(threading.current_thread)
        await asyncio.to_thread(thread.join, 30)
        assert not thread.is_alive()
        assert await in_thread(lambda: 3) == 3

    asyncio.run(main())


def test_many_threads_at_once() -> None:
    """Every call gets its own result."""

    async def main() -> None:
        for _ in range(20):
            many = await asyncio.gather(*(in_thread(abs, i) for i in range(20)))
            assert many == list(range(20))

    asyncio.run(main())


@pytest.mark.parametrize("is_loop_open", [True, False])
def test_a_coroutine_that_nobody_awaits_is_closed(is_loop_open: bool) -> None:
    """A function that returns one after its caller has left gives no warning."""
    begun, gate = threading.Event(), threading.Event()
    made = [asyncio.sleep(0)]

    def late() -> Coroutine[Any, Any, None]:
        begun.set()
        gate.wait(30)
        return made[0]

    async def main() -> None:
        task = asyncio.create_task(in_thread(late))
        await asyncio.to_thread(begun.wait, 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            _ = await task
        if is_loop_open:
            gate.set()
            assert await asyncio.to_thread(_closed, made[0])

    asyncio.run(main())
    gate.set()
    assert _closed(made[0])


def _closed(coroutine: Coroutine[Any, Any, Any]) -> bool:
    """Whether it is closed within a few seconds."""
    for _ in range(3000):
        if inspect.getcoroutinestate(coroutine) == inspect.CORO_CLOSED:
            return True
        time.sleep(0.001)
    return False
