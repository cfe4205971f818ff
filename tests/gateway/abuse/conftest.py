"""The gateway that all tests of one process attack."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

import pytest

from tests.gateway.abuse.stage import Stage, staged
from tests.gateway.client_requests import FRONTS

_HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A gateway without keys."""
    if not Path("/proc/self/status").exists():
        pytest.skip("reads Linux's /proc")
    with staged(tmp_path_factory.mktemp("abused")) as made:
        yield made


@pytest.fixture(params=FRONTS)
def front(request: pytest.FixtureRequest) -> str:
    """Each dialect of clients."""
    return str(request.param)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run each case with one of the fronts in `make test`, with all in `make test-thorough`."""
    for item in items:
        front = getattr(item, "callspec", None) and item.callspec.params.get("front")  # type: ignore[attr-defined]
        if front is not None and item.path.is_relative_to(_HERE):
            case = item.name.replace(front, "").encode()
            if FRONTS[crc32(case) % len(FRONTS)] != front:
                item.add_marker(pytest.mark.thorough)
