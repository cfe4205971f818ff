"""The shapes that types have in JSON: each gives its schema, and reads a value into its type.

`typeschema` finds the shape of a type; those of classes are in `typerecords`. Reading expects a
value that the schema allows: it says where one does not fit, but checks no more than it needs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dragoman.model.frozen import thaw
from dragoman.model.functions.constraints import broken_bound, keywords
from dragoman.model.functions.definitions import Definitions, Schema


class MisfitError(Exception):
    """A value does not have the shape; `path` and `expected` say where and what would."""

    def __init__(self, expected: str) -> None:
        super().__init__(expected)
        self.expected = expected
        self.path = ""
        self.is_verdict = False
        """Whether a class of the user's has said so, of a value that had the right shape."""


class Shape(ABC):
    """What a type looks like in JSON."""

    @abstractmethod
    def schema(self, definitions: Definitions) -> Schema:
        """The JSON Schema; named types go to the definitions."""

    @abstractmethod
    def read(self, value: Any) -> Any:
        """The Python value that a JSON value stands for."""

    def covers(self, _value: Any) -> bool:
        """Whether nothing in the value would be left out; decides between the arms of a union."""
        return True


def inside(shape: Shape, value: Any, step: str) -> Any:
    """What the shape reads; where it can't, the error says at which step."""
    try:
        return shape.read(value)
    except MisfitError as error:
        error.path = step + error.path
        raise


def array(value: Any) -> list[Any]:
    """The items of what must be an array."""
    if isinstance(value, (list, tuple)):
        return list(value)
    raise MisfitError(expected="an array")


def entries(value: Any) -> Mapping[str, Any]:
    """The entries of what must be an object."""
    if isinstance(value, Mapping):
        return value
    raise MisfitError(expected="an object")


class Anything(Shape):
    """Any JSON value; read as ordinary lists and dicts."""

    def schema(self, definitions: Definitions) -> Schema:  # noqa: ARG002, D102
        return {}

    def read(self, value: Any) -> Any:  # noqa: D102
        return thaw(value)


@dataclass(frozen=True)
class Scalar(Shape):
    """A string, number, boolean or null, and what makes the Python value of it."""

    keywords: Mapping[str, Any]
    load: Callable[[Any], Any]

    def schema(self, definitions: Definitions) -> Schema:  # noqa: ARG002, D102
        return dict(self.keywords)

    def read(self, value: Any) -> Any:  # noqa: D102
        return self.load(value)


@dataclass(frozen=True)
class Choice(Shape):
    """One of some values: of a Literal, or of an Enum, whose members are then what is read."""

    values: tuple[tuple[Any, Any], ...]

    def schema(self, definitions: Definitions) -> Schema:  # noqa: ARG002, D102
        names = list(dict.fromkeys(TYPE_NAMES[type(plain)] for plain, _ in self.values))
        kind = names[0] if len(names) == 1 else names
        return {"type": kind, "enum": [plain for plain, _ in self.values]}

    def read(self, value: Any) -> Any:  # noqa: D102
        for plain, member in self.values:
            if plain == value and isinstance(plain, bool) is isinstance(value, bool):
                return member
        raise MisfitError(expected="one of the values listed")


TYPE_NAMES = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


@dataclass(frozen=True)
class Array(Shape):
    """Items of one shape, as many as come."""

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
            pass  # an item that can't be hashed
        raise MisfitError(expected="items that can be in a set")

    def covers(self, value: Any) -> bool:  # noqa: D102
        return not isinstance(value, list) or all(map(self.item.covers, value))


@dataclass(frozen=True)
class FixedArray(Shape):
    """One item of each shape, in this order."""

    items: tuple[Shape, ...]
    optional: int = 0
    """How many may be missing at the end."""

    def schema(self, definitions: Definitions) -> Schema:  # noqa: D102
        schemas = [item.schema(definitions) for item in self.items]
        size = {"minItems": len(schemas) - self.optional, "maxItems": len(schemas)}
        if schemas and all(schema == schemas[0] for schema in schemas):
            return {"type": "array", "items": schemas[0], **size}  # understood by all providers
        return {"type": "array", "prefixItems": schemas, **size}

    def read(self, value: Any) -> tuple[Any, ...]:  # noqa: D102
        given = array(value)
        if not len(self.items) - self.optional <= len(given) <= len(self.items):
            raise MisfitError(expected=f"{len(self.items)} items")
        pairs = enumerate(zip(self.items, given, strict=False))
        return tuple(inside(shape, item, f"[{at}]") for at, (shape, item) in pairs)


@dataclass(frozen=True)
class Table(Shape):
    """An object with keys that are not known beforehand."""

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
    """One of several shapes; the first that fits without leaving something out is read."""

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
        raise MisfitError(expected=f"one of the {len(self.arms)} shapes that are allowed")


def _joined(types: list[Any]) -> Any:
    names = list(dict.fromkeys(types))
    if "number" in names and "integer" in names:
        names.remove("integer")
    return names[0] if len(names) == 1 else names


def _is_rounding(arm: Shape, value: Any) -> bool:
    """Whether the arm would make an int of a float: 1.0 fits, but a float arm fits better."""
    return isinstance(value, float) and isinstance(arm, Scalar) and arm.keywords == _INTEGER


_INTEGER = {"type": "integer"}


@dataclass(frozen=True)
class Noted(Shape):
    """A shape with the notes of an `Annotated` type."""

    inner: Shape
    notes: tuple[Any, ...]

    def schema(self, definitions: Definitions) -> Schema:  # noqa: D102
        schema = self.inner.schema(definitions)
        return {**schema, **keywords(self.notes, definitions.types(schema))}

    def read(self, value: Any) -> Any:  # noqa: D102
        read = self.inner.read(value)
        if bound := broken_bound(self.notes, read):
            raise MisfitError(expected=f"a value {bound}")
        return read

    def covers(self, value: Any) -> bool:  # noqa: D102
        return self.inner.covers(value)
