"""A run can be cancelled wherever it waits.

No task is left, no tool runs twice, and the conversation can be resumed.
"""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator
from contextlib import ExitStack, contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import dragoman
from dragoman import Agent, ConversationHistory, FinishReason, Message, tool
from dragoman.agent import thread_pool
from dragoman.agent.stream import AgentStream
from dragoman.errors import InvalidInputError
from dragoman.model import portal
from dragoman.model.responses import Choice, Response
from dragoman.transport.answers import events_of
from dragoman.transport.client import Client
from tests.agent.cutting import DONE, Scene, alone, at_tick, at_wait, everywhere, kept
from tests.agent.scripts import asks, call, clock, model
from tests.environment import PATIENCE
from tests.transport.answers import TEXT, body, client, frames
from tests.transport.servers import plain, serving, streamed
from tests.transport.test_cancellation import _at_every_point

WAYS = ("send", "chunks", "events", "typed", "approval")
_ON_DISK = [("sqlite", "send"), ("files", "approval"), ("blocking", "events")]
"""The others are slow, and much the same as in memory."""
_FAST = [*product(("strict", "memory"), WAYS), *_ON_DISK]
_SLOW = [each for each in product(("sqlite", "files", "blocking"), WAYS) if each not in _ON_DISK]
_KINDS = [*_FAST, *(pytest.param(*each, marks=pytest.mark.slow) for each in _SLOW)]
_LIMITS = pytest.mark.parametrize("limit", [None, 1], ids=["at once", "one by one"])
_PARTS = pytest.mark.parametrize("parts", ["chunks", "events"])


async def _cut_everywhere(
    cut: Callable[[Coroutine[Any, Any, Any], int], Awaitable[bool]],
    kind: str, tmp_path: Path, way: str, limit: int | None,
) -> None:  # fmt: skip
    async with kept(kind, tmp_path) as make:

        async def attempt(nth: int) -> bool:
            scene, conversation = Scene(way, limit), await make(nth)
            before = asyncio.all_tasks()
            was_cut = await cut(scene.run(conversation.history), nth)
            assert asyncio.all_tasks() == before
            await scene.until_threads_end()
            left = await conversation.messages()
            scene.check_left(left)
            if was_cut:
                await scene.resume(conversation.history, left)
            scene.check_end(await conversation.messages())
            return was_cut

        await everywhere(attempt)


@_LIMITS
@pytest.mark.parametrize(("kind", "way"), _KINDS)
async def test_a_run_is_cancelled_anywhere(
    kind: str, way: str, limit: int | None, tmp_path: Path
) -> None:
    """Started calls are recorded, and the conversation can be continued to its end."""
    await _cut_everywhere(at_wait, kind, tmp_path, way, limit)


@_LIMITS
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["strict", "memory"])
async def test_a_run_is_cancelled_at_any_iteration_of_the_loop(
    kind: str, way: str, limit: int | None, tmp_path: Path
) -> None:
    """The run can also be cancelled while only its tools are waiting."""
    await _cut_everywhere(at_tick, kind, tmp_path, way, limit)


# --- leaving a stream


def _taken(stream: AgentStream[Any], parts: str) -> AsyncIterator[Any]:
    return stream.events() if parts == "events" else aiter(stream)


async def _take(source: AsyncIterator[Any], count: int) -> bool:
    """Takes items; returns whether there were that many."""
    for _ in range(count):
        try:
            await anext(source)
        except StopAsyncIteration:
            return False
    return True


@_LIMITS
@_PARTS
@pytest.mark.parametrize("kind", ["strict", "memory", "sqlite"])
async def test_a_stream_is_closed_anywhere(
    kind: str, parts: str, limit: int | None, tmp_path: Path
) -> None:
    """Closed after any item, the stream gives no more, and the conversation can be resumed."""
    async with kept(kind, tmp_path) as make:

        async def attempt(nth: int) -> bool:
            scene, conversation = Scene(limit=limit), await make(nth)
            before = asyncio.all_tasks()
            async with scene.streamed(conversation.history) as stream:
                source = _taken(stream, parts)
                is_cut = await _take(source, nth - 1)
            assert asyncio.all_tasks() == before
            with pytest.raises(StopAsyncIteration):
                await anext(source)
            await scene.until_threads_end()
            left = await conversation.messages()
            scene.check_left(left)
            await scene.resume(conversation.history, left)
            scene.check_end(await conversation.messages())
            return is_cut

        await everywhere(attempt)


