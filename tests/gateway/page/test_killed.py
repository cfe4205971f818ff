"""kill -9 while an answer streams: what was shown is there again, and its branch is free."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from aiohttp import web

from dragoman.gateway.page.listing import OWN
from dragoman.history.records import message_of
from dragoman.history.storage.protocol import Filter
from dragoman.history.storage_urls import open_storage
from dragoman.model.parts import Text
from tests.environment import PATIENCE
from tests.gateway.answers import Provider, frames_of, said
from tests.gateway.operations.workers import process
from tests.gateway.page.pages import PAGE
from tests.gateway.running import upstream

pytestmark = pytest.mark.slow
_CONFIG = """
[server]
history = "{history}"
traffic = "off"
log = "off"
workers = {workers}

[providers.behind]
kind = "openai-compatible"
base_url = "{url}"
api_key_env = "BEHIND_KEY"

[[routes]]
model = "*"
to = "behind:m"
"""


class _Hanging(Provider):
    """Begins its first answer and goes no further; the others are whole."""

    def __init__(self) -> None:
        super().__init__("openai-chat", said(Text("Slow words")), said(Text("Whole answer")))
        self.over = asyncio.Event()

    async def stream(self, request: web.Request, frames: Any) -> web.StreamResponse:
        """Stream."""
        if len(self.asked) > 1:
            return await super().stream(request, frames)
        reply = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await reply.prepare(request)
        for frame in frames_of(self.name, said(Text("Slow words")))[:2]:
            await reply.write(frame)
        await self.over.wait()
        return reply


@contextmanager
def _page(folder: Path, url: str, workers: int) -> Generator[tuple[int, httpx.Client]]:
    """`dragoman serve` in a process group of its own, and a client of its page."""
    folder.mkdir(exist_ok=True)
    text = _CONFIG.format(url=url, history=_store(folder), workers=workers)
    with process(folder, text, env={"BEHIND_KEY": "of-the-provider"}) as served:
        base = f"http://127.0.0.1:{served.port}/ui/api/"
        with httpx.Client(base_url=base, headers=PAGE, timeout=PATIENCE) as client:
            yield served.process.pid, client


def _store(folder: Path) -> str:
    return f"sqlite:///{folder}/chats.db"


def _has_draft(folder: Path) -> bool:
    async def look() -> bool:
        async with open_storage(_store(folder)) as storage:
            found = [
                row
                for session in await storage.sessions(Filter(scope=OWN))
                for row in await storage.rows(session.identity, limit=1)
            ]
        return any(message_of(row.body).text == "Slow words" for row in found)

    return asyncio.run(look())


def _wait_for_draft(folder: Path) -> None:
    for _ in range(int(PATIENCE / 0.1)):
        if _has_draft(folder):
            return
        threading.Event().wait(0.1)
    raise AssertionError(folder)


def _begin(client: httpx.Client) -> str:
    """Send a message, and read until the words are shown; returns the conversation."""
    asked = {"model": "m", "text": "Slowly"}
    with client.stream("POST", "talk", json=asked) as answer:
        seen, id = "", ""
        for line in answer.iter_lines():
            seen += line
            if '"conversation"' in line and not id:
                id = line.partition('"conversation":"')[2].partition('"')[0]
            if "Slow words" in line:
                return id
    raise AssertionError(seen)


def _when_served(client: httpx.Client, path: str) -> Any:
    """The answer, as soon as the supervisor has started new workers."""
    for _ in range(int(PATIENCE / 0.1)):
        try:
            return client.get(path).json()
        except httpx.HTTPError:
            threading.Event().wait(0.1)
    raise AssertionError(path)


@pytest.mark.parametrize("workers", [1, 2])
def test_the_part_that_was_shown_is_there_after_a_restart(tmp_path: Path, workers: int) -> None:
    """Marked as interrupted; the conversation goes on at once, on the same branch."""
    behind = _Hanging()
    with upstream(behind) as url:
        with _page(tmp_path, url, workers) as (pid, client):
            id = _begin(client)
            _wait_for_draft(tmp_path)
            os.killpg(pid, signal.SIGKILL)
        with _page(tmp_path, url, workers) as (_, client):
            found = client.get(f"conversations/{id}").json()
            assert found["run"] is None
            question, answer = found["messages"]
            assert question["parts"][0]["text"] == "Slowly"
            assert (answer["parts"][0]["text"], answer["finish"]) == ("Slow words", "interrupted")
            again = {"model": "m", "text": "Go on", "conversation": id, "after": answer["id"]}
            assert "Whole answer" in client.post("talk", json=again).text
            after = client.get(f"conversations/{id}").json()
            assert len(after["messages"]) == 4
            assert len(after["branches"]) == 1
    assert [each["role"] for each in behind.asked[-1]["messages"]] == ["user", "assistant", "user"]


def test_a_killed_worker_frees_its_branch_for_the_others(tmp_path: Path) -> None:
    """The others see at once that the process is gone."""
    with upstream(_Hanging()) as url, _page(tmp_path, url, 2) as (pid, client):
        id = _begin(client)
        run = client.get(f"conversations/{id}").json()["run"]
        assert run is not None
        _wait_for_draft(tmp_path)
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for child in children:
            os.kill(int(child), signal.SIGKILL)
        found = _when_served(client, f"conversations/{id}")
        assert found["run"] is None
        assert [each["finish"] for each in found["messages"]] == [None, "interrupted"]
