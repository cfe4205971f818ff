"""Fixtures of the tests about one kind of storage."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.history.storage import backend_postgres


@pytest.fixture
def place() -> Iterator[str]:
    """A new schema in PostgreSQL."""
    with backend_postgres.schema() as name:
        yield name
