"""Mutants compiled into the source beside the original, each behind a switch.

A process that has imported the source and the tests once can then try one mutant after the other:
each in its own fork, in which one switch is on. Code that runs while a module is imported
(defaults, decorators, class bodies, constants) and the patterns of a `match` have no switch.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from tests.mutation.sites import Site, nodes

_SWITCH = "__is_mutated__"


class Switches:
    """Which mutant is on, and which have been executed since the last query."""

    def __init__(self) -> None:
        self.active: int | None = None
        self.reached: set[int] = set()

    def is_on(self, number: int) -> bool:
        """Called by the source itself at each mutant."""
        self.reached.add(number)
        return number == self.active

    def install(self, files: Mapping[Path, Mapping[int, Site]]) -> None:
        """Make modules imported from these files carry these mutants from now on."""
        setattr(builtins, _SWITCH, self.is_on)
        sys.meta_path.insert(0, _Finder(files))


def switched(source: str, sites: Mapping[int, Site]) -> tuple[ast.Module, set[int]]:
    """A module with mutants behind switches, and the numbers of those that have one."""
    tree = ast.parse(source)
    numbers = {site: number for number, site in sites.items()}
    found: dict[int, list[tuple[int, Site]]] = {}
    for node, site in nodes(source, tree):
        if site in numbers:
            found.setdefault(id(node), []).append((numbers[site], site))
    inserter = _Inserter(found)
    return ast.fix_missing_locations(inserter.visit(tree)), inserter.done


class _Inserter(ast.NodeTransformer):
    """Inserts switches within functions, where code runs each time."""

    def __init__(self, found: dict[int, list[tuple[int, Site]]]) -> None:
        self._found = found
        self._is_within = False
        self.done: set[int] = set()

    def visit(self, node: ast.AST) -> Any:
        changes = self._found.get(id(node), ()) if self._is_within else ()
        result: Any = super().visit(node)
        for number, site in changes:
            if site.kind != "decorator removed":
                self.done.add(number)
                result = _either(number, site, result)
        return result

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        """Only the body: the rest is evaluated when the function is defined."""
        before, self._is_within = self._is_within, True
        node.body = [self.visit(statement) for statement in node.body]
        self._is_within = before
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = _function  # noqa: N815 - as ast calls them

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        before, self._is_within = self._is_within, False
        self.generic_visit(node)
        self._is_within = before
        return node

    def visit_MatchValue(self, node: ast.MatchValue) -> ast.AST:
        return node


def _either(number: int, site: Site, original: Any) -> ast.AST:
    test = ast.Call(ast.Name(_SWITCH, ast.Load()), [ast.Constant(number)], [])
    made: ast.AST
    if isinstance(original, ast.stmt):
        made = ast.If(test, [ast.Pass()], [original])
    else:
        mutated = ast.parse(f"({site.text}\n)", mode="eval").body
        made = ast.IfExp(test, mutated, original)
    return ast.copy_location(made, original)


class _Loader(SourceFileLoader):
    """Compiles a file with its mutants; no bytecode is kept."""

    def __init__(self, name: str, path: str, sites: Mapping[int, Site]) -> None:
        super().__init__(name, path)
        self._sites = sites

    def get_code(self, fullname: str) -> CodeType | None:  # noqa: ARG002 - as the base has it
        tree, _ = switched(Path(self.path).read_text(), self._sites)
        code: CodeType = compile(tree, self.path, "exec", dont_inherit=True)
        return code


class _Finder(MetaPathFinder):
    def __init__(self, files: Mapping[Path, Mapping[int, Site]]) -> None:
        self._modules = {_module(file): (file, sites) for file, sites in files.items()}

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 - as the base has it
        target: ModuleType | None = None,  # noqa: ARG002 - as the base has it
    ) -> ModuleSpec | None:
        if fullname not in self._modules:
            return None
        file, sites = self._modules[fullname]
        is_package = file.name == "__init__.py"
        return spec_from_file_location(
            fullname, file, loader=_Loader(fullname, str(file), sites),
            submodule_search_locations=[str(file.parent)] if is_package else None,
        )  # fmt: skip


def _module(file: Path) -> str:
    parts = file.with_suffix("").parts
    inside = parts[len(parts) - 1 - parts[::-1].index("src") + 1 :]
    return ".".join(inside[:-1] if inside[-1] == "__init__" else inside)