@_LIMITS
@_PARTS
async def test_the_partial_result_of_a_stream_can_be_resumed(parts: str, limit: int | None) -> None:
    """Without a history, the conversation is resumed from the stream's partial result."""

    async def attempt(nth: int) -> bool:
        scene = Scene(limit=limit)
        async with scene.streamed(None) as stream:
            is_cut = await _take(_taken(stream, parts), nth - 1)
        await scene.until_threads_end()
        left = stream.result.messages
        scene.check_left(left)
        history = ConversationHistory([Message.system("Be brief."), *left])
        await scene.resume(history, left)
        scene.check_end(history.messages)
        return is_cut

    await everywhere(attempt)


@contextmanager
def no_complaints(loop: asyncio.AbstractEventLoop) -> Generator[None]:
    """Asserts that the loop's exception handler isn't called."""
    told: list[Any] = []
    loop.set_exception_handler(lambda _, context: told.append(context))
    try:
        yield
    finally:
        loop.set_exception_handler(None)
    assert told == []


@pytest.mark.usefixtures("quick_collector")
@pytest.mark.filterwarnings("error")
@_LIMITS
@_PARTS
@pytest.mark.parametrize(
    "kind", ["strict", "memory", pytest.param("sqlite", marks=pytest.mark.thorough)]
)
async def test_a_stream_is_dropped_anywhere(
    kind: str, parts: str, limit: int | None, tmp_path: Path
) -> None:
    """A stream that is not closed ends when it is garbage-collected."""
    async with kept(kind, tmp_path) as make:

        async def attempt(nth: int) -> bool:
            scene, conversation = Scene(limit=limit), await make(nth)
            before = asyncio.all_tasks()
            source = _taken(scene.streamed(conversation.history), parts)
            is_cut = await _take(source, nth - 1)
            del source
            gc.collect()
            await alone(before)
            await scene.until_threads_end()
            left = await conversation.messages()
            scene.check_left(left)
            await scene.resume(conversation.history, left)
            scene.check_end(await conversation.messages())
            return is_cut

        with no_complaints(asyncio.get_running_loop()):
            await everywhere(attempt)


@pytest.mark.usefixtures("quick_collector")
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("ends", ["closed", "dropped"])
def test_a_blocking_stream_can_be_left_anywhere(ends: str) -> None:
    """Closed or dropped, a blocking stream leaves no task on its loop."""
    agent = Scene().agent()
    agent.send_sync("Go")
    loop = portal._portals[0].loop
    for count in range(60):
        history = ConversationHistory([Message.system("Be brief.")])
        scene = Scene()
        with ExitStack() as leaving:
            stream = scene.agent().stream_sync("Go", history=history)
            if ends == "closed":
                leaving.enter_context(stream)
            pieces = [piece for piece, _ in zip(stream, range(count), strict=False)]
        del stream, leaving
        gc.collect()
        assert portal.run(_others(loop)) == set()
        scene.check_left(history.messages)
        if len(pieces) < count:
            return
    pytest.fail("it never ends")


async def _others(loop: asyncio.AbstractEventLoop) -> set[Any]:
    assert asyncio.get_running_loop() is loop
    for _ in range(20):
        await asyncio.sleep(0)
    return asyncio.all_tasks() - {asyncio.current_task()}


async def test_closing_from_another_task_ends_the_run() -> None:
    """The reader's iteration ends, and the tools are cancelled."""
    begun, cancelled = asyncio.Event(), asyncio.Event()

    @tool
    async def endless() -> str:
        """Never ends."""
        begun.set()
        try:
            await asyncio.sleep(3600)
        finally:
            cancelled.set()
        return ""

    agent = Agent(model(asks(call("endless", "a"), call("endless", "b"))), tools=[endless])
    before = asyncio.all_tasks()
    stream = agent.stream("Go")
    reading = asyncio.create_task(_take(aiter(stream), 100))
    await begun.wait()
    async with asyncio.timeout(PATIENCE):
        await stream.close()
        assert cancelled.is_set()
        assert not await reading
    assert asyncio.all_tasks() == before
    assert not stream.is_complete


