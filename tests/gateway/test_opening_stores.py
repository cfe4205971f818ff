"""A gateway that ends while it opens a store leaves nothing open."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.gateway.config.settings import GatewayConfig, ServerSettings
from dragoman.gateway.histories import Histories
from dragoman.gateway.page.state import Page
from dragoman.gateway.state import Gateway
from dragoman.history.storage.sqlite import SQLiteStorage


def _histories(url: str) -> Any:
    return Histories(url, response_ttl=60)


def _page(url: str) -> Any:
    return Page(Gateway(GatewayConfig(server=ServerSettings(history=url))))


@pytest.mark.parametrize("made", [_histories, _page])
async def test_a_store_is_closed_that_was_being_opened(
    made: Callable[[str], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who asked for it is cancelled, but the store's thread goes on: it is open soon after."""
    steps: list[str] = []
    reached = asyncio.Event()
    opening, closing = SQLiteStorage.open, SQLiteStorage.close

    async def open_slowly(self: SQLiteStorage) -> None:
        await opening(self)
        steps.append("opened")
        reached.set()
        await asyncio.sleep(60)

    async def close(self: SQLiteStorage) -> None:
        steps.append("closed")
        await closing(self)

    monkeypatch.setattr(SQLiteStorage, "open", open_slowly)
    monkeypatch.setattr(SQLiteStorage, "close", close)
    asked = asyncio.create_task(made(f"sqlite:///{tmp_path / 'chats.db'}").storage())
    await reached.wait()
    asked.cancel()
    await asyncio.wait({asked})
    assert steps == ["opened", "closed"]
