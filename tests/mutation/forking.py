"""A process that imports a layer and its tests once, and tries each mutant in a fork.

`python -m tests.mutation.forking` is started by `trials`. It reads one order per line and answers
each with one line. Which tests execute a mutant isn't known beforehand: every test reports the
mutants that it executed, so that later runs skip tests that never reach one.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import sys
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from time import monotonic
from types import FrameType
from typing import IO, Any, Never

import pytest

from tests.mutation.sites import Site
from tests.mutation.switches import Switches

_PER_TEST = 300  # seconds: a busy machine is slow
_CPU_PER_TEST = 30  # seconds of CPU time: no test takes as many
_SHARES = 6  # of the whole time, of which a file gets one at most
_PATIENCE = 10  # times its budget of CPU time, after which a fork is ended from outside
_HANGS = "the test hangs"
UNENDED = "(the run did not end)"


class Server:
    """A pytest plugin that runs the requested tests for the requested mutant."""

    def __init__(self, switches: Switches, orders: IO[str], answers: IO[str]) -> None:
        self._switches = switches
        self._orders, self._answers = orders, answers
        self._items: dict[str, list[pytest.Item]] = defaultdict(list)
        self._passed: dict[str, frozenset[int]] = {}  # the mutants that a test has executed
        self._took: dict[str, float] = {}
        self._is_sound: dict[str, bool] = {}
        self._early: set[int] = set()

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Serve, in place of running everything."""
        for item in session.items:
            self._items[item.path.relative_to(Path.cwd()).as_posix()].append(item)
        self._early = set(self._switches.reached)
        gc.collect()
        gc.freeze()
        self._say({"tests": len(session.items)})
        for line in self._orders:
            self._say(self._served(**json.loads(line)))
        return True

    def _say(self, answer: dict[str, Any]) -> None:
        self._answers.write(json.dumps(answer) + "\n")
        self._answers.flush()

    def _served(self, mutant: int, files: list[str], budget: float) -> dict[str, Any]:
        """The outcome of a mutant: the test that detected it, or how many executed it in vain."""
        items = list(self._ordered(mutant, files))
        broken: set[str] = set()
        while True:
            told = self._forked(mutant, [i for i in items if i.nodeid not in broken], budget)
            failed = told["failed"]
            if failed is None or told["hangs"] or self._passes(failed):
                break
            broken.add(failed)  # it fails on the original source as well, so it detected nothing
        return {**told, "early": mutant in self._early}

    def _ordered(self, mutant: int, files: list[str]) -> Iterator[pytest.Item]:
        """Tests that execute the mutant, the quickest first; then those not yet known."""
        items = [item for file in files for item in self._items.get(file, ())]
        known = [item for item in items if mutant in self._passed.get(item.nodeid, ())]
        yield from sorted(known, key=lambda item: self._took[item.nodeid])
        yield from (item for item in items if item.nodeid not in self._passed)

    def _passes(self, test: str) -> bool:
        """Whether a test passes on the original source."""
        if test not in self._is_sound:
            items = [item for own in self._items.values() for item in own if item.nodeid == test]
            self._is_sound[test] = self._forked(None, items, 1e9)["failed"] is None
        return self._is_sound[test]

    def _forked(
        self, mutant: int | None, items: list[pytest.Item], budget: float
    ) -> dict[str, Any]:
        """Run tests in a fork until one fails."""
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            os.setsid()
            self._switches.active = mutant
            with os.fdopen(writing, "w") as out:
                _Run(self._switches, out, budget).all(items)
            os._exit(0)
        os.close(writing)
        told: dict[str, Any] = {"failed": UNENDED, "hangs": True, "left": 0}
        reached = 0
        for line in _lines(reading, monotonic() + _PATIENCE * min(budget, _PER_TEST)):
            note = json.loads(line)
            if "failed" in note:
                told = note
                break
            if mutant in note["passed"]:
                reached += 1
            else:  # the test ran on the original source
                self._passed[note["test"]] = frozenset(note["passed"])
                self._took[note["test"]] = note["took"]
        os.close(reading)
        _end(child)
        return {**told, "reached": reached}


