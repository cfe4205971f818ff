"""The siblings of each message, in conversations branched at random."""

from __future__ import annotations

import asyncio
import random
from time import time

import pytest

from dragoman.gateway.page.branches import Branches
from dragoman.history.branches import read_path, stretches
from dragoman.history.identity import SessionIdentity
from dragoman.history.records import body_of
from dragoman.history.storage.memory import MemoryStorage
from dragoman.history.storage.protocol import Entry, Row, Session, Storage
from dragoman.model.messages import Message

NAME = SessionIdentity(chat="branched")


async def _say(storage: Storage, branch: int) -> None:
    message = Message.user("x")
    await storage.append(NAME, [Entry(message.id, body_of(message), time())], branch=branch)


async def _branched(seed: int) -> tuple[MemoryStorage, Session]:
    """A conversation that was continued, retried and edited at random."""
    draw, storage = random.Random(seed), MemoryStorage()
    await storage.open()
    await _say(storage, 0)
    numbers = [0]
    for _ in range(draw.randint(3, 25)):
        branch = draw.choice(numbers)
        if draw.random() < 0.4:
            session = await _session(storage)
            rows = await read_path(storage, NAME, stretches(session, branch))
            # After a message; before it, as an edit does; or before everything.
            at, parent = 0, 0
            if rows and draw.random() < 0.7:
                row = draw.choice(rows)
                at, parent = row.seq - draw.choice([0, 1]), row.branch
            branch = await storage.fork(NAME, parent=parent, at=at)
            numbers.append(branch)
            if draw.random() < 0.2:
                continue  # one on which nothing is said
        await _say(storage, branch)
    return storage, await _session(storage)


async def _session(storage: Storage) -> Session:
    found = await storage.session(NAME)
    assert found is not None
    return found


async def _check(seed: int) -> None:
    storage, session = await _branched(seed)
    branches = Branches(storage)
    numbers = [0, *(fork.number for fork in session.forks)]
    paths = {n: await read_path(storage, NAME, stretches(session, n)) for n in numbers}
    for number, path in paths.items():
        for limit in (1, 3, 100):
            found = await branches.read(session, number, "", limit)
            assert [row.id for row in found.rows] == [row.id for row in path[-limit:]]
            siblings = await branches.siblings(session, found)
            first = len(path) - len(found.rows)
            for place, row in enumerate(found.rows, first):
                _agree(paths, path, place, row, siblings.get(row.id, [row.branch]))


def _agree(
    paths: dict[int, list[Row]], path: list[Row], place: int, row: Row, told: list[int]
) -> None:
    """The siblings lead to every alternative exactly once."""
    prefix = [each.id for each in path[:place]]
    beside = {
        other[place].id
        for other in paths.values()
        if len(other) > place and [each.id for each in other[:place]] == prefix
    }
    reached = [paths[n][place].id for n in told]
    assert sorted(reached) == sorted(beside)
    assert paths[told[told.index(row.branch)]][place].id == row.id


@pytest.mark.parametrize("seeds", [range(20), pytest.param(range(20, 400), marks=pytest.mark.slow)])
def test_every_alternative_is_told_once(seeds: range) -> None:
    """Siblings match those computed from the paths of all branches."""
    for seed in seeds:
        asyncio.run(_check(seed))
