"""The JSON Schema of the canonical form.

`canonical.schema.json`, next to this file, is the output of `document_schema()`, for programs that
read our documents without this library. Regenerate it after changes to the model:

    python -m dragoman.model.schema > src/dragoman/model/canonical.schema.json
"""

from __future__ import annotations

from collections.abc import Collection
from inspect import cleandoc
from typing import Any, get_args

import msgspec

from dragoman.errors import InvalidInputError
from dragoman.model.catalogue import Embeddings, ModelInfo, TokenCount
from dragoman.model.collection import Messages
from dragoman.model.content import AnyPart
from dragoman.model.conversation import StoredConversation
from dragoman.model.document import OLDEST, VERSION
from dragoman.model.events import Event
from dragoman.model.frozen import FrozenDict
from dragoman.model.jsontext import dumps, loads
from dragoman.model.media import Audio, File, Image, Video
from dragoman.model.messages import Kind, Message
from dragoman.model.parts import CacheHint, Citation, Origin, Refusal, Text
from dragoman.model.provider_tools import KnownTool, Location
from dragoman.model.requests import (
    ContextManagement,
    MediaOutput,
    Output,
    Request,
    Sampling,
    Service,
    State,
    ThinkingConfig,
)
from dragoman.model.responses import Choice, Embedding, Response
from dragoman.model.store import StoredStore
from dragoman.model.tools import ServerTool, ToolChoice, ToolDefinition
from dragoman.model.usage import Usage

_KINDS: tuple[type, ...] = (
    *(Message, Request, Response, Embedding, Embeddings, ModelInfo, TokenCount),
    *(Choice, Usage, Sampling, Output, ThinkingConfig, State),
    *(MediaOutput, Service, ContextManagement, Location, *get_args(KnownTool)),
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
    raise NotImplementedError  # tells msgspec that the type is not supported here


def schema_of(
    value_type: type, /, *, exclude: Collection[str] | None = None, kind: Kind | None = None
) -> dict[str, Any]:
    """The JSON Schema of a type's canonical form, for creating such values.

    Fields that a type lists in `schema_excludes` (ids, extras, usage and the like) are omitted,
    in nested values too. `exclude` overrides which fields are omitted; with `()` the schema
    covers everything that is stored.

    >>> sorted(schema_of(Message)["$defs"]["Message"]["properties"])
    ['name', 'parts', 'role']

    With `kind`, the schema of one kind of message without its role, for `Message.from_dict`:

    >>> schema_of(Message, kind="tool_result")["required"]
    ['content', 'tool_call_id']
    """
    if kind is not None:
        return _of_message_kind(value_type, kind)
    stored: Any = tuple[Message, ...] if value_type is Messages else value_type
    try:
        schema = msgspec.json.schema(stored, schema_hook=_hook)
    except TypeError:
        schema = None
    if schema is None:
        msg = f"{getattr(value_type, '__name__', 'this type')} has no JSON Schema"
        raise InvalidInputError(msg)
    definitions = schema.get("$defs", {})
    _clean_descriptions(definitions)
    if exclude is None:
        _exclude_declared(definitions, value_type)
    else:
        name = "Message" if value_type is Messages else getattr(value_type, "__name__", "")
        _exclude(definitions.get(name, schema), exclude)
    return _without_unused(schema)


def _clean_descriptions(definitions: dict[str, Any]) -> None:
    """Removes the indentation of docstrings, which Python 3.13 removes and earlier ones keep."""
    for definition in definitions.values():
        if "description" in definition:
            definition["description"] = cleandoc(definition["description"])


def _exclude_declared(definitions: dict[str, Any], root: type | None = None) -> None:
    """Removes from each definition the fields that its type excludes."""
    known = {kind.__name__: kind for kind in (*_KINDS, *(() if root is None else (root,)))}
    for name, definition in definitions.items():
        _exclude(definition, getattr(known.get(name), "schema_excludes", ()))


def _without_unused(schema: dict[str, Any]) -> dict[str, Any]:
    """Removes definitions that are no longer referenced."""
    definitions = schema.get("$defs", {})
    used: set[str] = set()
    pending = [_references({key: value for key, value in schema.items() if key != "$defs"})]
    while pending:
        new = pending.pop() & definitions.keys() - used
        used |= new
        pending += [_references(definitions[name]) for name in new]
    if not definitions:
        return schema
    return {**schema, "$defs": {name: definitions[name] for name in definitions if name in used}}


def _references(schema: Any) -> set[str]:
    if isinstance(schema, dict):
        found = [_references(value) for value in schema.values()]
        own = schema.get("$ref")
        return set().union({own.rpartition("/")[2]} if isinstance(own, str) else (), *found)
    if isinstance(schema, (list, tuple)):
        return set().union(*map(_references, schema))
    return set()


def _exclude(schema: dict[str, Any], names: Collection[str]) -> None:
    for name in names:
        schema.get("properties", {}).pop(name, None)
    if "required" in schema:
        schema["required"] = [name for name in schema["required"] if name not in names]
        if not schema["required"]:
            del schema["required"]


# --- one kind of message

_MEDIA = (Image, Audio, Video, File)
_SAID: dict[str, tuple[tuple[type, ...], str]] = {
    "system": ((Text,), "The instructions for the model"),
    "developer": ((Text,), "The developer's instructions for the model"),
    "user": ((Text, *_MEDIA), "What the user says: a text, or parts with media"),
    "assistant": ((Text, Refusal), "What the assistant says"),
    "tool_result": ((Text, *_MEDIA), "What the tool returned"),
}
_CALL = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "description": "Pairs the call with its result"},
        "name": {"type": "string", "description": "The tool to run"},
        "arguments": {"type": "object", "description": "What it is run with"},
    },
    "required": ["id", "name", "arguments"],
}


