"""`dragoman serve` between an agent and a scripted model: a process, with keys and a log."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from socket import create_server
from typing import Any

from dragoman.gateway.keys import Keys
from tests.gateway.agents.coder import Coder
from tests.gateway.answers import KINDS
from tests.gateway.operations.workers import process
from tests.gateway.running import upstream

MODELS = {
    "openai-chat": "llama-3.3-70b",
    "openai-responses": "gpt-5-mini",
    "anthropic": "claude-sonnet-4-5",
    "gemini": "gemini-2.5-flash",
    "ollama": "qwen3",
}
"""The model behind, by the dialect that it is asked in."""
_CONFIG = """
[server]
keys = "{keys}"
log = "json"

[providers.behind]
kind = "{kind}"
dialect = "{dialect}"
base_url = "{url}"
api_key_env = "BEHIND_KEY"
retries = 0

[[routes]]
model = "*"
to = "behind:{model}"
"""


class Gateway:
    """A running gateway, and its log."""

    def __init__(self, url: str, key: str, log: Path) -> None:
        self.url = url
        self.key = key
        self._log = log

    def records(self, least: int) -> list[dict[str, Any]]:
        """The log records of that many requests, which are written after a while."""
        found: list[dict[str, Any]] = []
        for _ in range(1000):
            lines = self._log.read_text().splitlines()
            found = [json.loads(line) for line in lines if line.startswith("{")]
            if len(found) >= least:
                return found
            threading.Event().wait(0.02)
        raise AssertionError(found)


@contextmanager
def gateway(folder: Path, coder: Coder) -> Generator[Gateway]:
    """A gateway with one key that routes everything to this model."""
    folder.mkdir(parents=True, exist_ok=True)
    keys = f"sqlite:///{folder}/keys.db"
    key = asyncio.run(_key(keys))
    with upstream(coder) as url:
        text = _CONFIG.format(
            keys=keys, url=url, kind=KINDS[coder.name], dialect=coder.name,
            model=MODELS[coder.name],
        )  # fmt: skip
        with process(folder, text, env={"BEHIND_KEY": "of-the-provider"}) as served:
            yield Gateway(f"http://127.0.0.1:{served.port}", key, folder / "requests.log")


async def _key(url: str) -> str:
    keys = await Keys.open(url)
    try:
        _, secret = await keys.create(name="agent")
        return secret
    finally:
        await keys.close()


@contextmanager
def dead_end() -> Generator[tuple[str, list[str]]]:
    """A proxy that blocks all external traffic, and records the targets."""
    wanted: list[str] = []
    with create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:  # closed: the test is over
                    return
                with connection, suppress(OSError):
                    line = connection.recv(4096).partition(b"\r\n")[0]
                    wanted.append(line.decode("latin-1"))

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", wanted
