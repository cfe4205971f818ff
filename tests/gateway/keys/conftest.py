"""The same tests on every store, with a new location on each and a manual clock."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman.gateway.keys import Keys
from tests.history.storage.backend_postgres import URL as POSTGRES
from tests.history.storage.backend_postgres import emptied, schema
from tests.history.storage.backend_redis import URL as REDIS
from tests.history.storage.backend_redis import fresh_prefix

NOON = 1_794_916_800.0  # 2026-11-17 12:00 UTC


class Clock:
    """A clock that only moves when told to."""

    def __init__(self, now: float = NOON) -> None:
        self.now = now

    def __call__(self) -> float:
        """The time."""
        return self.now


class Place:
    """An empty store that can be opened repeatedly."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.clock = Clock()

    @asynccontextmanager
    async def opened(self, **options: Any) -> AsyncGenerator[Keys]:
        """Its keys, as another process would open them."""
        keys = await Keys.open(self.url, **{"clock": self.clock, **options})
        try:
            yield keys
        finally:
            await keys.close()


@contextmanager
def _sqlite(folder: Path) -> Generator[str]:
    yield f"sqlite:///{folder / 'keys.db'}"


@contextmanager
def _postgres(_folder: Path) -> Generator[str]:
    with schema() as name:
        yield f"{POSTGRES}?schema={name}"


@contextmanager
def _redis(_folder: Path) -> Generator[str]:
    with fresh_prefix() as prefix:
        yield f"{REDIS}?prefix={prefix}"


PLACES: dict[str, Callable[[Path], Any]] = {
    "sqlite": _sqlite,
    "postgres": _postgres,
    "redis": _redis,
}


@pytest.fixture(scope="session")
def keys_schema() -> Generator[str]:
    """A schema in PostgreSQL for the tests of this process."""
    with schema() as name:
        yield name


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Place]:
    """A store of each kind; skips where its server is not there."""
    if request.param == "postgres":  # whose tables take longer to create than most tests
        name = request.getfixturevalue("keys_schema")
        with emptied(name):
            yield Place(f"{POSTGRES}?schema={name}")
        return
    with PLACES[request.param](tmp_path) as url:
        yield Place(url)
