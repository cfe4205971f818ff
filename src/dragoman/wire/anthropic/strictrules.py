"""What Anthropic's compiler of strict schemas refuses."""

from __future__ import annotations

from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter

from dragoman.wire.anthropic.view import View
from dragoman.wire.violations import Found, Object, field, subschemas

_ROOT = "#"
_DEFINITIONS = ("$defs", "definitions")


def shape_strict_schemas_are_objects(view: View) -> Found:
    """A property of a strict tool is told by an object, not by true or false."""
    for path, schema in _strict(view):
        properties = (one for node in subschemas(schema) for one in _properties(node))
        if not all(isinstance(one, Mapping) for one in properties):
            yield path, "every property in a strict schema must be an object"


def shape_strict_schemas_have_an_end(view: View) -> Found:
    """No definition of a strict tool refers back to itself."""
    for path, schema in _strict(view):
        if isinstance(schema, Mapping) and _is_circular(schema):
            yield path, "definitions in a strict schema must not refer to each other in a circle"


def _strict(view: View) -> list[tuple[str, object]]:
    return [
        (f"{path}.input_schema", tool.get("input_schema"))
        for path, tool in view.tools
        if tool.get("strict") is True and view.target.checks_strict_schemas
    ]


def _properties(node: Object) -> list[object]:
    return list(field(node, "properties").values())


def _is_circular(schema: Object) -> bool:
    if _ROOT in _references(schema):
        return True
    definitions = {
        f"#/{place}/{name}": _references(definition)
        for place in _DEFINITIONS
        for name, definition in field(schema, place).items()
    }
    try:
        TopologicalSorter(definitions).prepare()
    except CycleError:
        return True
    return False


def _references(schema: object) -> list[str]:
    found = (node.get("$ref") for node in subschemas(schema))
    return [reference for reference in found if isinstance(reference, str)]
