"""Generates deterministic values that match a JSON Schema, for tests."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from dragoman.errors import InvalidInputError
from dragoman.model.validation.problems import fits, problems

_OPTIONAL_DEPTH = 4
"""Depth beyond which optional values are left out, so that recursive types end."""
_MAX_DEPTH = 30
_FORMATS = {
    "date": "2024-01-01",
    "date-time": "2024-01-01T00:00:00Z",
    "time": "00:00:00Z",
    "duration": "P1D",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "email": "user@example.com",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.com",
}
_TEXTS = ("a", "1", "A", "a1", "aa", "10", "1.0", "abc", "ABC", "A1", "a-1", "a_1", "+15550100",
          "2024-01-01", "user@example.com", "https://example.com", "#000000", "")  # fmt: skip
"""Candidates for strings that must match a pattern."""


def made_up(schema: Mapping[str, Any], what: str) -> Any:
    """A value that matches the schema. Raises if none is found; `what` describes its use."""
    value = _Maker(schema).value(schema)
    if problems(schema, value):
        msg = f"no valid value could be generated for {what}: provide one yourself"
        raise InvalidInputError(msg)
    return value


class _Maker:
    """Generates values for the parts of one schema."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root

    def value(self, schema: Any, depth: int = 0, number: int = 0) -> Any:  # noqa: PLR0911 - one for each keyword
        """A value; another `number` gives a different one, if there are several."""
        if not isinstance(schema, Mapping) or depth > _MAX_DEPTH:
            return None
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return schema["enum"][number % len(schema["enum"])]
        if "$ref" in schema:
            return self.value(self._referred(schema["$ref"]), depth + 1, number)
        for name in ("anyOf", "oneOf"):
            if name in schema:
                return self._one_of(schema[name], depth, number)
        if "allOf" in schema:
            return self.value(self._merged(schema), depth + 1, number)
        return self._of_type(schema, depth, number)

    def _referred(self, reference: str) -> Any:
        found: Any = self._root
        for name in reference.removeprefix("#").strip("/").split("/"):
            if name:
                key = name.replace("~1", "/").replace("~0", "~")
                found = found.get(key) if isinstance(found, Mapping) else None
        return found

    def _one_of(self, options: Any, depth: int, number: int) -> Any:
        """The first option that has a value; at great depth null, if allowed."""
        if depth > _OPTIONAL_DEPTH and {"type": "null"} in options:
            return None
        for option in options:
            value = self.value(option, depth + 1, number)
            if value is not None and fits(option, value, self._root):
                return value
        return None

    def _merged(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """The schema merged with its `allOf` parts."""
        merged: dict[str, Any] = {name: each for name, each in schema.items() if name != "allOf"}
        for other in schema["allOf"]:
            given = self._referred(other["$ref"]) if "$ref" in other else other
            for name, each in given.items():
                if name == "properties":
                    each = {**merged.get(name, {}), **each}  # noqa: PLW2901 - of both
                elif name == "required":
                    each = [*merged.get(name, ()), *each]  # noqa: PLW2901 - of both
                merged[name] = each
        return merged

    def _of_type(self, schema: Mapping[str, Any], depth: int, number: int) -> Any:
        kinds = schema.get("type", "object" if "properties" in schema else "string")
        names = [kinds] if isinstance(kinds, str) else [*kinds]
        if len(names) > 1 and depth > _OPTIONAL_DEPTH and "null" in names:
            return None
        kind = next((name for name in names if name != "null"), "null")
        if kind == "object":
            return self._object(schema, depth)
        if kind == "array":
            return self._array(schema, depth)
        if kind in {"integer", "number"}:
            return _number(schema, is_whole=kind == "integer", number=number)
        if kind == "boolean":
            return bool(number % 2)
        return None if kind == "null" else self._text(schema, number)

    def _object(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        kinds, names = schema.get("properties", {}), schema.get("required", ())
        made = {name: self.value(kinds.get(name, {}), depth + 1) for name in names}
        others = schema.get("additionalProperties")
        for number in range(schema.get("minProperties", 0) - len(made)):
            made[f"key_{number}"] = self.value(others, depth + 1, number)
        return made

    def _array(self, schema: Mapping[str, Any], depth: int) -> list[Any]:
        first = [self.value(each, depth + 1) for each in schema.get("prefixItems", ())]
        least = schema.get("minItems", 0 if depth > _OPTIONAL_DEPTH else 1)
        count = max(0, min(least, schema.get("maxItems", least)) - len(first))
        items = schema.get("items", {"type": "string"})
        return [*first, *(self.value(items, depth + 1, number) for number in range(count))]

    def _text(self, schema: Mapping[str, Any], number: int) -> str:
        for text in self._texts(schema, number):
            if fits(schema, text, self._root):
                return text
        return "a"

    def _texts(self, schema: Mapping[str, Any], number: int) -> Iterator[str]:
        known = _FORMATS.get(schema.get("format", ""))
        if known is not None:
            yield known
        if schema.get("contentEncoding") == "base64":
            yield "YQ=="
        letters = chr(ord("a") + number % 26)
        yield letters
        yield letters * schema.get("minLength", 1)
        yield from _TEXTS
        yield from (text * schema.get("minLength", 1) for text in _TEXTS)


def _number(schema: Mapping[str, Any], *, is_whole: bool, number: int) -> float:
    step = schema.get("multipleOf", 1)
    least, above = schema.get("minimum"), schema.get("exclusiveMinimum")
    most, below = schema.get("maximum"), schema.get("exclusiveMaximum")
    low = max((each for each in (least, above) if each is not None), default=None)
    high = min((each for each in (most, below) if each is not None), default=None)
    if low is None:
        low = 0 if high is None or high >= 0 else high - step
    value = math.ceil(low / step) * step
    if above is not None and value <= above:
        value += step
    if high is not None and not is_whole and (value > high or value == below):
        value = (low + high) / 2
    value += step * number
    return int(value) if is_whole else value
