"""Wording of validation problems: types, sizes and what was expected."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import islice
from math import isfinite
from typing import Any, NamedTuple

from dragoman.errors import InvalidInputError
from dragoman.model.frozen import FrozenDict
from dragoman.model.jsontext import dumps

_MAX_LISTED = 20
_MAX_NAMES = 100
_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")
_ARTICLES = {
    "array": "an array",
    "boolean": "a boolean",
    "integer": "an integer",
    "null": "null",
    "number": "a number",
    "object": "an object",
    "string": "a string",
}


class Problem(NamedTuple):
    """A problem found in a value."""

    path: str
    """The path, such as `$.items[2].name`. A key that the schema does not name is `*`."""
    expected: str
    """What the schema requires."""
    got: str
    """The type or size of the actual value."""
    keyword: str = ""
    """The schema keyword that was violated."""

    def __str__(self) -> str:
        return f"{self.path}: expected {self.expected}, got {self.got}"


def kind_of(value: Any) -> str:
    """The JSON type of a value, or its class name if it is not JSON."""
    if (usual := USUAL_KINDS.get(type(value))) is not None:
        return usual
    if isinstance(value, float) and not isfinite(value):
        return "number that is not finite"
    for kinds, name in _KINDS:
        if isinstance(value, kinds):
            return name
    return type(value).__name__


USUAL_KINDS: dict[type, str] = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    str: "string",
    list: "array",
    tuple: "array",
    dict: "object",
    FrozenDict: "object",
}
"""The most frequent types. Floats are not included, because some are not valid JSON."""
_KINDS: tuple[tuple[Any, str], ...] = (
    (bool, "boolean"),
    (int, "integer"),
    (float, "number"),
    (str, "string"),
    ((list, tuple), "array"),
    (Mapping, "object"),
)


def is_number(value: Any) -> bool:
    """Whether it is a JSON number; booleans are not."""
    return kind_of(value) in {"integer", "number"}


def is_index(name: str) -> bool:
    """Whether a step of a reference is a list index."""
    return _INDEX.fullmatch(name) is not None


def step(path: str, name: str) -> str:
    """The path of a property."""
    return f"{path}.{name}" if name.isidentifier() else f"{path}[{_quoted(name)}]"


def either(words: Iterable[str]) -> str:
    """Joins alternatives: `a, b or c`."""
    *first, last = list(dict.fromkeys(words))
    return f"{', '.join(first)} or {last}" if first else last


def type_in_words(types: Any) -> str:
    """What `type` requires, in words."""
    listed = types if isinstance(types, list) else [types]
    return either(_ARTICLES.get(name, "a value") for name in listed if isinstance(name, str))


def listed(values: list[Any]) -> str:
    """What `enum` or `const` requires, in words."""
    return either(
        [*(_quoted(value) for value in values[:_MAX_LISTED]), *_others(values, _MAX_LISTED)]
    )


def alternatives(schemas: list[Any], resolved: Callable[[Any], Any]) -> str:
    """What a list of alternatives requires, in short."""
    shown = [in_words(resolved(schema)) for schema in schemas[:_MAX_LISTED]]
    return either([*shown, *_others(schemas, _MAX_LISTED)])


def names_in_words(names: Collection[Any]) -> str:
    """The first hundred property names, separated by commas."""
    return ", ".join([*map(str, islice(names, _MAX_NAMES)), *_others(names, _MAX_NAMES)])


def _others(values: Collection[Any], shown: int) -> list[str]:
    return [f"{len(values) - shown} others"] if len(values) > shown else []


def _quoted(value: Any) -> str:
    try:
        return dumps(value).decode("utf-8")
    except InvalidInputError:
        return "another value"


def in_words(schema: Any) -> str:
    """What a schema requires, in short."""
    if not isinstance(schema, Mapping):
        return "a value"
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(values, list) and values:
        return listed(values)
    required = schema.get("required")
    if isinstance(required, list) and required and all(isinstance(name, str) for name in required):
        return f"an object with {names_in_words(required)}"
    types = schema.get("type")
    is_named = isinstance(types, str) or (isinstance(types, list) and any(map(_is_text, types)))
    return type_in_words(types) if is_named else "a value"


def _is_text(name: Any) -> bool:
    return isinstance(name, str)
