"""A fast path for simple schemas: most tools take a few strings and numbers, mostly valid.

Returns true only where full validation would find nothing; everything else is left to that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

_KINDS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}
_WORDS = frozenset({"type", "properties", "required", "additionalProperties"})
_REMARKS = frozenset({"title", "description", "default", "examples"})


def plain_check(schema: Mapping[str, Any] | None) -> Callable[[Any], bool] | None:
    """A function that recognises valid arguments; `None` if the schema is not simple enough.

    >>> fits = plain_check({"type": "object", "properties": {"days": {"type": "integer"}}})
    >>> fits({"days": 3}), fits({"days": "3"}), fits({"weeks": 1})
    (True, False, False)
    """
    if schema is None or schema.get("type") != "object" or not schema.keys() <= _WORDS | _REMARKS:
        return None
    kinds = _kinds(schema.get("properties"))
    required: Any = schema.get("required", ())
    if kinds is None or not isinstance(required, (list, tuple)):
        return None
    needed = {name for name in required if isinstance(name, str)}
    if len(needed) != len(required):
        return None

    def fits(arguments: Any) -> bool:
        if not isinstance(arguments, dict) or not needed <= arguments.keys():
            return False
        # The exact type, because `True` is not an integer in JSON.
        return all(type(value) in kinds.get(name, ()) for name, value in arguments.items())

    return fits


def _kinds(properties: Any) -> dict[str, tuple[type, ...]] | None:
    if not isinstance(properties, Mapping):
        return None
    kinds: dict[str, tuple[type, ...]] = {}
    for name, schema in properties.items():
        if not isinstance(schema, Mapping) or not schema.keys() <= _REMARKS | {"type"}:
            return None
        kind = schema.get("type")
        if not isinstance(kind, str) or kind not in _KINDS:
            return None
        kinds[name] = _KINDS[kind]
    return kinds
