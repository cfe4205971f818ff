"""Which source files make a package, and which lines show what a change of the source does."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TypeGuard

SOURCE, TESTS = Path("src/dragoman"), Path("tests")
_SHORT = 4
_LIBRARY = re.compile(r'\blibrary\("(\w+)')
# Folders within a layer that count as packages of their own.
_INNER = ("history/storage", "wire/*")
_DEPTH = 3  # constants that are made of constants

Lines = dict[str, set[int]]
"""Lines by source file."""
_Function = (ast.FunctionDef, ast.AsyncFunctionDef)


def packages(root: Path) -> dict[str, list[Path]]:
    """The source files by package: a layer's own, and those of what is large within it."""
    found: dict[str, list[Path]] = {}
    for path in sorted((root / SOURCE).rglob("*.py")):
        inside = path.relative_to(root / SOURCE)
        if len(inside.parts) > 1 and _is_testable(path):
            found.setdefault(package_of(inside), []).append(path.relative_to(root))
    return found


def _is_testable(path: Path) -> bool:
    """Whether the libraries are installed that a bridge to them needs: its tests are skipped else.

    >>> _LIBRARY.findall('types = library("litellm.types.utils", "litellm")')
    ['litellm']
    """
    return all(map(find_spec, _LIBRARY.findall(path.read_text())))


def package_of(inside: Path) -> str:
    """The package of a file, given by its path within the source."""
    for pattern in _INNER:
        depth = pattern.count("/") + 1
        head = Path(*inside.parts[:depth])
        if len(inside.parts) > depth and head.match(pattern):
            return head.as_posix()
    return inside.parts[0]


def test_folders(package: str) -> list[Path]:
    """The folders of tests that are to notice a change of a package."""
    return [TESTS / package.partition("/")[0]]


def lines_to_run(sources: Mapping[str, str], file: str, line: int) -> tuple[Lines, bool]:
    """The lines whose tests can notice a change, and whether it is made while a module is loaded.

    Within a function, those of the statement. Elsewhere, all in functions that name what the
    statement defines, be it through another constant.
    """
    around = [n for n in ast.walk(ast.parse(sources[file])) if _holds(n, line)]
    around.sort(key=lambda node: (node.lineno, -(node.end_lineno or 0)))
    functions = [node for node in around if isinstance(node, _Function)]
    if functions and line >= functions[-1].body[0].lineno:
        last = around[-1]
        is_simple = not isinstance(getattr(last, "body", None), list)
        return {
            file: set(range(last.lineno, (last.end_lineno or line) + 1)) if is_simple else {line}
        }, False
    found: defaultdict[str, set[int]] = defaultdict(set)
    names = {name for node in around for name in _bound(node)}
    for node in around:
        if isinstance(node, _Function):
            found[file].update(range(node.body[0].lineno, (node.end_lineno or line) + 1))
    done: set[str] = set()
    for _ in range(_DEPTH):
        names, new = set(), names - done
        done |= new
        pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(new)))})\b")
        for each, text in sources.items() if new else ():
            lines = {n for n, words in enumerate(text.splitlines(), 1) if pattern.search(words)}
            if lines:
                found[each] |= lines
                names |= _defined(text, lines)
    return dict(found), True


def _holds(node: ast.AST, line: int) -> TypeGuard[ast.stmt]:
    return isinstance(node, ast.stmt) and _first(node) <= line <= (node.end_lineno or node.lineno)


def _first(node: ast.stmt) -> int:
    """Decorators are above what they decorate."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(each.lineno for each in decorators)])


def _bound(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Assign(targets=targets):
            yield from (n.id for each in targets for n in ast.walk(each) if isinstance(n, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name
        case _:
            return


def _defined(source: str, lines: set[int]) -> set[str]:
    """The constants of a module that these lines are part of."""
    return {
        name
        for node in ast.parse(source).body
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and any(_holds(node, n) for n in lines)
        for name in _bound(node)
    }


def likely_tests(root: Path, source: Path, line: int | None = None) -> list[Path]:
    """The test files of a layer, and others that name this source file's module or its folder.

    Those come first that speak of the file, and its line, most.
    """
    folders = test_folders(package_of(source.relative_to(SOURCE)))
    about = _About(root / source, line)
    near = {file for each in folders for file in (root / each).rglob("test_*.py")}
    files = sorted(near | _naming(root, source))
    scored = [(-_score(root, file, source, about), file) for file in files]
    return [file.relative_to(root) for _, file in sorted(scored)]


def _naming(root: Path, source: Path) -> set[Path]:
    """The test files anywhere that name a module, or a folder within a layer."""
    parts = source.relative_to("src").with_suffix("").parts
    names = [".".join(parts[:depth]) for depth in range(3, len(parts) + 1)]
    files = (root / TESTS).rglob("test_*.py") if names else ()
    return {file for file in files if any(name in file.read_text() for name in names)}


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
    """What tests of a source file, or of one line of it, are likely to speak of."""

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
        around = [n for n in ast.walk(tree) if _holds(n, line)]
        self.said = set(_words(around[-1]))
        functions = [n for n in around if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]
        used = set(_words(functions[-1])) if functions else self.said
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and used & {alias.name for alias in node.names}:
                self.modules.add((node.module or "").rpartition(".")[2])


def _words(node: ast.AST) -> Iterator[str]:
    """Names, fields and one-word texts; short ones are everywhere."""
    for each in ast.walk(node):
        match each:
            case ast.Name(id=word) | ast.Attribute(attr=word) | ast.Constant(value=str(word)):
                if len(word) > _SHORT and word.isidentifier():
                    yield word
            case _:
                continue
