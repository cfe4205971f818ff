"""A JSON Schema from a few words: `name, age int, bio: one sentence`."""

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
    """An object with these fields, all of which it must have.

    Fields are separated by commas, or by lines; each has a name, may have a type (`str` if none is
    given, `int`, `float`, `bool`), and after a colon what it is.

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
        problem = f"there is no type {kind}; there are str, int, float and bool" if found else (
            "there is no such file, and it is no list of fields such as 'name, age int'"
        )  # fmt: skip
        raise Ending(USAGE, f"--schema {piece.strip()}: {problem}")
    about = {"description": found["about"]} if found["about"] else {}
    return found["name"], {"type": _TYPES[kind], **about}
