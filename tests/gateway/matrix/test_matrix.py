"""The official SDKs with every provider's dialect, through a running gateway."""

from __future__ import annotations

from itertools import combinations

import pytest

from tests.gateway.matrix.behind import Behind
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


@pytest.mark.parametrize("place", sampled(cover()))
def test_a_pairwise_selection_of_the_matrix(served: Served, place: Place) -> None:
    """Any two of client, provider and scenario meet; only known losses occur."""
    run(place, *served)


def test_the_sample_is_pairwise() -> None:
    """Any two of client, provider, scenario and mode meet in a cell that `make test` runs."""

    def names(place: Place) -> tuple[str, str, str, bool]:
        return place.client.name, place.scenario.name, place.back, place.stream

    every, some = map(names, whole()), map(names, filter(is_sampled, cover()))
    pairs = [{(at, pair) for row in rows for at, pair in enumerate(combinations(row, 2))}
             for rows in (every, some)]  # fmt: skip
    assert pairs[0] == pairs[1]


@pytest.mark.slow
@pytest.mark.parametrize("place", params(whole()))
def test_the_whole_matrix(served: Served, place: Place) -> None:
    """Each cell passes, or has exactly the losses in the table."""
    run(place, *served)


@pytest.mark.slow
@pytest.mark.corpus
@pytest.mark.parametrize("place", params(replayed()))
def test_recorded_answers(served: Served, place: Place) -> None:
    """The same with recorded answers of the providers."""
    replay(place, *served)
