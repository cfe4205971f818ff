"""The gateways that are measured: how each is started before the same server."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

OTHERS = Path(".venv-gateways/bin")
KEY = "sk-benchmark"
_SCHEDULED = 2  # CPUCLOCK_SCHED of Linux: all of a process's time, its ended threads' as well


class Subject(NamedTuple):
    """A gateway: how to start it, and which of the cases it serves."""

    name: str
    command: Callable[[int, str, Path], list[str]]
    """Given its port, the base URL of the server behind, and a folder of its own."""
    serves: frozenset[tuple[str, str]] = frozenset()
    """Fronts and backs; empty: all."""
    models: tuple[str, str] = ("gpt-4.1", "claude-sonnet-4-5")
    """What it calls the model that speaks Chat, and the one that speaks Anthropic's API."""


class Running:
    """A gateway that was started."""

    def __init__(self, subject: Subject, base: str, folder: Path) -> None:
        self.subject = subject
        self.port = _free_port()
        folder.mkdir()
        self._process = subprocess.Popen(
            subject.command(self.port, base, folder),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, **_ENVIRONMENT, "HOME": str(folder)}, start_new_session=True,
        )  # fmt: skip

        kept = folder / "key"
        self.key = kept.read_text().strip() if kept.exists() else KEY

    def wait(self, seconds: float = 90) -> bool:
        """Whether it listens within that time."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and self._process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), 0.2).close()
            except OSError:
                time.sleep(0.2)
            else:
                return True
        return False

    def cpu(self) -> float:
        """Seconds of CPU that it has used, its threads and its children included."""
        return sum(map(_cpu, _family(self._process.pid)))

    def memory(self) -> int:
        """Bytes that it holds."""
        return sum(_resident(pid) for pid in _family(self._process.pid))

    def stop(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()


_ENVIRONMENT = {
    "LITELLM_LOG": "ERROR",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "ANTHROPIC_API_KEY": "sk-upstream",
    "LAB_KEY": "sk-upstream",
    "NO_PROXY": "*",
}


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def _family(pid: int) -> list[int]:
    found = [pid]
    for parent in found:
        tasks = Path(f"/proc/{parent}/task/{parent}/children")
        try:
            found += [int(child) for child in tasks.read_text().split()]
        except OSError:
            continue
    return found


def _cpu(pid: int) -> float:
    """By the process's own clock, to the nanosecond: /proc/PID/stat counts steps of 10 ms."""
    try:
        return time.clock_gettime((~pid << 3) | _SCHEDULED)  # what clock_getcpuclockid(3) makes
    except OSError:  # it is gone
        return 0.0


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


# --- how each is started


def _bare(port: int, base: str, _folder: Path) -> list[str]:
    return [sys.executable, "-m", "benchmarks.gateway_bare", str(port), base]


def _ours(port: int, base: str, folder: Path) -> list[str]:
    """With what an operator has on: keys, metrics and a line of log for each request."""
    config = folder / "dragoman.toml"
    config.write_text(
        f"""
[server]
port = {port}
log = "json"
keys = "sqlite:///{folder / "keys.db"}"

[providers.chat]
kind = "openai-compatible"
base_url = "{base}"
api_key_env = "LAB_KEY"

[providers.claude]
kind = "anthropic"
base_url = "{base}"

[[routes]]
model = "claude*"
to = ["claude"]

[[routes]]
model = "*"
to = ["chat"]
"""
    )
    store = f"sqlite:///{folder / 'keys.db'}"
    command = [sys.executable, "-m", "dragoman.cli", "keys", "create", "--store", store]
    made = subprocess.run(command, check=True, capture_output=True, text=True)
    (folder / "key").write_text(made.stdout)
    return [sys.executable, "-m", "dragoman.cli", "serve", "--config", str(config)]


def _litellm(port: int, base: str, folder: Path) -> list[str]:
    root = base.removesuffix("/v1")
    models: list[dict[str, Any]] = [
        {
            "model_name": "gpt-4.1",
            "litellm_params": {"model": "openai/gpt-4.1", "api_base": base, "api_key": "x"},
        },
        {
            "model_name": "claude-sonnet-4-5",
            "litellm_params": {
                "model": "anthropic/claude-sonnet-4-5", "api_base": root, "api_key": "x",
            },
        },
    ]  # fmt: skip
    config = folder / "config.yaml"
    config.write_text(json.dumps({"model_list": models}))  # JSON is YAML
    return [str(OTHERS / "litellm"), "--config", str(config), "--port", str(port),
            "--host", "127.0.0.1", "--num_workers", "1"]  # fmt: skip


def _rosetta(port: int, base: str, folder: Path) -> list[str]:
    root = base.removesuffix("/v1")
    config = folder / "config.jsonc"
    config.write_text(
        json.dumps(
            {
                "providers": {
                    "chat": {"type": "openai_chat", "api_key": "x", "base_url": base},
                    "claude": {"type": "anthropic", "api_key": "x", "base_url": root},
                },
                "models": {"gpt-4.1": "chat", "claude-sonnet-4-5": "claude"},
                "server": {"host": "127.0.0.1", "port": port},
            }
        )
    )
    return [str(OTHERS / "llm-rosetta-gateway"), "--config", str(config), "--no-banner",
            "--port", str(port), "--data-dir", str(folder), "--log-level", "error"]  # fmt: skip


def _smg(port: int, base: str, _folder: Path) -> list[str]:
    return [str(OTHERS / "smg"), "launch", "--backend", "openai", "--host", "127.0.0.1",
            "--port", str(port), "--worker-urls", base.removesuffix("/v1"),
            "--history-backend", "none", "--log-level", "error",
            "--prometheus-port", str(_free_port())]  # fmt: skip


CHAT, CLAUDE = "openai-chat", "anthropic"
SUBJECTS = (
    Subject("bare starlette + aiohttp", _bare, frozenset({(CHAT, CHAT), (CLAUDE, CLAUDE)})),
    Subject("dragoman", _ours),
    Subject("llm-rosetta", _rosetta),
    Subject("LiteLLM", _litellm),
    Subject("SMG (Rust)", _smg, frozenset({(CHAT, CHAT)})),
)
