"""The JSON Schema of the canonical form.

`canonical.schema.json`, beside this file, is what `document_schema()` returns: for those who read
our documents without us.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec

from dragoman.errors import InvalidInputError
from dragoman.model.collection import Messages
from dragoman.model.document import VERSION
from dragoman.model.events import Event
from dragoman.model.frozen import FrozenDict
from dragoman.model.messages import Message
from dragoman.model.requests import Request
from dragoman.model.responses import Embedding, Response

_ROOTS: dict[str, Any] = {
    "Message": Message,
    "Messages": tuple[Message, ...],
    "Request": Request,
    "Response": Response,
    "Embedding": Embedding,
    "Event": Event,
}


def _hook(kind: type) -> dict[str, Any]:
    if kind is FrozenDict:
        return {"type": "object"}
    raise NotImplementedError  # msgspec's way of being told that the type is not ours


def schema_of(kind: type, *, exclude: Collection[str] = ()) -> dict[str, Any]:
    """The JSON Schema of a type's canonical form, without the excluded fields.

    >>> sorted(schema_of(Message, exclude={"id", "extras"})["$defs"]["Message"]["properties"])[:3]
    ['created_at', 'finish', 'metadata']
    """
    stored: Any = tuple[Message, ...] if kind is Messages else kind
    try:
        schema = msgspec.json.schema(stored, schema_hook=_hook)
    except TypeError:
        schema = None
    if schema is None:
        msg = f"there is no JSON Schema for {kind.__name__}"
        raise InvalidInputError(msg)
    name = getattr(kind, "__name__", "")
    _exclude(schema.get("$defs", {}).get(name, schema), exclude)
    return schema


def _exclude(schema: dict[str, Any], names: Collection[str]) -> None:
    for name in names:
        schema.get("properties", {}).pop(name, None)
    if "required" in schema:
        schema["required"] = [name for name in schema["required"] if name not in names]
        if not schema["required"]:
            del schema["required"]


def document_schema() -> dict[str, Any]:
    """The JSON Schema of all documents of this version."""
    names = list(_ROOTS)
    roots, components = msgspec.json.schema_components(
        list(_ROOTS.values()), schema_hook=_hook, ref_template="#/$defs/{name}"
    )
    documents = [
        {
            "properties": {"dragoman": {"const": VERSION}, "kind": {"const": name}, "value": root},
            "required": ["dragoman", "kind", "value"],
        }
        for name, root in zip(names, roots, strict=True)
    ]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Dragoman document, version {VERSION}",
        "type": "object",
        "oneOf": documents,
        "$defs": components,
    }
