"""The JSON Schema of the canonical form, and of types without some fields."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import jsonschema
import msgspec
import pytest
from hypothesis import given

from dragoman.errors import InvalidInputError
from dragoman.model import schema
from dragoman.model.collection import Messages
from dragoman.model.messages import Kind, Message
from dragoman.model.parts import Text
from dragoman.model.schema import document_schema, schema_of
from dragoman.model.usage import Usage
from dragoman.model.value import Value
from tests.model import strategies as some

SHIPPED = Path(schema.__file__).with_name("canonical.schema.json")
VALIDATOR = jsonschema.Draft202012Validator(document_schema())


def kinds() -> Iterator[type[Value]]:
    """All types of values that the library can write, the abstract ones left out."""
    found = [Value]
    while found:
        found += (kind := found.pop()).__subclasses__()
        if kind.__module__.startswith("dragoman.model.") and not kind.__subclasses__():
            yield kind


def test_the_shipped_schema_is_current() -> None:
    """If not: python -m dragoman.model.schema > src/dragoman/model/canonical.schema.json."""
    assert json.loads(SHIPPED.read_text(encoding="utf-8")) == document_schema()


def test_the_module_prints_the_schema() -> None:
    """The documented way of writing the file anew gives the file, byte for byte."""
    printed = subprocess.run(
        [sys.executable, "-m", "dragoman.model.schema"], capture_output=True, check=True, timeout=60
    ).stdout
    assert printed == SHIPPED.read_bytes()


def test_the_schema_is_a_valid_schema() -> None:
    """By the rules of its own draft: the check does not raise."""
    jsonschema.Draft202012Validator.check_schema(document_schema())


def test_every_kind_of_document_is_described() -> None:
    """Whatever has a `to_json` has a place in the schema."""
    described = {kind["properties"]["kind"]["const"] for kind in document_schema()["oneOf"]}
    assert {kind.__name__ for kind in kinds()} | {"Messages"} <= described


@given(some.values)
def test_documents_of_values_are_valid(value: Value) -> None:
    """Everything that is written is what the schema promises: no error is found."""
    assert list(VALIDATOR.iter_errors(json.loads(value.to_json()))) == []


@given(some.conversations)
def test_documents_of_conversations_are_valid(messages: Messages) -> None:
    """As above, for a whole conversation."""
    assert list(VALIDATOR.iter_errors(json.loads(messages.to_json()))) == []


@pytest.mark.parametrize("document", [
    {},
    {"dragoman": 3, "kind": "Text", "value": {"type": "text", "text": "hi"}},
    {"dragoman": 0, "kind": "Text", "value": {"type": "text", "text": "hi"}},
    {"dragoman": 1, "kind": "Song", "value": {}},
    {"dragoman": 1, "kind": "Text", "value": {"type": "text"}},
    {"dragoman": 1, "kind": "Text", "value": {"type": "text", "text": "hi", "colour": "red"}},
    {"dragoman": 1, "kind": "Message", "value": {"role": "robot"}},
    {"dragoman": 1, "kind": "Message", "value": {"role": "user", "parts": [{"type": "song"}]}},
])  # fmt: skip
def test_other_documents_are_not(document: Any) -> None:
    """The schema refuses what the reader refuses."""
    assert not VALIDATOR.is_valid(document)


@pytest.mark.parametrize("version", [1, 2])
def test_both_versions_are_described(version: int) -> None:
    """What the reader takes."""
    document = {"dragoman": version, "kind": "Text", "value": {"type": "text", "text": ""}}
    assert VALIDATOR.is_valid(document)


def test_types_declare_their_excluded_fields() -> None:
    """Seeds 000 and 001's `#[ExcludeFromSchema]`: ids, extras, and other internal fields."""
    definitions = schema_of(Message)["$defs"]
    assert set(definitions["Message"]["properties"]) == {"role", "parts", "name"}
    assert set(definitions["Text"]["properties"]) == {"type", "text", "citations"}
    assert "wire_id" not in definitions["ToolCall"]["properties"]
    assert not {"Origin", "Usage", "CacheHint"} & definitions.keys()  # nobody refers to them
    assert not any("extras" in each.get("properties", {}) for each in definitions.values())
    assert schema_of(Messages)["$defs"]["Message"] == definitions["Message"]


