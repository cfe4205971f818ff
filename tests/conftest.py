"""Hypothesis profiles, recorded traffic as test parameters, async tests, a bare environment.

`DRAGOMAN_PROFILE` picks the profile: `dev` (default), `ci` or `torture`.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.corpus import Corpus, CorpusNotFoundError, current_tier

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet

_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
_AUTHORITIES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")

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

# Started in the background of a script, we and all that we start would be deaf to ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


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


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run coroutine tests; they need no plugin then."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    wanted = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in wanted}
    asyncio.run(pyfuncitem.obj(**arguments))
    return True


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No keys, no proxies, no authorities: a test sets what it is about."""
    for name in [*os.environ]:
        is_proxy = name.lower() in _PROXIES
        if is_proxy or name in _AUTHORITIES or name.endswith(("_API_KEY", "_ACCESS_TOKEN")):
            monkeypatch.delenv(name)
