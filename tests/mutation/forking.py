"""A process that has loaded the source and some files of tests, and runs tests in forks of itself.

`python -m tests.mutation.forking` is started by `trials`. It reads one order per line and answers
each with one line.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import sys
from collections import Counter, defaultdict
from contextlib import suppress
from pathlib import Path
from time import monotonic
from types import FrameType, FunctionType
from typing import IO, Any, Never

import pytest

from tests.mutation.patching import functions_of, patch

_CPU_PER_TEST = 20  # seconds, and ten times what it took before
_PER_TEST = 240  # seconds by the clock: a busy machine takes its time
_FEW = 3  # cases of a test that go before those of other files
_HANGS = "the test hangs"
UNENDED = "(the run did not end)"


class Server:
    """A pytest plugin that runs tests when it is told which, and on which mutant."""

    def __init__(self, orders: IO[str], answers: IO[str], *, patches: bool) -> None:
        self._orders, self._answers, self._patches = orders, answers, patches
        self._items: dict[str, pytest.Item] = {}
        self._files: defaultdict[str, list[pytest.Item]] = defaultdict(list)
        self._functions: list[FunctionType] = []

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Serve, in place of running everything."""
        self._items = {item.nodeid: item for item in session.items}
        for name, item in self._items.items():
            self._files[name.partition("::")[0]].append(item)
        if self._patches:
            import_everything()
            self._functions = functions_of(f"{Path.cwd()}/src/")
        gc.collect()
        gc.freeze()
        self._say({"tests": len(self._items)})
        for line in self._orders:
            order = json.loads(line)
            self._say(self._learned(**order) if "probes" in order else self._served(**order))
        return True

    def _say(self, answer: dict[str, Any]) -> None:
        self._answers.write(json.dumps(answer) + "\n")
        self._answers.flush()

    def _learned(
        self, probes: list[list[str]], order: list[str], jobs: int, budget: float
    ) -> dict[str, Any]:
        """Run tests on source with probes, side by side, until the time is up.

        Tells which ran, how long each took, and the files of which all ran.
        """
        known = [name for name in order if name in self._files]
        files = [self._files[name] for name in known]
        running = []
        for job in range(jobs):
            items = [item for file in files[job::jobs] for item in file]
            reading, writing = os.pipe()
            child = _fork()
            if child == 0:
                os.close(reading)
                for change in probes:
                    patch(self._functions, *change)
                with os.fdopen(writing, "w") as out:
                    json.dump(_timed(items, budget), out)
                os._exit(0)
            os.close(writing)
            running.append((child, reading))
        took: dict[str, float] = {}
        try:
            for _, reading in running:
                took |= json.loads(_said(reading, monotonic() + 20 * budget) or "{}")
        finally:
            for child, reading in running:
                os.close(reading)
                _end(child)
        whole = [name for name in known if all(i.nodeid in took for i in self._files[name])]
        return {"took": took, "whole": whole}

    def _served(
        self,
        change: list[str] | None,
        tests: list[list[Any]],
        files: list[str],
        budget: float,
        broken: list[str],
    ) -> dict[str, Any]:
        """What became of tests; one counts only if it fails by itself, too, not after others."""
        while True:
            told = self._forked(change, tests, files, budget, broken)
            failed = told["failed"]
            if failed not in self._items or told["hangs"]:
                return told
            if self._forked(change, [[failed, 1]], [], budget, [])["failed"] is not None:
                return told
            broken = [*broken, failed]

    def _forked(
        self,
        change: list[str] | None,
        tests: list[list[Any]],
        files: list[str],
        budget: float,
        broken: list[str],
    ) -> dict[str, Any]:
        """Run tests, and all in some files, in a fork until one fails."""
        reading, writing = os.pipe()
        child = _fork()
        if child == 0:
            os.close(reading)
            wanted = [each for each in self._wanted(tests, files) if each[0].nodeid not in broken]
            with os.fdopen(writing, "w") as out:
                json.dump(self._outcome(change, wanted, budget), out)
            os._exit(0)
        os.close(writing)
        try:
            said = _said(reading, monotonic() + _PER_TEST + 10 * min(budget, _PER_TEST))
        finally:
            os.close(reading)
            _end(child)
        told: dict[str, Any] = json.loads(said or "null") or {
            "failed": UNENDED, "hangs": True, "left": 0, "is_patched": True,
        }  # fmt: skip
        return {**told, "spent": _spent()}  # loading included

    def _wanted(self, tests: list[list[Any]], files: list[str]) -> list[tuple[pytest.Item, float]]:
        known = [(self._items[test], took) for test, took in tests if test in self._items]
        first: list[tuple[pytest.Item, float]] = []
        later: list[tuple[pytest.Item, float]] = []
        for file in files:
            cases: Counter[str] = Counter()
            for item in self._files.get(file, ()):
                function = item.nodeid.partition("[")[0]
                cases[function] += 1
                (first if cases[function] <= _FEW else later).append((item, 1.0))
        return known + first + later

    def _outcome(
        self, change: list[str] | None, tests: list[tuple[pytest.Item, float]], budget: float
    ) -> dict[str, Any]:
        """The fork's side."""
        if change is not None and not patch(self._functions, *change):
            return {**_Run(budget).told, "left": len(tests), "is_patched": False}
        run = _Run(budget)
        run.all(tests)
        return {**run.told, "is_patched": True}


