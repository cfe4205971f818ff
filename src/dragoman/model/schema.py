"""The JSON Schema of the canonical form.

`canonical.schema.json`, beside this file, is what `document_schema()` returns: for those who read
our documents without us. After a change of the model, write it anew:

    python -m dragoman.model.schema > src/dragoman/model/canonical.schema.json
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, get_args

import msgspec

from dragoman.errors import InvalidInputError
from dragoman.model.catalogue import Embeddings, ModelInfo, TokenCount
from dragoman.model.collection import Messages
from dragoman.model.content import AnyPart
from dragoman.model.conversation import StoredConversation
from dragoman.model.document import VERSION
from dragoman.model.events import Event
from dragoman.model.frozen import FrozenDict
from dragoman.model.jsontext import dumps, loads
from dragoman.model.messages import Message
from dragoman.model.parts import CacheHint, Citation, Origin
from dragoman.model.requests import Output, Request, Sampling, State, ThinkingConfig
from dragoman.model.responses import Choice, Embedding, Response
from dragoman.model.store import StoredStore
from dragoman.model.tools import ServerTool, ToolChoice, ToolDefinition
from dragoman.model.usage import Usage

_KINDS: tuple[type, ...] = (
    *(Message, Request, Response, Embedding, Embeddings, ModelInfo, TokenCount),
    *(Choice, Usage, Sampling, Output, ThinkingConfig, State),
    *(Origin, CacheHint, Citation, ToolDefinition, ServerTool, ToolChoice),
    *get_args(AnyPart),
    *get_args(Event),
)
_ROOTS: dict[str, Any] = {
    "Messages": tuple[Message, ...],
    "MessageStore": StoredStore,
    "ConversationHistory": StoredConversation,
    **{kind.__name__: kind for kind in _KINDS},
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
        msg = f"there is no JSON Schema for {getattr(kind, '__name__', 'this type')}"
        raise InvalidInputError(msg)
    name = "Message" if kind is Messages else getattr(kind, "__name__", "")
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
        "$defs": loads(dumps(components)),  # as a reader of the file has it: no tuples
    }


if __name__ == "__main__":
    import json
    import sys

    sys.stdout.write(json.dumps(document_schema(), indent=1, ensure_ascii=False) + "\n")
