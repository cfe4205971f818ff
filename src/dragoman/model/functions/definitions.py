"""The named parts of a generated JSON Schema, and the walks over one.

A type that is used once is written where it is used; one that is used more often, or that holds
itself, goes to `$defs`. That is the shortest form that people and models read with ease.
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
    """A copy of a schema with each schema directly within it changed."""
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
    """A copy in which objects with listed properties allow no others, unless they say so.

    Objects that are put together with `allOf` or `$ref` stay open: each part would forbid what
    the others ask for.
    """
    result = mapped(schema, closed)
    is_whole = not any(key in schema for key in ("allOf", "anyOf", "oneOf", "$ref", "if"))
    if "properties" in schema and is_whole:
        result.setdefault("additionalProperties", False)
    return result


class Definitions:
    """Collects schemas under names that are unique, readable and the same in every run."""

    def __init__(self) -> None:
        self._names: dict[Hashable, str] = {}
        self._schemas: dict[str, Schema] = {}

    def refer(self, key: Hashable, name: str, build: Callable[[], Schema]) -> Schema:
        """A reference to what `build` gives; it is built once for each key."""
        if key not in self._names:
            taken = self._free(name)
            self._names[key] = taken
            self._schemas[taken] = {}  # whoever asks meanwhile is inside, and gets the reference
            self._schemas[taken] = build()
        return {"$ref": _POINTER + self._names[key]}

    def adopt(self, key: Hashable, name: str, schema: Schema) -> Schema:
        """A reference to a schema that brings `$defs` of its own."""
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
        """A name that is not taken, or taken by this very schema."""
        plain = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or "Type"
        number, free = 1, plain
        while free in self._schemas and (schema is None or self._schemas[free] != schema):
            number += 1
            free = f"{plain}_{number}"
        return free

    def types(self, schema: Mapping[str, Any], depth: int = 0) -> set[str]:
        """The JSON types that a schema allows, as far as it says."""
        kind = schema.get("type", ())
        found = {kind} if isinstance(kind, str) else set(kind)
        for arm in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
            found |= self.types(arm, depth + 1)
        if "$ref" in schema and depth < len(self._schemas) + 1:
            found |= self.types(self._schemas.get(_target(schema), {}), depth + 1)
        return found

    def document(self, root: Schema) -> Schema:
        """The whole schema: the root, whatever is used once in its place, the rest in `$defs`."""
        for _ in self._schemas:  # a schema of parameters must say `"type": "object"` at its top
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
    """How often a schema refers to each definition."""
    found: Counter[str] = Counter()

    def visit(inner: Mapping[str, Any]) -> Schema:
        if "$ref" in inner:
            found[_target(inner)] += 1
        return mapped(inner, visit)

    visit(schema)
    return found


def _kept(uses: Counter[str], held: Mapping[str, Counter[str]]) -> set[str]:
    """The definitions that are referred to more than once, or hold themselves."""
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
    """A copy with its references pointing to the new names."""
    changed = mapped(schema, lambda inner: _renamed(inner, names))
    if "$ref" in changed:
        changed["$ref"] = _POINTER + names.get(_target(changed), _target(changed))
    return changed
