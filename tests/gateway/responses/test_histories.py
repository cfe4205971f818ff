"""The store of a worker: opened once, swept, exchanged for another."""

from __future__ import annotations

from pathlib import Path
from time import time

import pytest
from msgspec.structs import replace

from dragoman.errors import Corrupt, InvalidInputError
from dragoman.gateway.config.settings import GatewayConfig, ServerSettings
from dragoman.gateway.histories import Histories
from dragoman.gateway.responses.context import StateReferences, StateResolver
from dragoman.gateway.responses.documents import document, entry
from dragoman.gateway.responses.ids import new_response_id
from dragoman.gateway.responses.store import ResponseStore, StoredRequest
from dragoman.gateway.state import Gateway
from dragoman.history.retention import sweep
from dragoman.history.storage.protocol import placed


def asked(previous: str | None = None) -> StoredRequest:
    """A request without input."""
    return StoredRequest(created_at=time(), input=[], ids=[], previous=previous)


@pytest.mark.parametrize("kind", ["memory", "sqlite", "file"])
async def test_what_is_too_old_is_swept(tmp_path: Path, kind: str) -> None:
    """The sweep deletes expired responses and their item pointers, and keeps conversations."""
    urls = {
        "memory": "memory:",
        "sqlite": f"sqlite:///{tmp_path}/a.db",
        "file": f"file://{tmp_path}",
    }
    histories = Histories(urls[kind], response_ttl=100)
    store = ResponseStore(histories, "key")
    id = new_response_id()
    answer = {"status": "completed", "output": [{"type": "message", "id": "msg_other"}]}
    await store.add(id, asked(), answer)
    assert await store.item("msg_other") is not None
    storage = await histories.storage()
    await sweep(storage, histories.rules(), now=time() + 50)
    assert len(await storage.sessions()) == 2
    await sweep(storage, histories.rules(), now=time() + 101)
    assert await storage.sessions() == []
    await histories.close()


async def test_a_cycle_in_a_damaged_store_ends() -> None:
    """Two responses that claim to continue each other are an error, not a loop."""
    histories = Histories("memory:", response_ttl=100)
    store = ResponseStore(histories, None)
    one, two = new_response_id(), new_response_id()
    for id, previous in ((one, two), (two, one)):
        await store.add(id, asked(previous), {"status": "completed", "output": []})
    resolver = StateResolver(store, None, None, 10**6)
    with pytest.raises(Exception, match="The chain has more than"):
        await resolver.resolve(StateReferences(previous=one, items=[]))
    await histories.close()


async def test_another_store_takes_effect() -> None:
    """A new URL opens another store; the same URL keeps the open one."""
    config = GatewayConfig(server=ServerSettings(history="memory:"))
    gateway = Gateway(config)
    first = gateway.histories
    gateway.apply(replace(config))
    assert gateway.histories is first
    gateway.apply(replace(config, server=ServerSettings()))
    assert gateway.histories is None
    await gateway.close()


def test_documents_are_checked() -> None:
    """A malformed document raises `Corrupt`."""
    row = placed(entry("a", {"x": 1}), 1, 0)
    assert document(row) == {"x": 1}
    with pytest.raises((Corrupt, InvalidInputError)):
        document(replace(row, body=row.body.replace(b"x", b"y")))
