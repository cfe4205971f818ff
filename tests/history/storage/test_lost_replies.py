"""A commit whose reply is lost is done once, or it is an error: on every shelf, also the wrapped.

Connections that are really cut are in test_cut_connections.py and test_servers_recovery.py.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from dragoman.errors import Conflict, StoreError
from dragoman.history.storage.chain import ChainStorage
from dragoman.history.storage.ledger import Ledger
from dragoman.history.storage.memory import MemoryStorage
from dragoman.history.storage.protocol import MAIN, Appended, DuplicateIds, branches_of
from dragoman.history.storage.sealed import SealedStorage
from dragoman.testing.conformance.stores.backends import Backend
from dragoman.testing.conformance.stores.data import (
    NOON,
    ONE,
    WINDOW,
    bare,
    entry,
    fill,
    head,
    texts,
)
from tests.history.storage.faults import Lossy, over

WRITES: dict[str, Callable[[Ledger], Awaitable[object]]] = {
    "append": lambda storage: storage.append(ONE, [entry("new", id="n"), entry("on", id="o")]),
    "append expected": lambda storage: storage.append(ONE, [entry("new", id="n")], expected=1),
    "replace": lambda storage: storage.rewrite(ONE, replaced=[entry("A", id="a")]),
    "remove": lambda storage: storage.rewrite(ONE, removed=["a"]),
    "clear": lambda storage: storage.clear(ONE, at=NOON),
    "fork": lambda storage: storage.fork(ONE, parent=MAIN, at=1),
    "activate": lambda storage: storage.activate(ONE, MAIN),
    "keep_windows": lambda storage: storage.keep_windows(ONE, WINDOW),
    "set_aside": lambda storage: storage.set_aside(ONE, [2], "broken"),
    "delete": lambda storage: storage.delete(ONE),
}
LOSSES = {"done": [True], "not done": [False], "not done, then done": [False, True]}


async def content(storage: Ledger) -> Any:
    """What can be read, apart from times that are taken from a clock."""
    session = await storage.session(ONE)
    if session is None:
        return None
    rows = [
        (row.seq, row.branch, row.id, row.body)
        for branch in branches_of(session)
        for row in await storage.rows(ONE, branch=branch)
    ]
    numbers = (session.version, session.last_seq, session.active, session.forks, session.windows)
    return bare(session).chain, numbers, rows


async def filled(storage: Ledger) -> Ledger:
    """The storage, open, with a session of two messages."""
    await storage.open()
    await storage.append(ONE, [entry("a", id="a", at=NOON), entry("b", id="b", at=NOON)])
    return storage


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("losses", LOSSES)
async def test_it_is_done_once(backend: Backend, write: str, losses: str) -> None:
    """As if no reply had been lost; then the store is in order, and the next write works."""
    wanted = await filled(MemoryStorage())
    expected = await WRITES[write](wanted)
    lossy = Lossy(cast("Ledger", backend.new()).shelf)
    storage = await filled(over(lossy))
    try:
        lossy.losses = LOSSES[losses][:]
        assert await WRITES[write](storage) == expected
        if write != "delete":
            assert await content(storage) == await content(wanted)
        await fill(storage, "later")
        assert await storage.verify() == []
    finally:
        await storage.close()


def _sealed(lossy: Lossy) -> Ledger:
    return SealedStorage(over(lossy), keys={"k": bytes(32)}, current="k")


def _chained(lossy: Lossy) -> Ledger:
    return ChainStorage(over(lossy), MemoryStorage())


def _copied(lossy: Lossy) -> Ledger:
    return ChainStorage(MemoryStorage(), over(lossy))


@pytest.mark.parametrize("wrapped", [_sealed, _chained, _copied])
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("losses", LOSSES)
async def test_it_is_done_once_beneath_others(
    wrapped: Callable[[Lossy], Ledger], write: str, losses: str
) -> None:
    """Encryption knows what it wrote, and a chain's other members get it too."""
    wanted = await filled(MemoryStorage())
    expected = await WRITES[write](wanted)
    lossy = Lossy(MemoryStorage().shelf)
    storage = await filled(wrapped(lossy))
    lossy.losses = LOSSES[losses][:]
    assert await WRITES[write](storage) == expected
    if write != "delete":
        assert await content(storage) == await content(wanted)
    await fill(storage, "later")
    assert await storage.verify() == []
    if isinstance(storage, ChainStorage):
        assert (await storage.repair()).problems == ()
        first, second = [await content(each.storage) for each in storage.shelf.members]
        assert first == second


async def test_another_writers_commit_is_not_taken_for_ours(backend: Backend) -> None:
    """The same version by somebody else is a conflict, and an id in use stays one."""
    lossy = Lossy(cast("Ledger", backend.new()).shelf)
    storage = await filled(over(lossy))
    other = cast("Ledger", backend.new())
    await other.open()
    try:
        await storage.session(ONE)
        await other.append(ONE, [entry("theirs", id="n")])
        lossy.losses = [False]
        with pytest.raises(DuplicateIds):
            await storage.append(ONE, [entry("ours", id="n")])
        lossy.losses = [False]
        with pytest.raises(Conflict):
            await storage.append(ONE, [entry("ours")], expected=1)
        assert (await head(storage)).version == 2
    finally:
        await storage.close()
        await other.close()


@pytest.mark.parametrize("is_done", [True, False])
@pytest.mark.parametrize("expected", [None, 1])
async def test_what_another_writes_meanwhile_changes_no_outcome(
    backend: Backend, is_done: bool, expected: int | None
) -> None:
    """A done write keeps its version; another one conflicts with an expected version."""
    lossy = Lossy(cast("Ledger", backend.new()).shelf)
    storage = await filled(over(lossy))
    other = cast("Ledger", backend.new())
    await other.open()
    try:
        lossy.losses = [is_done]
        lossy.meanwhile = lambda: other.append(ONE, [entry("theirs")])
        if expected and not is_done:
            with pytest.raises(Conflict):
                await storage.append(ONE, [entry("ours")], expected=expected)
            assert texts(await storage.rows(ONE)) == ["a", "b", "theirs"]
            return
        made = await storage.append(ONE, [entry("ours")], expected=expected)
        assert made == (Appended(2, 3) if is_done else Appended(3, 4))
        said = texts(await storage.rows(ONE))
        assert said == ["a", "b", *(["ours", "theirs"] if is_done else ["theirs", "ours"])]
    finally:
        await storage.close()
        await other.close()


async def test_an_outcome_that_nobody_can_tell_is_an_error(backend: Backend) -> None:
    """What is stored then is all of it, or nothing."""
    lossy = Lossy(cast("Ledger", backend.new()).shelf)
    storage = await filled(over(lossy))
    try:
        lossy.losses = [False] * 20
        with pytest.raises(StoreError, match="lost"):
            await storage.append(ONE, [entry("new"), entry("on")])
        lossy.losses = []
        assert await storage.count(ONE) == 2
        await fill(storage, "later")
        assert await storage.verify() == []
    finally:
        await storage.close()
