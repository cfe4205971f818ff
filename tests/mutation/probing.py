"""Probes that tell which tests reach a change: calls in front of the statements that show it.

Tests are run once with the probes of all mutants of a layer. Processes that a test starts load the
probes with the source, and note them under its name.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Mapping, Sequence
from types import FrameType

PLACE = "DRAGOMAN_TEST_PROBES"  # a name that `tests/environment.py` leaves alone
_SOURCE = os.path.join("src", "dragoman")  # noqa: PTH118 - as above
_seen: set[tuple[int, str]] = set()


LOADING = "(loading)"
"""In place of a test: the probe is reached while a module of the source is loaded."""


def reached(number: int) -> None:
    """Note that the current test has reached a probe, or that loading the source does."""
    test = os.environ.get("PYTEST_CURRENT_TEST", "")
    if test and _is_loading(sys._getframe()):
        test = LOADING
    place = os.environ.get(PLACE)
    if place and test and (number, test) not in _seen:
        _seen.add((number, test))
        with open(place, "a") as file:  # noqa: PTH123 - imported by all that a test starts
            file.write(f"{number} {test}\n")


def _is_loading(frame: FrameType | None) -> bool:
    while frame is not None:
        code, frame = frame.f_code, frame.f_back
        if code.co_name == "<module>" and _SOURCE in code.co_filename:
            return True
    return False


def read(text: str) -> dict[int, list[str]]:
    """The tests that have reached each probe.

    >>> read("1 tests/test_a.py::test_b[x y] (call)")
    {1: ['tests/test_a.py::test_b[x y]']}
    """
    found: dict[int, dict[str, None]] = {}
    for line in text.splitlines():
        number, _, test = line.partition(" ")
        name = test if test == LOADING else test.rpartition(" (")[0]
        found.setdefault(int(number), {})[name] = None
    return {number: list(tests) for number, tests in found.items()}


def probed(source: str, wanted: Mapping[int, Sequence[int]]) -> str:
    """The source with probes in front of the statements at these lines, within functions."""
    tree = ast.parse(source)
    _Prober(wanted).visit(tree)
    return ast.unparse(ast.fix_missing_locations(tree))


class _Prober(ast.NodeTransformer):
    """Puts probes in front of the innermost statement that holds a line."""

    def __init__(self, wanted: Mapping[int, Sequence[int]]) -> None:
        self._wanted = {line: list(numbers) for line, numbers in wanted.items()}
        self._depth = 0

    def visit(self, node: ast.AST) -> ast.AST | list[ast.AST]:
        is_function = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        self._depth += is_function
        self.generic_visit(node)
        self._depth -= is_function
        if not isinstance(node, ast.stmt) or not self._depth:
            return node
        lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
        numbers = dict.fromkeys(n for line in lines for n in self._wanted.pop(line, ()))
        return [*(_probe(number) for number in numbers), node]


def _probe(number: int) -> ast.stmt:
    call = f"__import__({__name__!r}, fromlist=['reached']).reached({number})"
    return ast.parse(call).body[0]
