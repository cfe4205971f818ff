"""The source files of each package, and the tests that are likely to detect a change in one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

SOURCE, TESTS = Path("src/dragoman"), Path("tests")
_SHORT = 4
_LIBRARY = re.compile(r'\blibrary\("(\w+)')
# Folders within a layer that count as separate packages.
_INNER = ("history/storage", "wire/*")
_ELSEWHERE = {"wire/peers": "interop"}  # packages that are also tested by another layer's tests


def packages(root: Path) -> dict[str, list[Path]]:
    """The source files by package: a layer's own, and those of its large subpackages."""
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


def likely_tests(root: Path, source: Path, line: int | None = None) -> list[Path]:
    """The test files of a layer, sorted by how much they mention this source file and line."""
    inside = source.relative_to(SOURCE)
    layers = filter(None, (inside.parts[0], _ELSEWHERE.get(_package(inside))))
    about = _About(root / source, line)
    files = [file for each in layers for file in sorted((root / TESTS / each).rglob("test_*.py"))]
    scored = [(-_score(root, file, source, about), file) for file in files]
    return [file.relative_to(root) for _, file in sorted(scored)]


def _score(root: Path, file: Path, source: Path, about: _About) -> int:
    text = file.read_text()
    words = set(re.findall(r"\w+", text))
    module = ".".join(source.relative_to("src").with_suffix("").parts)
    where = source.relative_to(SOURCE).parent
    mirrored = file.relative_to(root / TESTS).parent == where
    spoken = 8 * (module in text) + 8 * (source.stem in file.stem) + 6 * mirrored
    used = 8 * (file.stem.removeprefix("test_") in about.modules)
    return spoken + used + min(len(words & about.names), 8) + 4 * min(len(words & about.said), 4)


class _About:
    """Words that tests of a source file or line are likely to mention."""

    def __init__(self, path: Path, line: int | None) -> None:
        tree = ast.parse(path.read_text())
        nodes = (n for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.ClassDef)))
        self.names = {n.name for n in nodes if not n.name.startswith("_")} | {path.stem}
        self.said: set[str] = set()
        """The words of the statement itself."""
        self.modules: set[str] = set()
        """Where what its function uses comes from."""
        if line is None:
            return
        around = [n for n in ast.walk(tree) if isinstance(n, ast.stmt) and _holds(n, line)]
        self.said = set(_words(around[-1]))
        functions = [n for n in around if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]
        used = set(_words(functions[-1])) if functions else self.said
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and used & {alias.name for alias in node.names}:
                self.modules.add((node.module or "").rpartition(".")[2])


def _holds(node: ast.stmt, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def _words(node: ast.AST) -> Iterator[str]:
    """Names, fields and one-word texts; short ones are too common."""
    for each in ast.walk(node):
        match each:
            case ast.Name(id=word) | ast.Attribute(attr=word) | ast.Constant(value=str(word)):
                if len(word) > _SHORT and word.isidentifier():
                    yield word
            case _:
                continue
