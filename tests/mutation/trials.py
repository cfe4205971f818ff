"""Trying mutants on a copy of the tree, with the tests that run the changed line.

Most are tried in forks of a process that has loaded a layer and its tests once (`forking`). Those
that matter while a module is loaded are written into the copy, for a process of their own.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from enum import StrEnum
from itertools import count, pairwise
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

from tests.mutation import probing
from tests.mutation.selection import SOURCE, Lines, likely_tests, lines_to_run
from tests.mutation.sites import Site

_COPIED = ("src", "tests", "docs", "pyproject.toml", "README.md", "Makefile", "CHANGELOG.md")
_IGNORED = shutil.ignore_patterns("__pycache__", ".*_cache", ".hypothesis")
_BATCHES = (0, 6, 30, None)  # files that a process of its own loads: the first notice most
_PATIENCE = 10  # seconds
_NEAR = 6  # files of tests that each mutant is tried with first
_NEAR_BUDGET = 15  # seconds of CPU time for these
_LEARNING = 20  # seconds of CPU time for each mutant, to see which tests reach it
_FORKING = "tests.mutation.forking"
_LOADING = "(the tests could not be loaded)"

SAMPLED = "not slow and not extended and not thorough"
"""The cases that `make test` runs."""
WHOLE = "not slow and not extended"
"""The large tables whole, as `make test-thorough` runs them besides."""


class Test(NamedTuple):
    """A test, and the seconds of CPU time that it took."""

    name: str
    took: float

    @property
    def file(self) -> str:
        """The file it is in."""
        return self.name.partition("::")[0]


class Mutant(NamedTuple):
    """One change of one file."""

    package: str
    file: Path
    site: Site


class Verdict(StrEnum):
    """What became of a mutant."""

    CAUGHT = "caught"
    SURVIVED = "survived"
    UNDECIDED = "undecided"
    """Tests were left over when its time was up: one of them may notice it."""
    TIMED_OUT = "timed_out"
    """A test did not end."""


class Trial(NamedTuple):
    """How a mutant fared."""

    mutant: Mutant
    verdict: Verdict
    before: str
    after: str
    noticed_by: str | None = None
    tests: int = 0
    """How many tests run it."""

    def described(self) -> dict[str, Any]:
        """The trial for programs."""
        mutant = self.mutant
        return {
            "package": mutant.package, "file": mutant.file.as_posix(), "line": mutant.site.line,
            "kind": mutant.site.kind, "before": self.before, "after": self.after,
            "verdict": self.verdict, "noticed_by": self.noticed_by, "tests": self.tests,
        }  # fmt: skip


class Workshop:
    """A copy of the tree in which the mutants of a layer are tried; the tree is not touched."""

    def __init__(self, root: Path, *, budget: float, cases: str = SAMPLED) -> None:
        self._root, self._budget, self._cases = root, budget, cases
        self._folder = tempfile.TemporaryDirectory(prefix="mutants-")
        self.copy = Path(self._folder.name) / root.name
        self.copy.mkdir()
        self._probes = Path(self._folder.name) / "probes"
        self._sound: dict[str, bool] = {}
        self._times = count(1_500_000_000)
        self._servers: list[_Server] = []
        for name in _COPIED:
            place = root / name
            if place.is_dir():
                shutil.copytree(place, self.copy / name, ignore=_IGNORED)
            elif place.exists():
                shutil.copy(place, self.copy / name)

    def close(self) -> None:
        """End what runs, and remove the copy."""
        for server in self._servers:
            server.close()
        self._folder.cleanup()

    def trials(self, mutants: list[Mutant], until: float) -> Iterator[Trial]:
        """Try mutants: first with the nearest tests; what these don't notice, with all others."""
        self._load(mutants)
        left = []
        for mutant in mutants:
            if monotonic() > until:
                break
            trial = self._tried(mutant, _NEAR_BUDGET)
            if trial.noticed_by is None:
                left.append(trial._replace(verdict=Verdict.UNDECIDED))
            else:
                yield trial
        if left and monotonic() < until:
            self._learn([trial.mutant for trial in left])
        for trial in left:
            is_late = monotonic() > until
            yield trial if is_late else self._tried(trial.mutant, self._budget)

    def _load(self, mutants: list[Mutant]) -> None:
        """Load the tests that are likely to notice these."""
        self._sources = {
            path.relative_to(self.copy).as_posix(): path.read_text()
            for path in sorted((self.copy / SOURCE).rglob("*.py"))
        }
        self._lines: dict[Mutant, Lines] = {}
        self._is_early: dict[Mutant, bool] = {}
        self._likely: dict[Mutant, list[str]] = {}
        self._tests: dict[Mutant, list[Test]] = {}
        for mutant in mutants:
            file, line = mutant.file, mutant.site.line
            self._likely[mutant] = [*map(str, likely_tests(self.copy, file, line))]
            self._lines[mutant], self._is_early[mutant] = lines_to_run(
                self._sources, file.as_posix(), line
            )
        near = {file for likely in self._likely.values() for file in likely[:_NEAR]}
        self._loaded = self._server(near, patches=True)

    def _learn(self, mutants: list[Mutant]) -> None:
        """Load all tests that may notice these, and run them once: which reach which?"""
        self._loaded.close()
        files = {file for mutant in mutants for file in self._likely[mutant]}
        self._loaded = self._server(files, patches=True)
        wanted: dict[str, dict[int, list[int]]] = {}
        for number, mutant in enumerate(mutants):
            for file, found in self._lines[mutant].items():
                for line in found:
                    wanted.setdefault(file, {}).setdefault(line, []).append(number)
        took, reached, self._looked_at = self._learned(mutants, wanted)
        for number, mutant in enumerate(mutants):
            names = reached.get(number, ())
            tests = [Test(name, took[name]) for name in names if name in took]
            self._tests[mutant] = _ranked(tests)
            self._is_early[mutant] |= probing.LOADING in names

    def _learned(
        self, mutants: list[Mutant], wanted: Mapping[str, Mapping[int, list[int]]]
    ) -> tuple[dict[str, float], dict[int, list[str]], set[str]]:
        """Run the loaded tests with probes: how long each took, which reached what.

        Also the files of which all tests were run.
        """
        sources = self._sources
        changes = [
            [str(self.copy / file), sources[file], probing.probed(sources[file], lines)]
            for file, lines in wanted.items()
        ]
        order = _by_likelihood([self._likely[mutant] for mutant in mutants])
        for place, _, text in changes:
            self._write(Path(place).relative_to(self.copy), text)
        try:
            took, whole = self._loaded.learn(changes, order, _LEARNING * len(mutants))
        finally:
            for file in wanted:
                self._write(Path(file), sources[file])
        noted = self._probes.read_text() if self._probes.exists() else ""
        return took, probing.read(noted), whole

    def _server(self, files: Iterable[str], *, patches: bool = False) -> _Server:
        arguments = [self._cases, *sorted(set(files))]
        server = _Server(self.copy, arguments, self._environment(), patches=patches)
        self._servers.append(server)
        return server

    def _tried(self, mutant: Mutant, budget: float) -> Trial:
        """Run tests on a mutant until one fails, all have passed, or the time is up."""
        source = (self.copy / mutant.file).read_text()
        tests = self._tests.get(mutant, [])
        broken: set[str] = set()
        while True:
            sound = [test for test in tests if test.name not in broken]
            told = self._told(mutant, source, sound, budget, broken)
            failed = told["failed"]
            if failed is None or told["hangs"] or self._passes(failed):
                break
            broken.add(failed)  # it fails whatever the source: it has noticed nothing
        left = Verdict.UNDECIDED if told["left"] else Verdict.SURVIVED
        noticed = Verdict.TIMED_OUT if told["hangs"] else Verdict.CAUGHT
        verdict = left if failed is None else noticed
        return Trial(mutant, verdict, *mutant.site.shown(source), failed, len(tests))

    def _told(
        self, mutant: Mutant, source: str, tests: list[Test], budget: float, broken: set[str]
    ) -> dict[str, Any]:
        """Run tests on a mutant, which the processes that they start load from the copy."""
        mutated = mutant.site.applied(source)
        unknown = self._unknown(mutant)
        self._write(mutant.file, mutated)
        try:
            is_first = mutant not in self._tests
            if not self._is_early[mutant] and (tests or is_first):
                change = [str(self.copy / mutant.file), source, mutated]
                told = self._loaded.ask(change, tests, unknown, budget, broken)
                is_noticed = told["failed"] is not None or told["left"]
                if told["is_patched"] and (is_noticed or is_first):
                    return told
            return self._told_anew(tests, unknown, budget, broken)
        finally:
            self._write(mutant.file, source)

    def _told_anew(
        self, tests: list[Test], unknown: list[str], budget: float, broken: set[str]
    ) -> dict[str, Any]:
        """The same in processes that load the mutant themselves."""
        near = list(dict.fromkeys([*(test.file for test in tests), *unknown]))
        told: dict[str, Any] = {"failed": None, "hangs": False, "left": 0}
        left = budget
        for first, last in pairwise(_BATCHES):
            files = near[first:last]
            if not files or told["failed"] is not None or told["left"]:
                break
            if left <= 0:
                return {**told, "left": len(near[first:])}
            server = self._server(files)
            known = [test for test in tests if test.file in files]
            rest = [file for file in unknown if file in files]
            told = server.ask(None, known, rest, left, broken)
            server.close()
            left -= told["spent"]
        return told

    def _unknown(self, mutant: Mutant) -> list[str]:
        """The files of tests of which nobody knows whether they reach a mutant.

        If it is run while the source is loaded, or by no test, any of them may notice it.
        """
        likely = self._likely[mutant]
        if mutant not in self._tests:
            return likely[:_NEAR]
        is_lost = self._is_early[mutant] or not self._tests[mutant]
        return [file for file in likely if is_lost or file not in self._looked_at]

    def _write(self, file: Path, source: str) -> None:
        """Write a file under a time of its own: bytecode goes by that and by the size."""
        place = self.copy / file
        place.write_text(source)
        at = next(self._times)
        os.utime(place, (at, at))

    def _passes(self, test: str) -> bool:
        """Whether a test passes on the source as it is."""
        if test == _LOADING:
            return True  # no test, of which that could be asked
        if test not in self._sound:
            told = self._loaded.ask(None, [Test(test, 1)], [], _NEAR_BUDGET)
            self._sound[test] = told["failed"] is None
        return self._sound[test]

    def _environment(self) -> dict[str, str]:
        corpus = os.environ.get("DRAGOMAN_CORPUS", str(self._root.parent / "shared" / "corpus"))
        path = os.pathsep.join(map(str, (self.copy / "src", self.copy)))
        ours = {
            "PYTHONPATH": path, "DRAGOMAN_PROFILE": "quick", "DRAGOMAN_TIER": "core",
            "DRAGOMAN_CORPUS": corpus, probing.PLACE: str(self._probes),
        }  # fmt: skip
        kept = {name: text for name, text in os.environ.items() if not name.startswith("PYTEST_")}
        kept.pop("PYTHONDONTWRITEBYTECODE", None)
        return {**kept, **ours}


