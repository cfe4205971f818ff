"""Changes of a source file that a test should detect.

A mutant is one small change: another comparison, `and` for `or`, a number one higher, an inverted
flag, an altered text, a removed statement, a value not returned, two arguments swapped, a removed
decorator. What no test can or should detect is left alone: docstrings, annotations, messages for
people, log lines, `__repr__`, type-checking blocks, numbers that only tune.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Site:
    """A change: which bytes of the source are replaced by which."""

    kind: str
    line: int
    start: int
    end: int
    text: str

    def applied(self, source: str) -> str:
        """The source with the change."""
        raw = source.encode()
        return (raw[: self.start] + self.text.encode() + raw[self.end :]).decode()

    def shown(self, source: str) -> tuple[str, str]:
        """The line before and after."""
        after = self.applied(source).splitlines()
        return source.splitlines()[self.line - 1].strip(), after[self.line - 1].strip()


class _Change(NamedTuple):
    kind: str
    node: ast.expr | ast.stmt
    text: str


_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE,
    ast.GtE: ast.Gt, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {ast.Add: ast.Sub, ast.Sub: ast.Add}
# Calls whose texts are for people or type checkers.
_SPEAKING = {
    "TypeVar", "ParamSpec", "cast", "warn", "debug", "info", "warning", "error", "exception",
    "complain", "echo", "note", "print", "help_option",
}  # fmt: skip
# Names of texts for people.
_SPOKEN = {"msg", "message", "problem", "reason", "hint", "help", "metavar", "epilog", "doc"}
# Functions with an argument that names a value in their errors, and its position.
_LABELS = {"expect": 2, "expect_number": 1}
# Keywords that make no difference to a result; `eq=False` is for objects that nobody compares.
_IDLE_KEYWORDS = {"eq", "gc", "maxsize", "stacklevel", "slots", "weakref"}
_UNNOTICED_METHODS = {"__repr__", "__rich_repr__", "_sizes", "__str__"}
_UNNOTICED_NAMES = {"__all__", "__slots__", "TYPE_CHECKING"}
# Without these the code does the same, only slower, or for type checkers only.
_IDLE_DECORATORS = {
    "overload", "override", "final", "runtime_checkable", "cache", "lru_cache", "cached_property",
    "abstractmethod", "no_type_check",
}  # fmt: skip
_TUNING = 10  # module constants from here on are sizes of pages, batches and buffers


def sites(source: str) -> list[Site]:
    """All possible changes of a source file, in order."""
    found = {site for _, site in nodes(source, ast.parse(source))}
    return sorted(found, key=lambda site: (site.start, site.end, site.kind, site.text))


def nodes(source: str, tree: ast.Module) -> Iterator[tuple[ast.expr | ast.stmt, Site]]:
    """Each change, and the node that it changes."""
    starts = _line_starts(source)
    for change in _Finder(source).changes(tree):
        yield change.node, _site(change, starts)


def _line_starts(source: str) -> list[int]:
    starts = [0, 0]
    for line in source.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    return starts


def _site(change: _Change, starts: list[int]) -> Site:
    node = change.node
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    start = starts[node.lineno] + node.col_offset
    end = starts[node.end_lineno] + node.end_col_offset
    if change.kind == "decorator removed":
        start -= 1  # the @ before it
    return Site(change.kind, node.lineno, start, end, change.text)


class _Finder:
    """Walks a tree, and skips what no test would detect."""

    def __init__(self, source: str) -> None:
        self._unmeasured = {
            number for number, line in enumerate(source.splitlines(), 1) if "pragma: no" in line
        }

    def changes(self, tree: ast.Module) -> Iterator[_Change]:
        """The possible changes of a module."""
        for statement in tree.body:
            if _is_tuning(statement):
                continue
            yield from self._of(statement)

    def _of(self, node: ast.AST) -> Iterator[_Change]:
        if getattr(node, "lineno", None) in self._unmeasured or _is_unnoticed(node):
            return
        if isinstance(node, ast.stmt):
            yield from _statement(node)
        elif isinstance(node, ast.expr):
            yield from _expression(node)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield from _decorators(node)
        for child in _children(node):
            yield from self._of(child)


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """Child nodes except annotations, docstrings and texts for people."""
    match node:
        case ast.Raise():
            return
        case ast.AnnAssign():
            yield from filter(None, [node.value])
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield node.args
            yield from _undocumented(node.body)
        case ast.ClassDef():
            yield from (each for each in node.keywords if each.arg not in _IDLE_KEYWORDS)
            yield from _undocumented(node.body)
        case ast.arguments():
            yield from filter(None, [*node.defaults, *node.kw_defaults])
        case ast.Call():
            label = _LABELS.get(_name(node.func) or "")
            yield from (each for n, each in enumerate(node.args) if n != label)
            yield from (each for each in node.keywords if each.arg not in _IDLE_KEYWORDS | _SPOKEN)
        case ast.JoinedStr():
            return  # mostly for people; the others are parts of a whole that is compared
        case _:
            yield from ast.iter_child_nodes(node)


def _undocumented(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if not is_text:
            yield statement


def _is_unnoticed(node: ast.AST) -> bool:  # noqa: PLR0911 - a table
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            names = {_name(decorator) for decorator in node.decorator_list}
            return node.name in _UNNOTICED_METHODS or "overload" in names
        case ast.If():
            return _name(node.test) == "TYPE_CHECKING" or _is_main(node.test)
        case ast.Assign():
            return any(_name(target) in _UNNOTICED_NAMES | _SPOKEN for target in node.targets)
        case ast.AnnAssign():
            return _name(node.target) in _UNNOTICED_NAMES | _SPOKEN
        case ast.Call():
            return _name(node.func) in _SPEAKING
        case ast.Subscript():
            return _name(node.value) in {"Literal", "Annotated", "Callable", "Union", "Optional"}
        case ast.ClassDef():
            return any(_name(base) == "Protocol" for base in node.bases)
        case ast.Import() | ast.ImportFrom() | ast.Assert() | ast.Pass():
            return True
        case ast.Expr(value=ast.Constant()):
            return True
        case _:
            return False


def _is_main(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and _name(test.left) == "__name__"


def _is_tuning(statement: ast.stmt) -> bool:
    """Whether it is a private number of a module that only sets a batch size."""
    if not isinstance(statement, ast.Assign):
        return False
    names = [_name(target) for target in statement.targets]
    values = [node for node in ast.walk(statement.value) if isinstance(node, ast.Constant)]
    is_private = all(name is not None and name.startswith("_") for name in names)
    return is_private and any(_is_number(node) and abs(node.value) >= _TUNING for node in values)  # type: ignore[arg-type]  # checked


def _is_number(node: ast.Constant) -> bool:
    return isinstance(node.value, (int, float)) and not isinstance(node.value, bool)


def _name(node: ast.AST) -> str | None:
    """The last part of a dotted name, called or not."""
    match node:
        case ast.Name():
            return node.id
        case ast.Attribute():
            return node.attr
        case ast.Call():
            return _name(node.func)
        case _:
            return None


# --- replacements


def _statement(node: ast.stmt) -> Iterator[_Change]:
    match node:
        case ast.Return(value=ast.expr() as value) if not _is_none(value):
            yield _Change("returned value gone", value, "None")
        case ast.Expr(value=ast.Call() as call) if _name(call.func) not in _SPEAKING:
            yield _Change("statement removed", node, "pass")
        case ast.Expr(value=ast.Await()):
            yield _Change("statement removed", node, "pass")
        case ast.AugAssign() | ast.Raise() | ast.Continue() | ast.Break() | ast.Delete():
            yield _Change("statement removed", node, "pass")
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield _Change("statement removed", node, "pass")
        case ast.If() | ast.While() if not isinstance(node.test, ast.NamedExpr):
            yield _Change("condition negated", node.test, f"(not ({ast.unparse(node.test)}))")
        case _:
            return


def _expression(node: ast.expr) -> Iterator[_Change]:
    match node:
        case ast.Compare(ops=[op], left=left, comparators=right) if type(op) in _COMPARISONS:
            text = ast.unparse(ast.Compare(left, [_COMPARISONS[type(op)]()], right))
            yield _Change("comparison changed", node, f"({text})")
        case ast.BoolOp():
            other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            text = ast.unparse(ast.BoolOp(other, node.values))
            yield _Change("and/or swapped", node, f"({text})")
        case ast.UnaryOp(op=ast.Not()):
            yield _Change("not removed", node, f"({ast.unparse(node.operand)})")
        case ast.BinOp() if type(node.op) in _ARITHMETIC and not _is_text(node):
            text = ast.unparse(ast.BinOp(node.left, _ARITHMETIC[type(node.op)](), node.right))
            yield _Change("plus/minus swapped", node, f"({text})")
        case ast.Call(args=[first, second, *_]) if _are_swappable(first, second):
            text = ast.unparse(ast.Call(node.func, [second, first, *node.args[2:]], node.keywords))
            yield _Change("arguments swapped", node, text)
        case ast.Constant():
            yield from _constant(node)
        case _:
            return


def _constant(node: ast.Constant) -> Iterator[_Change]:
    value = node.value
    if isinstance(value, bool):
        yield _Change("flag flipped", node, str(not value))
    elif isinstance(value, int):
        yield _Change("number off by one", node, f"({value + 1})")
    elif isinstance(value, str) and value and " " not in value and "\n" not in value:
        yield _Change("text altered", node, repr(f"{value}XX"))


def _are_swappable(first: ast.expr, second: ast.expr) -> bool:
    if isinstance(first, ast.Starred) or isinstance(second, ast.Starred):
        return False
    return ast.dump(first) != ast.dump(second)


def _is_text(node: ast.BinOp) -> bool:
    return any(
        isinstance(side, ast.JoinedStr)
        or (isinstance(side, ast.Constant) and isinstance(side.value, (str, bytes)))
        for side in (node.left, node.right)
    )


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _decorators(
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef,
) -> Iterator[_Change]:
    for decorator in node.decorator_list:
        if _name(decorator) not in _IDLE_DECORATORS and decorator.lineno == decorator.end_lineno:
            yield _Change("decorator removed", decorator, "")
