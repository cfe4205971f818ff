"""Providers whose answers have a wrong value somewhere: an answer or an error, never a failure."""

from __future__ import annotations

from random import Random

import pytest

from tests.gateway.abuse.stage import Stage, refused
from tests.gateway.abuse.test_upstreams import BACKS
from tests.gateway.client_requests import FRONTS

_SAMPLE = 24
_MANY = 1_500


def _ask(stage: Stage, number: int) -> None:
    """Ask from any front for any back, streamed or not."""
    chance = Random(number)
    front, back = chance.choice(FRONTS), chance.choice(BACKS)
    stream = chance.random() < 0.5
    answer = stage.ask(front, back, f"odd_number_{number}", stream=stream)
    if answer.status != 200:
        refused(front, answer, *range(400, 600))
    assert b"Traceback" not in answer.body


def test_some_odd_answers(stage: Stage) -> None:
    """Recorded answers with one value replaced; afterwards, all is as before."""
    for number in range(_SAMPLE):
        _ask(stage, number)
    stage.serves()
    stage.check_silence()


@pytest.mark.slow
def test_many_odd_answers(stage: Stage) -> None:
    """The same, many times."""
    for number in range(_MANY):
        _ask(stage, 1_000 + number)
        if not number % 20:
            stage.check_silence()
    stage.serves()
