"""The same tests on every store, with a new location on each and a manual clock."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman.testing.conformance.key_stores import NOON, Clock, Place
from tests.history.storage.backend_mariadb import database
from tests.history.storage.backend_postgres import URL as POSTGRES
from tests.history.storage.backend_postgres import emptied, schema
from tests.history.storage.backend_redis import URL as REDIS
from tests.history.storage.backend_redis import fresh_prefix

__all__ = ["NOON", "Clock", "Place"]


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


@contextmanager
def _mariadb(_folder: Path) -> Generator[str]:
    with database() as url:
        yield url


PLACES: dict[str, Callable[[Path], Any]] = {
    "sqlite": _sqlite,
    "postgres": _postgres,
    "redis": _redis,
    "mariadb": _mariadb,
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
