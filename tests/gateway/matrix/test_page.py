"""The page about the matrix matches the tests."""

from __future__ import annotations

from tests.gateway.matrix.cells import CLIENTS, cover, whole
from tests.gateway.matrix.losses import LOSSES
from tests.gateway.matrix.page import PAGE, page
from tests.gateway.matrix.scenarios import SCENARIOS


def test_the_page_is_up_to_date() -> None:
    """`python -m tests.gateway.matrix.page` writes it."""
    assert PAGE.read_text(encoding="utf-8") == page()


def test_the_selection_is_pairwise() -> None:
    """Any two of client, provider and scenario meet, streaming and not."""

    def pairs(places: object) -> set[object]:
        found: set[object] = set()
        for place in places:  # type: ignore[attr-defined]
            played = (place.scenario.name, place.stream)
            found |= {(place.client.name, place.back), (place.client.name, played)}
            found.add((place.back, played))
        return found

    assert pairs(cover()) == pairs(whole())


def test_losses_belong_to_existing_cells() -> None:
    """No loss names an unknown client or scenario, and none is listed twice."""
    clients = {client.name for client in CLIENTS}
    scenarios = {scenario.name for scenario in SCENARIOS}
    assert {loss.client for loss in LOSSES} <= clients
    assert {name for loss in LOSSES for name in loss.scenarios} <= scenarios
    assert len({(loss.client, loss.scenarios, loss.what) for loss in LOSSES}) == len(LOSSES)
