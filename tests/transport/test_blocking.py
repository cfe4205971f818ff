"""The blocking API: in scripts, inside a running loop, in threads, and interrupted."""

from __future__ import annotations

import asyncio
import gc
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest

from dragoman.errors import InvalidInputError, InvalidRequest, StreamInterrupted
from dragoman.transport.client import Client
from tests.transport.answers import DIALECTS, TEXT, body, client, frames, kind
from tests.transport.servers import Fault, Server, Step, plain, serving, streamed

_DIALECT = "openai-chat"


class Aside:
    """Servers on an event loop in another thread, because the tests block."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()
        self._closing = ExitStack()

    def run(self, work: Any) -> Any:
        """Run a coroutine on that loop and return its result."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(30)

    def serve(self, *replies: list[Step]) -> Server:
        """Start a server."""
        manager = serving(*replies)
        server: Server = self.run(manager.__aenter__())
        self._closing.callback(lambda: self.run(manager.__aexit__(None, None, None)))
        return server

    def close(self) -> None:
        """Stop all servers."""
        self._closing.close()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


@pytest.fixture
def aside() -> Iterator[Aside]:
    """A thread for servers."""
    made = Aside()
    yield made
    made.close()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_scripts_need_no_await(dialect: str, aside: Aside) -> None:
    """`send_sync` and streams work on one connection."""
    server = aside.serve(plain(body(dialect)), streamed(*frames(dialect), kind=kind(dialect)))
    with client(dialect, server.url) as made:
        assert made.send_sync("hi").text == TEXT
        with made.stream_sync("hi") as stream:
            events = list(stream)
        assert stream.response.text == TEXT
        assert stream.is_complete
        assert made.stream_sync("hi").collect().text == TEXT
    assert events
    assert server.connections == 1
    aside.run(server.until_idle())


def test_events_arrive_as_they_are_sent(aside: Aside) -> None:
    """They are not held back until the end."""
    go = asyncio.Event()
    pieces = frames(_DIALECT)
    server = aside.serve(streamed(*pieces[:4], go, *pieces[4:]))
    with client(_DIALECT, server.url) as made, made.stream_sync("hi") as stream:
        next(stream)
        assert TEXT.startswith(stream.response.text)
        assert not stream.is_complete
        aside.loop.call_soon_threadsafe(go.set)
        for _ in stream:
            pass
        assert stream.response.text == TEXT


async def test_blocking_calls_work_inside_a_running_loop() -> None:
    """A notebook has one."""
    aside = Aside()
    try:
        server = aside.serve(plain(body(_DIALECT)), streamed(*frames(_DIALECT)))
        with client(_DIALECT, server.url) as made:
            assert made.send_sync("hi").text == TEXT
            assert made.stream_sync("hi").collect().text == TEXT
    finally:
        aside.close()


def test_threads_may_share_a_client(aside: Aside) -> None:
    """Each thread gets its own answers."""
    server = aside.serve(streamed(*frames(_DIALECT)))
    with client(_DIALECT, server.url) as made, ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: made.stream_sync("hi").collect().text, range(40)))
    assert found == [TEXT] * 40


def test_one_client_serves_blocking_and_async_code(aside: Aside) -> None:
    """Each loop has its own connections."""
    server = aside.serve(plain(body(_DIALECT)))
    made = client(_DIALECT, server.url)
    assert made.send_sync("hi").text == TEXT
    assert asyncio.run(made.send("hi")).text == TEXT
    assert made.send_sync("hi").text == TEXT
    made.close_sync()
    aside.run(server.until_idle())


def test_errors_are_those_of_the_async_api(aside: Aside) -> None:
    """Their attributes are the same."""
    cut = streamed(*frames(_DIALECT)[:4], Fault.CLOSE)
    server = aside.serve(plain({"error": {"message": "no"}}, 400), cut)
    with client(_DIALECT, server.url) as made:
        with pytest.raises(InvalidRequest):
            made.send_sync("hi")
        with pytest.raises(StreamInterrupted) as raised:
            list(made.stream_sync("hi"))
    assert TEXT.startswith(raised.value.partial.text)


def test_a_stream_is_iterated_once(aside: Aside) -> None:
    """As with the async method."""
    server = aside.serve(streamed(*frames(_DIALECT)))
    with client(_DIALECT, server.url) as made:
        stream = made.stream_sync("hi")
        for _ in stream:
            with pytest.raises(InvalidInputError, match="once"):
                iter(stream)
        with pytest.raises(InvalidInputError, match="once"):
            stream.collect()
        with pytest.raises(StopIteration):
            next(stream)


@pytest.mark.thorough
@pytest.mark.parametrize("way", ["with", "close", "dropped"])
def test_leaving_a_stream_early_closes_the_connection(way: str, aside: Aside) -> None:
    """By `close`, by the context manager, or by dropping it."""
    server = aside.serve(streamed(*frames(_DIALECT)[:3], Fault.HANG))
    with client(_DIALECT, server.url) as made:
        stream = made.stream_sync("hi")
        if way == "with":
            with stream:
                next(stream)
        else:
            next(stream)
            if way == "close":
                stream.close()
                stream.close()
        del stream
        gc.collect()
        aside.run(server.until_idle())


def test_an_interrupt_closes_the_connection(aside: Aside) -> None:
    """Ctrl-C while waiting for an event or an answer."""
    server = aside.serve(streamed(*frames(_DIALECT)[:3], Fault.HANG), [Fault.HANG])

    def interrupt(when: Any) -> Future[None]:
        async def wait() -> None:
            await server.until(when)
            await asyncio.sleep(0.1)
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

        return asyncio.run_coroutine_threadsafe(wait(), aside.loop)

    with client(_DIALECT, server.url) as made:
        sent = interrupt(lambda seen: len(seen.seen) == 1)
        with pytest.raises(KeyboardInterrupt):
            for _ in made.stream_sync("hi"):
                pass
        sent.result(10)
        aside.run(server.until_idle())
        sent = interrupt(lambda seen: len(seen.seen) == 2)
        with pytest.raises(KeyboardInterrupt):
            made.send_sync("hi")
        sent.result(10)
        aside.run(server.until_idle())


_SCRIPT = """
import sys
from dragoman.transport.client import Client
client = Client("openai:m", base_url=sys.argv[1], key="k")
print(client.send_sync("hi").text)
for event in client.stream_sync("hi"):
    break
"""


def test_a_script_that_closes_nothing_ends_quietly(aside: Aside) -> None:
    """Nothing is printed on standard error, and it does not hang."""
    server = aside.serve(plain(body(_DIALECT)), streamed(*frames(_DIALECT)[:3], Fault.HANG))
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, server.url],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, TEXT, "")


def test_a_blocking_call_on_the_background_loop_is_rejected(aside: Aside) -> None:
    """It would deadlock."""
    from dragoman.model import portal

    server = aside.serve(plain(body(_DIALECT)))
    with client(_DIALECT, server.url) as made:

        async def ask(model: Client) -> None:
            model.send_sync("hi")

        with pytest.raises(InvalidInputError, match="async method"):
            portal.run(ask(made))