class _Run:
    """Runs tests until one fails."""

    def __init__(self, budget: float) -> None:
        self._budget = budget
        self.told: dict[str, Any] = {"failed": None, "hangs": False, "left": 0}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the first test that fails."""
        if report.failed and self.told["failed"] is None:
            self.told |= {"failed": report.nodeid, "hangs": _HANGS in report.longreprtext}

    def all(self, items: list[tuple[pytest.Item, float]]) -> None:
        """Run tests until one fails, or the time is up."""
        if items:
            items[0][0].config.pluginmanager.register(self)
        signal.signal(signal.SIGALRM, _raise)
        signal.signal(signal.SIGPROF, _raise)
        start = _spent()
        for number, (item, took) in enumerate(items):
            if self.told["failed"] is not None:
                break
            if _spent() - start > self._budget:
                self.told["left"] = len(items) - number
                break
            signal.alarm(_PER_TEST)
            signal.setitimer(signal.ITIMER_PROF, _CPU_PER_TEST + 10 * took)
            try:
                following = items[number + 1][0] if number + 1 < len(items) else None
                item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
            finally:
                signal.alarm(0)
                signal.setitimer(signal.ITIMER_PROF, 0)


def _timed(items: list[pytest.Item], budget: float) -> dict[str, float]:
    """Run tests, whatever becomes of them, until the time is up; the seconds that each took."""
    signal.signal(signal.SIGALRM, _raise)
    signal.signal(signal.SIGPROF, _raise)
    took: dict[str, float] = {}
    begin = _spent()
    for number, item in enumerate(items):
        start = _spent()
        if start - begin > budget:
            break
        following = items[number + 1] if number + 1 < len(items) else None
        signal.alarm(_PER_TEST)
        signal.setitimer(signal.ITIMER_PROF, _CPU_PER_TEST)
        try:
            item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
        finally:
            signal.alarm(0)
            signal.setitimer(signal.ITIMER_PROF, 0)
        took[item.nodeid] = round(_spent() - start, 4)
    return took


def import_everything() -> None:
    """Load all modules of the source, but those whose library is missing."""
    import dragoman

    for module in pkgutil.walk_packages(dragoman.__path__, "dragoman.", onerror=lambda _: None):
        if not module.name.endswith("__main__"):
            with suppress(Exception):
                importlib.import_module(module.name)


def _raise(_number: int, _frame: FrameType | None) -> Never:
    raise TimeoutError(_HANGS)


def _spent() -> float:
    """Seconds of CPU time, those of ended children included: some tests are all children."""
    return sum(os.times()[:4])


def _said(reading: int, until: float) -> bytes:
    """What a fork says, until it ends or its time is up."""
    said = b""
    while select.select([reading], [], [], max(0, until - monotonic()))[0]:
        raw = os.read(reading, 1 << 16)
        said += raw
        if not raw or (said.endswith(b"}") and _is_whole(said)):
            break  # what it has started may hold the pipe open
    return said


def _is_whole(said: bytes) -> bool:
    try:
        json.loads(said)
    except ValueError:
        return False
    return True


def _fork() -> int:
    """A fork in a session of its own, so that all that it starts can be ended with it."""
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.setsid()
    return child


def _leave(_number: int, _frame: FrameType | None) -> Never:
    raise KeyboardInterrupt


def _end(child: int) -> None:
    """End a fork, and what it started."""
    for kill in (os.killpg, os.kill):
        try:
            kill(child, signal.SIGKILL)
        except ProcessLookupError:
            continue
    os.waitpid(child, 0)


def main() -> int:
    """Load these cases of the files of tests that are named, and serve.

    Who patches has loaded all of the source before: it is read no more then.
    """
    signal.signal(signal.SIGTERM, _leave)  # and end the forks
    orders, answers = os.fdopen(int(sys.argv[1])), os.fdopen(int(sys.argv[2]), "w")
    server = Server(orders, answers, patches=sys.argv[3] == "patches")
    cases, files = sys.argv[4], sys.argv[5:]
    command = [
        "-q",
        "-n0",
        "-m",
        cases,
        "-p",
        "no:cacheprovider",
        "--ignore=tests/mutation",
        *files,
    ]
    return int(pytest.main(command, plugins=[server]))


if __name__ == "__main__":
    sys.exit(main())
