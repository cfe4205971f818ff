"""Third-party libraries from PyPI, at pinned versions, each in an environment of its own.

They are installed into a temporary folder; `DRAGOMAN_TEST_PYPI` names one that is kept.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from tests import environment

_TIMEOUT = 540

Pypi = Callable[..., Path]
"""Requirements → the Python that has them."""


def pythons(base: Path) -> Pypi:
    """Installs into a folder, unless one is kept; skips where the index can't be reached."""
    base = Path(os.environ.get("DRAGOMAN_TEST_PYPI") or base).resolve()

    def python(*requirements: str) -> Path:
        name = requirements[0].partition("[")[0].partition("=")[0]
        folder = base / f"{name}-{sha256(' '.join(requirements).encode()).hexdigest()[:8]}"
        found = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
        done = folder / "installed"
        if not done.exists():
            venv.create(folder, clear=True, with_pip=True)
            _install(found, requirements)
            done.touch()
        return found

    return python


def _install(python: Path, requirements: tuple[str, ...]) -> None:
    ran = subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements],
        env=environment.OUTSIDE, capture_output=True, text=True, check=False, timeout=_TIMEOUT,
    )  # fmt: skip
    if ran.returncode != 0:
        pytest.skip(f"pip can't install {requirements[0]}")