async def test_a_stream_has_one_reader() -> None:
    """A second reader raises, and the first is not disturbed."""
    begun, go_on = asyncio.Event(), asyncio.Event()

    @tool
    async def patient() -> str:
        """Waits for the test."""
        begun.set()
        await go_on.wait()
        return "done"

    stream = Agent(model(asks(call("patient")), DONE), tools=[patient]).stream("Go")
    source = aiter(stream)
    reading = asyncio.create_task(_take(source, 100))
    await begun.wait()
    with pytest.raises(InvalidInputError, match="one reader"):
        await anext(source)
    go_on.set()
    assert not await reading
    assert stream.result.text == DONE


@pytest.mark.parametrize("count", [1, 2])
async def test_a_tool_may_close_its_own_stream(count: int) -> None:
    """The run ends, whether the tool runs alone or with others."""
    streams: list[AgentStream[Any]] = []

    @tool
    async def stop() -> str:
        """Enough."""
        await streams[0].close()
        return "stopped"

    scripted = model(asks(*(call("stop", f"call_{number}") for number in range(count))), DONE)
    streams.append(Agent(scripted, tools=[stop]).stream("Go"))
    async with asyncio.timeout(PATIENCE):
        assert not await _take(aiter(streams[0]), 100)
    assert scripted.remaining == 1
    assert not streams[0].is_complete


# --- threads


async def test_cancelled_runs_do_not_accumulate_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """The threads of cancelled blocking tools are reused after they return."""
    monkeypatch.setattr(thread_pool, "_crew", thread_pool._Crew())
    release, begun = threading.Event(), threading.Semaphore(0)
    seen: set[threading.Thread] = set()

    @tool
    def stuck() -> str:
        """Waits for the test."""
        seen.add(threading.current_thread())
        begun.release()
        release.wait(30)
        return "free"

    for _ in range(3):
        agents = [Agent(model(asks(call("stuck")), DONE), tools=[stuck]) for _ in range(5)]
        running = [asyncio.create_task(agent.send("Go")) for agent in agents]
        for _ in running:
            await asyncio.to_thread(begun.acquire)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        assert all(task.cancelled() for task in running)
        release.set()
        async with asyncio.timeout(PATIENCE):
            while thread_pool._crew._idle < len(seen):  # noqa: ASYNC110 - threads tell nobody
                await asyncio.sleep(0.001)
        release.clear()
    assert len(seen) == 5


# --- connections


@pytest.mark.parametrize("streams", [False, True], ids=["plain", "streamed"])
@pytest.mark.parametrize("dialect", ["anthropic", "openai-chat", "openai-responses"])
async def test_a_run_over_a_network_is_cancelled_anywhere(dialect: str, streams: bool) -> None:
    """No connection is left waiting, and the next run works."""

    async def ask(made: Client) -> None:
        agent = Agent(made, tools=[clock])
        if not streams:
            assert (await agent.send("What time is it?")).text == TEXT
            return
        async with agent.stream("What time is it?") as stream:
            async for _ in stream.events():
                await asyncio.sleep(0)
        assert stream.result.text == TEXT

    async with serving(_replies(dialect, streams)) as server, client(dialect, server.url) as made:
        assert await _at_every_point(made, server, ask) > 3
        async with asyncio.timeout(PATIENCE):
            await ask(made)


def _replies(dialect: str, streams: bool) -> Any:
    """A provider that calls the clock, then answers."""
    codec, encoder = dragoman.dialect(dialect), dragoman.dialect(dialect).stream_encoder()
    choice = Choice(0, asks(call("clock", city="Basel")).replace(finish=FinishReason.TOOL_CALLS))
    asking = Response(id="r0", model="m", choices=(choice,))
    if streams:
        pieces = [*map(encoder.feed, events_of(asking)), encoder.close()]
        first, then = streamed(*filter(None, pieces)), streamed(*frames(dialect))
    else:
        first, then = plain(codec.encode_response(asking).body), plain(body(dialect))
    return lambda seen: then if b"hour" in seen.body else first
