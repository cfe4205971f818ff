"""The official SDKs before every provider's dialect, through a running gateway."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import pytest

from tests.gateway.matrix.behind import Behind, gateway
from tests.gateway.matrix.cells import (
    Place,
    cover,
    is_sampled,
    params,
    replay,
    replayed,
    run,
    sampled,
    whole,
)

Served = tuple[str, Behind]


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    """A gateway and what is behind it, one for all cells."""
    with gateway() as (serving, behind):
        yield serving.url, behind


@pytest.mark.parametrize("place", sampled(cover()))
def test_a_cover_of_the_matrix(served: Served, place: Place) -> None:
    """Any client, provider and scenario meet; what is lost is what is known to be."""
    run(place, *served)


def test_what_is_sampled_meets_in_pairs() -> None:
    """Any client, provider, scenario and mode meet in a cell that `make test` plays."""

    def names(place: Place) -> tuple[str, str, str, bool]:
        return place.client.name, place.scenario.name, place.back, place.stream

    every, some = map(names, whole()), map(names, filter(is_sampled, cover()))
    pairs = [{(at, pair) for row in rows for at, pair in enumerate(combinations(row, 2))}
             for rows in (every, some)]  # fmt: skip
    assert pairs[0] == pairs[1]


@pytest.mark.slow
@pytest.mark.parametrize("place", params(whole()))
def test_the_whole_matrix(served: Served, place: Place) -> None:
    """Each cell is green, or loses what the table says."""
    run(place, *served)


@pytest.mark.slow
@pytest.mark.corpus
@pytest.mark.parametrize("place", params(replayed()))
def test_with_recorded_answers(served: Served, place: Place) -> None:
    """The same with what providers really answered."""
    replay(place, *served)
