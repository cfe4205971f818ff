"""Third-party packages from npm, each at a pinned version.

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
CLAUDE_CODE = "@anthropic-ai/claude-code@2.1.328"
CODEX = "@openai/codex@0.169.0"
COPILOT = "@github/copilot@1.0.102"
OPENCODE = "opencode-ai@1.18.33"
_TIMEOUT = 540  # each has hundreds of megabytes

Npm = Callable[[str, str], Path]
"""A package and the name of a program in it → where the program is."""
Packages = Callable[..., Path]
"""Packages → the folder that has them in its `node_modules`."""


def packages(base: Path) -> Packages:
    """Installs into a folder, unless one is kept; skips without npm or a registry."""
    base = Path(os.environ.get("DRAGOMAN_TEST_NPM") or base).resolve()

    def folder(*names: str) -> Path:
        if shutil.which("npm") is None:
            pytest.skip("npm is not installed")
        found = base / "+".join(names).replace("/", "_")
        if not (found / "node_modules" / ".package-lock.json").exists():  # npm writes it last
            _install(names, found)
        return found

    return folder


def programs(base: Path) -> Npm:
    """Programs from packages that are installed into a folder."""
    folder = packages(base)

    def program(package: str, name: str) -> Path:
        return folder(package) / "node_modules" / ".bin" / name

    return program


def _install(names: tuple[str, ...], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        ["npm", "install", "--no-audit", "--no-fund", "--prefix", ".", *names],
        # in a folder of its own: npm would take a folder of the package's name for the package
        cwd=folder, env=environment.OUTSIDE, capture_output=True, text=True, check=False,
        timeout=_TIMEOUT,
    )  # fmt: skip
    if done.returncode != 0:
        pytest.skip(f"npm can't install {' '.join(names)}")
