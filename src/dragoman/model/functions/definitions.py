"""The `$defs` of a generated JSON Schema, and traversal of schemas.

A type that is used once is inlined. A type that is used more than once, or that contains itself,
goes into `$defs`. That is the shortest form that is still easy to read for people and models.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from typing import Any

Schema = dict[str, Any]

_MAPS = ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_SINGLES = (
    "items", "additionalProperties", "propertyNames", "contains", "not", "if", "then", "else",
)  # fmt: skip
_POINTER = "#/$defs/"


def mapped(schema: Mapping[str, Any], change: Callable[[Any], Any]) -> Schema:
    """A copy of a schema, with a function applied to each direct subschema."""
    changed = dict(schema)
    for key in _MAPS:
        if isinstance(inner := schema.get(key), Mapping):
            changed[key] = {name: _changed(item, change) for name, item in inner.items()}
    for key in _LISTS:
        if isinstance(inner := schema.get(key), list):
            changed[key] = [_changed(item, change) for item in inner]
    for key in _SINGLES:
        if key in schema:
            changed[key] = _changed(schema[key], change)
    return changed


def _changed(schema: Any, change: Callable[[Any], Any]) -> Any:
    return change(schema) if isinstance(schema, Mapping) else schema


def closed(schema: Mapping[str, Any]) -> Schema:
    """A copy in which objects with properties forbid additional ones, unless they declare them.

    Objects combined with `allOf` or `$ref` stay open, because each part would forbid the
    properties of the others.
    """
    result = mapped(schema, closed)
    is_whole = not any(key in schema for key in ("allOf", "anyOf", "oneOf", "$ref", "if"))
    if "properties" in schema and is_whole:
        result.setdefault("additionalProperties", False)
    return result


class Definitions:
    """Collects schemas under unique, readable and deterministic names."""

    def __init__(self) -> None:
        self._names: dict[Hashable, str] = {}
        self._schemas: dict[str, Schema] = {}

    def refer(self, key: Hashable, name: str, build: Callable[[], Schema]) -> Schema:
        """A `$ref` to the schema that `build` returns; called once per key."""
        if key not in self._names:
            taken = self._free(name)
            self._names[key] = taken
            self._schemas[taken] = {}  # recursive types get the reference while it is being built
            self._schemas[taken] = build()
        return {"$ref": _POINTER + self._names[key]}

    def adopt(self, key: Hashable, name: str, schema: Schema) -> Schema:
        """A `$ref` to a schema that has its own `$defs`."""
        if key not in self._names:
            foreign: dict[str, Schema] = {**schema.pop("$defs", {})}
            if schema.get("$ref") != _POINTER + name:
                foreign[name] = schema
            names: dict[str, str] = {}
            for old, inner in foreign.items():
                names[old] = self._free(old, inner)
                self._schemas[names[old]] = inner
            for old, new in names.items():
                self._schemas[new] = _renamed(foreign[old], names)
            self._names[key] = names[name]
        return {"$ref": _POINTER + self._names[key]}

    def _free(self, name: str, schema: Schema | None = None) -> str:
        """A name that is free, or already used for this very schema."""
        plain = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or "Type"
        number, free = 1, plain
        while free in self._schemas and (schema is None or self._schemas[free] != schema):
            number += 1
            free = f"{plain}_{number}"
        return free

    def types(self, schema: Mapping[str, Any], depth: int = 0) -> set[str]:
        """The JSON types that a schema allows, as far as it declares them."""
        kind = schema.get("type", ())
        found = {kind} if isinstance(kind, str) else set(kind)
        for arm in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
            found |= self.types(arm, depth + 1)
        if "$ref" in schema and depth < len(self._schemas) + 1:
            found |= self.types(self._schemas.get(_target(schema), {}), depth + 1)
        return found

    def document(self, root: Schema) -> Schema:
        """The complete schema: types used once are inlined, the rest goes into `$defs`."""
        for _ in self._schemas:  # the schema of parameters must have `"type": "object"` at the top
            if "$ref" in root:
                beside = {key: item for key, item in root.items() if key != "$ref"}
                root = {**self._schemas[_target(root)], **beside}
        uses = _references(root)
        held = {name: _references(schema) for name, schema in self._schemas.items()}
        kept = _kept(uses, held)

        def inlined(schema: Schema) -> Schema:
            if "$ref" in schema and _target(schema) not in kept:
                beside = {key: item for key, item in schema.items() if key != "$ref"}
                return inlined({**self._schemas[_target(schema)], **beside})
            return mapped(schema, inlined)

        document = inlined(root)
        if kept:
            document["$defs"] = {name: inlined(self._schemas[name]) for name in sorted(kept)}
        return document


def _target(schema: Mapping[str, Any]) -> str:
    return str(schema["$ref"]).removeprefix(_POINTER)


def _references(schema: Mapping[str, Any]) -> Counter[str]:
    """The number of references to each definition."""
    found: Counter[str] = Counter()

    def visit(inner: Mapping[str, Any]) -> Schema:
        if "$ref" in inner:
            found[_target(inner)] += 1
        return mapped(inner, visit)

    visit(schema)
    return found


def _kept(uses: Counter[str], held: Mapping[str, Counter[str]]) -> set[str]:
    """The definitions that are referenced more than once, or contain themselves."""
    total, waiting, seen = Counter(uses), list(uses), set(uses)
    while waiting:
        for name, count in held[waiting.pop()].items():
            total[name] += count
            if name not in seen:
                seen.add(name)
                waiting.append(name)
    return {name for name in seen if total[name] > 1 or _holds_itself(name, held)}


def _holds_itself(name: str, held: Mapping[str, Counter[str]]) -> bool:
    waiting, seen = list(held[name]), set(held[name])
    while waiting:
        for inner in held[waiting.pop()]:
            if inner not in seen:
                seen.add(inner)
                waiting.append(inner)
    return name in seen


def _renamed(schema: Schema, names: Mapping[str, str]) -> Schema:
    """A copy with its references renamed."""
    changed = mapped(schema, lambda inner: _renamed(inner, names))
    if "$ref" in changed:
        changed["$ref"] = _POINTER + names.get(_target(changed), _target(changed))
    return changed