def test_a_type_of_ones_own_may_say_it_too() -> None:
    """It declares the names; a required field that is left out is not required."""

    class Note(msgspec.Struct):
        text: str
        key: str
        schema_excludes: ClassVar[frozenset[str]] = frozenset({"key"})

    definition = schema_of(Note)["$defs"]["Note"]
    assert (set(definition["properties"]), definition["required"]) == ({"text"}, ["text"])
    assert "key" in schema_of(Note, exclude=())["$defs"]["Note"]["properties"]


KINDS: list[tuple[Kind, dict[str, Any], list[str]]] = [
    ("system", {"content": "Be brief."}, ["content"]),
    ("developer", {"content": [{"type": "text", "text": "Be brief."}]}, ["content"]),
    ("user", {"content": [{"type": "text", "text": "See:"},
                          {"type": "image", "url": "https://example.com/cat.png"}]}, ["content"]),
    ("assistant", {"content": ""}, ["content"]),
    ("tool_call", {"tool_calls": [{"id": "c1", "name": "f", "arguments": {"a": 1}}]},
     ["tool_calls"]),
    ("tool_result", {"content": "sunny", "tool_call_id": "c1"}, ["content", "tool_call_id"]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "fields", "required"), KINDS)
def test_each_kind_of_message_has_a_schema(
    kind: Kind, fields: dict[str, Any], required: list[str]
) -> None:
    """Seed 001's `generateSchema` of its classes: what is valid is read as that kind of message."""
    found = schema_of(Message, kind=kind)
    jsonschema.Draft202012Validator.check_schema(found)
    validator = jsonschema.Draft202012Validator(found)
    assert found["required"] == list(found["properties"]) == required
    validator.validate(fields)
    role = {"tool_call": "assistant", "tool_result": "tool"}.get(kind, kind)
    assert Message.from_dict({"role": role, **fields}).kind == kind
    for name in required:
        assert not validator.is_valid({key: fields[key] for key in fields if key != name})
        assert not validator.is_valid({**fields, name: None})
    assert json.loads(json.dumps(found)) == found


@pytest.mark.parametrize("given", [(Text, "user"), (Messages, "user"), (Message, "robot")])
def test_other_types_have_no_such_kinds(given: tuple[Any, Any]) -> None:
    """The error lists those that there are."""
    with pytest.raises(InvalidInputError, match="system, developer, user, assistant"):
        schema_of(given[0], kind=given[1])


def test_fields_can_be_excluded() -> None:
    """Seed 001: what is not meant for the reader does not appear, required or not."""
    full = schema_of(Message, exclude=())
    some_fields = schema_of(Message, exclude={"id", "extras", "role"})
    assert full["$defs"]["Message"]["required"] == ["role"]
    left = some_fields["$defs"]["Message"]
    assert set(full["$defs"]["Message"]["properties"]) - set(left["properties"]) == {
        "id", "extras", "role",
    }  # fmt: skip
    assert "required" not in left
    assert some_fields["$defs"]["Text"] == full["$defs"]["Text"]


def test_excluding_from_a_conversation_means_its_messages() -> None:
    """A list of messages has no fields of its own."""
    left = schema_of(Messages, exclude=["id"])
    assert left["type"] == "array"
    assert "id" not in left["$defs"]["Message"]["properties"]


def test_excluding_does_not_change_the_type() -> None:
    """The next schema is whole again."""
    schema_of(Usage, exclude={"input"})
    assert "input" in schema_of(Usage)["$defs"]["Usage"]["properties"]


def test_excluding_keeps_the_other_required_fields() -> None:
    """Only the named ones go."""
    left = schema_of(Text, exclude={"type"})["$defs"]["Text"]
    assert left["required"] == ["text"]


@pytest.mark.parametrize("kind", [object, Path])
def test_a_type_without_a_schema_is_an_error_of_ours(kind: type) -> None:
    """It names the type."""
    with pytest.raises(InvalidInputError, match=f"{kind.__name__} has no JSON Schema"):
        schema_of(kind)
