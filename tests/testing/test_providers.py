"""The conformance tests on every provider of ours."""

from __future__ import annotations

import pytest

from dragoman import Provider, provider
from dragoman.providers import provider_names
from dragoman.testing.conformance.providers import *  # noqa: F403 - the tests

pytestmark = pytest.mark.whole


@pytest.fixture(params=provider_names())
def host(request: pytest.FixtureRequest) -> Provider:
    """Every provider in turn."""
    return provider(request.param)
