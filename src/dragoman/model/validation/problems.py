"""Whether a value fits a JSON Schema, and if not, what would: in words that a model can act on.

>>> for problem in problems({"type": "object", "required": ["city"]}, {}):
...     print(problem)
$.city: expected a value, got nothing

The words come from the schema, which the developer wrote. Of the value they tell types and sizes,
and of its keys those that the schema names; never what it says.

Neither a schema nor a value can make it raise, hang or overflow. A keyword that is malformed or
unknown is left aside, and so are a reference that leads nowhere (or in a circle) and a `pattern`
that is not regular (see `patterns`). A value that takes too many steps, or nests too deeply, is
itself the problem.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from itertools import islice
from typing import Any
from urllib.parse import unquote

from dragoman.model.validation import checks, logic
from dragoman.model.validation.patterns import Budget, TooManyStepsError
from dragoman.model.validation.words import Problem, kind_of

__all__ = ["Problem", "fits", "in_sentences", "problems"]

MAX_PROBLEMS = 50
MAX_DEPTH = 150
"""Of schemas within schemas: a level of the value may take three of them."""
_SHOWN = 10
_CHECKS = {**checks.CHECKS, **logic.CHECKS}


def problems(schema: Any, value: Any) -> list[Problem]:
    """What is wrong with the value: empty where it fits, cut off at 50."""
    found: list[Problem] = []
    try:
        for problem in _Run(schema).check(schema, value, "$"):
            if problem not in found:
                found.append(problem)
            if len(found) == MAX_PROBLEMS:
                break
    except TooManyStepsError:
        found.append(Problem("$", "something that takes fewer steps to check", "more", "steps"))
    except RecursionError:
        found.append(_too_deep("$"))
    except (TypeError, ValueError, ArithmeticError):  # values that no JSON text can hold
        found.append(Problem("$", "a value that can be checked", "another", "value"))
    return found


def fits(schema: Any, value: Any, root: Any) -> bool:
    """Whether a value fits a schema that stands somewhere in the root, where references lead."""
    try:
        return _Run(root).fits(schema, value, "$")
    except (TooManyStepsError, RecursionError, TypeError, ValueError, ArithmeticError):
        return False


def in_sentences(found: Iterable[Problem]) -> str:
    """Problems as one text, the first ten of them."""
    texts = [str(problem) for problem in found]
    rest = [f"and {len(texts) - _SHOWN} more"] if len(texts) > _SHOWN else []
    return "; ".join(texts[:_SHOWN] + rest)


def _too_deep(path: str) -> Problem:
    return Problem(path, "fewer levels", "more", "depth")


class _Run:
    """One validation: the root that references point into, and what may still be spent."""

    def __init__(self, root: Any) -> None:
        self.budget = Budget()
        self.enums: dict[int, frozenset[Any]] = {}
        self._root = root
        self._active: set[tuple[int, int, str]] = set()

    def first(self, schema: Any, value: Any, path: str, most: int = MAX_PROBLEMS) -> list[Problem]:
        found = self.check(schema, value, path)
        try:
            return list(islice(found, most))
        finally:
            found.close()

    def fits(self, schema: Any, value: Any, path: str) -> bool:
        return not self.first(schema, value, path, 1)

    def check(self, schema: Any, value: Any, path: str) -> Generator[Problem, None, None]:
        self.budget.spend(1)
        if schema is False:
            yield Problem(path, "nothing there", kind_of(value), "false")
        if not isinstance(schema, Mapping) or (value is None and schema.get("nullable") is True):
            return
        here = (id(schema), id(value), path)
        if here in self._active:
            return  # a reference in a circle: it asks for nothing new
        if len(self._active) > MAX_DEPTH:
            yield _too_deep(path)
            return
        self._active.add(here)
        try:
            for keyword, argument in schema.items():
                if keyword in _CHECKS:
                    for problem in _CHECKS[keyword](self, argument, value, schema, path):
                        self.budget.spend(1)  # on each level that it passes on its way up
                        yield problem
        finally:
            self._active.discard(here)

    def target(self, reference: Any) -> Any:
        if not isinstance(reference, str) or not reference.startswith("#"):
            return True
        if reference != "#" and not reference.startswith("#/"):
            return self._anchored(reference[1:])
        found = self._root
        for name in unquote(reference).split("/")[1:]:
            found = _within(found, name.replace("~1", "/").replace("~0", "~"))
        return found

    def _anchored(self, name: str) -> Any:
        named = self._root.get("$defs") if isinstance(self._root, Mapping) else None
        for schema in named.values() if isinstance(named, Mapping) else ():
            if isinstance(schema, Mapping) and schema.get("$anchor") == name:
                return schema
        return True


def _within(schema: Any, name: str) -> Any:
    """One step of a reference; True, which takes anything, where it leads nowhere."""
    if isinstance(schema, Mapping):
        return schema.get(name, True)
    if isinstance(schema, list):
        return next((item for at, item in enumerate(schema) if str(at) == name), True)
    return True
