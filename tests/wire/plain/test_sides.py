"""The generated path and the steps alone give the same bodies, reports and values."""

from __future__ import annotations

import random

import pytest

from tests.wire.lane import requests as made
from tests.wire.plain import sides

_PARTS, _CASES = 4, 60


@pytest.mark.parametrize("part", range(_PARTS))
def test_generated_conversations_are_encoded_alike(part: int) -> None:
    """Plain ones, nearly plain ones, and ones with anything odd in them, in all dialects."""
    for number in range(part * _CASES, (part + 1) * _CASES):
        rng = random.Random(number)
        raw, source = sides.random_case(rng, [])
        targets = (rng.choice(made.TARGETS), rng.choice(made.TARGETS))
        found = sides.difference(raw, source, targets)
        assert found is None, (number, source, found)
