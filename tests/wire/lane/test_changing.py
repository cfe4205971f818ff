"""Streams that change their form midway decode the same with the lane and without it."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.lane import changing
from tests.wire.lane.frames import FORMS


@pytest.mark.thorough
@pytest.mark.parametrize("dialect", FORMS)
@given(seed=st.integers(0, 2**32 - 1))
def test_frames_may_change_their_shape(dialect: str, seed: int) -> None:
    """Fields, keys, escapes, line ends and places: read however cut, and written everywhere."""
    assert changing.check(random.Random(seed), dialect) >= 0
