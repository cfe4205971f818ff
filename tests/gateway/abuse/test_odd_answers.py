"""Answers and requests with a wrong value somewhere: an answer or an error, never a failure."""

from __future__ import annotations

from random import Random

import pytest

from tests.gateway.abuse.stage import Stage, refused
from tests.gateway.abuse.test_upstreams import BACKS
from tests.gateway.client_requests import FRONTS
from tests.wire.every_place import CHANGES, Case, paths_in, written
from tests.wire.mutations import seeds

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


def _send(stage: Stage, number: int) -> None:
    """Send a recorded request with one wrong value to its front, for any back."""
    chance = Random(number)
    front = chance.choice(FRONTS)
    model = f"{chance.choice(BACKS)}.good"
    known = [each for each in seeds() if (each.kind, each.dialect) == ("request", front)]
    seed = chance.choice(known)
    body = {**seed.value, "model": model} if "model" in seed.value else seed.value
    path, _ = chance.choice([*paths_in(body)])
    sent = written(Case(seed._replace(value=body), path, chance.choice(CHANGES)))
    stream = front == "gemini" and chance.random() < 0.5
    answer = stage.post(front, sent, stream=stream, model=model)
    if answer.status != 200:
        refused(front, answer, *range(400, 500), 501, 502)
    assert b"Traceback" not in answer.body


def test_some_odd_requests(stage: Stage) -> None:
    """Recorded requests with one value replaced: refused in the front's words, or served."""
    for number in range(_SAMPLE):
        _send(stage, number)
    stage.serves()
    stage.check_silence()


@pytest.mark.slow
def test_many_odd_requests(stage: Stage) -> None:
    """The same, many times."""
    for number in range(_MANY):
        _send(stage, 1_000 + number)
        if not number % 20:
            stage.check_silence()
    stage.serves()


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
