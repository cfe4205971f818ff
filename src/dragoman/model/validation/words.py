"""The words in which a value's misfit with its schema is told: types, sizes, what is expected."""

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
    """One thing that is wrong with a value."""

    path: str
    """Where: `$.items[2].name`. A key that the schema does not name is `*`."""
    expected: str
    got: str
    keyword: str = ""
    """The keyword of the schema that was broken."""

    def __str__(self) -> str:
        return f"{self.path}: expected {self.expected}, got {self.got}"


def kind_of(value: Any) -> str:
    """The JSON type of a value; for what JSON has not, the name of its class."""
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
"""What nearly all values are. Not floats: some of them are no JSON."""
_KINDS: tuple[tuple[Any, str], ...] = (
    (bool, "boolean"),
    (int, "integer"),
    (float, "number"),
    (str, "string"),
    ((list, tuple), "array"),
    (Mapping, "object"),
)


def is_number(value: Any) -> bool:
    """Whether JSON sees a number; booleans are none."""
    return kind_of(value) in {"integer", "number"}


def is_index(name: str) -> bool:
    """Whether a step of a reference is the place of an item in a list."""
    return _INDEX.fullmatch(name) is not None


def step(path: str, name: str) -> str:
    """The path of a property."""
    return f"{path}.{name}" if name.isidentifier() else f"{path}[{_quoted(name)}]"


def either(words: Iterable[str]) -> str:
    """Alternatives, joined as people do."""
    *first, last = list(dict.fromkeys(words))
    return f"{', '.join(first)} or {last}" if first else last


def type_in_words(types: Any) -> str:
    """What `type` asks for."""
    listed = types if isinstance(types, list) else [types]
    return either(_ARTICLES.get(name, "a value") for name in listed if isinstance(name, str))


def listed(values: list[Any]) -> str:
    """What `enum` or `const` asks for."""
    return either(
        [*(_quoted(value) for value in values[:_MAX_LISTED]), *_others(values, _MAX_LISTED)]
    )


def alternatives(schemas: list[Any], resolved: Callable[[Any], Any]) -> str:
    """What a list of alternatives asks for, each in few words."""
    shown = [in_words(resolved(schema)) for schema in schemas[:_MAX_LISTED]]
    return either([*shown, *_others(schemas, _MAX_LISTED)])


def names_in_words(names: Collection[Any]) -> str:
    """Names of properties, one after the other; the first hundred of them."""
    return ", ".join([*map(str, islice(names, _MAX_NAMES)), *_others(names, _MAX_NAMES)])


def _others(values: Collection[Any], shown: int) -> list[str]:
    return [f"{len(values) - shown} others"] if len(values) > shown else []


def _quoted(value: Any) -> str:
    try:
        return dumps(value).decode("utf-8")
    except InvalidInputError:
        return "another value"


def in_words(schema: Any) -> str:
    """What a schema asks for, in few words."""
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
