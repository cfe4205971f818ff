"""Shapes of classes: records with fields, pydantic models, and named types."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cached_property
from typing import Any

from msgspec import UNSET

from dragoman.errors import DragomanError, InvalidInputError
from dragoman.model.functions.complaints import complaint
from dragoman.model.functions.definitions import Definitions, Schema, mapped
from dragoman.model.functions.fields import Field, Layout, Make
from dragoman.model.functions.shapes import TYPE_NAMES, MisfitError, Shape, array, entries, inside
from dragoman.model.jsontext import dumps


class Named(Shape):
    """A named type, which may be used repeatedly and inside itself.

    `inner` is set later, because building it may need this object.
    """

    inner: Shape

    def __init__(self, key: Any, name: str, description: str = "") -> None:
        self._key = key
        self._name = name
        self._description = description

    def schema(self, definitions: Definitions) -> Schema:  # noqa: D102
        return definitions.refer(self._key, self._name, lambda: self._described(definitions))

    def _described(self, definitions: Definitions) -> Schema:
        said = {"description": self._description} if self._description else {}
        return {**said, **self.inner.schema(definitions)}

    def read(self, value: Any) -> Any:  # noqa: D102
        return self.inner.read(value)

    def covers(self, value: Any) -> bool:  # noqa: D102
        return self.inner.covers(value)


class Record(Shape):
    """An object with fields, and a function that creates the Python value."""

    def __init__(self, layout: Layout, shapes: tuple[Shape, ...], make: Make, name: str) -> None:
        self._layout = layout
        self._shapes = shapes
        self._make = make
        self._name = name

    def schema(self, definitions: Definitions) -> Schema:  # noqa: D102
        pairs = zip(self._layout.fields, self._shapes, strict=True)
        properties = {field.key: _property(field, shape, definitions) for field, shape in pairs}
        required = [field.key for field in self._layout.fields if field.is_required]
        if self._layout.tag:
            key, tag = self._layout.tag
            properties = {key: {"type": TYPE_NAMES[type(tag)], "enum": [tag]}, **properties}
            required = [key, *required]
        if self._layout.is_array:
            size = {"minItems": len(required), "maxItems": len(properties)}
            return {"type": "array", "prefixItems": list(properties.values()), **size}
        schema: Schema = {"type": "object", "properties": properties}
        if required:
            schema["required"] = required
        if self._layout.is_closed:
            schema["additionalProperties"] = False
        return schema

    def read(self, value: Any) -> Any:  # noqa: D102
        given = self._by_key(value)
        tag = self._layout.tag
        if tag and given.get(tag[0]) != tag[1]:
            raise MisfitError(expected=f"a {self._name}")
        fields: dict[str, Any] = {}
        for field, shape in zip(self._layout.fields, self._shapes, strict=True):
            if field.key in given:
                fields[field.name] = inside(shape, given[field.key], f".{field.key}")
            elif field.is_required:
                raise MisfitError(expected=f"an object with `{field.key}`")
        return _made(self._make, fields, self._name, (given, fields), (*given, *fields))

    def _by_key(self, value: Any) -> Mapping[str, Any]:
        if self._layout.is_array:
            return dict(zip(self._keys(), array(value), strict=False))
        return entries(value)

    def _keys(self) -> list[str]:
        tag = [self._layout.tag[0]] if self._layout.tag else []
        return tag + [field.key for field in self._layout.fields]

    def covers(self, value: Any) -> bool:  # noqa: D102
        return not isinstance(value, Mapping) or value.keys() <= set(self._keys())


def _property(field: Field, shape: Shape, definitions: Definitions) -> Schema:
    schema = shape.schema(definitions)
    if field.description:
        schema.setdefault("description", field.description)
    if field.default is not UNSET:
        schema["default"] = field.default
    return schema


def _made(
    make: Callable[[Any], Any], given: Any, name: str, value: Any, names: Collection[str]
) -> Any:
    """Calls a user's class; its exceptions may quote the value, so they are converted."""
    try:
        return make(given)
    except DragomanError:
        raise
    except Exception as error:  # noqa: BLE001 - a user's class may raise anything
        problem = complaint(error, value, names)
    misfit = MisfitError(expected=f"what {name} accepts ({problem})")
    misfit.is_verdict = True
    raise misfit


class Model(Shape):
    """A pydantic model, recognised by its methods; it describes and validates itself."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind

    def schema(self, definitions: Definitions) -> Schema:  # noqa: D102
        name = str(self._kind.__name__)
        schema = _without_titles(self._described(), name)
        return definitions.adopt(self._kind, name, schema)

    def _described(self) -> Schema:
        try:
            described: Schema = self._kind.model_json_schema()
        except Exception as error:  # noqa: BLE001 - raised by pydantic or by the model's own hooks
            problem = type(error).__name__
        else:
            return described
        msg = f"pydantic can't describe {self._kind.__name__} as JSON Schema ({problem})"
        raise InvalidInputError(msg)

    def read(self, value: Any) -> Any:  # noqa: D102
        # As JSON: only there does a strict model accept text for a date or an Enum member.
        make, name = self._kind.model_validate_json, str(self._kind.__name__)
        return _made(make, dumps(value), name, value, _Names(self._described))

    def covers(self, value: Any) -> bool:  # noqa: D102
        fields: Mapping[str, Any] = self._kind.model_fields
        names = set(fields) | {getattr(field, "alias", None) for field in fields.values()}
        return not isinstance(value, Mapping) or value.keys() <= names


class _Names(Collection[str]):
    """The names of all properties in a schema, collected on first use."""

    def __init__(self, described: Callable[[], Schema]) -> None:
        self._described = described

    @cached_property
    def _found(self) -> set[str]:
        found: set[str] = set()

        def visit(schema: Mapping[str, Any]) -> Schema:
            found.update(schema.get("properties", ()))
            return mapped(schema, visit)

        visit(self._described())
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._found

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


def _without_titles(schema: Mapping[str, Any], name: str) -> Schema:
    """A copy without the titles that pydantic derives from names, and without `discriminator`."""
    result = mapped(schema, lambda inner: _without_titles(inner, ""))
    for group in ("properties", "$defs"):
        if group in schema:
            inner: Mapping[str, Any] = schema[group]
            result[group] = {key: _without_titles(inner[key], key) for key in inner}
    result.pop("discriminator", None)  # OpenAPI 3.0; it refers to $defs, and `const` says the same
    plain = str(schema.get("title", "")).replace(" ", "").lower()
    if plain == re.sub(r"[\W_]", "", name).lower():
        result.pop("title", None)
    return result
