"""A cluster of three nodes, of Debian's `redis-server`, on free ports."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

from tests.environment import PATIENCE

NODES = 3
_SLOTS = 16384


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def cluster(folder: Path) -> Iterator[list[int]]:
    """The ports of the nodes; skips without `redis-server`."""
    redis = pytest.importorskip("redis", reason="redis is not installed")
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("redis-server is not installed")
    with ExitStack() as stack:
        nodes = [stack.enter_context(_node(program, folder / str(n))) for n in range(NODES)]
        clients: list[Any] = [
            stack.enter_context(redis.Redis(port=port, socket_timeout=PATIENCE))
            for port, _ in nodes
        ]
        _until(lambda: all(_answers(client) for client in clients))
        each = _SLOTS // NODES + 1
        for number, client in enumerate(clients):
            last = min((number + 1) * each, _SLOTS) - 1
            client.execute_command("CLUSTER", "ADDSLOTSRANGE", number * each, last)
            port, bus = nodes[0]
            client.execute_command("CLUSTER", "MEET", "127.0.0.1", port, bus)
        _until(lambda: all(_is_whole(client) for client in clients))
        yield [port for port, _ in nodes]


@contextmanager
def _node(program: str, folder: Path) -> Iterator[tuple[int, int]]:
    folder.mkdir(parents=True)
    port, bus = _free_port(), _free_port()
    options = {
        "port": port, "cluster-port": bus, "bind": "127.0.0.1", "cluster-enabled": "yes",
        "cluster-node-timeout": 2000, "save": "", "dir": folder, "daemonize": "no",
    }  # fmt: skip
    command = [program, *(str(word) for k, v in options.items() for word in (f"--{k}", v))]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
        try:
            yield port, bus
        finally:
            server.terminate()


def _answers(client: Any) -> bool:
    import redis

    try:
        return bool(client.ping())
    except redis.RedisError:
        return False


def _is_whole(client: Any) -> bool:
    told = client.execute_command("CLUSTER", "INFO")
    text = told if isinstance(told, dict) else dict(
        line.split(":") for line in told.decode().split("\r\n") if line
    )  # fmt: skip
    return (text["cluster_state"], text["cluster_known_nodes"]) == ("ok", str(NODES))


def _until(is_so: Any) -> None:
    deadline = monotonic() + PATIENCE
    while not is_so():
        if monotonic() > deadline:
            pytest.skip("redis-server forms no cluster here")
        sleep(0.02)
