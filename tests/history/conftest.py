"""Fixtures; backends are discovered automatically."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path

import pytest

from dragoman.history.storage.protocol import Storage
from tests.sampling import BACKENDS


class Backend:
    """One location to store things, which can be opened repeatedly.

    `tests/history/storage/backend_<name>.py` has `place(tmp_path)`, a context manager that gives
    a function creating unopened storages at one new location (or skips, with the reason). A module
    whose storages don't support search sets `SEARCHES = False`.
    """

    def __init__(self, name: str, make: object, *, searches: bool = True) -> None:
        self.name = name
        self.searches = searches
        self._make = make

    def new(self) -> Storage:
        """Another storage at the same location, not opened yet."""
        return self._make()  # type: ignore[operator, no-any-return]  # as `place` promises

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[Storage]:
        """Another storage at the same location, open."""
        storage = self.new()
        await storage.open()
        try:
            yield storage
        finally:
            await storage.close()


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backend]:
    """Every backend in turn, on a place with nothing in it."""
    module = import_module(f"tests.history.storage.backend_{request.param}")
    if request.param == "postgres":  # whose tables take longer to create than most tests
        place = module.emptied(request.getfixturevalue("postgres_schema"))
    else:
        place = module.place(tmp_path)
    with place as make:
        yield Backend(request.param, make, searches=getattr(module, "SEARCHES", True))


@pytest.fixture(params=BACKENDS)
def new_backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backend]:
    """Every backend in turn, on a place where no store has been opened before."""
    module = import_module(f"tests.history.storage.backend_{request.param}")
    with module.place(tmp_path) as make:
        yield Backend(request.param, make)


@pytest.fixture
def bare_backend(backend: Backend) -> Backend:
    """Every backend except the encrypted one, which creates its own seals."""
    if backend.name == "sealed":
        pytest.skip("an encrypted store creates seals itself")
    return backend
