"""Cancellation leaves no task, thread, connection or rate-limit slot behind."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

import pytest

from dragoman.transport.client import Client
from dragoman.transport.direct import DirectTransport
from dragoman.transport.protocol import Timeouts
from dragoman.transport.rate_limits import Limits
from dragoman.transport.streaming import ResponseStream
from tests.cancelling import ThreadWatch, cancelled_at
from tests.environment import PATIENCE
from tests.transport.answers import DIALECTS, TEXT, body, client, frames, kind
from tests.transport.servers import Fault, Server, Step, plain, serving, streamed

pytestmark = pytest.mark.usefixtures("network")
_LIMITS = Limits(concurrent=1, per_minute=1_000_000)
_TIMEOUTS = Timeouts(total=PATIENCE)


async def _cut(work: Coroutine[Any, Any, Any], number: int) -> int | None:
    """The number of suspensions of the work; None if it was cancelled."""

    async def run() -> int:
        return await cancelled_at(work, number)

    try:
        return await asyncio.create_task(run())
    except asyncio.CancelledError:
        return None


async def _at_every_point(made: Client, server: Server, ask: Any) -> int:
    """Cancel at the first suspension, the second and so on, until there are no more."""
    threads = ThreadWatch()
    for number in range(1, 500):
        if await _cut(ask(made), number) is not None:
            assert number > 1
            return number
        for _ in range(5):
            await asyncio.sleep(0)
        assert _others(server) == set(), number
        assert _acquired(made) == 0, number
        assert threads.started == []
        if server.open and _pooled(made) == 0:
            await server.until_idle()  # the server has noticed it, too
    pytest.fail("it never ends")


def _others(server: Server) -> set[asyncio.Task[Any]]:
    return asyncio.all_tasks() - server.open - {asyncio.current_task()}


def _acquired(made: Client) -> int:
    """The number of connections with a request in progress."""
    transport: Any = made._transport
    if isinstance(transport, DirectTransport):
        return len(transport._active)
    connector = _connector(transport)
    return 0 if connector is None else len(connector._acquired)


def _pooled(made: Client) -> int:
    """The number of idle connections."""
    transport: Any = made._transport
    if isinstance(transport, DirectTransport):
        return sum(map(len, transport._idle.values()))
    connector = _connector(transport)
    return 0 if connector is None else sum(map(len, connector._conns.values()))


def _connector(transport: Any) -> Any:
    found = transport._sessions._by_loop.get(asyncio.get_running_loop())
    return None if found is None else found.session.connector


async def _send(made: Client) -> None:
    assert (await made.send("hi")).text == TEXT


async def _stream(made: Client) -> None:
    async with made.stream("hi") as stream:
        async for _ in stream:
            await asyncio.sleep(0)  # the reader's own awaits count as well
    assert stream.response.text == TEXT


async def _drained(stream: ResponseStream) -> None:
    async for _ in stream:
        pass


async def _stream_without_with(made: Client) -> None:
    assert (await made.stream("hi").collect()).text == TEXT


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_plain_request_can_be_cancelled_anywhere(dialect: str) -> None:
    """With limits, a retry and a timeout; the next request works."""
    replies = _in_turn(plain({}, 500), plain(body(dialect)))
    async with (
        serving(replies) as server,
        client(dialect, server.url, limits=_LIMITS, timeouts=_TIMEOUTS) as made,
    ):
        made._sleep = _nap
        assert await _at_every_point(made, server, _send) > 3
        async with asyncio.timeout(PATIENCE):
            await _send(made)


@pytest.mark.parametrize("ask", [_stream, _stream_without_with], ids=["with", "without"])
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_stream_can_be_cancelled_anywhere(dialect: str, ask: Any) -> None:
    """In the head, between any two chunks, and in the reader's own awaits."""
    replies = _in_turn(plain({}, 503), streamed(*frames(dialect), kind=kind(dialect)))
    async with (
        serving(replies) as server,
        client(dialect, server.url, limits=_LIMITS, timeouts=_TIMEOUTS) as made,
    ):
        made._sleep = _nap
        assert await _at_every_point(made, server, ask) > 3
        async with asyncio.timeout(PATIENCE):
            await ask(made)


async def _nap(_: float) -> None:
    await asyncio.sleep(0)


def _in_turn(*replies: list[Step]) -> Any:
    """A script that answers requests by each of these in turn, repeatedly."""
    count = iter(range(1_000_000))

    def script(_: object) -> list[Step]:
        return replies[next(count) % len(replies)]

    return script


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
async def test_cancelling_closes_the_connection_at_once(stream: bool) -> None:
    """The server notices it before it has answered."""
    async with serving([Fault.HANG]) as server, client("openai-chat", server.url) as made:
        task = asyncio.create_task(_stream(made) if stream else _send(made))
        await server.until(lambda seen: bool(seen.seen))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await server.until_idle()


async def test_a_timeout_of_the_caller_is_the_callers() -> None:
    """It is raised as the builtin error, and nothing is left behind."""
    async with serving([Fault.HANG]) as server, client("openai-chat", server.url) as made:
        with pytest.raises(TimeoutError) as raised:
            async with asyncio.timeout(0.05):
                await made.send("hi")
        assert type(raised.value) is TimeoutError
        await server.until_idle()


async def test_a_stream_has_ended_once_its_reader_was_cancelled() -> None:
    """Iterating again ends at once, and `response` has the part that arrived."""
    pieces = frames("openai-chat")
    reply = streamed(*pieces[:4], Fault.HANG)
    async with serving(reply) as server, client("openai-chat", server.url) as made:
        stream = made.stream("hi")
        reading = asyncio.create_task(_drained(stream))
        await server.until(lambda seen: bool(seen.seen))
        async with asyncio.timeout(PATIENCE):
            while not stream.response.text:  # noqa: ASYNC110 - it tells nobody but its reader
                await asyncio.sleep(0)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        await server.until_idle()
        with pytest.raises(StopAsyncIteration):
            await anext(stream)
    assert TEXT.startswith(stream.response.text)
    assert stream.response.text


async def test_many_requests_are_cancelled_at_once() -> None:
    """A failing task group cancels all of its requests."""
    async with serving([Fault.HANG]) as server, client("openai-chat", server.url) as made:
        tasks = [asyncio.create_task(_send(made)) for _ in range(50)]
        await server.until(lambda seen: len(seen.seen) == 50)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.until_idle()
        assert _acquired(made) == 0
        assert _others(server) == set()


async def test_a_request_that_is_still_being_sent_is_dropped_at_once() -> None:
    """Nothing waits for the unsent rest, even if the server reads nothing."""
    size = 50_000_000
    came, go_on, read = asyncio.Event(), asyncio.Event(), asyncio.Event()
    received = 0

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal received
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        came.set()
        await go_on.wait()
        writer.transport.resume_reading()  # type: ignore[attr-defined]
        with suppress(ConnectionError):
            while data := await reader.read(2**20):
                received += len(data)
        writer.transport.abort()
        read.set()

    listening = await asyncio.start_server(connected, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    async with client("openai-chat", url) as made:
        task = asyncio.create_task(made.send("x" * size))
        await came.wait()
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        go_on.set()
        async with asyncio.timeout(PATIENCE):
            await read.wait()
    listening.close()
    assert received < size
