"""Shapes: the JSON form of a type. Each gives a schema, and converts JSON to the type.

`schema` finds the shape of a type; those of classes are in `records`. Conversion expects a value
that the schema allows; it reports where a value does not match, but checks no more than it needs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dragoman.model.frozen import thaw
from dragoman.model.functions.constraints import keywords, violated_bound
from dragoman.model.functions.definitions import Definitions, Schema


class MisfitError(Exception):
    """A value does not match the shape; `path` and `expected` say where and what would."""

    def __init__(self, expected: str) -> None:
        super().__init__(expected)
        self.expected = expected
        self.path = ""
        self.is_verdict = False
        """Whether a user's class rejected a value that had the right shape."""


class Shape(ABC):
    """The JSON form of a type."""

    @abstractmethod
    def schema(self, definitions: Definitions) -> Schema:
        """The JSON Schema; named types are added to the definitions."""

    @abstractmethod
    def read(self, value: Any) -> Any:
        """Converts a JSON value to the Python value."""

    def covers(self, _value: Any) -> bool:
        """Whether conversion would drop nothing from the value; chooses between arms of a union."""
        return True


def inside(shape: Shape, value: Any, step: str) -> Any:
    """Converts a nested value; adds the step to the path of an error."""
    try:
        return shape.read(value)
    except MisfitError as error:
        error.path = step + error.path
        raise


def array(value: Any) -> list[Any]:
    """The items of an array; raises for other values."""
    if isinstance(value, (list, tuple)):
        return list(value)
    raise MisfitError(expected="an array")


def entries(value: Any) -> Mapping[str, Any]:
    """The entries of an object; raises for other values."""
    if isinstance(value, Mapping):
        return value
    raise MisfitError(expected="an object")


class Anything(Shape):
    """Any JSON value; converted to ordinary lists and dicts."""

    def schema(self, definitions: Definitions) -> Schema:  # noqa: ARG002, D102
        return {}

    def read(self, value: Any) -> Any:  # noqa: D102
        return thaw(value)


@dataclass(frozen=True)
class Scalar(Shape):
    """A string, number, boolean or null, and a function that converts it."""

    keywords: Mapping[str, Any]
    load: Callable[[Any], Any]

    def schema(self, definitions: Definitions) -> Schema:  # noqa: ARG002, D102
        return dict(self.keywords)

    def read(self, value: Any) -> Any:  # noqa: D102
        return self.load(value)


@dataclass(frozen=True)
class Choice(Shape):
    """One of several values: of a Literal, or of an Enum, for which the member is returned."""

    values: tuple[tuple[Any, Any], ...]

    def schema(self, definitions: Definitions) -> Schema:  # noqa: ARG002, D102
        names = list(dict.fromkeys(TYPE_NAMES[type(plain)] for plain, _ in self.values))
        kind = names[0] if len(names) == 1 else names
        return {"type": kind, "enum": [plain for plain, _ in self.values]}

    def read(self, value: Any) -> Any:  # noqa: D102
        for plain, member in self.values:
            if plain == value and isinstance(plain, bool) is isinstance(value, bool):
                return member
        raise MisfitError(expected="one of the listed values")


TYPE_NAMES = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


@dataclass(frozen=True)
class Array(Shape):
    """Any number of items of one shape."""

    item: Shape
    make: Callable[[list[Any]], Any]
    is_unique: bool = False

    def schema(self, definitions: Definitions) -> Schema:  # noqa: D102
        unique = {"uniqueItems": True} if self.is_unique else {}
        return {"type": "array", "items": self.item.schema(definitions), **unique}

    def read(self, value: Any) -> Any:  # noqa: D102
        items = [inside(self.item, item, f"[{at}]") for at, item in enumerate(array(value))]
        try:
            return self.make(items)
        except TypeError:
            pass  # an unhashable item
        raise MisfitError(expected="items that can be in a set")

    def covers(self, value: Any) -> bool:  # noqa: D102
        return not isinstance(value, list) or all(map(self.item.covers, value))


