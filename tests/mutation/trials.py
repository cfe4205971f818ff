"""Trying mutants: each in a copy of the tree, with the tests that are likely to notice first.

Loading all tests of a layer takes longer than most mutants live: a few files are tried, then more.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from itertools import count, pairwise
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from tests.mutation.selection import likely_tests
from tests.mutation.sites import Site

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
    """How a mutant fared: the test that noticed it, or None."""

    mutant: Mutant
    noticed_by: str | None
    before: str
    after: str
    is_unfinished: bool = False
    """Whether tests were left over when its time was up: one of them may notice it."""

    def described(self) -> dict[str, Any]:
        """The trial for programs."""
        mutant = self.mutant
        return {
            "package": mutant.package, "file": mutant.file.as_posix(), "line": mutant.site.line,
            "kind": mutant.site.kind, "before": self.before, "after": self.after,
            "noticed_by": self.noticed_by, "is_unfinished": self.is_unfinished,
        }  # fmt: skip


class Workshop:
    """A copy of the tree in which one mutant at a time is tried; the tree itself is not touched."""

    def __init__(self, root: Path, *, budget: float) -> None:
        self._root = root
        self._budget = budget
        self._folder = tempfile.TemporaryDirectory(prefix="mutants-")
        self.copy = Path(self._folder.name) / root.name
        self._running: subprocess.Popen[bytes] | None = None
        self._clean: dict[str, bool] = {}
        self._was_stopped = False
        self._left = budget  # of the mutant that is being tried
        self._times = count(1_500_000_000)
        for name in _COPIED:
            place = root / name
            if place.is_dir():
                shutil.copytree(place, self.copy / name, ignore=_IGNORED)
            elif place.exists():
                self.copy.mkdir(exist_ok=True)
                shutil.copy(place, self.copy / name)

    def stop(self) -> None:
        """End the run that is under way."""
        if self._running is not None:
            _end(self._running)

    def close(self) -> None:
        """Remove the copy."""
        self._folder.cleanup()

    def tried(self, mutant: Mutant) -> Trial:
        """Run tests on a mutant until one fails, all have passed, or the time is up."""
        source = (self.copy / mutant.file).read_text()
        likely = [str(path) for path in likely_tests(self.copy, mutant.file, mutant.site.line)]
        self._left, self._was_stopped = self._budget, False
        is_unfinished, failed = False, None
        for first, last in pairwise(_BATCHES):
            files = likely[first:last]
            if failed is None and files:
                is_unfinished = self._left <= 0
                failed = None if is_unfinished else self._failing(mutant, source, files)
        before, after = mutant.site.shown(source)
        is_unfinished |= self._was_stopped
        return Trial(mutant, failed, before, after, failed is None and is_unfinished)

    def _failing(self, mutant: Mutant, source: str, files: list[str]) -> str | None:
        """The test in these files that notices a mutant; None where none does."""
        broken: list[str] = []
        while True:
            self._write(mutant.file, mutant.site.applied(source))
            try:
                failed = self._run(files, broken)
            finally:
                self._write(mutant.file, source)
            if failed is None or failed in broken or self._passes_clean(failed):
                return failed
            broken.append(failed)  # it fails whatever the source: it has noticed nothing

    def _write(self, file: Path, source: str) -> None:
        """Write a file under a time of its own: bytecode goes by that and by the size."""
        place = self.copy / file
        place.write_text(source)
        at = next(self._times)
        os.utime(place, (at, at))

    def _passes_clean(self, failed: str) -> bool:
        """Whether a test passes on the source as it is."""
        if failed not in self._clean:
            left, self._left = self._left, self._budget
            is_known = failed in {_LOADING, _HANGS}  # no test, of which that could be asked
            self._clean[failed] = is_known or self._run([failed], []) is None
            self._left = left
        return self._clean[failed]

    def _run(self, tests: list[str], deselected: list[str]) -> str | None:
        """The test that fails; None where all pass."""
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
            return _HANGS
        finally:
            self._running = None
            _end(process)
        if not outcome.exists():
            return _LOADING
        told: dict[str, Any] = json.loads(outcome.read_text())
        self._left -= told["spent"]
        self._was_stopped = told["stopped"] is not None
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


_HANGS = "(the run did not end)"
_LOADING = "(the tests could not be loaded)"


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a run, and what it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


class Pool:
    """Workshops for several trials at once."""

    def __init__(self, root: Path, *, budget: float) -> None:
        self._root, self._budget = root, budget
        self._idle: list[Workshop] = []
        self._all: list[Workshop] = []
        self._lock = Lock()
        self.is_stopped = False

    def tried(self, mutant: Mutant) -> Trial:
        """Try a mutant in a workshop that nobody else is in."""
        with self._lock:
            if not self._idle:
                self._all.append(Workshop(self._root, budget=self._budget))
                self._idle.append(self._all[-1])
            workshop = self._idle.pop()
        try:
            return workshop.tried(mutant)
        finally:
            with self._lock:
                self._idle.append(workshop)

    def stop(self) -> None:
        """End what is under way; whatever comes of it counts for nothing."""
        self.is_stopped = True
        for workshop in self._all:
            workshop.stop()

    def close(self) -> None:
        """Remove the copies."""
        for workshop in self._all:
            workshop.close()
