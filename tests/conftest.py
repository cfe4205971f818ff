"""Hypothesis profiles, and recorded traffic as test parameters.

`DRAGOMAN_PROFILE` picks the profile: `dev` (default), `ci` or `torture`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.corpus import Corpus, CorpusNotFoundError, current_tier

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet

# No deadlines anywhere: on a shared machine they measure the neighbours.
settings.register_profile("dev", max_examples=50, deadline=None)
settings.register_profile(
    "ci",
    max_examples=50,
    deadline=None,
    derandomize=True,  # the same commit gives the same answer; `torture` explores
    database=None,
    print_blob=True,
)
settings.register_profile(
    "torture",
    max_examples=10_000,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile(os.environ.get("DRAGOMAN_PROFILE") or "dev")


def pytest_report_header() -> str:
    """What the environment chose, on top of every run."""
    try:
        corpus = str(Corpus.open().root)
    except CorpusNotFoundError:
        corpus = "none"
    profile = settings.get_current_profile_name()
    return f"dragoman: profile {profile}, corpus {corpus}, tier {current_tier()}"


@pytest.fixture(scope="session")
def corpus() -> Corpus:
    """The recorded traffic, for tests that choose from it themselves; skips where there is none."""
    try:
        return Corpus.open()
    except CorpusNotFoundError as reason:
        pytest.skip(str(reason))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs a test with a `recording` argument once for each that its `corpus` marker selects.

    `@pytest.mark.corpus(provider_api="anthropic", status=200)` takes what `Corpus.select` takes.
    """
    if "recording" not in metafunc.fixturenames:
        return
    marker = metafunc.definition.get_closest_marker("corpus")
    if marker is None:
        msg = f"{metafunc.definition.nodeid} takes a `recording`: mark it with `corpus`"
        raise pytest.UsageError(msg)
    metafunc.parametrize("recording", _recordings(marker))


def _recordings(marker: pytest.Mark) -> Sequence[ParameterSet]:
    try:
        corpus = Corpus.open()
    except CorpusNotFoundError as reason:
        return [pytest.param(None, marks=pytest.mark.skip(reason=str(reason)), id="no-corpus")]
    return [
        pytest.param(recording, id=recording.row.file.removesuffix(".json"))
        for recording in corpus.select(**marker.kwargs)
    ]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips what needs the extended tier while the core tier is chosen."""
    if current_tier() == "extended":
        return
    skip = pytest.mark.skip(reason="needs DRAGOMAN_TIER=extended")
    for item in items:
        if item.get_closest_marker("extended"):
            item.add_marker(skip)
