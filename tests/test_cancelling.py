"""The helpers of the cancellation tests."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from tests.cancelling import ThreadWatch


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Threads wait for it; it is opened at the end."""
    made = threading.Event()
    yield made
    made.set()


def _waiting(gate: threading.Event, name: str) -> threading.Thread:
    thread = threading.Thread(target=gate.wait, name=name, daemon=True)
    thread.start()
    return thread


def test_earlier_threads_are_ignored(gate: threading.Event) -> None:
    """An earlier test's tools may still wait for work, under the same name."""
    _waiting(gate, "dragoman-tool")
    watch = ThreadWatch()
    assert watch.started == []
    late = _waiting(gate, "dragoman-tool")
    assert watch.started == ["dragoman-tool"]
    gate.set()
    late.join()
    assert watch.started == []


def test_foreign_threads_and_the_shared_loop_may_stay(gate: threading.Event) -> None:
    """The first belong to asyncio or a test's server, the other serves the whole process."""
    watch = ThreadWatch()
    for name in ("asyncio_0", "dragoman-loop"):
        _waiting(gate, name)
    assert watch.started == []
