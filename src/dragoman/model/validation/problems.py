"""Validates a value against a JSON Schema, with problems described for a model.

>>> for problem in problems({"type": "object", "required": ["city"]}, {}):
...     print(problem)
$.city: expected a value, got nothing

Descriptions are taken from the schema, which the developer wrote. Of the value they mention only
types, sizes and keys that the schema names, never its content.

No schema and no value can make it raise, hang or overflow. Malformed and unknown keywords are
ignored, as are references that don't resolve (or are circular) and patterns that are not regular
(see `patterns`). A value that takes too many steps or is nested too deeply is itself a problem.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from itertools import islice
from typing import Any
from urllib.parse import unquote

from dragoman.model.validation import checks, logic
from dragoman.model.validation.budget import Budget, TooManyStepsError
from dragoman.model.validation.patterns import Automaton, compiled
from dragoman.model.validation.words import Problem, is_index, is_number, kind_of

__all__ = ["Problem", "Validation", "fits", "in_sentences", "problems"]

MAX_PROBLEMS = 50
MAX_DEPTH = 150
"""Maximum nesting of schemas: one level of the value may take three."""
_SHOWN = 10
_CHECKS = {**checks.CHECKS, **logic.CHECKS}


def problems(schema: Any, value: Any) -> list[Problem]:
    """Validates a value; returns up to 50 problems, or an empty list if it is valid."""
    found: list[Problem] = []
    try:
        for problem in Validation(schema).check(schema, value, "$"):
            if problem not in found:
                found.append(problem)
            if len(found) == MAX_PROBLEMS:
                break
    except TooManyStepsError:
        found.append(Problem("$", "a value that takes fewer steps to check", "more", "steps"))
    except RecursionError:
        found.append(_too_deep("$"))
    except (TypeError, ValueError, ArithmeticError):  # values that JSON can't represent
        found.append(Problem("$", "a value that can be checked", "another", "value"))
    return found


def fits(schema: Any, value: Any, root: Any) -> bool:
    """Whether a value matches a subschema of `root`, in which references are resolved."""
    try:
        return Validation(root).holds(schema, value)
    except TooManyStepsError:
        return False


def in_sentences(found: Iterable[Problem]) -> str:
    """The first ten problems as one text."""
    texts = [str(problem) for problem in found]
    rest = [f"and {len(texts) - _SHOWN} more"] if len(texts) > _SHOWN else []
    return "; ".join(texts[:_SHOWN] + rest)


def _too_deep(path: str) -> Problem:
    return Problem(path, "fewer levels", "more", "depth")


class Validation:
    """Validates values against the schemas of one root, with one budget.

    The target of a reference is checked once per value and path, however many references point to
    it, because definitions can multiply exponentially.
    """

    def __init__(self, root: Any, budget: Budget | None = None) -> None:
        self.budget = Budget() if budget is None else budget
        self._root = root
        self._active: set[tuple[int, int, str]] = set()
        self._circles = 0
        # Caches by identity; the objects are stored too, so that their ids are not reused.
        self._enums: dict[int, tuple[Any, frozenset[Any]]] = {}
        self._canonical: dict[int, tuple[Any, Any]] = {}
        self._referred: dict[tuple[int, int, str], tuple[Any, Any, list[Problem]]] = {}
        self._targets: dict[str, Any] = {}
        self._automata: dict[str, Automaton | None] = {}

    def holds(self, schema: Any, value: Any) -> bool:
        """Whether a value matches a schema. Raises `TooManyStepsError` only."""
        try:
            return self.fits(schema, value, "$")
        except (RecursionError, TypeError, ValueError, ArithmeticError):
            return False  # nested too deeply, or not JSON

    def first(self, schema: Any, value: Any, path: str, most: int = MAX_PROBLEMS) -> list[Problem]:
        """The first few problems of a value, which is at `path`."""
        found = self.check(schema, value, path)
        try:
            return list(islice(found, most))
        finally:
            found.close()

    def fits(self, schema: Any, value: Any, path: str) -> bool:
        """Whether there are no problems."""
        return not self.first(schema, value, path, 1)

    def check(self, schema: Any, value: Any, path: str) -> Generator[Problem, None, None]:
        """The problems of a value, which is at `path`."""
        self.budget.spend(1 + (len(path) >> 8))
        if schema is False:
            yield Problem(path, "nothing there", kind_of(value), "false")
        if not isinstance(schema, Mapping) or (value is None and schema.get("nullable") is True):
            return
        here = (id(schema), id(value), path)
        if here in self._active:
            self._circles += 1
            return  # a circular reference: nothing new to check
        if len(self._active) > MAX_DEPTH:
            yield _too_deep(path)
            return
        self._active.add(here)
        try:
            for keyword, argument in schema.items():
                if keyword in _CHECKS:
                    for problem in _CHECKS[keyword](self, argument, value, schema, path):
                        # charged on every level that it passes on its way up
                        self.budget.spend(1 + (len(problem.expected) >> 6))
                        yield problem
        finally:
            self._active.discard(here)

    def referred(self, reference: Any, value: Any, path: str) -> list[Problem]:
        """The first few problems of a value with the target of a reference."""
        target = self.target(reference)
        key = (id(target), id(value), path)
        known = self._referred.get(key)
        if known is not None:
            self.budget.spend()
            return known[2]
        circles = self._circles
        found = [*dict.fromkeys(self.first(target, value, path))]
        if circles == self._circles:  # otherwise the result is valid only in this context
            self._referred[key] = (target, value, found)
        return found

    def one_of(self, values: list[Any], value: Any) -> bool:
        """Whether a value is one of these."""
        known = self._enums.get(id(values))
        if known is None:
            self.budget.spend(len(values))
            known = self._enums[id(values)] = (values, frozenset(map(self.canonical, values)))
        return self.canonical(value) in known[1]

    def canonical(self, value: Any) -> Any:
        """A hashable representation in which JSON equality holds: 1 equals 1.0, but not true."""
        if not isinstance(value, (list, tuple, Mapping)):
            return _canonical_scalar(value)
        known = self._canonical.get(id(value))
        if known is None:
            self.budget.spend(1 + len(value))
            made: Any
            if isinstance(value, Mapping):
                made = frozenset((key, self.canonical(item)) for key, item in value.items())
            else:
                made = tuple(map(self.canonical, value))
            known = self._canonical[id(value)] = (value, (kind_of(value), made))
        return known[1]

    def search(self, pattern: str, text: str) -> bool | None:
        """Whether the pattern matches in the text; `None` if that can't be decided."""
        if pattern not in self._automata:
            self._automata[pattern], steps = compiled(pattern)
            self.budget.spend(steps)
        automaton = self._automata[pattern]
        return None if automaton is None else automaton.search(text, self.budget)

    def target(self, reference: Any) -> Any:
        """The schema that a reference points to."""
        if not isinstance(reference, str) or not reference.startswith("#"):
            return True
        if reference not in self._targets:
            self.budget.spend(1 + len(reference))
            self._targets[reference] = self._resolved(reference)
        return self._targets[reference]

    def _resolved(self, reference: str) -> Any:
        if reference != "#" and not reference.startswith("#/"):
            return self._anchored(reference[1:])
        found = self._root
        for name in unquote(reference).split("/")[1:]:
            found = _within(found, name.replace("~1", "/").replace("~0", "~"))
        return found

    def _anchored(self, name: str) -> Any:
        named = self._root.get("$defs") if isinstance(self._root, Mapping) else None
        self.budget.spend_on(16 * len(named) if isinstance(named, Mapping) else 0)
        for schema in named.values() if isinstance(named, Mapping) else ():
            if isinstance(schema, Mapping) and schema.get("$anchor") == name:
                return schema
        return True


def _within(schema: Any, name: str) -> Any:
    """Follows one step of a reference; `True`, which accepts anything, if it does not resolve."""
    if isinstance(schema, Mapping):
        return schema.get(name, True)
    if isinstance(schema, list) and is_index(name) and int(name) < len(schema):
        return schema[int(name)]
    return True


def _canonical_scalar(value: Any) -> Any:
    """Numbers become digits: Python's hashes of numbers can be made to collide."""
    if is_number(value):
        is_whole = isinstance(value, int) or value == value // 1
        return ("number", f"{int(value):x}" if is_whole else repr(float(value)))
    is_plain = value is None or isinstance(value, (str, bool))
    return (kind_of(value), value if is_plain else id(value))
