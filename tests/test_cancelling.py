"""What the tests of cancellation look at."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from tests.cancelling import ThreadWatch


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """What threads wait for; open in the end."""
    made = threading.Event()
    yield made
    made.set()


def _waiting(gate: threading.Event, name: str) -> threading.Thread:
    thread = threading.Thread(target=gate.wait, name=name, daemon=True)
    thread.start()
    return thread


def test_threads_of_others_are_not_looked_at(gate: threading.Event) -> None:
    """An earlier test's tools may wait for more work for a while, under the same name."""
    _waiting(gate, "dragoman-tool")
    watch = ThreadWatch()
    assert watch.started == []
    late = _waiting(gate, "dragoman-tool")
    assert watch.started == ["dragoman-tool"]
    gate.set()
    late.join()
    assert watch.started == []


def test_foreign_threads_and_the_shared_loop_may_stay(gate: threading.Event) -> None:
    """The first are asyncio's or a server's of the test, the other serves the whole process."""
    watch = ThreadWatch()
    for name in ("asyncio_0", "dragoman-loop"):
        _waiting(gate, name)
    assert watch.started == []
