"""Libraries from PyPI and npm, and a gateway in front of scripted providers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.gateway.libraries.running import Programs
from tests.gateway.matrix.behind import Behind, gateway
from tests.npm import packages
from tests.pypi import pythons


@pytest.fixture(scope="session")
def served() -> Iterator[tuple[str, Behind]]:
    """A gateway and the providers behind it."""
    with gateway() as (serving, behind):
        yield serving.url, behind


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Programs]:
    """The libraries' programs, each started once."""
    folder = tmp_path_factory.mktemp("libraries")
    started = Programs(folder, pythons(folder / "pypi"), packages(folder / "npm"))
    yield started
    started.close()
