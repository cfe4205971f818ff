"""Requests of several clients, in turns, are translated as if each were the only one."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from dragoman.wire.lane import requests as lane
from tests.wire.lane import clients

_QUICK, _THOROUGH, _REQUESTS = 12, 150, 12


@pytest.fixture(autouse=True)
def _at_first_sight(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Use the lane from the first request on, and clean up afterwards."""
    monkeypatch.setattr(lane, "LONG", 0)
    yield
    lane.HEADS.clear()
    lane.SURROUNDINGS.clear()
    lane.BACKOFF.clear()


def _compare(numbers: range) -> None:
    clients.TOOK.clear()
    for number in numbers:
        found = clients.difference(random.Random(number), _REQUESTS)
        assert found is None, f"{number}: {found}"
    assert clients.TOOK["lane"] > clients.TOOK.total() // 5


def test_clients_with_similar_requests_are_kept_apart() -> None:
    """With warm caches, with and without remembered conversations."""
    _compare(range(_QUICK))


@pytest.mark.thorough
@pytest.mark.parametrize("part", range(4))
def test_many_clients_with_similar_requests_are_kept_apart(part: int) -> None:
    """As above, more of them."""
    _compare(range(1_000 + part * _THOROUGH, 1_000 + (part + 1) * _THOROUGH))
