"""A Redis cluster is rejected with advice, before anything is written."""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import ConfigError, StoreError
from dragoman.history.storage.redis import RedisStorage
from dragoman.history.storage.redis.storage import RedisShelf
from dragoman.testing.conformance.stores.data import ONE, entry
from tests.environment import PATIENCE

redis = pytest.importorskip("redis")
REMEDY = "cluster-enabled no"


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a server in cluster mode without slots."""
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("redis-server is not installed")
    port = _free_port()
    place: Path = tmp_path_factory.mktemp("cluster")
    options = {
        "port": port, "bind": "127.0.0.1", "cluster-enabled": "yes", "save": "", "dir": place,
        "cluster-port": _free_port(), "daemonize": "no",
    }  # fmt: skip
    command = [program, *(str(word) for k, v in options.items() for word in (f"--{k}", v))]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
        try:
            _wait_for(port, server)
            yield port
        finally:
            server.terminate()


def _wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    from time import monotonic, sleep

    deadline = monotonic() + PATIENCE
    while server.poll() is None and monotonic() < deadline:
        try:
            with redis.Redis(port=port) as client:
                client.ping()
        except redis.RedisError:
            sleep(0.02)
        else:
            return
    pytest.skip("redis-server does not start in cluster mode here")


def _with_all_slots(port: int) -> None:
    with redis.Redis(port=port) as client:
        client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
        while "cluster_state:ok" not in str(client.execute_command("CLUSTER", "INFO")):
            pass


async def test_a_cluster_is_rejected_when_it_is_opened(cluster: int) -> None:
    """By the server's own information."""
    with pytest.raises(ConfigError, match=REMEDY):
        await RedisStorage(f"redis://127.0.0.1:{cluster}").open()


async def test_a_cluster_without_info_is_rejected_by_its_errors(
    cluster: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """INFO may be forbidden: then the first operation fails, with slots or without."""

    async def nothing(*_: object) -> None:
        return None

    monkeypatch.setattr(RedisShelf, "_refuse_cluster", nothing)
    storage = RedisStorage(f"redis://127.0.0.1:{cluster}")
    await storage.open()
    for prepare in (lambda: None, lambda: _with_all_slots(cluster)):
        await asyncio.to_thread(prepare)
        with pytest.raises(StoreError, match=REMEDY):
            await storage.append(ONE, [entry("a")])
    await storage.close()
    with redis.Redis(port=cluster) as client:
        assert client.dbsize() == 0


async def test_a_client_for_a_cluster_is_rejected() -> None:
    """If passed in place of a URL."""
    from redis.asyncio.cluster import RedisCluster

    client: Any = RedisCluster(host="127.0.0.1", port=1)
    with pytest.raises(ConfigError, match=REMEDY):
        await RedisStorage(client).open()


@pytest.mark.parametrize(
    "error",
    [
        redis.exceptions.MovedError("1 127.0.0.1:7000"),
        redis.exceptions.AskError("1 127.0.0.1:7000"),
        redis.exceptions.ClusterDownError("Hash slot not served"),
        redis.exceptions.ClusterCrossSlotError("Keys in request don't hash to the same slot"),
        redis.exceptions.TryAgainError("Multiple keys request during rehashing of slot"),
        redis.exceptions.ResponseError("MOVED 1 127.0.0.1:7000"),
        redis.exceptions.ResponseError("CROSSSLOT Keys in request"),
    ],
)
def test_every_error_of_a_cluster_has_the_advice(error: Exception) -> None:
    """Whatever class redis-py raises."""
    from dragoman.history.storage.redis.server import explanation

    assert REMEDY in str(explanation(error, "redis"))
