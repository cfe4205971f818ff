"""The time series of the Traffic view: kept sums are the same as those of all requests."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest

from dragoman.gateway.page import traffic_store
from dragoman.gateway.page.traffic_queries import OTHERS, Asked, Charts
from dragoman.gateway.page.traffic_store import Traffic
from dragoman.gateway.records import RequestRecord
from dragoman.model.usage import Usage

_STEP = 60


class _Clock:
    """The time at which requests are recorded."""

    def __init__(self) -> None:
        self.now = 1_000_020.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> _Clock:
    """A clock that tests set."""
    made = _Clock()
    monkeypatch.setattr(traffic_store, "time", made)
    return made


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Traffic]:
    """A store that keeps 300 requests."""
    made = Traffic(tmp_path / "traffic.db", most=300, pause=0.01)
    yield made
    made.close()


def _record(chance: Random, models: int) -> RequestRecord:
    return RequestRecord(
        "chat", "openai-chat", chance.choice([200, 200, 500]), chance.random(), 0.1, "r", "p",
        f"m{chance.randrange(models)}", "k", Usage(input=3, output=4), Decimal("0.5"), attempts=1,
    )  # fmt: skip


def _asked(now: float, minutes: int, by: str = "model") -> Asked:
    since = (now // _STEP - minutes) * _STEP
    return Asked(since, _STEP, minutes + 1, by)


def _shown(store: Traffic, charts: Charts, asked: Asked) -> Any:
    return store.sum_up(lambda at: charts.series(at, asked))


@pytest.mark.parametrize("by", ["model", "route"])
def test_kept_sums_are_those_of_all_requests(clock: _Clock, store: Traffic, by: str) -> None:
    """While requests come and time goes by, a chart shows what a new one would show."""
    chance, kept = Random(5), Charts()
    for _ in range(25):
        for _ in range(chance.randrange(12)):
            clock.now += chance.random() * 20 - 2  # workers write a little out of order
            store(_record(chance, 4))
        store.flush()
        asked = _asked(clock.now, chance.choice([3, 3, 3, 8, 2]), by)
        assert _shown(store, kept, asked) == _shown(store, Charts(), asked)


def test_new_requests_only_are_read(clock: _Clock, store: Traffic) -> None:
    """A chart that is asked for again reads no request twice: deleted ones stay in its sums."""
    chance, charts = Random(5), Charts()
    for _ in range(300):
        store(_record(chance, 2))
    store.flush()
    asked = _asked(clock.now, 3)
    _shown(store, charts, asked)
    for _ in range(200):
        store(_record(chance, 2))
    store.flush()
    found = _shown(store, charts, asked)
    assert sum(sum(each["requests"]) for each in found) == 500
    assert sum(sum(each["cost"]) for each in found) == pytest.approx(250)


def test_rare_names_are_combined(clock: _Clock, store: Traffic) -> None:
    """There are at most twelve series and one for all other names; nothing is left out."""
    chance = Random(5)
    for _ in range(300):
        store(_record(chance, 40))
    store.flush()
    found = _shown(store, Charts(), _asked(clock.now, 2))
    assert len(found) == 13
    assert found[-1]["name"] == OTHERS
    assert sum(sum(each["requests"]) for each in found) == 300
    assert all(value is None or 0 < value < 1.1 for each in found for value in each["p95"])


def test_number_of_kept_charts_is_limited(clock: _Clock, store: Traffic) -> None:
    """Any step may be asked for; the sums of the last few are kept."""
    store(_record(Random(5), 2))
    store.flush()
    charts = Charts()
    for step in range(1, 40):
        now = clock.now
        _shown(store, charts, Asked(now - now % step - step, step, 2, "model"))
    assert len(charts._kept) == 8
