"""A pytest plugin for a run on a mutant: no test hangs, the run ends in time, and says why."""

from __future__ import annotations

import json
import os
import signal
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from types import FrameType
from typing import Never

import pytest

_PER_TEST = 300  # seconds: a busy machine is slow
_SHARES = 6  # of the whole time, of which a file gets one at most
_in_file: defaultdict[Path, float] = defaultdict(float)
_outcome: dict[str, str | float | None] = {"failed": None, "stopped": None, "hangs": False}


def _hangs(_number: int, _frame: FrameType | None) -> Never:
    msg = "the test hangs"
    raise TimeoutError(msg)


def _spent() -> float:
    """Seconds of CPU time, including ended children: some tests only start children."""
    return sum(os.times()[:4])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Give each test its time limit."""
    start = _spent()
    signal.signal(signal.SIGALRM, _hangs)
    signal.alarm(_PER_TEST)
    try:
        return (yield)
    finally:
        signal.alarm(0)
        _in_file[item.path] += _spent() - start
        if _spent() > float(os.environ["DRAGOMAN_TEST_BUDGET"]):
            _outcome["stopped"] = item.nodeid
            item.session.shouldstop = "the time is up"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let no file use up the time of the others: the rest of it is not run."""
    if _in_file[item.path] > float(os.environ["DRAGOMAN_TEST_BUDGET"]) / _SHARES:
        _outcome["stopped"] = item.nodeid
        pytest.skip("its file has had its time")


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Note a file that can't be imported any more."""
    if report.failed:
        _outcome["failed"] = _outcome["failed"] or report.nodeid


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note the first failing test."""
    if report.failed:
        _outcome["failed"] = _outcome["failed"] or report.nodeid
        _outcome["hangs"] = _outcome["hangs"] or "the test hangs" in report.longreprtext


def pytest_sessionfinish() -> None:
    """Report how it ended."""
    _outcome["spent"] = _spent()
    Path(os.environ["DRAGOMAN_TEST_OUTCOME"]).write_text(json.dumps(_outcome))
