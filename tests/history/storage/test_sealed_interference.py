"""Two programs on one encrypted store: one writes between two steps of the other.

No operation may see the session before in one step and after in the next, and mistake the
difference for an attack. The other program writes before each step in turn.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import msgspec
import pytest

from dragoman.errors import NotFound
from dragoman.history.storage.memory import MemoryStorage
from dragoman.history.storage.sealed import SealedStorage
from dragoman.testing.conformance.stores.data import WINDOW, entry
from tests.history.golden import SESSION, WHO, rows
from tests.history.storage.faults import Interfered, over

KEYS = {"2025": b"\1" * 32, "2026": b"\2" * 32}
_PLAIN = "none of its messages is encrypted"  # true of a plain session, until it is rotated
Step = Callable[[SealedStorage], Awaitable[Any]]


def sealed(inner: Any, current: str = "2026") -> SealedStorage:
    """The store as a program opens it."""
    return SealedStorage(inner, keys=KEYS, current=current, accept_plain=True)


OPERATIONS: dict[str, Step] = {
    "append": lambda storage: storage.append(WHO, [entry("on")]),
    "replace": lambda storage: storage.rewrite(WHO, replaced=rows(2)[:1]),
    "remove": lambda storage: storage.rewrite(WHO, removed=["msg_16"]),
    "fork": lambda storage: storage.fork(WHO, parent=0, at=1),
    "activate": lambda storage: storage.activate(WHO, 1),
    "keep_windows": lambda storage: storage.keep_windows(WHO, WINDOW),
    "set_aside": lambda storage: storage.set_aside(WHO, [1], "broken"),
    "clear": lambda storage: storage.clear(WHO, at=1.0),
    "delete": lambda storage: storage.delete(WHO),
    "rotate": lambda storage: storage.rotate(),
    "rows": lambda storage: storage.rows(WHO),
    "row": lambda storage: storage.row(WHO, "msg_02"),
    "session": lambda storage: storage.session(WHO),
    "verify": lambda storage: storage.verify(),
    "checkpoint": lambda storage: storage.checkpoint(),
}
_SAMPLED = ("append", "clear", "rotate")
OTHERS = [
    *_SAMPLED,
    *(
        pytest.param(name, marks=pytest.mark.slow)
        for name in ("replace", "remove", "fork", "keep_windows", "set_aside", "delete")
    ),
]


async def _plain(inner: MemoryStorage) -> None:
    """A session from before encryption."""
    await inner.restore(msgspec.structs.replace(SESSION[2], windows=None, seal=None), rows(2))


async def _new(inner: MemoryStorage) -> None:
    """A current session, with the previous key."""
    await sealed(inner, "2025").restore(SESSION[2], rows(2))


@pytest.mark.thorough
@pytest.mark.parametrize("before", [_plain, _new])
@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("operation", OPERATIONS)
async def test_another_writes_between_any_two_steps(
    operation: str,
    other: str,
    before: Callable[[MemoryStorage], Awaitable[None]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Both succeed, and no false attack is reported."""
    caplog.set_level(logging.WARNING)
    step = 1
    while True:
        inner = MemoryStorage()
        await before(inner)

        async def act() -> None:
            with suppress(NotFound):  # what it would change may be gone
                await OPERATIONS[other](sealed(inner))  # noqa: B023

        between = Interfered(inner.shelf, step, act)
        storage = sealed(over(between))
        try:
            made = await OPERATIONS[operation](storage)
        except NotFound:
            assert other in {"clear", "delete", "remove", "set_aside"}
        else:
            if operation == "verify":
                assert [each for each in made if _PLAIN not in each] == []
        assert [each for each in await sealed(inner).verify() if _PLAIN not in each] == [], step
        assert storage.problem_of(WHO) is None, step
        await storage.append(WHO, [entry("later")])
        assert [each for each in await storage.verify() if _PLAIN not in each] == [], step
        assert not caplog.records, step
        if between.was_late:
            return
        step += 1
