"""Builds a JSON Schema from a short description: `name, age int, bio: one sentence`."""

from __future__ import annotations

import re
from typing import Any

from dragoman.cli.exit_codes import USAGE, Ending

_TYPES = {
    "str": "string", "string": "string", "int": "integer", "integer": "integer",
    "float": "number", "number": "number", "bool": "boolean", "boolean": "boolean",
}  # fmt: skip
_FIELD = re.compile(r"\s*(?P<name>\w+)(?:\s+(?P<type>\w+))?\s*(?::\s*(?P<about>.+?))?\s*")


def schema_of_fields(text: str) -> dict[str, Any]:
    """An object schema in which all these fields are required.

    Fields are separated by commas or newlines. Each has a name, optionally a type (`str`, which is
    the default, `int`, `float` or `bool`), and optionally a description after a colon.

    >>> schema_of_fields("name, age int")["properties"]
    {'name': {'type': 'string'}, 'age': {'type': 'integer'}}
    """
    pieces = text.split("\n") if "\n" in text.strip() else text.split(",")
    properties = dict(_field(piece) for piece in pieces if piece.strip())
    if not properties:
        raise Ending(USAGE, "--schema: name a file, or fields such as 'name, age int'")
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _field(piece: str) -> tuple[str, dict[str, Any]]:
    found = _FIELD.fullmatch(piece)
    kind = found["type"] or "str" if found else ""
    if found is None or kind not in _TYPES:
        problem = f"unknown type {kind}; the types are str, int, float and bool" if found else (
            "neither an existing file nor a list of fields such as 'name, age int'"
        )  # fmt: skip
        raise Ending(USAGE, f"--schema {piece.strip()}: {problem}")
    about = {"description": found["about"]} if found["about"] else {}
    return found["name"], {"type": _TYPES[kind], **about}
