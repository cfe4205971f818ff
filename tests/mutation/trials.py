"""Trying mutants on a copy of the tree, with the tests that are likely to detect them first.

Most mutants are tried in forks of a process that has imported a layer and its tests once
(`forking`). Those without a switch (`switches`), those that mattered during import, and those that
no test executed are written into the copy, for a separate run: importing takes longer than most
mutants live, so a few test files are tried, then more.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import astuple
from itertools import count, pairwise
from pathlib import Path
from typing import Any, NamedTuple

from tests.mutation.forking import UNENDED
from tests.mutation.selection import likely_tests
from tests.mutation.sites import Site
from tests.mutation.switches import switched

_COPIED = ("src", "tests", "docs", "pyproject.toml", "README.md", "Makefile", "CHANGELOG.md")
_IGNORED = shutil.ignore_patterns("__pycache__", ".*_cache", ".hypothesis")
_BATCHES = (0, 4, 16, None)  # files that are tried one after the other
_PATIENCE = 10  # times its budget of CPU time, after which a run is ended from outside


class Mutant(NamedTuple):
    """One change of one file."""

    package: str
    file: Path
    site: Site


class Trial(NamedTuple):
    """The outcome of a mutant: the test that detected it, or None."""

    mutant: Mutant
    noticed_by: str | None
    before: str
    after: str
    is_unfinished: bool = False
    """Whether tests were left over when its time was up: one of them may notice it."""
    has_timed_out: bool = False
    """Whether it was noticed by a test that did not end."""

    def described(self) -> dict[str, Any]:
        """The trial for programs."""
        mutant = self.mutant
        return {
            "package": mutant.package, "file": mutant.file.as_posix(), "line": mutant.site.line,
            "kind": mutant.site.kind, "before": self.before, "after": self.after,
            "noticed_by": self.noticed_by, "is_unfinished": self.is_unfinished,
            "has_timed_out": self.has_timed_out,
        }  # fmt: skip


class Workshop:
    """A copy of the tree in which one mutant at a time is tried; the tree itself is not changed."""

    def __init__(self, root: Path, *, budget: float) -> None:
        self._root = root
        self._budget = budget
        self._folder = tempfile.TemporaryDirectory(prefix="mutants-")
        self.copy = Path(self._folder.name) / root.name
        self._running: subprocess.Popen[bytes] | None = None
        self._clean: dict[str, bool] = {}
        self._was_stopped = False
        self._has_hung = False
        self._loaded: _Loaded | None = None
        self._left = budget  # of the current mutant
        self._times = count(1_500_000_000)
        for name in _COPIED:
            place = root / name
            if place.is_dir():
                shutil.copytree(place, self.copy / name, ignore=_IGNORED)
            elif place.exists():
                self.copy.mkdir(exist_ok=True)
                shutil.copy(place, self.copy / name)

    def stop(self) -> None:
        """End the current run."""
        if self._running is not None:
            _end(self._running)
        if self._loaded is not None:
            self._loaded.close()

    def close(self) -> None:
        """Remove the copy."""
        if self._loaded is not None:
            self._loaded.close()
        self._folder.cleanup()

    def load(self, mutants: list[Mutant]) -> None:
        """Prepare to try those of these that can be tried in forks of one process."""
        self._loaded = _Loaded(self.copy, mutants, self._environment(self.copy / "none"))

    def tried(self, mutant: Mutant) -> Trial:
        """Run tests on a mutant until one fails, all have passed, or the time is up."""
        likely = [str(path) for path in likely_tests(self.copy, mutant.file, mutant.site.line)]
        told = self._loaded.tried(mutant, likely, self._budget) if self._loaded else None
        if told is None or (told["failed"] is None and (told["early"] or not told["reached"])):
            return self._tried_alone(mutant, likely)
        before, after = mutant.site.shown((self.copy / mutant.file).read_text())
        is_unfinished = told["failed"] is None and told["left"] > 0
        return Trial(mutant, told["failed"], before, after, is_unfinished, told["hangs"])

    def _tried_alone(self, mutant: Mutant, likely: list[str]) -> Trial:
        """The same in processes that import the mutant themselves."""
        source = (self.copy / mutant.file).read_text()
        self._left, self._was_stopped, self._has_hung = self._budget, False, False
        is_unfinished, failed = False, None
        for first, last in pairwise(_BATCHES):
            files = likely[first:last]
            if failed is None and files:
                is_unfinished = self._left <= 0
                failed = None if is_unfinished else self._failing(mutant, source, files)
        before, after = mutant.site.shown(source)
        is_unfinished |= self._was_stopped
        is_unfinished &= failed is None
        return Trial(
            mutant, failed, before, after, is_unfinished, failed is not None and self._has_hung
        )

    def _failing(self, mutant: Mutant, source: str, files: list[str]) -> str | None:
        """The test in these files that detects a mutant; None if there is none."""
        broken: list[str] = []
        while True:
            self._write(mutant.file, mutant.site.applied(source))
            try:
                failed = self._run(files, broken)
            finally:
                self._write(mutant.file, source)
            if failed is None or failed in broken or self._passes_clean(failed):
                return failed
            broken.append(failed)  # it fails on the original source as well, so it detected nothing

    def _write(self, file: Path, source: str) -> None:
        """Write a file with a new modification time, because bytecode is keyed by time and size."""
        place = self.copy / file
        place.write_text(source)
        at = next(self._times)
        os.utime(place, (at, at))

    def _passes_clean(self, failed: str) -> bool:
        """Whether a test passes on the original source."""
        if failed not in self._clean:
            left, self._left = self._left, self._budget
            is_known = failed in {_LOADING, UNENDED}  # not a test that could be run on its own
            self._clean[failed] = is_known or self._run([failed], []) is None
            self._left = left
        return self._clean[failed]

    def _run(self, tests: list[str], deselected: list[str]) -> str | None:
        """The failing test; None if all pass."""
        outcome = self.copy / "outcome.json"
        outcome.unlink(missing_ok=True)
        without = [f"--deselect={test}" for test in deselected]
        command = [
            sys.executable, "-m", "pytest", "-x", "-q", "-n0", "-p", "tests.mutation.watching",
            "-p", "no:cacheprovider", "--ignore=tests/mutation", *without, *tests,
        ]  # fmt: skip
        process = subprocess.Popen(
            command, cwd=self.copy, env=self._environment(outcome), start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        self._running = process
        try:
            process.wait(self._budget * _PATIENCE)
        except subprocess.TimeoutExpired:
            self._has_hung = True
            return UNENDED
        finally:
            self._running = None
            _end(process)
        if not outcome.exists():
            return _LOADING
        told: dict[str, Any] = json.loads(outcome.read_text())
        self._left -= told["spent"]
        self._was_stopped = told["stopped"] is not None
        self._has_hung = told["hangs"]
        failed: str | None = told["failed"]
        return failed

    def _environment(self, outcome: Path) -> dict[str, str]:
        corpus = os.environ.get("DRAGOMAN_CORPUS", str(self._root.parent / "shared" / "corpus"))
        path = os.pathsep.join(map(str, (self.copy / "src", self.copy)))
        ours = {
            "PYTHONPATH": path, "DRAGOMAN_PROFILE": "quick", "DRAGOMAN_TIER": "core",
            "DRAGOMAN_CORPUS": corpus, "DRAGOMAN_TEST_BUDGET": str(self._left),
            "DRAGOMAN_TEST_OUTCOME": str(outcome),
        }  # fmt: skip
        kept = {name: text for name, text in os.environ.items() if not name.startswith("PYTEST_")}
        kept.pop("PYTHONDONTWRITEBYTECODE", None)
        return {**kept, **ours}


_LOADING = "(the tests could not be loaded)"


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a run and its children."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


class _Loaded:
    """A process that has imported the tests of some mutants, and tries them."""

    def __init__(self, copy: Path, mutants: list[Mutant], environment: dict[str, str]) -> None:
        self._numbers = {mutant: number for number, mutant in _switchable(copy, mutants)}
        tests = {
            str(test.parent) for mutant in self._numbers for test in likely_tests(copy, mutant.file)
        }
        theirs, orders = os.pipe()
        answers, said = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.mutation.forking", str(theirs), str(said)],
            cwd=copy, env=environment, start_new_session=True, pass_fds=(theirs, said),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(theirs)
        os.close(said)
        self._orders, self._answers = os.fdopen(orders, "w"), os.fdopen(answers)
        rows = [(n, m.file.as_posix(), *astuple(m.site)) for m, n in self._numbers.items()]
        folders = sorted({test.split("/")[1] for test in tests})
        self._ask({"mutants": rows, "tests": [f"tests/{folder}" for folder in folders]})

    def tried(self, mutant: Mutant, files: list[str], budget: float) -> dict[str, Any] | None:
        """The outcome of a mutant; None if this process can't tell."""
        if mutant not in self._numbers:
            return None
        return self._ask({"mutant": self._numbers[mutant], "files": files, "budget": budget})

    def _ask(self, order: dict[str, Any]) -> dict[str, Any] | None:
        with suppress(BrokenPipeError):
            print(json.dumps(order), file=self._orders, flush=True)
        answer: dict[str, Any] | None = json.loads(self._answers.readline() or "null")
        return answer

    def close(self) -> None:
        """End the process."""
        _end(self._process)
        self._answers.close()
        with suppress(BrokenPipeError):
            self._orders.close()


def _switchable(copy: Path, mutants: list[Mutant]) -> Iterator[tuple[int, Mutant]]:
    by_file: dict[Path, dict[int, Site]] = defaultdict(dict)
    for number, mutant in enumerate(mutants):
        by_file[mutant.file][number] = mutant.site
    for file, sites in by_file.items():
        _, done = switched((copy / file).read_text(), sites)
        yield from ((number, mutants[number]) for number in sorted(done))
