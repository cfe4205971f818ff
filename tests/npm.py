"""Third-party programs from npm, each at a pinned version.

They are installed into a temporary folder; `DRAGOMAN_TEST_NPM` names one that is kept.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import environment

INSPECTOR = "@modelcontextprotocol/inspector@2.12.0"
CLAUDE_CODE = "@anthropic-ai/claude-code@2.1.326"
CODEX = "@openai/codex@0.169.0"
COPILOT = "@github/copilot@1.0.102"
OPENCODE = "opencode-ai@1.18.33"
_TIMEOUT = 540  # each has hundreds of megabytes

Npm = Callable[[str, str], Path]
"""A package and the name of a program in it → where the program is."""


def programs(base: Path) -> Npm:
    """Installs into a folder, unless one is kept; skips without npm or a registry."""
    base = Path(os.environ.get("DRAGOMAN_TEST_NPM") or base).resolve()

    def program(package: str, name: str) -> Path:
        if shutil.which("npm") is None:
            pytest.skip("npm is not installed")
        folder = base / package.replace("/", "_")
        found = folder / "node_modules" / ".bin" / name
        if not found.exists():
            _install(package, folder)
        return found

    return program


def _install(package: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        ["npm", "install", "--no-audit", "--no-fund", "--prefix", ".", package],
        # in a folder of its own: npm would take a folder of the package's name for the package
        cwd=folder, env=environment.OUTSIDE, capture_output=True, text=True, check=False,
        timeout=_TIMEOUT,
    )  # fmt: skip
    if done.returncode != 0:
        pytest.skip(f"npm can't install {package}")
