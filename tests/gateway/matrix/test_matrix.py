"""The official SDKs before every provider's dialect, through a running gateway."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.gateway.matrix.behind import Behind, gateway
from tests.gateway.matrix.cells import Place, cover, params, replay, replayed, run, whole

Served = tuple[str, Behind]


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    """A gateway and what is behind it, one for all cells."""
    with gateway() as (serving, behind):
        yield serving.url, behind


@pytest.mark.parametrize("place", params(cover()))
def test_a_cover_of_the_matrix(served: Served, place: Place) -> None:
    """Any client, provider and scenario meet; what is lost is what is known to be."""
    run(place, *served)


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
