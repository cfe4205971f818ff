"""The conformance tests in somebody else's package: with a plain pytest, and beside plugins."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

MODULE = '''
import pytest

from dragoman import dialect, provider
from dragoman.history import MemoryStorage
from dragoman.testing.conformance.dialects import *
from dragoman.testing.conformance.key_stores import *
from dragoman.testing.conformance.providers import *
from dragoman.testing.conformance.stores import *


class Mine(MemoryStorage):
    """A store."""

    {change}


@pytest.fixture
def backend():
    one = Mine()
    return Backend("mine", lambda: one)


new_backend = backend


@pytest.fixture
def place(tmp_path):
    return Place(f"sqlite:///{{tmp_path / 'keys.db'}}")


@pytest.fixture
def spoken():
    return dialect("anthropic")


@pytest.fixture
def host():
    return provider("anthropic")
'''
FORGETFUL = """async def count(self, *given, **options):
        return 7"""


def _run(folder: Path, change: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_mine.py").write_text(MODULE.format(change=change), "utf-8")
    (folder / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\n", "utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("plugin", ["pytest_asyncio", "anyio", None])
def test_they_run_without_our_conftest(plugin: str | None, tmp_path: Path) -> None:
    """All pass on a store that does what it must; async plugins change nothing."""
    if plugin is not None and importlib.util.find_spec(plugin) is None:
        pytest.skip(f"{plugin} is not installed")
    mode = ["-o", "asyncio_mode=auto"] if plugin == "pytest_asyncio" else []
    done = _run(tmp_path, "", *mode)
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout
    assert "warning" not in done.stdout.splitlines()[-1]


def test_a_store_that_forgets_fails(tmp_path: Path) -> None:
    """And the values are shown."""
    done = _run(tmp_path, FORGETFUL, "-k", "see_each_others_writes")
    assert done.returncode == 1
    assert "assert " in done.stdout
