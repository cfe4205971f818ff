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
def test_frames_may_change_their_form(dialect: str, seed: int) -> None:
    """Changed fields, keys, escapes, line ends and positions give the same result."""
    assert changing.check(random.Random(seed), dialect) >= 0
