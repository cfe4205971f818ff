"""A real gateway for the browser: scripted models, keys, a store and recorded traffic."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from dragoman.gateway.config.settings import GatewayConfig, ServerSettings
from dragoman.gateway.keys import Keys
from dragoman.gateway.page.traffic_store import Traffic
from tests.gateway.page.pages import ECHO, SCRIPTED, TestPage
from tests.gateway.running import running


@contextmanager
def gateway_at(folder: Path, *, has_keys: bool = False) -> Generator[tuple[TestPage, str]]:
    """A gateway with everything that the page shows; gives the secret of an admin key, or ""."""
    url = f"sqlite:///{folder}/keys.db"
    server = ServerSettings(history=f"sqlite:///{folder}/chats.db", keys=url if has_keys else None)
    places = {each.name: each for each in (ECHO, SCRIPTED)}
    with running(GatewayConfig(places=places, server=server)) as serving:
        secret = ""
        if has_keys:
            with ThreadPoolExecutor(1) as apart:  # the browser's loop runs in this thread
                serving.gateway.keys, secret = apart.submit(asyncio.run, _keys(url)).result()
        traffic = serving.gateway.traffic = Traffic(folder / "traffic.db", pause=0.02)
        serving.gateway.observers.append(traffic)
        page = TestPage(serving)
        try:
            yield page, secret
        finally:
            page.close()
            traffic.close()


async def _keys(url: str) -> tuple[Keys, str]:
    keys = await Keys.open(url)
    _, secret = await keys.create(name="admin", is_admin=True)
    return keys, secret
