"""A pytest plugin that notes which lines of the source each test runs, and how long it takes.

`python -m pytest -n0 -p tests.mutation.recording tests/history` writes one record per file of tests
into the folder that `DRAGOMAN_TEST_RECORDS` names. Processes that a test starts are noted, too.
What runs while the source is loaded belongs to no test: everything is loaded beforehand.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import pkgutil
import tempfile
from collections import defaultdict
from collections.abc import Generator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import coverage
import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
_SOURCE = ROOT / "src" / "dragoman"
_CONFIG = """[run]
source = {source}
parallel = true
data_file = {folder}/lines
context = ${{PYTEST_CURRENT_TEST-}}
sigterm = true
"""


def import_everything() -> None:
    """Load all modules of the source, but those whose library is missing."""
    import dragoman

    for module in pkgutil.walk_packages(dragoman.__path__, "dragoman.", onerror=lambda _: None):
        if not module.name.endswith("__main__"):
            with suppress(Exception):
                importlib.import_module(module.name)


def place_of(records: Path, file: Path) -> Path:
    """Where the record of a file of tests is."""
    return records / f"{file.as_posix().replace('/', '+')}.json"


def signature(file: Path) -> str:
    """Says whether a file has changed."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


class Recorder:
    """Switches between tests, and writes a record when a file of them is done."""

    def __init__(self, records: Path) -> None:
        self._records = records
        self._folder = tempfile.TemporaryDirectory(prefix="lines-")
        config = Path(self._folder.name) / "coverage.ini"
        config.write_text(_CONFIG.format(source=_SOURCE, folder=self._folder.name))
        self._coverage = coverage.Coverage(
            data_file=None, config_file=False, source=[str(_SOURCE)], branch=False
        )
        self._coverage.set_option("run:disable_warnings", ["no-data-collected"])
        self._coverage.start()
        self._coverage.switch_context("(loading)")
        os.environ["COVERAGE_PROCESS_START"] = str(config)
        import_everything()
        self._took: dict[str, float] = {}
        self._at_loading: dict[str, str] = {}

    def pytest_collection_finish(self) -> None:
        """What has run by now, ran while the source and the tests were loaded."""
        self._coverage.stop()
        self._at_loading = self._lines().get("(loading)", {})
        self._coverage.erase()
        self._coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Generator[None, object, object]:
        """Note one test."""
        self._coverage.switch_context(item.nodeid)
        start = _spent()
        try:
            return (yield)
        finally:
            self._took[item.nodeid] = round(_spent() - start, 4)
            self._coverage.switch_context("(between)")
            if nextitem is None or nextitem.path != item.path:
                self._write(item.path)

    def _write(self, file: Path) -> None:
        self._coverage.stop()
        lines = self._lines()
        tests = [[test, took, lines.get(test, {})] for test, took in self._took.items()]
        files = {name for each in (self._at_loading, *lines.values()) for name in each}
        sources = {name: self._kept(ROOT / name) for name in sorted(files)}
        record = {
            "signature": signature(file), "sources": sources, "loading": self._at_loading,
            "tests": tests,
        }  # fmt: skip
        place_of(self._records, file.relative_to(ROOT)).write_text(json.dumps(record))
        self._took.clear()
        self._coverage.erase()
        self._coverage.start()

    @cache  # noqa: B019 - as long-lived as the run
    def _kept(self, source: Path) -> str:
        """Keep a source file as it is now: the numbers of its lines mean nothing without it."""
        known = signature(source)
        (self._records / "sources").mkdir(exist_ok=True)
        (self._records / "sources" / known).write_bytes(source.read_bytes())
        return known

    def _lines(self) -> dict[str, dict[str, str]]:
        """By test and source file, the lines that were run, as the bits of a number."""
        found: defaultdict[str, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
        children = list(Path(self._folder.name).glob("lines.*"))
        for data in (self._coverage.get_data(), *map(_read, children)):
            for file in data.measured_files():
                inside = Path(file).relative_to(ROOT).as_posix()
                for line, tests in data.contexts_by_lineno(file).items():
                    for test in tests:
                        found[test.rpartition(" (")[0] or test][inside] |= 1 << line
        for child in children:
            child.unlink()
        return {
            test: {file: f"{bits:x}" for file, bits in files.items()}
            for test, files in found.items()
        }


def _read(file: Path) -> Any:
    data = coverage.CoverageData(str(file))
    with suppress(coverage.CoverageException):  # it was ended while it wrote
        data.read()
    return data


def _spent() -> float:
    """Seconds of CPU time, those of ended children included: some tests are all children."""
    return sum(os.times()[:4])


def pytest_configure(config: pytest.Config) -> None:
    """Begin before anything of the source is loaded."""
    config.pluginmanager.register(Recorder(Path(os.environ["DRAGOMAN_TEST_RECORDS"])))