class _Run:
    """In the fork: runs tests, and reports the mutants that each executed."""

    def __init__(self, switches: Switches, out: IO[str], budget: float) -> None:
        self._switches, self._out, self._budget = switches, out, budget
        self._failed: str | None = None
        self._hangs = False
        self._has_been_on = False
        self._in_file: defaultdict[Path, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the first failing test."""
        if report.failed and self._failed is None:
            self._failed = report.nodeid
            self._hangs = _HANGS in report.longreprtext

    def all(self, items: list[pytest.Item]) -> None:
        """Run tests until one fails, or the time is up."""
        if items:
            items[0].config.pluginmanager.register(self)
        signal.signal(signal.SIGALRM, _raise)
        signal.signal(signal.SIGPROF, _raise)
        left: list[pytest.Item] = []
        for item, following in pairwise([*items, None]):
            assert item is not None
            if self._failed is not None:
                break
            if _spent() > self._budget or self._in_file[item.path] * _SHARES > self._budget:
                left.append(item)
                continue
            if left:  # the previous test was told of another next one
                item.session._setupstate.teardown_exact(item)
            self._one(item, following)
        self._say({"failed": self._failed, "hangs": self._hangs, "left": len(left)})

    def _one(self, item: pytest.Item, following: pytest.Item | None) -> None:
        start = _spent()
        self._switches.reached.clear()
        signal.alarm(_PER_TEST)
        signal.setitimer(signal.ITIMER_PROF, _CPU_PER_TEST)
        try:
            item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
        finally:
            signal.alarm(0)
            signal.setitimer(signal.ITIMER_PROF, 0)
        took = _spent() - start
        self._in_file[item.path] += took
        passed = sorted(self._switches.reached)
        self._has_been_on |= self._switches.active in passed
        if not self._has_been_on and self._switches.active is not None:
            self._failed = None  # for another reason: the mutant has not been executed yet
        self._say({"test": item.nodeid, "passed": passed, "took": took})

    def _say(self, note: dict[str, Any]) -> None:
        self._out.write(json.dumps(note) + "\n")
        self._out.flush()


def _raise(_number: int, _frame: FrameType | None) -> Never:
    raise TimeoutError(_HANGS)


def _spent() -> float:
    """Seconds of CPU time, including ended children: some tests only start children."""
    return sum(os.times()[:4])


def _lines(reading: int, until: float) -> Iterator[bytes]:
    """The lines of a fork, until it ends or its time is up."""
    rest = b""
    while select.select([reading], [], [], max(0, until - monotonic()))[0]:
        raw = os.read(reading, 1 << 16)
        if not raw:
            return
        *whole, rest = (rest + raw).split(b"\n")
        yield from whole


def _end(child: int) -> None:
    """End a fork and its children."""
    for kill in (os.killpg, os.kill):
        try:
            kill(child, signal.SIGKILL)
        except ProcessLookupError:
            continue
    os.waitpid(child, 0)


def main() -> int:
    """Import what the first line names, and serve."""
    orders, answers = os.fdopen(int(sys.argv[1])), os.fdopen(int(sys.argv[2]), "w")
    wanted: dict[str, Any] = json.loads(orders.readline())
    files: dict[Path, dict[int, Site]] = defaultdict(dict)
    for number, file, *site in wanted["mutants"]:
        files[Path.cwd() / file][number] = Site(*site)
    switches = Switches()
    switches.install(files)
    command = ["-q", "-n0", "-p", "no:cacheprovider", "--ignore=tests/mutation", *wanted["tests"]]
    return int(pytest.main(command, plugins=[Server(switches, orders, answers)]))


if __name__ == "__main__":
    sys.exit(main())
