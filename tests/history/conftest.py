"""Fixtures; backends are discovered automatically.

`tests/history/storage/backend_<name>.py` has `place(tmp_path)`, a context manager that gives a
function creating unopened storages at one new location (or skips, with the reason). A module whose
storages don't support search sets `SEARCHES = False`.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from dragoman.testing.conformance.stores.backends import Backend
from tests.sampling import BACKENDS


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
