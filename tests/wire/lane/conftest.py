"""Turns the lane on in its own tests, despite `DRAGOMAN_LANE`, with batches from the start."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dragoman import dialect
from dragoman.providers import registry, translation
from dragoman.wire.lane import requests as lane
from dragoman.wire.lane import switch
from tests.wire.lane.changing import columns_at_once
from tests.wire.lane.requests import DIALECTS


@pytest.fixture(autouse=True, scope="module")
def _lane_is_on() -> Iterator[None]:
    """On, and nothing is read or written by types before it is asked: `tests/wire/plain` is."""
    with switch.on(), columns_at_once(), pytest.MonkeyPatch.context() as patch:
        for name in DIALECTS:
            patch.setitem(vars(dialect(name)), "reader", None)
            patch.setitem(vars(dialect(name)), "_plain", None)
        patch.setattr(translation, "_plainly", lambda *_: None)
        yield


@pytest.fixture
def at_first_sight(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Use the lane from the first request on, and clean up afterwards, providers included."""
    monkeypatch.setattr(lane, "LONG", 0)
    monkeypatch.setattr(registry, "_registered", {})
    lane.HEADS.clear()
    yield
    lane.HEADS.clear()
