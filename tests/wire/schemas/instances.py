"""Values generated to fit a schema, and whether they do."""

from __future__ import annotations

import functools
import json
import random
from typing import Any

import jsonschema

from dragoman.model.validation.problems import problems
from tests.wire.schemas.acceptance import nodes_of

_STRINGS = ("", "a", "b", "1", "2", "null", "abcdef", "2024-01-02", "2024-01-02T03:04:05Z", "é")
_NUMBERS = (0, 1, 2, 3, 5, 7, 10, -1, 0.5, 2.5, 100)
_DEEPEST = 8


class ImpossibleError(Exception):
    """No value was found."""


def instance(schema: Any, root: Any, luck: random.Random, depth: int = 0) -> Any:
    """A value that probably matches."""
    if schema is True or schema == {}:
        return luck.choice([None, 1, "a", True, [], {}])
    if schema is False or depth > _DEEPEST:
        raise ImpossibleError
    if schema.get("nullable") is True and luck.random() < 0.3:
        return None
    if "$ref" in schema:
        return instance(_target(schema["$ref"], root), root, luck, depth + 1)
    if "anyOf" in schema or "oneOf" in schema:
        return _one_of(schema.get("anyOf") or schema["oneOf"], root, luck, depth)
    if "const" in schema or "enum" in schema:
        return schema["const"] if "const" in schema else luck.choice(schema["enum"])
    kinds = schema.get("type", ["object" if "properties" in schema else "string"])
    kind = luck.choice(kinds) if isinstance(kinds, list) else kinds
    return _of_type(kind, schema, root, luck, depth)


def _one_of(branches: list[Any], root: Any, luck: random.Random, depth: int) -> Any:
    for branch in luck.sample(branches, len(branches)):
        try:
            return instance(branch, root, luck, depth + 1)
        except ImpossibleError:
            continue
    raise ImpossibleError


def _of_type(kind: str, schema: Any, root: Any, luck: random.Random, depth: int) -> Any:
    if kind == "object":
        return _object(schema, root, luck, depth)
    if kind == "array":
        return _array(schema, root, luck, depth)
    if kind == "string":
        return luck.choice(_STRINGS)
    if kind == "integer":
        return luck.choice([n for n in _NUMBERS if isinstance(n, int)])
    return {"number": luck.choice(_NUMBERS), "boolean": luck.random() < 0.5}.get(kind)


def _object(schema: Any, root: Any, luck: random.Random, depth: int) -> Any:
    made: dict[str, Any] = {}
    required = schema.get("required", [])
    for name, each in schema.get("properties", {}).items():
        if name in required or luck.random() < 0.5:
            try:
                made[name] = instance(each, root, luck, depth + 1)
            except ImpossibleError:
                if name in required:
                    raise
    rest = schema.get("additionalProperties", True)
    if rest is not False and luck.random() < 0.3:
        made["further"] = instance(rest, root, luck, depth + 1)
    return made


def _array(schema: Any, root: Any, luck: random.Random, depth: int) -> Any:
    least = schema.get("minItems", 0)
    count = luck.randint(least, max(least, min(schema.get("maxItems", 3), least + 3)))
    prefix = schema.get("prefixItems", [])
    made: list[Any] = []
    for at in range(count):
        each = prefix[at] if at < len(prefix) else schema.get("items", True)
        try:
            made.append(instance(each, root, luck, depth + 1))
        except ImpossibleError:
            if len(made) < least:
                raise
            break
    return made


def _target(reference: str, root: Any) -> Any:
    found = root
    for step in reference.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(found, dict) or name not in found:
            raise ImpossibleError
        found = found[name]
    if not reference.startswith("#"):
        raise ImpossibleError
    return found


def instances(schema: Any, seed: int, count: int = 12) -> list[Any]:
    """Values that match."""
    luck = random.Random(seed)
    made: list[Any] = []
    for _ in range(count):
        try:
            value = instance(schema, schema, luck)
        except (ImpossibleError, RecursionError):
            continue
        if not misfits(schema, value):
            made.append(value)
    return made


def misfits(schema: Any, value: Any) -> list[str]:
    """The problems of a value: by our validator and, for valid schemas, by another one."""
    found = [str(problem) for problem in problems(schema, value)]
    validator = _validator(json.dumps(schema))
    if validator is None:
        return found
    try:
        return found + [error.message for error in validator.iter_errors(value)]
    except Exception:  # noqa: BLE001 - references that lead nowhere
        return found


@functools.lru_cache(maxsize=64)
def _validator(text: str) -> jsonschema.Draft202012Validator | None:
    schema = json.loads(text)
    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError:
        return None
    is_strange = "nullable" in text or spins(schema)
    return None if is_strange else jsonschema.Draft202012Validator(schema)


def spins(root: Any) -> bool:
    """Whether a schema applies itself to the same value: its meaning is undefined."""
    return any(_spins(node, root, frozenset()) for node, _ in nodes_of(root))


def _spins(schema: Any, root: Any, above: frozenset[int]) -> bool:
    if not isinstance(schema, dict):
        return False
    if id(schema) in above:
        return True
    inner = [schema.get(key) for key in ("not", "if", "then", "else")]
    inner += [each for key in ("anyOf", "oneOf", "allOf") for each in schema.get(key, [])]
    if "$ref" in schema:
        try:
            inner.append(_target(schema["$ref"], root))
        except ImpossibleError:
            return True
    here = above | {id(schema)}
    return any(_spins(each, root, here) for each in inner)
