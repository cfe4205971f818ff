"""Which source files make a package, and which tests are likely to notice a change in one."""

from __future__ import annotations

import ast
import re
from importlib.util import find_spec
from pathlib import Path

SOURCE, TESTS = Path("src/dragoman"), Path("tests")
_LIBRARY = re.compile(r'\blibrary\("(\w+)')
# Folders within a layer that count as packages of their own.
_INNER = ("history/storage", "wire/*")


def packages(root: Path) -> dict[str, list[Path]]:
    """The source files by package: a layer's own, and those of what is large within it."""
    found: dict[str, list[Path]] = {}
    for path in sorted((root / SOURCE).rglob("*.py")):
        inside = path.relative_to(root / SOURCE)
        if len(inside.parts) > 1 and _is_testable(path):
            found.setdefault(_package(inside), []).append(path.relative_to(root))
    return found


def _is_testable(path: Path) -> bool:
    """Whether the libraries are installed that a bridge to them needs: its tests are skipped else.

    >>> _LIBRARY.findall('types = library("litellm.types.utils", "litellm")')
    ['litellm']
    """
    return all(map(find_spec, _LIBRARY.findall(path.read_text())))


def _package(inside: Path) -> str:
    for pattern in _INNER:
        depth = pattern.count("/") + 1
        head = Path(*inside.parts[:depth])
        if len(inside.parts) > depth and head.match(pattern):
            return head.as_posix()
    return inside.parts[0]


def likely_tests(root: Path, source: Path) -> list[Path]:
    """The test files of a layer, those first that speak of this source file most."""
    layer = source.relative_to(SOURCE).parts[0]
    files = sorted((root / TESTS / layer).rglob("test_*.py"))
    names = _public_names(root / source)
    scored = [(-_score(root, file, source, names), file) for file in files]
    return [file.relative_to(root) for _, file in sorted(scored)]


def _score(root: Path, file: Path, source: Path, names: set[str]) -> int:
    text = file.read_text()
    words = set(re.findall(r"\w+", text))
    module = ".".join(source.relative_to("src").with_suffix("").parts)
    where = source.relative_to(SOURCE).parent
    mirrored = file.relative_to(root / TESTS).parent == where
    named = source.stem in file.stem
    return 8 * (module in text) + 8 * named + 4 * mirrored + min(len(words & names), 8)


def _public_names(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    nodes = (n for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.ClassDef)))
    return {node.name for node in nodes if not node.name.startswith("_")} | {path.stem}
