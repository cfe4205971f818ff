"""Key stores on the other shelves: of the documentation's example, of files, and in memory."""

from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from dragoman.gateway.keys.store import KeyStore
from dragoman.testing.conformance.key_stores import *  # noqa: F403 - the tests
from dragoman.testing.conformance.key_stores import Place
from tests.history.storage import backend_bucket, backend_files, backend_memory

PLACES: dict[str, Callable[[Path], Any]] = {
    "bucket": backend_bucket.place,
    "files": backend_files.place,
    "memory": backend_memory.place,
}


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Place]:
    """An empty store on each."""
    with PLACES[request.param](tmp_path) as make:
        yield Place(make=lambda: KeyStore(make()))