def _by_likelihood(lists: Iterable[list[str]]) -> list[str]:
    """The files of several lists, by their best place in one of them."""
    ranks: dict[str, int] = {}
    for files in lists:
        for rank, file in enumerate(files):
            ranks[file] = min(rank, ranks.get(file, rank))
    return sorted(ranks, key=lambda file: (ranks[file], file))


def _ranked(tests: list[Test]) -> list[Test]:
    """First one case of each test, the quickest first."""
    cases: Counter[str] = Counter()
    ranked = []
    for test in sorted(tests, key=lambda test: test.took):
        function = test.name.partition("[")[0]
        cases[function] += 1
        ranked.append((cases[function] * test.took, test))
    return [test for _, test in sorted(ranked)]


class _Server:
    """A process that has loaded files of tests, and runs what it is asked to."""

    def __init__(
        self, copy: Path, arguments: list[str], environment: dict[str, str], *, patches: bool
    ) -> None:
        task = "patches" if patches else "loads"
        theirs, orders = os.pipe()
        answers, said = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-m", _FORKING, str(theirs), str(said), task, *arguments],
            cwd=copy, env=environment, start_new_session=True, pass_fds=(theirs, said),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(theirs)
        os.close(said)
        self._orders, self._answers = os.fdopen(orders, "w"), os.fdopen(answers)
        self._is_loaded = bool(self._answers.readline())

    def learn(
        self, probes: list[list[str]], order: list[str], budget: float
    ) -> tuple[dict[str, float], set[str]]:
        """Run tests on source with probes, until the time is up.

        The seconds that each took, and the files of which all were run.
        """
        jobs = 1 + (os.cpu_count() or 1)  # some of them wait
        answer = self._asked({"probes": probes, "order": order, "jobs": jobs, "budget": budget})
        return answer.get("took", {}), set(answer.get("whole", ()))

    def ask(
        self,
        change: list[str] | None,
        tests: list[Test],
        files: list[str],
        budget: float,
        broken: Iterable[str] = (),
    ) -> dict[str, Any]:
        """What became of tests, and of all in some files but the broken, on a change."""
        order = {
            "change": change, "tests": tests, "files": files, "budget": budget,
            "broken": list(broken),
        }  # fmt: skip
        return self._asked(order)

    def _asked(self, order: dict[str, Any]) -> dict[str, Any]:
        with suppress(BrokenPipeError):
            print(json.dumps(order), file=self._orders, flush=True)
        unloaded = {
            "failed": _LOADING, "hangs": False, "left": 0, "is_patched": True, "spent": 0,
        }  # fmt: skip
        answer: dict[str, Any] = json.loads(self._answers.readline() or json.dumps(unloaded))
        return answer

    def close(self) -> None:
        """End the process, which ends its forks, and what it started."""
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_PATIENCE)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._answers.close()
        with suppress(BrokenPipeError):
            self._orders.close()