def _of_message_kind(value_type: type, kind: str) -> dict[str, Any]:
    if value_type is not Message or kind not in get_args(Kind):
        msg = f"kind requires Message, and must be one of {', '.join(get_args(Kind))}"
        raise InvalidInputError(msg)
    if kind == "tool_call":
        calls = {"type": "array", "items": _CALL, "minItems": 1,
                 "description": "The tools that the assistant calls"}  # fmt: skip
        return _object({"tool_calls": calls})
    parts, description = _SAID[kind]
    refs, definitions = msgspec.json.schema_components(
        parts, schema_hook=_hook, ref_template="#/$defs/{name}"
    )
    _clean_descriptions(definitions)
    _exclude_declared(definitions)
    array = {"type": "array", "items": {"anyOf": list(refs)}}
    properties: dict[str, Any] = {
        "content": {"anyOf": [{"type": "string"}, array], "description": description}
    }
    if kind == "tool_result":
        properties["tool_call_id"] = {"type": "string", "description": "The call it answers"}
    return _without_unused({**_object(properties), "$defs": loads(dumps(definitions))})


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


# --- documents


def document_schema() -> dict[str, Any]:
    """The JSON Schema of all documents that this version can read."""
    names = list(_ROOTS)
    roots, components = msgspec.json.schema_components(
        list(_ROOTS.values()), schema_hook=_hook, ref_template="#/$defs/{name}"
    )
    _clean_descriptions(components)
    versions = list(range(OLDEST, VERSION + 1))
    documents = [
        {
            "properties": {"dragoman": {"enum": versions}, "kind": {"const": name}, "value": root},
            "required": ["dragoman", "kind", "value"],
        }
        for name, root in zip(names, roots, strict=True)
    ]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Dragoman document, versions {OLDEST} to {VERSION}",
        "type": "object",
        "oneOf": documents,
        "$defs": loads(dumps(components)),  # lists instead of tuples, as in the file
    }


if __name__ == "__main__":
    import json
    import sys

    sys.stdout.write(json.dumps(document_schema(), indent=1, ensure_ascii=False) + "\n")
