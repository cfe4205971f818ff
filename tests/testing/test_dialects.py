"""The conformance tests on every dialect of ours."""

from __future__ import annotations

import pytest

from dragoman import dialect, dialects
from dragoman.testing.conformance.dialects import *  # noqa: F403 - the tests
from dragoman.wire.dialect import Dialect

pytestmark = pytest.mark.whole


@pytest.fixture(params=dialects())
def spoken(request: pytest.FixtureRequest) -> Dialect:
    """Every dialect in turn."""
    return dialect(request.param)
