"""Events emitted by a coroutine, at any depth, to the reader that iterates over them."""

from __future__ import annotations

import asyncio
import traceback
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import pytest

from dragoman.agent.emitting import Emittable, emitted, events_of

_mood: ContextVar[str] = ContextVar("mood", default="none")


@dataclass(frozen=True)
class Number(Emittable):
    """Something that happens."""

    value: int


async def _deep(depth: int, value: int) -> None:
    if depth:
        await _deep(depth - 1, value)
    else:
        await asyncio.sleep(0)
        await emitted(Number(value))


async def _numbers(log: list[str], upto: int = 3) -> str:
    try:
        for value in range(upto):
            log.append(f"before {value}")
            await _deep(value, value)
    except BaseException as error:
        log.append(f"left by {type(error).__mro__[1].__name__}")
        raise
    finally:
        await asyncio.sleep(0)  # the rest may await during its cleanup
        log.append("cleared up")
    return "ignored"


async def test_each_event_waits_for_the_reader() -> None:
    """At any depth, the coroutine continues when the next event is requested."""
    log: list[str] = []
    events = events_of(lambda: _numbers(log))
    assert log == []
    assert await anext(events) == Number(0)
    await asyncio.sleep(0)
    assert log == ["before 0"]
    assert await anext(events) == Number(1)
    assert [event async for event in events] == [Number(2)]
    assert log[-2:] == ["before 2", "cleared up"]


async def test_leaving_early_cancels_the_coroutine() -> None:
    """Closing waits for its cleanup; events emitted meanwhile are dropped."""
    log: list[str] = []

    async def play() -> None:
        try:
            await _numbers(log)
        finally:
            await emitted(Number(99))
            log.append("told nobody")

    events = events_of(play)
    await anext(events)
    await events.aclose()
    assert log == ["before 0", "left by CancelledError", "cleared up", "told nobody"]
    with pytest.raises(StopAsyncIteration):
        await anext(events)


async def test_exceptions_keep_their_traceback() -> None:
    """The frames in between are those of the coroutine, and the exception is the same."""
    error = ValueError("here")

    async def fails() -> None:
        await emitted(Number(1))
        raise error

    events = events_of(fails)
    await anext(events)
    with pytest.raises(ValueError, match="here") as caught:
        await anext(events)
    assert caught.value is error
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert traceback.extract_tb(error.__traceback__)[-1].name == "fails"


async def test_cancelling_the_reader_cancels_the_coroutine() -> None:
    """It can clean up, as if it were awaited directly."""
    log: list[str] = []
    begun = asyncio.Event()

    async def waits() -> None:
        await emitted(Number(1))
        try:
            begun.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            log.append("cancelled")
            raise

    async def read() -> None:
        async for _ in events_of(waits):
            pass

    task = asyncio.create_task(read())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert log == ["cancelled"]


async def test_it_runs_in_the_readers_task_and_context() -> None:
    """Context variables set by the reader are visible, and the reader's timeouts apply."""
    seen: list[Any] = []

    async def looks() -> None:
        for _ in range(2):
            seen.append((_mood.get(), asyncio.current_task()))
            await emitted(Number(1))
        await asyncio.Event().wait()

    events = events_of(looks)
    for mood in ("good", "bad"):
        _mood.set(mood)
        await anext(events)
    assert seen == [("good", asyncio.current_task()), ("bad", asyncio.current_task())]
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await anext(events)


async def test_nested_events_reach_their_own_readers() -> None:
    """A coroutine that iterates over another one's events emits only its own."""

    async def inner() -> None:
        await emitted(Number(1))
        await emitted(Number(2))

    async def outer() -> None:
        async for number in events_of(inner):
            await emitted(Number(number.value * 10))

    assert [event.value async for event in events_of(outer)] == [10, 20]


async def test_an_unread_coroutine_is_never_created() -> None:
    """So there is no warning about it."""
    log: list[str] = []
    await events_of(lambda: _numbers(log)).aclose()
    assert log == []
