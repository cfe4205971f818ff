"""What `recording` has noted: which tests run which lines, and how long they take.

Records are kept in `.mutants`, one per file of tests, and made anew where that file has changed.
Where the source has changed, lines are followed through the difference.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from tests.mutation.recording import place_of, signature
from tests.mutation.selection import Lines


class Test(NamedTuple):
    """A test, and the seconds of CPU time that it took."""

    name: str
    took: float

    @property
    def file(self) -> str:
        """The file it is in."""
        return self.name.partition("::")[0]


class Records:
    """The tests in some folders, and what each of them runs."""

    def __init__(self, kept: Path, copy: Path, folders: list[Path]) -> None:
        self._kept, self._copy = kept, copy
        missing = set(unrecorded(kept, copy, folders))
        files = (file for folder in folders for file in sorted((copy / folder).rglob("test_*.py")))
        names = (file.relative_to(copy).as_posix() for file in files)
        self._read = {
            name: json.loads(place_of(kept, Path(name)).read_text())
            for name in names
            if name not in missing
        }

    def is_known(self, file: str) -> bool:
        """Whether it is known what the tests in a file run."""
        return file in self._read

    def at_loading(self, file: str, lines: set[int]) -> bool:
        """Whether one of these lines is run while the source or the tests are loaded."""
        return any(
            self._bits(record, record["loading"], file, lines) for record in self._read.values()
        )

    def tests(self, wanted: Lines) -> list[Test]:
        """The tests that run one of these lines: first one case of each, the quickest first."""
        found = []
        for record in self._read.values():
            for name, took, ran in record["tests"]:
                if any(self._bits(record, ran, file, lines) for file, lines in wanted.items()):
                    found.append(Test(name, took))
        cases: defaultdict[str, int] = defaultdict(int)
        ranked = []
        for test in sorted(found, key=lambda test: test.took):
            function = test.name.partition("[")[0]
            cases[function] += 1
            ranked.append((cases[function] * test.took, test))
        return [test for _, test in sorted(ranked)]

    def _bits(self, record: dict[str, Any], ran: dict[str, str], file: str, lines: set[int]) -> int:
        if file not in ran:
            return 0
        known = record["sources"][file]
        return int(ran[file], 16) & self._mask(file, known, frozenset(lines))

    @cache  # noqa: B019 - as long-lived as the run
    def _mask(self, file: str, known: str, lines: frozenset[int]) -> int:
        now = self._copy / file
        if signature(now) != known:
            before = (self._kept / "sources" / known).read_text().splitlines()
            lines = frozenset(_followed(before, now.read_text().splitlines(), lines))
        return sum(1 << line for line in lines)


def _followed(before: list[str], after: list[str], lines: frozenset[int]) -> set[int]:
    """The lines as they were numbered before; what is new counts as the line above it.

    >>> sorted(_followed(["a", "c", "d"], ["a", "b", "c", "d"], frozenset({2, 4})))
    [1, 3]
    """
    old: dict[int, int] = {}
    for block in SequenceMatcher(None, after, before, autojunk=False).get_matching_blocks():
        old |= {block.a + n + 1: block.b + n + 1 for n in range(block.size)}
    return {max((was for now, was in old.items() if now <= line), default=1) for line in lines}


def unrecorded(kept: Path, copy: Path, folders: list[Path]) -> list[str]:
    """The files of tests that have no record, or have changed since."""
    found = []
    for folder in folders:
        for file in sorted((copy / folder).rglob("test_*.py")):
            place = place_of(kept, file.relative_to(copy))
            if not place.exists() or json.loads(place.read_text())["signature"] != signature(file):
                found.append(file.relative_to(copy).as_posix())
    return found


def record(kept: Path, copy: Path, files: list[str], environment: dict[str, str]) -> None:
    """Run tests once, to see what they run."""
    kept.mkdir(exist_ok=True)
    subprocess.run(
        [
            sys.executable, "-m", "pytest", "-q", "-n0", "-p", "tests.mutation.recording",
            "-p", "no:cacheprovider", *files,
        ],
        cwd=copy, env={**environment, "DRAGOMAN_TEST_RECORDS": str(kept)}, check=False,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
    )  # fmt: skip
