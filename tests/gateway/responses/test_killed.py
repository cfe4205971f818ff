"""kill -9 under load: every response that a client received in full is stored."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from dragoman import ChatHistory, SessionIdentity
from tests.gateway.responses.upstreams import Model

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[3]
WORKERS, ENOUGH = 6, 60


@contextmanager
def process(history: str, url: str) -> Generator[tuple[subprocess.Popen[bytes], str]]:
    """A gateway of its own, and its address."""
    env = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-m", "tests.gateway.responses.kill_server", history, url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=env, cwd=ROOT) as running:
        try:
            assert running.stdout is not None
            yield running, f"http://127.0.0.1:{int(running.stdout.readline())}"
        finally:
            running.kill()


class Load:
    """Clients that send requests in a loop, and record those that completed."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.seen: list[tuple[str, str, str]] = []  # session, question, answer
        self.responses: list[str] = []
        self.enough = threading.Event()

    def ask(self, worker: int) -> None:
        """Ask until the server is gone."""
        with httpx.Client(base_url=self._url, timeout=20) as http:
            for number in range(10_000):
                try:
                    self._one(http, f"session {worker % 3}", f"w{worker} q{number}", number)
                except (httpx.HTTPError, EOFError):
                    return
                if len(self.seen) >= ENOUGH:
                    self.enough.set()

    def _one(self, http: httpx.Client, session: str, question: str, number: int) -> None:
        is_stream = number % 2 == 0
        headers = {"x-dragoman-session": session}
        body = {"model": "chat", "input": question, "stream": is_stream}
        answer = http.post("/v1/responses", json=body, headers=headers)
        if is_stream:
            end = answer.text.partition("event: response.completed\ndata: ")[2]
            if not end:
                raise EOFError
            got = json.loads(end.partition("\n")[0])["response"]
        else:
            got = answer.json()
        self.seen.append((session, question, got["output"][0]["content"][0]["text"]))
        self.responses.append(got["id"])


@pytest.mark.parametrize("kind", ["sqlite", "file"])
def test_what_a_client_saw_the_end_of_is_stored(scripted: Model, tmp_path: Path, kind: str) -> None:
    """Every exchange is in its session, and every response can be read, after a kill -9."""
    history = f"sqlite:///{tmp_path}/chats.db" if kind == "sqlite" else f"file://{tmp_path}/chats"
    with process(history, scripted.url) as (running, url):
        load = Load(url)
        clients = [threading.Thread(target=load.ask, args=(n,)) for n in range(WORKERS)]
        for client in clients:
            client.start()
        assert load.enough.wait(120)
        running.send_signal(signal.SIGKILL)
        for client in clients:
            client.join(30)
    stored = {name: asyncio.run(_texts(history, name)) for name in {each[0] for each in load.seen}}
    for session, question, answer in load.seen:
        texts = stored[session]
        assert texts.count(question) == 1
        assert texts[texts.index(question) + 1] == answer
    with process(history, scripted.url) as (_, url), httpx.Client(base_url=url) as http:
        for id in load.responses:
            assert http.get(f"/v1/responses/{id}").status_code == 200


async def _texts(history: str, name: str) -> list[str]:
    identity = SessionIdentity(chat=name, scope="gateway")
    async with ChatHistory(identity, history) as found:
        return [message.text for message in await found.messages()]
