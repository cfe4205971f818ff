"""No comprehension of ours names its variable as Python 3.12.0 and 3.12.1 can't bear.

They run comprehensions as part of their function. In one whose variable has the name of a function
that another comprehension calls, the call there is taken for the variable: `UnboundLocalError`.
"""

from __future__ import annotations

import symtable
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import dragoman

_INLINED = {"listcomp", "setcomp", "dictcomp"}
_apart = pytest.mark.skipif(
    sys.version_info >= (3, 12), reason="tables of symbols no longer tell comprehensions apart"
)
_ROOTS = [Path(dragoman.__file__).parent, Path(__file__).parent]


def clashes(table: symtable.SymbolTable) -> Iterator[tuple[int, str]]:
    """The line of each function with such names, and the names."""
    if table.get_type() == "function" and table.get_name() not in _INLINED:
        variables, others = _names(table)
        for name in sorted((variables & others) - set(table.get_identifiers())):
            yield table.get_lineno(), name
    for child in table.get_children():
        yield from clashes(child)


def _names(table: symtable.SymbolTable) -> tuple[set[str], set[str]]:
    """The variables of the comprehensions in a table, and the other names that they use."""
    variables: set[str] = set()
    others: set[str] = set()
    for child in table.get_children():
        if child.get_name() in _INLINED:
            inner_variables, inner_others = _names(child)
            own = {name.get_name() for name in child.get_symbols() if name.is_local()}
            used = {name.get_name() for name in child.get_symbols() if not name.is_local()}
            variables |= own | inner_variables
            others |= used | (inner_others - own)
    return variables, others


@_apart
@pytest.mark.whole
@pytest.mark.parametrize(
    ("body", "names"),
    [
        ("a = [x for x in y]; return [x(z) for z in y]", ["x"]),
        ("a = {k: x for k, x in y}; return [z for w in y for z in x(w)]", ["x"]),
        ("return [[x for x in y] for z in {x(w) for w in y}]", ["x"]),
        ("return [[x(z) for z in y] for x in y]", []),
        ("a = [len for len in y]; return [len(z) for z in y]", ["len"]),
        ("a = [x for x in y]; x(y); return [x(z) for z in y]", []),
        ("a = [x for x in y]; return list(x(z) for z in y)", []),
        ("return [x for x in y] + [x for x in y]", []),
        ("a = [x for x in y]; return lambda: [x(z) for z in y]", []),
    ],
)
def test_such_names_are_recognised(body: str, names: list[str]) -> None:
    """Of functions and built-in ones; not where the function itself has the name, too."""
    table = symtable.symtable(f"def f(y): {body}", "f", "exec")
    assert [name for _, name in clashes(table)] == names


@_apart
def test_no_function_has_such_names() -> None:
    """In the source and in the tests."""
    found = [
        f"{path.relative_to(root.parent)}:{line}: {name}"
        for root in _ROOTS
        for path in root.rglob("*.py")
        for line, name in clashes(symtable.symtable(path.read_text("utf-8"), path.name, "exec"))
    ]
    assert found == []
