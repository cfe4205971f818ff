"""The official reference servers, pinned, installed once into their own folder."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
import venv
from functools import cache
from pathlib import Path

import pytest

from tests.environment import OUTSIDE

NPM = {
    "@modelcontextprotocol/server-everything": "2026.8.31",
    "@modelcontextprotocol/server-filesystem": "2026.8.31",
    "@modelcontextprotocol/server-memory": "2026.8.31",
}
CLAUDE_CODE = {"@anthropic-ai/claude-code": "2.1.326"}
FETCH = "mcp-server-fetch==2026.10.24"


def _folder() -> Path:
    home = OUTSIDE.get("HOME", "/tmp")  # noqa: S108 - where nobody has a home
    root = Path(OUTSIDE.get("XDG_CACHE_HOME") or f"{home}/.cache")
    folder = root / "dragoman-tests" / "mcp"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _done(command: list[str], what: str) -> None:
    try:
        subprocess.run(command, capture_output=True, timeout=150, check=True, env=OUTSIDE)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        pytest.skip(f"{what} can't be installed: is there a network?")


@cache
def _packages(**versions: str) -> Path:
    """A folder with these npm packages; skips if they can't be installed."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("node and npm are not installed")
    named = "-".join(f"{name.rpartition('/')[2]}-{version}" for name, version in versions.items())
    folder = _folder() / named
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run in several processes
        if not (folder / "done").exists():
            wanted = [f"{name}@{version}" for name, version in versions.items()]
            _done([npm, "install", "--prefix", str(folder), "--no-audit", "--no-fund",
                   "--save-exact", *wanted], "the reference servers of npm")  # fmt: skip
            (folder / "done").touch()
    return folder / "node_modules"


def script(name: str) -> str:
    """The program of a reference server: `everything`, `filesystem` or `memory`."""
    return str(_packages(**NPM) / "@modelcontextprotocol" / f"server-{name}" / "dist" / "index.js")


def readmes() -> list[Path]:
    """The configurations in the READMEs of the reference servers."""
    return sorted((_packages(**NPM) / "@modelcontextprotocol").glob("server-*/README.md"))


def claude_code() -> str:
    """Claude Code's program, which has a package for each platform."""
    found = [*(_packages(**CLAUDE_CODE) / "@anthropic-ai").glob("claude-code-*/claude")]
    if not found:
        pytest.skip("there is no Claude Code for this platform")
    return str(found[0])


@cache
def fetch_server() -> str:
    """The command of the reference server from PyPI, in its own environment."""
    folder = _folder() / FETCH.replace("==", "-")
    command = folder / "bin" / "mcp-server-fetch"
    with (_folder() / "fetch.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not command.exists():
            venv.create(folder, with_pip=True, clear=True)
            python = str(folder / "bin" / "python")
            _done([python, "-m", "pip", "install", "-q", FETCH], FETCH)
    return str(command)


if sys.platform == "win32":
    pytest.skip("the reference servers are run on POSIX", allow_module_level=True)
