"""`dragoman serve` as a process: signals, drains, reloads, workers that die."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import pytest
from aiohttp import web

from tests.gateway.operations.test_metrics import read, total
from tests.gateway.operations.workers import (
    Process,
    answering,
    ask,
    chat,
    http,
    process,
    raw,
    read_all,
    streaming,
)
from tests.gateway.running import Answering, upstream

pytestmark = [
    pytest.mark.slow,  # each starts a server
    pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="reads Linux's /proc"),
]

FILE = """
[server]
drain_timeout = {drain}
log = "json"

[providers.lab]
kind = "openai-compatible"
base_url = "{url}"

[[routes]]
model = "*"
name = "{name}"
to = ["lab"]
"""


def written(url: str, name: str = "all", drain: float = 10) -> str:
    """A file in which every model is served by this address."""
    return FILE.format(url=url, name=name, drain=drain)


class Load:
    """Clients that send requests continuously, each on one connection or on many."""

    def __init__(self, port: int, clients: int = 4, *, keeps: bool = True) -> None:
        self.failed: list[str] = []
        self.done = 0
        self._port, self._keeps = port, keeps
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run) for _ in range(clients)]
        for thread in self._threads:
            thread.start()

    def _run(self) -> None:
        connection = HTTPConnection("127.0.0.1", self._port, timeout=20)
        while not self._stop.is_set():
            try:
                connection.request("POST", "/v1/chat/completions", _BODY)
                answer = connection.getresponse()
                body = answer.read()
                if answer.status != 200 or b"Hello" not in body:
                    self.failed.append(f"{answer.status} {body[:200]!r}")
            except (OSError, HTTPException) as error:
                self.failed.append(repr(error))
                connection.close()
            self.done += 1
            if not self._keeps:
                connection.close()
        connection.close()

    def until(self, more: int) -> None:
        """Wait for that many more requests."""
        wanted = self.done + more
        for _ in range(4000):
            if self.done >= wanted:
                return
            threading.Event().wait(0.01)
        raise AssertionError(self.done)

    def end(self) -> None:
        """Stop sending."""
        self._stop.set()
        for thread in self._threads:
            thread.join(30)


_BODY = http("", chat()).partition(b"\r\n\r\n")[2]


def gated() -> tuple[Answering, threading.Event, threading.Event]:
    """A stream that reports its start, and waits before its last word."""
    begun, go_on = threading.Event(), threading.Event()

    async def wait() -> None:
        begun.set()
        while not go_on.is_set():  # noqa: ASYNC110 - it is of another thread
            await asyncio.sleep(0.01)

    async def answer(request: web.Request) -> web.StreamResponse:
        return await streaming(request, [b"one ", b"two ", b"three"], before_last=wait)

    return answer, begun, go_on


@pytest.mark.parametrize("workers", [1, 2])
def test_a_drain_lets_streams_end(tmp_path: Path, workers: int) -> None:
    """SIGTERM: no new connections, and the stream in progress is completed."""
    answer, begun, go_on = gated()
    with (
        upstream(answer) as url,
        process(tmp_path, written(url), "--workers", str(workers)) as serving,
    ):
        body = http("/v1/chat/completions", chat(stream=True))
        connection = raw(serving.port, body)
        assert begun.wait(20)
        serving.signal(signal.SIGTERM)
        _until_refused(serving)
        assert serving.process.poll() is None
        go_on.set()
        said = read_all(connection)
        assert b"three" in said
        assert said.rstrip().endswith(b"0")  # the last chunk of a complete answer
        assert b"[DONE]" in said
        assert serving.process.wait(10) == 0
    assert "stopped" in serving.screen[-1]
    lines = (tmp_path / "requests.log").read_text().splitlines()
    assert len(lines) == 1


def _until_refused(serving: Process) -> None:
    for _ in range(500):
        try:
            socket.create_connection(("127.0.0.1", serving.port), timeout=5).close()
        except ConnectionError:
            return
        threading.Event().wait(0.02)
    pytest.fail("it still listens")


@pytest.mark.parametrize("workers", [1, 2])
def test_a_drain_has_a_time_limit(tmp_path: Path, workers: int) -> None:
    """A response that takes longer ends with an error, in the client's form."""
    answer, begun, go_on = gated()
    with upstream(answer) as url:
        text = written(url, drain=0.5)
        with process(tmp_path, text, "--workers", str(workers)) as serving:
            connection = raw(serving.port, http("/v1/chat/completions", chat(stream=True)))
            assert begun.wait(20)
            serving.signal(signal.SIGTERM)
            said = read_all(connection)
            assert b"the server is shutting down" in said
            assert serving.process.wait(10) == 0
        go_on.set()


@pytest.mark.parametrize("workers", [1, 2])
def test_a_second_interrupt_ends_it_at_once(tmp_path: Path, workers: int) -> None:
    """The second Ctrl-C waits for nobody."""
    answer, begun, go_on = gated()
    with upstream(answer) as url:
        text = written(url, drain=60)
        with process(tmp_path, text, "--workers", str(workers)) as serving:
            connection = raw(serving.port, http("/v1/chat/completions", chat(stream=True)))
            assert begun.wait(20)
            serving.signal(signal.SIGINT)
            _until_refused(serving)
            serving.signal(signal.SIGINT)
            serving.process.wait(10)
            said = read_all(connection)
            assert b"[DONE]" not in said
        go_on.set()


