"""No regular expression of ours needs what `re` got wrong before Python 3.11.5.

Possessive quantifiers (`a*+`) and atomic groups (`(?>a)`) lost matches there, or raised
`SystemError`.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import dragoman
from tests.compiled_patterns import PARSER, kinds_in

_BROKEN = {"POSSESSIVE_REPEAT", "ATOMIC_GROUP"}
_SUSPECT = re.compile(r"[*+?}]\+|\(\?>")


def is_broken(pattern: str | bytes) -> bool:
    """Whether a text is a pattern with such a part."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # most texts are no patterns
            return not _BROKEN.isdisjoint(kinds_in(PARSER.parse(pattern)))
    except (re.error, OverflowError):
        return False


@pytest.mark.parametrize(
    ("pattern", "is_found"),
    [(r"a*+", True), (rb"(x|a{1,15}+b)", True), (r"(?:(?>a))", True), (r"[*+]+\++", False)],
)
def test_such_parts_are_recognised(pattern: str | bytes, is_found: bool) -> None:
    """At any depth, and not characters that look alike."""
    assert is_broken(pattern) is is_found


def test_no_pattern_in_the_source_has_such_parts() -> None:
    """Every text that can be read as a pattern, whatever is done with it."""
    source = Path(dragoman.__file__).parent
    found = [
        (path.relative_to(source).as_posix(), node.lineno)
        for path in source.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))
        if _SUSPECT.search(str(node.value)) and is_broken(node.value)
    ]
    assert found == []


def test_no_compiled_pattern_has_such_parts() -> None:
    """Those of all modules, also put together from pieces, and those made for what comes."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.compiled_patterns"], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    seen = json.loads(done.stdout)
    assert len(seen["patterns"]) > 300
    assert seen["later"] > 20
    assert [pattern for pattern, kinds in seen["patterns"].items() if _BROKEN & {*kinds}] == []
