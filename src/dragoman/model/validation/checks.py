"""JSON Schema keywords that check a value and its parts; `logic` has those that combine schemas.

Each check yields the problems it finds. Malformed keywords are ignored, because the model that
reads about a problem could not fix the schema.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sized
from fractions import Fraction
from typing import Any, Protocol

from dragoman.model.validation.budget import Budget
from dragoman.model.validation.formats import violated_format
from dragoman.model.validation.words import (
    USUAL_KINDS,
    Problem,
    in_words,
    is_number,
    kind_of,
    listed,
    names_in_words,
    step,
    type_in_words,
)

Found = Iterator[Problem]


class Checker(Protocol):
    """The interface that checks use to validate subschemas."""

    @property
    def budget(self) -> Budget:
        """The remaining budget."""
        ...

    def one_of(self, values: list[Any], value: Any) -> bool:
        """Whether a value is one of these."""
        ...

    def canonical(self, value: Any) -> Any:
        """A hashable representation in which JSON equality holds: 1 equals 1.0, but not true."""
        ...

    def search(self, pattern: str, text: str) -> bool | None:
        """Whether the pattern matches in the text; `None` if that can't be decided."""
        ...

    def check(self, schema: Any, value: Any, path: str) -> Found:
        """The problems of a value, which is at `path`."""
        ...

    def first(self, schema: Any, value: Any, path: str) -> list[Problem]:
        """The first few problems."""
        ...

    def fits(self, schema: Any, value: Any, path: str) -> bool:
        """Whether there are no problems."""
        ...

    def referred(self, reference: Any, value: Any, path: str) -> list[Problem]:
        """The first few problems of a value with the target of a reference."""
        ...

    def target(self, reference: Any) -> Any:
        """The schema that a reference points to."""
        ...


Check = Callable[[Checker, Any, Any, Mapping[str, Any], str], Found]
"""Takes the run, the keyword's argument, the value, the schema with the keyword, and the path."""


def _type(run: Checker, types: Any, value: Any, _schema: Mapping[str, Any], path: str) -> Found:
    if USUAL_KINDS.get(type(value)) == types:
        return
    listed_types = types if isinstance(types, list) else [types]
    run.budget.spend_on(4 * len(listed_types))
    names = [name for name in listed_types if isinstance(name, str) and name in _TYPES]
    if names and not any(_TYPES[name](value) for name in names):
        yield Problem(path, type_in_words(names), kind_of(value), "type")


_TYPES: dict[Any, Callable[[Any], bool]] = {
    "array": lambda value: kind_of(value) == "array",
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: is_number(value) and value == value // 1,
    "null": lambda value: value is None,
    "number": is_number,
    "object": lambda value: isinstance(value, Mapping),
    "string": lambda value: isinstance(value, str),
}


def _enum(run: Checker, values: Any, value: Any, _schema: Mapping[str, Any], path: str) -> Found:
    if not isinstance(values, list) or not values:
        return
    if not run.one_of(values, value):
        yield Problem(path, listed(values), kind_of(value), "enum")


def _const(run: Checker, only: Any, value: Any, _schema: Mapping[str, Any], path: str) -> Found:
    if run.canonical(value) != run.canonical(only):
        yield Problem(path, listed([only]), kind_of(value), "const")


def _bound(keyword: str, words: str, holds: Callable[[Any, Any], bool]) -> Check:
    def check(
        _run: Checker, bound: Any, value: Any, _schema: Mapping[str, Any], path: str
    ) -> Found:
        if is_number(bound) and is_number(value) and not holds(value, bound):
            yield Problem(path, f"a number {words} {bound}", f"another {kind_of(value)}", keyword)

    return check


def _is_multiple(value: Any, of: Any) -> bool:
    """Compares as decimals, as people read numbers: 0.3 is a multiple of 0.1."""
    return of <= 0 or (_decimal(value) / _decimal(of)).denominator == 1


def _decimal(number: Any) -> Fraction:
    return Fraction(number) if isinstance(number, int) else Fraction(repr(float(number)))


def _size(keyword: str, kinds: Any, unit: str, *, is_least: bool) -> Check:
    def check(
        _run: Checker, bound: Any, value: Any, _schema: Mapping[str, Any], path: str
    ) -> Found:
        if not is_number(bound) or not isinstance(value, kinds):
            return
        size = len(value) if isinstance(value, Sized) else 0
        if size < bound if is_least else size > bound:
            words = f"at {'least' if is_least else 'most'} {bound} {unit}"
            yield Problem(path, words, str(size), keyword)

    return check


def _pattern(run: Checker, pattern: Any, value: Any, _: Mapping[str, Any], path: str) -> Found:
    is_text = isinstance(pattern, str) and isinstance(value, str)
    if is_text and run.search(pattern, value) is False:
        yield Problem(path, f"a string that matches {pattern}", "another string", "pattern")


def _format(run: Checker, name: Any, value: Any, _schema: Mapping[str, Any], path: str) -> Found:
    if not isinstance(name, str) or not isinstance(value, str):
        return
    run.budget.spend_on(len(value))
    if expected := violated_format(name, value):
        yield Problem(path, expected, "another string", "format")


def _prefix_items(run: Checker, schemas: Any, value: Any, _: Mapping[str, Any], path: str) -> Found:
    if isinstance(schemas, list) and isinstance(value, (list, tuple)):
        for at, (schema, item) in enumerate(zip(schemas, value, strict=False)):
            yield from run.check(schema, item, f"{path}[{at}]")


