"""Hypothesis profiles, recorded traffic as test parameters, async tests, the environment.

`DRAGOMAN_PROFILE` selects the profile: `dev` (default), `quick`, `ci` or `torture`, which draws
`DRAGOMAN_EXAMPLES` of each property (200).
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import signal
from collections.abc import Generator, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests import environment, sampling, time_limit
from tests.corpus import Corpus, CorpusNotFoundError, current_tier

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet

# No deadlines anywhere: on a shared machine they measure the neighbours.
settings.register_profile("dev", max_examples=50, deadline=None)
for _name, _examples in (("quick", 4), ("ci", 20)):
    settings.register_profile(
        _name,
        max_examples=_examples,
        deadline=None,
        derandomize=True,  # the same commit gives the same result; `torture` explores
        database=None,
        print_blob=True,
    )
settings.register_profile(
    "torture",
    max_examples=int(os.environ.get("DRAGOMAN_EXAMPLES") or 200),
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile(os.environ.get("DRAGOMAN_PROFILE") or "dev")

# In the background of a script, we and our child processes would ignore Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure() -> None:
    """Prepares to report a test that can't be ended."""
    time_limit.keep_stderr()


def pytest_sessionstart(session: pytest.Session) -> None:
    """Sets up the environment before tests are collected.

    Not in the xdist controller: its workers inherit that environment first.
    """
    if session.config.getoption("dist", "no") == "no":
        environment.settle()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Sets aside all that was imported and collected: it stays, and garbage is found sooner.

    Fewer collections afterwards, too, take a tenth of the time off; the tests that count what is
    left over collect by themselves.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
        gc.set_threshold(20_000, 50, 100)


def pytest_report_header() -> str:
    """Shows the chosen profile and tier at the top of every run."""
    try:
        corpus = str(Corpus.open().root)
    except CorpusNotFoundError:
        corpus = "none"
    profile = settings.get_current_profile_name()
    return f"dragoman: profile {profile}, corpus {corpus}, tier {current_tier()}"


@pytest.fixture(scope="session")
def corpus() -> Corpus:
    """The recorded traffic, for tests that select from it themselves; skips if there is none."""
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


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Samples large tables; skips what needs the extended tier in the core tier."""
    sampling.leave_out(items)
    if current_tier() == "extended":
        return
    skip = pytest.mark.skip(reason="needs DRAGOMAN_TIER=extended")
    for item in items:
        if item.get_closest_marker("extended"):
            item.add_marker(skip)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None, object, object]:
    """Limits the time of a test's fixtures."""
    with time_limit.limited(_limit()):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    """Limits the time of a test."""
    with time_limit.limited(_limit()):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(
    nextitem: pytest.Item | None,
) -> Generator[None, object, object]:
    """Limits the time that a test's fixtures take to clean up."""
    try:
        with time_limit.limited(_limit()):
            return (yield)
    finally:
        if nextitem is None:
            time_limit.end_watch()


def _limit() -> int:
    return time_limit.LIMITS[settings.get_current_profile_name()]


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run coroutine tests without a plugin."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    wanted = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in wanted}
    asyncio.run(pyfuncitem.obj(**arguments))
    return True


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the tests' home folders."""
    return tmp_path_factory.mktemp("homes")


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch, homes: Path) -> None:
    """Nothing of the user's is read or written, and no optional package is importable."""
    environment.isolate(monkeypatch, homes)


@pytest.fixture
def quick_collector() -> None:
    """Restricts garbage collection to objects that the test creates.

    What is older stays set aside, with all that was imported: to search it takes a second.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def postgres_schema() -> Iterator[str]:
    """A schema in PostgreSQL for the tests of this process that only want it empty."""
    from tests.history.storage.backend_postgres import schema

    with schema() as name:
        yield name


@pytest.fixture
def fake_llama(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for llama.cpp is installed."""
    environment.offer_fake_llama(monkeypatch)


@pytest.fixture
def real_llama(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real llama.cpp with a real model; skips if one of them is missing."""
    from dragoman.transport.local.catalogue import SMOLLM2
    from dragoman.transport.local.fetching import is_kept

    environment.offer_real_llama(monkeypatch)
    if find_spec("xllamacpp") is None:
        pytest.skip("xllamacpp is not installed")
    if not is_kept(SMOLLM2) and os.environ.get("DRAGOMAN_LOCAL") != "1":
        pytest.skip("smollm2 is not here; DRAGOMAN_LOCAL=1 fetches it")
