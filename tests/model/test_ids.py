"""Identifiers: unique, sortable, across threads and forks."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from dragoman.model import ids
from dragoman.model.derived_ids import REQUEST, derived_call_id
from dragoman.model.ids import new_id
from dragoman.model.messages import Message


def test_ids_are_unique_and_sortable() -> None:
    """In the order in which they were made, even within one tick of the clock."""
    made = [new_id() for _ in range(10_000)]
    assert len(set(made)) == len(made)
    assert made == sorted(made)


def test_an_id_is_its_prefix_and_26_digits() -> None:
    """Short enough for every provider's limit of 40 and more."""
    for prefix in ("msg_", "call_", ""):
        made = new_id(prefix)
        assert made.startswith(prefix)
        assert len(made) == len(prefix) + 26
        int(made.removeprefix(prefix), 16)


def test_a_clock_that_is_set_back_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids go on counting upwards from the last one."""
    before = new_id()
    monkeypatch.setattr(ids, "time_ns", lambda: 1)
    assert before < new_id() < new_id()


def test_threads_never_share_an_id() -> None:
    """Many threads at once: as many ids as were asked for."""
    with ThreadPoolExecutor(8) as pool:
        made = [id_ for batch in pool.map(lambda _: [new_id() for _ in range(500)], range(16))
                for id_ in batch]  # fmt: skip
    assert len(set(made)) == 8_000


def test_threads_agree_on_a_messages_id() -> None:
    """The first to ask decides, and all get the same answer."""
    barrier = Barrier(8)

    def ask(message: Message) -> str:
        barrier.wait(timeout=30)
        return message.id

    with ThreadPoolExecutor(8) as pool:
        for _ in range(50):
            message = Message.user("hi")
            assert len(set(pool.map(ask, [message] * 8))) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_a_fork_makes_other_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parent and children share the clock and the counter, but not one id."""
    monkeypatch.setattr(ids, "time_ns", lambda: 1)  # the worst clock there is
    made = []
    for _ in range(3):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:  # pragma: no cover - the child's coverage is not collected
            os.write(writer, new_id("").encode())
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as stream:
            made.append(stream.read())
        os.waitpid(child, 0)
    made += [new_id("") for _ in range(3)]
    assert all(made)
    assert len(set(made)) == 6


@pytest.mark.parametrize("argument", ["\ud800", float("inf"), object(), 1 << 70])
def test_what_json_cannot_hold_is_no_obstacle_to_an_id(argument: object) -> None:
    """It is then derived from the call's place and name, and the same each time."""
    said = ("find\udc00" if argument == "\ud800" else "find", {"x": argument})
    made = derived_call_id(REQUEST, (1, 2), said)
    assert made == derived_call_id(REQUEST, (1, 2), said)
    assert made != derived_call_id(REQUEST, (1, 3), said)