def _items(run: Checker, items: Any, value: Any, schema: Mapping[str, Any], path: str) -> Found:
    if isinstance(items, list):  # the form before draft 2020-12
        yield from _prefix_items(run, items, value, schema, path)
    elif isinstance(value, (list, tuple)):
        prefix = schema.get("prefixItems")
        first = len(prefix) if isinstance(prefix, list) else 0
        for at in range(first, len(value)):
            yield from run.check(items, value[at], f"{path}[{at}]")


def _unique(run: Checker, is_on: Any, value: Any, _schema: Mapping[str, Any], path: str) -> Found:
    if is_on is True and isinstance(value, (list, tuple)):
        run.budget.spend(len(value))
        if len(set(map(run.canonical, value))) < len(value):
            yield Problem(path, "unique items", "duplicates", "uniqueItems")


def _properties(run: Checker, known: Any, value: Any, _: Mapping[str, Any], path: str) -> Found:
    if isinstance(known, Mapping) and isinstance(value, Mapping):
        run.budget.spend_on(4 * len(known))
        for name, schema in known.items():
            if name in value:
                yield from run.check(schema, value[name], step(path, str(name)))


def _required(run: Checker, names: Any, value: Any, schema: Mapping[str, Any], path: str) -> Found:
    if not isinstance(names, list) or not isinstance(value, Mapping):
        return
    known = schema.get("properties")
    run.budget.spend_on(4 * len(names))
    for name in names:
        if isinstance(name, str) and name not in value:
            expected = in_words(known.get(name) if isinstance(known, Mapping) else None)
            yield Problem(step(path, name), expected, "nothing", "required")


def _is_covered(run: Checker, key: Any, schema: Mapping[str, Any]) -> bool:
    known, patterns = schema.get("properties"), schema.get("patternProperties")
    if isinstance(known, Mapping) and key in known:
        return True
    if not isinstance(patterns, Mapping) or not isinstance(key, str):
        return False
    return any(isinstance(each, str) and run.search(each, key) is not False for each in patterns)


def _additional(run: Checker, rest: Any, value: Any, schema: Mapping[str, Any], path: str) -> Found:
    if not isinstance(value, Mapping) or not isinstance(rest, (bool, Mapping)) or rest is True:
        return
    run.budget.spend_on(16 * len(value))
    others = [key for key in value if not _is_covered(run, key, schema)]
    if rest is not False:
        for key in others:
            yield from run.check(rest, value[key], f"{path}.*")
    elif others:
        known = schema.get("properties")
        names = names_in_words(known) if isinstance(known, Mapping) and known else "none"
        words = f"only these properties: {names}"
        yield Problem(path, words, f"{len(others)} more", "additionalProperties")


def _patterned(run: Checker, patterns: Any, value: Any, _: Mapping[str, Any], path: str) -> Found:
    if not isinstance(patterns, Mapping) or not isinstance(value, Mapping):
        return
    for pattern, schema in patterns.items():
        for key, item in value.items():
            is_text = isinstance(pattern, str) and isinstance(key, str)
            if is_text and run.search(pattern, key):
                yield from run.check(schema, item, f"{path}.*")


def _names(run: Checker, schema: Any, value: Any, _schema: Mapping[str, Any], path: str) -> Found:
    if isinstance(value, Mapping):
        for key in value:
            for problem in run.check(schema, key, path):
                yield problem._replace(expected=f"keys that are {problem.expected}")


def _dependent(run: Checker, needs: Any, value: Any, _: Mapping[str, Any], path: str) -> Found:
    if not isinstance(needs, Mapping) or not isinstance(value, Mapping):
        return
    run.budget.spend_on(4 * len(needs))
    for name, others in needs.items():
        run.budget.spend_on(len(others) if isinstance(others, list) else 0)
        for other in others if name in value and isinstance(others, list) else ():
            if isinstance(other, str) and other not in value:
                words = f"a value, because `{name}` is present"
                yield Problem(step(path, other), words, "nothing", "dependentRequired")


CHECKS: Mapping[str, Check] = {
    "type": _type,
    "enum": _enum,
    "const": _const,
    "minimum": _bound("minimum", "of at least", lambda value, bound: bool(value >= bound)),
    "maximum": _bound("maximum", "of at most", lambda value, bound: bool(value <= bound)),
    "exclusiveMinimum": _bound("exclusiveMinimum", "above", lambda value, at: bool(value > at)),
    "exclusiveMaximum": _bound("exclusiveMaximum", "below", lambda value, at: bool(value < at)),
    "multipleOf": _bound("multipleOf", "that is a multiple of", _is_multiple),
    "minLength": _size("minLength", str, "characters", is_least=True),
    "maxLength": _size("maxLength", str, "characters", is_least=False),
    "minItems": _size("minItems", (list, tuple), "items", is_least=True),
    "maxItems": _size("maxItems", (list, tuple), "items", is_least=False),
    "minProperties": _size("minProperties", Mapping, "properties", is_least=True),
    "maxProperties": _size("maxProperties", Mapping, "properties", is_least=False),
    "pattern": _pattern,
    "format": _format,
    "prefixItems": _prefix_items,
    "items": _items,
    "uniqueItems": _unique,
    "properties": _properties,
    "required": _required,
    "additionalProperties": _additional,
    "patternProperties": _patterned,
    "propertyNames": _names,
    "dependentRequired": _dependent,
}
