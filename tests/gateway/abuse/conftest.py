"""The gateway that the tests of one process attack, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.gateway.abuse.stage import Stage, staged
from tests.gateway.client_requests import FRONTS


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A gateway without keys."""
    if not Path("/proc/self/status").exists():
        pytest.skip("reads Linux's /proc")
    with staged(tmp_path_factory.mktemp("abused")) as made:
        yield made


@pytest.fixture(params=FRONTS)
def front(request: pytest.FixtureRequest) -> str:
    """Each dialect that clients speak."""
    return str(request.param)