@dataclass(frozen=True)
class FixedArray(Shape):
    """A fixed sequence of items, each with its own shape."""

    items: tuple[Shape, ...]
    optional: int = 0
    """How many items may be missing at the end."""

    def schema(self, definitions: Definitions) -> Schema:  # noqa: D102
        schemas = [item.schema(definitions) for item in self.items]
        size = {"minItems": len(schemas) - self.optional, "maxItems": len(schemas)}
        if schemas and all(schema == schemas[0] for schema in schemas):
            return {"type": "array", "items": schemas[0], **size}  # supported by all providers
        return {"type": "array", "prefixItems": schemas, **size}

    def read(self, value: Any) -> tuple[Any, ...]:  # noqa: D102
        given = array(value)
        if not len(self.items) - self.optional <= len(given) <= len(self.items):
            raise MisfitError(expected=f"{len(self.items)} items")
        pairs = enumerate(zip(self.items, given, strict=False))
        return tuple(inside(shape, item, f"[{at}]") for at, (shape, item) in pairs)


@dataclass(frozen=True)
class Table(Shape):
    """An object with arbitrary keys."""

    key: Shape
    item: Shape
    make: Callable[[dict[Any, Any]], Any]

    def schema(self, definitions: Definitions) -> Schema:  # noqa: D102
        keys, items = self.key.schema(definitions), self.item.schema(definitions)
        names = {} if keys == {"type": "string"} else {"propertyNames": keys}
        return {"type": "object", **names, "additionalProperties": items or True}

    def read(self, value: Any) -> Any:  # noqa: D102
        read: dict[Any, Any] = {}
        for key, item in entries(value).items():
            read[inside(self.key, key, ".*")] = inside(self.item, item, ".*")
        return self.make(read)


@dataclass(frozen=True)
class AnyOf(Shape):
    """One of several shapes; prefers the first that matches without dropping anything."""

    arms: tuple[Shape, ...]

    def schema(self, definitions: Definitions) -> Schema:  # noqa: D102
        schemas: list[Schema] = []
        for arm in self.arms:
            if (schema := arm.schema(definitions)) not in schemas:
                schemas.append(schema)
        if {} in schemas:
            return {}
        if all(schema.keys() == {"type"} for schema in schemas):
            return {"type": _joined([schema["type"] for schema in schemas])}
        return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}

    def read(self, value: Any) -> Any:  # noqa: D102
        verdicts: dict[str, MisfitError] = {}
        for must_cover in (True, False):
            for arm in sorted(self.arms, key=lambda arm: _is_rounding(arm, value)):
                if arm.covers(value) or not must_cover:
                    try:
                        return arm.read(value)
                    except MisfitError as misfit:
                        if misfit.is_verdict:
                            verdicts[misfit.path + misfit.expected] = misfit
        if len(verdicts) == 1:  # the only arm that had the right shape
            raise verdicts.popitem()[1]
        raise MisfitError(expected=f"one of the {len(self.arms)} allowed shapes")


def _joined(types: list[Any]) -> Any:
    names = list(dict.fromkeys(types))
    if "number" in names and "integer" in names:
        names.remove("integer")
    return names[0] if len(names) == 1 else names


def _is_rounding(arm: Shape, value: Any) -> bool:
    """Whether the arm would turn a float into an int: for 1.0, a float arm is the better match."""
    return isinstance(value, float) and isinstance(arm, Scalar) and arm.keywords == _INTEGER


_INTEGER = {"type": "integer"}


@dataclass(frozen=True)
class Noted(Shape):
    """A shape with the metadata of an `Annotated` type."""

    inner: Shape
    notes: tuple[Any, ...]

    def schema(self, definitions: Definitions) -> Schema:  # noqa: D102
        schema = self.inner.schema(definitions)
        return {**schema, **keywords(self.notes, definitions.types(schema))}

    def read(self, value: Any) -> Any:  # noqa: D102
        read = self.inner.read(value)
        if bound := violated_bound(self.notes, read):
            raise MisfitError(expected=f"a value {bound}")
        return read

    def covers(self, value: Any) -> bool:  # noqa: D102
        return self.inner.covers(value)
