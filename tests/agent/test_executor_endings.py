"""Closing, cancelling and exceptions that end the program leave no task behind."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.agent.executor import ToolExecutor
from tests.agent.toolkit import (
    RAISERS,
    T,
    Tools,
    call_of,
    echo,
    forever,
    is_alone,
    results_of,
    tools_of,
)


def _lingering(log: list[str]) -> Tools:
    """Tools that record their start and their end, which takes a moment."""

    async def linger(word: str) -> str:
        log.append(f"+{word}")
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            log.append(f"-{word}")
        return word

    return tools_of(linger, echo)


@pytest.mark.parametrize("limit", [1, 2, None])
@pytest.mark.parametrize("taken", range(5))
def test_closing_early_ends_all_tools(taken: int, limit: int | None) -> None:
    """After `close` no tool runs, and each that had started has ended."""

    async def main() -> list[str]:
        log: list[str] = []
        calls = [call_of("echo", "a", word="a"), call_of("linger", "b", word="b")]
        calls += [call_of("linger", "c", word="c"), call_of("nobody", "d")]
        events = ToolExecutor(limit=limit).execute(calls, _lingering(log))
        for _ in range(taken):
            try:
                await asyncio.wait_for(anext(events), 0.02)
            except TimeoutError:
                break  # nothing more will happen
        await events.aclose()
        assert is_alone()
        return log

    log = asyncio.run(main())
    assert sorted(each[1:] for each in log if each[0] == "+") == sorted(
        each[1:] for each in log if each[0] == "-"
    )


async def _cancelled_after(steps: int, work: Coroutine[Any, Any, T]) -> T | None:
    """The outcome if it is cancelled after that many loop iterations; None: cancelled."""
    task = asyncio.create_task(work)
    for _ in range(steps):
        await asyncio.sleep(0)
    task.cancel()
    try:
        return await task
    except asyncio.CancelledError:
        return None


@given(st.integers(0, 30), st.sampled_from([1, 2, None]), st.integers(1, 4), st.booleans())
def test_cancelling_at_any_point_leaves_no_task(
    steps: int, limit: int | None, count: int, is_timed: bool
) -> None:
    """Every task has ended, and started tools have cleaned up."""
    log: list[str] = []
    names = ["echo", "linger", "linger", "echo"]
    calls = [call_of(names[i], f"c{i}", word=f"c{i}") for i in range(count)]

    async def main() -> None:
        executor = ToolExecutor(limit=limit, timeout=60 if is_timed else None)
        outcome = await _cancelled_after(steps, executor.execute_batch(calls, _lingering(log)))
        assert outcome is None or count == 1
        assert is_alone()

    asyncio.run(main())
    assert len([each for each in log if each[0] == "+"]) == len(
        [each for each in log if each[0] == "-"]
    )


@pytest.mark.parametrize("count", [1, 3])
def test_cancelling_does_not_wait_for_threads(count: int) -> None:
    """A blocking tool continues in its thread; the cancelled caller returns."""
    gate, begun = threading.Event(), threading.Event()

    def hangs() -> None:
        begun.set()
        gate.wait(60)

    async def main() -> None:
        calls = [call_of("hangs", f"c{i}") for i in range(count)]
        task = asyncio.create_task(ToolExecutor().execute_batch(calls, tools_of(hangs)))
        await asyncio.to_thread(begun.wait, 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert is_alone()
        assert not gate.is_set()

    asyncio.run(main())
    gate.set()


@pytest.mark.parametrize("count", [1, 2])
def test_a_tool_can_not_swallow_a_cancellation(count: int) -> None:
    """The run is cancelled even if a tool catches everything."""

    async def greedy() -> str:
        try:
            await asyncio.Event().wait()
        except BaseException:  # noqa: BLE001 - such tools exist
            return "caught"
        return "ended"

    async def main() -> None:
        calls = [call_of("greedy", f"c{i}") for i in range(count)]
        work = ToolExecutor().execute_batch(calls, tools_of(greedy))
        assert await _cancelled_after(5, work) is None
        assert is_alone()

    asyncio.run(main())


def test_cancelling_again_reaches_the_tools_again() -> None:
    """A tool that caught the first cancellation gets the next, and is waited for."""
    caught: list[str] = []

    async def stubborn(word: str) -> None:
        for _ in range(3):
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                caught.append(word)

    async def main() -> None:
        calls = [call_of("stubborn", f"c{i}", word=f"c{i}") for i in range(2)]
        task = asyncio.create_task(ToolExecutor().execute_batch(calls, tools_of(stubborn)))
        for _ in range(3):
            for _ in range(5):
                await asyncio.sleep(0)
            assert not task.done()
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert is_alone()

    asyncio.run(main())
    assert sorted(caught) == ["c0"] * 3 + ["c1"] * 3


def test_a_tool_that_cancels_its_own_task_affects_no_other() -> None:
    """Other tools continue."""

    async def suicidal() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)

    calls = [call_of("suicidal", "a"), call_of("echo", "b", word="fine")]
    first, second = results_of(calls, tools_of(suicidal, echo))
    assert "was cancelled" in first.text
    assert second.text == "fine"


def test_an_outer_timeout_is_the_callers() -> None:
    """The caller gets its own timeout error."""

    async def main() -> None:
        for count in (1, 2):
            calls = [call_of("forever", f"c{i}") for i in range(count)]
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await ToolExecutor(timeout=60).execute_batch(calls, tools_of(forever))
            assert is_alone()

    asyncio.run(main())


@RAISERS
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_exceptions_that_end_the_program_are_raised(
    raiser: Callable[[BaseException], Any], count: int, error: type[BaseException]
) -> None:
    """The other tools are cancelled and have cleaned up before."""
    log: list[str] = []
    seen: list[BaseException] = []

    async def main() -> None:
        tools = {**_lingering(log), **tools_of(raiser(error()))}
        calls = [call_of("linger", f"c{i}", word=f"c{i}") for i in range(count - 1)]
        try:
            await ToolExecutor().execute_batch([*calls, call_of("raises")], tools)
        except error as caught:
            assert is_alone()
            seen.append(caught)

    asyncio.run(main())
    assert [type(each) for each in seen] == [error]
    assert len(log) == 2 * (count - 1)


def test_a_discarded_coroutine_ends() -> None:
    """If the loop is gone, closing it runs no further tool."""
    ran: list[str] = []

    async def sleeps(word: str) -> None:
        ran.append(word)
        await asyncio.sleep(0)

    async def main() -> Coroutine[Any, Any, Any]:
        calls = [call_of("sleeps", word="first"), call_of("sleeps", word="second")]
        work = ToolExecutor(limit=1).execute_batch(calls, tools_of(sleeps))
        work.send(None)
        return work

    asyncio.run(main()).close()
    assert ran == ["first"]


@pytest.mark.parametrize("count", [1, 2])
def test_a_pending_cancellation_counts(count: int) -> None:
    """It was requested before the tools started, and is raised at the first await."""

    async def main() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        calls = [call_of("forever", f"c{i}") for i in range(count)]
        with pytest.raises(asyncio.CancelledError):
            await ToolExecutor().execute_batch(calls, tools_of(forever))
        task.uncancel()
        assert is_alone()

    asyncio.run(main())