@pytest.mark.parametrize("workers", [1, 2])
def test_a_reload_under_load(tmp_path: Path, workers: int) -> None:
    """New files, loaded by signal or by change, fail no request; invalid ones are counted."""
    with (
        upstream(answering) as one,
        upstream(answering) as two,
        process(tmp_path, written(one), "--workers", str(workers)) as serving,
    ):
        load = Load(serving.port)
        try:
            for number, url in enumerate((two, one, two, one)):
                load.until(100)
                _replace(tmp_path / "dragoman.toml", written(url, f"route{number}"))
                serving.signal(signal.SIGHUP)
            load.until(100)
            _replace(tmp_path / "dragoman.toml", "[server]\nprot = 1\n")
            serving.wait_for("unknown field prot")
            load.until(100)
            _replace(tmp_path / "dragoman.toml", written(two, "last"))
            _until_routed(serving, "last", workers)
        finally:
            load.end()
        assert load.failed == []
    assert any("dragoman.toml:2:1" in line for line in serving.screen)


def _replace(path: Path, text: str) -> None:
    part = path.with_suffix(".part")
    part.write_text(text)
    part.replace(path)


def _until_routed(serving: Process, name: str, workers: int) -> None:
    for _ in range(500):
        samples = read(ask(serving.port, "/metrics", method="GET")[1])
        has_all = total(samples, "reloads_total") >= 2 * workers
        if total(samples, "requests_total", route=name) and has_all:
            return
        threading.Event().wait(0.02)
    pytest.fail("the route never came")


def test_a_killed_worker_is_replaced(tmp_path: Path) -> None:
    """Under load only its own requests fail; no connection is refused."""
    with (
        upstream(answering) as url,
        process(tmp_path, written(url), "--workers", "2") as serving,
    ):
        before = serving.workers()
        assert len(before) == 2
        load = Load(serving.port, keeps=False)
        try:
            load.until(200)
            shown = read(ask(serving.port, "/metrics", method="GET")[1])
            os.kill(before[0], signal.SIGKILL)
            serving.wait_for("starting another")
            _until_workers(serving, 2)
            load.until(300)
        finally:
            load.end()
        after = serving.workers()
        assert len(after) == 2
        assert before[0] not in after
        assert len(load.failed) <= 4  # one for each client at the most
        assert not [each for each in load.failed if "Refused" in each]
        samples = read(ask(serving.port, "/metrics", method="GET")[1])
        name = "requests_total"
        assert total(samples, name, kind="chat") >= total(shown, name, kind="chat")
        assert total(samples, "workers") == 2


def _until_workers(serving: Process, count: int) -> None:
    for _ in range(500):
        samples = read(ask(serving.port, "/metrics", method="GET")[1])
        if total(samples, "workers") == count:
            return
        threading.Event().wait(0.02)
    pytest.fail("the worker did not come back")


def test_workers_end_with_their_supervisor(tmp_path: Path) -> None:
    """If it is killed, its workers stop too, and the port is free."""
    with (
        upstream(answering) as url,
        process(tmp_path, written(url), "--workers", "2") as serving,
    ):
        workers = serving.workers()
        serving.signal(signal.SIGKILL)
        serving.process.wait(10)
        _until_refused(serving)
        for _ in range(500):
            if not any(Path(f"/proc/{pid}").exists() for pid in workers):
                break
            threading.Event().wait(0.02)
        else:
            pytest.fail("the workers are still there")


def test_metrics_are_summed_over_workers(tmp_path: Path) -> None:
    """Any worker reports the requests of all."""
    with (
        upstream(answering) as url,
        process(tmp_path, written(url), "--workers", "3") as serving,
    ):
        for _ in range(30):
            assert ask(serving.port)[0] == 200
        for _ in range(5):
            samples = read(ask(serving.port, "/metrics", method="GET")[1])
            assert total(samples, "requests_total", kind="chat", status="200") == 30
            assert total(samples, "tokens_total", type="input") == 30 * 7
            assert total(samples, "workers") == 3


def test_ten_thousand_idle_connections(tmp_path: Path) -> None:
    """Requests are served meanwhile."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 11_000:
        pytest.skip("the system allows too few open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with upstream(answering) as url, process(tmp_path, written(url)) as serving:
        held: list[socket.socket] = []
        try:
            held += [raw(serving.port, b"") for _ in range(10_000)]
            samples = read(ask(serving.port, "/metrics", method="GET")[1])
            assert total(samples, "connections") == 10_001
            for _ in range(50):
                assert ask(serving.port)[0] == 200
            held[-1].sendall(http("/health"))
            assert held[-1].recv(4096).startswith(b"HTTP/1.1 200 ")
        finally:
            for each in held:
                each.close()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
