"""Which tests call which functions: found out once for each test file, and kept between runs.

Only of the files that speak of a changed source file most: running all tests takes too long. What
is kept goes by the content of the test files alone: it says which tests to run first, and is no
less useful where the source has changed a little since.
"""

from __future__ import annotations

import ast
import json
import os
from collections.abc import Callable, Iterable
from hashlib import blake2b
from pathlib import Path
from typing import Any

from tests.mutation.selection import SOURCE, likely_tests
from tests.mutation.sites import Site

FOLDER = ".mutants"
_FIRST = 120  # tests of the files that speak of the source most
_FILES = 4
_WATCHED = 8  # files that are looked at for each source file


class Reach:
    """What is known of the tests of one layer."""

    def __init__(self, root: Path, layer: str) -> None:
        self._root = root
        self._place = root / FOLDER / f"{layer}.json"
        told: dict[str, Any] = json.loads(self._place.read_text()) if self._place.exists() else {}
        self._hashes: dict[str, str] = told.get("hashes", {})
        self._seconds: dict[str, float] = told.get("seconds", {})
        self._calls: dict[str, list[int]] = told.get("tests", {})
        self._numbers = {name: n for n, name in enumerate(told.get("functions", []))}

    def learn(self, source: Path, run: Callable[[list[str]], dict[str, Any] | None]) -> None:
        """Find out about the likeliest tests of a source file, by running those not known yet."""
        likely = [path.as_posix() for path in likely_tests(self._root, source)[:_WATCHED]]
        now = {file: _hash(self._root / file) for file in likely}
        new = [file for file in likely if now[file] != self._hashes.get(file)]
        told = run(new) if new else None
        if told is None:
            return
        for test in [test for test in self._calls if _file_of(test) in new]:
            del self._calls[test], self._seconds[test]
        numbers = [self._numbers.setdefault(f, len(self._numbers)) for f in told["functions"]]
        self._calls |= {t: [numbers[n] for n in called] for t, called in told["tests"].items()}
        self._seconds |= told["seconds"]
        self._hashes |= now
        self._keep()

    def _keep(self) -> None:
        kept = {
            "hashes": self._hashes, "functions": list(self._numbers), "tests": self._calls,
            "seconds": self._seconds,
        }  # fmt: skip
        self._place.parent.mkdir(exist_ok=True)
        unfinished = self._place.with_suffix(f".{os.getpid()}")
        unfinished.write_text(json.dumps(kept))
        unfinished.replace(self._place)

    def batches(self, source: Path, site: Site) -> list[list[str]]:
        """The tests that call the function that a change is in: the likeliest few, then the rest.

        None where nobody knows of any. Each batch has the quickest first.
        """
        name = f"{source.relative_to(SOURCE).as_posix()}:"
        function = function_at((self._root / source).read_text(), site)
        if function is None:  # of a module or class: whoever uses anything of the module
            wanted = {n for each, n in self._numbers.items() if each.startswith(name)}
        else:
            wanted = {self._numbers.get(name + function, -1)}
        found = {test for test, called in self._calls.items() if not wanted.isdisjoint(called)}
        order = [path.as_posix() for path in likely_tests(self._root, source)]
        files = [file for file in order if file in {_file_of(test) for test in found}][:_FILES]
        first = self._quickest(test for test in found if _file_of(test) in files)[:_FIRST]
        return [batch for batch in (first, self._quickest(found.difference(first))) if batch]

    def _quickest(self, tests: Iterable[str]) -> list[str]:
        return sorted(tests, key=lambda test: (self._seconds.get(test, 0.0), test))


def files_of(tests: Iterable[str]) -> list[str]:
    """The files that tests are in, each once."""
    return list(dict.fromkeys(map(_file_of, tests)))


def _file_of(test: str) -> str:
    return test.partition("::")[0]


def _hash(file: Path) -> str:
    return blake2b(file.read_bytes(), digest_size=8).hexdigest()


def function_at(source: str, site: Site) -> str | None:
    """The qualified name of the function that a change is in; None where it is in none."""
    scopes = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    found: str | None = None

    def visit(node: ast.AST, prefix: str) -> None:
        nonlocal found
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, scopes):
                visit(child, prefix)
            elif child.lineno <= site.line <= (child.end_lineno or child.lineno):
                name = prefix + child.name
                is_class = isinstance(child, ast.ClassDef)
                found = found if is_class else name
                visit(child, f"{name}." if is_class else f"{name}.<locals>.")

    visit(ast.parse(source), "")
    return found
