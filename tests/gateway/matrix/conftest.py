"""What the cells of the matrix share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.gateway.matrix.behind import Behind, gateway


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[str, Behind]]:
    """A gateway and the providers behind it, shared by all cells."""
    with gateway() as (serving, behind):
        yield serving.url, behind
