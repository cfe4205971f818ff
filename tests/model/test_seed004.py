"""Seed 004's own tests of definitions, deltas and serialised messages, under their own names.

Those of the conversation history are in `test_conversation`, its benchmarks in `test_limits`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from dragoman.errors import InvalidInputError, OrderError
from dragoman.model.accumulate import MessageAccumulator
from dragoman.model.collection import Messages
from dragoman.model.conversation import ConversationHistory
from dragoman.model.messages import Message
from dragoman.model.roles import Role
from dragoman.model.tools import (
    LongDescriptionWarning,
    ToolCall,
    ToolCallDelta,
    ToolDefinition,
    ToolResult,
)

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOL = ToolDefinition.create("read_file", "Read a file", SCHEMA)


@dataclass
class WriteFileArgs:
    """Write content to a file."""

    path: str
    content: str


@dataclass
class ReadFileArgs:
    """Read file contents."""

    path: str
    encoding: str | None = None


def value_of(document: bytes) -> Any:
    """What a document holds."""
    return json.loads(document)["value"]


class TestToolDefinition:
    """`ToolDefinitionTests`."""

    def test_should_be_immutable(self) -> None:
        """A changed copy is another definition."""
        changed = TOOL.replace(name="write_file")
        assert (TOOL.name, changed.name) == ("read_file", "write_file")
        with pytest.raises(AttributeError):
            TOOL.name = "x"  # type: ignore[misc]

    def test_should_validate_name_non_empty(self) -> None:
        """Says that it is the name."""
        with pytest.raises(InvalidInputError, match=r"name.*empty"):
            ToolDefinition.create("", "Description", SCHEMA)

    @pytest.mark.parametrize(
        "name", ["read_file", "write_file", "execute_command", "search_codebase", "tool123"]
    )
    def test_should_accept_valid_names(self, name: str) -> None:
        """Letters, digits, underscores."""
        assert ToolDefinition.create(name, "Description", SCHEMA).name == name

    @pytest.mark.parametrize("name", ["read-file", "read file", "read.file", "read@file"])
    def test_should_reject_invalid_name_characters(self, name: str) -> None:
        """Hyphen, space, dot, anything special."""
        with pytest.raises(InvalidInputError):
            ToolDefinition.create(name, "Description", SCHEMA)

    def test_should_enforce_name_max_length(self) -> None:
        """And tell it."""
        with pytest.raises(InvalidInputError, match="64"):
            ToolDefinition.create("a" * 65, "Description", SCHEMA)

    def test_should_accept_name_at_max_length(self) -> None:
        """64 are fine."""
        assert len(ToolDefinition.create("a" * 64, "Description", SCHEMA).name) == 64

    def test_should_require_description(self) -> None:
        """The model chooses by it."""
        with pytest.raises(InvalidInputError, match="description"):
            ToolDefinition.create("tool", "", SCHEMA)

    def test_should_require_description_non_null(self) -> None:
        """None is none."""
        with pytest.raises(InvalidInputError, match="description"):
            ToolDefinition.create("tool", None, SCHEMA)  # type: ignore[arg-type]

    def test_should_warn_long_description(self) -> None:
        """It works, with a warning, from 1,025 characters on."""
        with pytest.warns(LongDescriptionWarning, match="1025 characters"):
            made = ToolDefinition.create("tool", "x" * 1025, SCHEMA)
        assert made.description == "x" * 1025
        assert ToolDefinition.create("tool", "x" * 1024, SCHEMA).description == "x" * 1024

    def test_should_require_object_schema(self) -> None:
        """An array is no set of arguments."""
        with pytest.raises(InvalidInputError, match="object"):
            ToolDefinition.create("tool", "desc", {"type": "array", "items": {"type": "string"}})

    def test_should_accept_valid_schema(self) -> None:
        """With properties, descriptions and what is required."""
        schema = {
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "File path"},
                "content": {"type": "string", "description": "Content"},
            },
            "required": ["path", "content"],
        }
        made = ToolDefinition.create("write_file", "Writes a file", schema)
        assert made.parameters == {**schema, "additionalProperties": False}

    def test_should_default_strict_true(self) -> None:
        """For safety, and so the schema is closed."""
        assert TOOL.strict is True
        assert TOOL.parameters is not None
        assert TOOL.parameters["additionalProperties"] is False

    def test_should_allow_strict_false(self) -> None:
        """The schema stays as it is."""
        loose = ToolDefinition.create("tool", "desc", SCHEMA, strict=False)
        assert loose.strict is False
        assert loose.parameters == SCHEMA

    def test_create_from_type_should_generate_schema(self) -> None:
        """From the fields of a type; name and description may be its own."""
        made = ToolDefinition.from_type(WriteFileArgs, "write_file", "Write content to a file")
        assert (made.name, made.description) == ("write_file", "Write content to a file")
        assert made.parameters is not None
        assert made.parameters["type"] == "object"
        assert set(made.parameters["properties"]) == {"path", "content"}
        assert ToolDefinition.from_type(WriteFileArgs).description == "Write content to a file."

    def test_create_from_type_should_include_required(self) -> None:
        """The fields without a default."""
        made = ToolDefinition.from_type(WriteFileArgs, "write_file")
        assert made.parameters is not None
        assert made.parameters["required"] == ["path", "content"]

    def test_create_from_type_should_handle_optional_properties(self) -> None:
        """Those with one are not required."""
        made = ToolDefinition.from_type(ReadFileArgs, "read_file")
        assert made.parameters is not None
        assert made.parameters["required"] == ["path"]

    def test_should_serialize_to_json(self) -> None:
        """Name, description and parameters."""
        assert value_of(TOOL.to_json()) == {
            "type": "tool", "name": "read_file", "description": "Read a file",
            "parameters": {**SCHEMA, "additionalProperties": False}, "strict": True,
        }  # fmt: skip

    def test_should_serialize_strict_when_false(self) -> None:
        """It is a decision, not a default."""
        made = ToolDefinition.create("tool", "desc", SCHEMA, strict=False)
        assert value_of(made.to_json())["strict"] is False

    def test_should_deserialize_from_json(self) -> None:
        """What was written is read."""
        assert ToolDefinition.from_json(TOOL.to_json()).identical(TOOL)

    def test_should_match_openai_function_format(self) -> None:
        """The members of OpenAI's `function`, under its names; dialects project them further."""
        written = value_of(TOOL.to_json())
        assert {"name", "description", "parameters"} <= set(written)
        assert written["parameters"]["type"] == "object"

    def test_should_implement_value_equality(self) -> None:
        """And equal ones hash alike."""
        same = ToolDefinition.create("read_file", "Read a file", dict(SCHEMA))
        assert same == TOOL
        assert hash(same) == hash(TOOL)

    def test_should_detect_inequality(self) -> None:
        """Any of name, description, parameters and strict."""
        assert TOOL.replace(name="tool2") != TOOL
        assert TOOL.replace(description="other") != TOOL
        assert TOOL.replace(strict=False) != TOOL


class TestToolCallDelta:
    """`ToolCallDeltaTests`."""

    def test_should_be_immutable(self) -> None:
        """A changed copy is another delta."""
        delta = ToolCallDelta(0, "call_123", "read_file")
        assert (delta.replace(index=1).index, delta.index) == (1, 0)
        with pytest.raises(AttributeError):
            delta.index = 1  # type: ignore[misc]

    @pytest.mark.parametrize("index", [0, 1, 5, 10])
    def test_should_accept_valid_index_values(self, index: int) -> None:
        """`Should_Have_Index` too."""
        assert ToolCallDelta(index).index == index

    @pytest.mark.parametrize("index", [-1, -(2**40)])
    def test_should_refuse_a_negative_index(self, index: int) -> None:
        """FR-93; a copy is refused as well."""
        with pytest.raises(InvalidInputError, match="index must not be negative"):
            ToolCallDelta(index)
        with pytest.raises(InvalidInputError, match="index must not be negative"):
            ToolCallDelta(0).replace(index=index)

    def test_index_identifies_which_tool_call(self) -> None:
        """Two indexes, two calls."""
        accumulator = MessageAccumulator()
        accumulator.add(ToolCallDelta(0, name="read_file"))
        accumulator.add(ToolCallDelta(1, name="write_file"))
        assert [call.name for call in accumulator.message.tool_calls] == ["read_file", "write_file"]

    def test_should_allow_only_index(self) -> None:
        """A continuation may bring nothing."""
        delta = ToolCallDelta(0)
        assert (delta.id, delta.name, delta.arguments_delta) == (None, None, None)

    def test_first_delta_should_have_id_and_name(self) -> None:
        """Which later ones need not repeat."""
        accumulator = MessageAccumulator()
        accumulator.add(ToolCallDelta(0, "call_abc123", "write_file"))
        accumulator.add(ToolCallDelta(0, arguments_delta="{}"))
        (call,) = accumulator.message.tool_calls
        assert (call.id, call.name, call.raw_arguments) == ("call_abc123", "write_file", "{}")

    def test_subsequent_deltas_only_need_arguments_delta(self) -> None:
        """Partial JSON, kept as it is."""
        delta = ToolCallDelta(0, arguments_delta='{"pa')
        assert (delta.id, delta.name, delta.arguments_delta) == (None, None, '{"pa')

    def test_should_support_arguments_delta(self) -> None:
        """The empty text is a delta as well."""
        assert ToolCallDelta(0, arguments_delta='th": "test.cs').arguments_delta == 'th": "test.cs'
        assert ToolCallDelta(0, arguments_delta="").arguments_delta == ""
        with pytest.raises(InvalidInputError):
            ToolCallDelta(0, arguments_delta=5)  # type: ignore[arg-type]

    def test_should_support_accumulation_pattern(self) -> None:
        """Pieces make a whole."""
        accumulator = MessageAccumulator()
        accumulator.extend([
            ToolCallDelta(0, "call_xyz", "search", "{"),
            ToolCallDelta(0, arguments_delta='"query"'),
            ToolCallDelta(0, arguments_delta=': "test"}'),
        ])  # fmt: skip
        (call,) = accumulator.message.tool_calls
        assert (call.id, call.name, call.arguments) == ("call_xyz", "search", {"query": "test"})

    def test_should_handle_multiple_parallel_tool_calls(self) -> None:
        """Interleaved, each by its index."""
        accumulator = MessageAccumulator()
        accumulator.extend([
            ToolCallDelta(0, "call_1", "read_file"), ToolCallDelta(1, "call_2", "write_file"),
            ToolCallDelta(0, arguments_delta='{"path":"a.cs"}'),
            ToolCallDelta(1, arguments_delta='{"path":"b.cs"}'),
        ])  # fmt: skip
        paths = [call.argument("path") for call in accumulator.message.tool_calls]
        assert paths == ["a.cs", "b.cs"]

    def test_should_serialize_to_json(self) -> None:
        """Index, id, name and arguments."""
        delta = ToolCallDelta(0, "call_123", "read_file", '{"path":"')
        assert value_of(delta.to_json()) == {
            "type": "tool_call_delta", "index": 0, "id": "call_123", "name": "read_file",
            "arguments_delta": '{"path":"',
        }  # fmt: skip
        assert ToolCallDelta.from_json(delta.to_json()) == delta

    def test_should_omit_null_properties(self) -> None:
        """What is not there is not written."""
        assert value_of(ToolCallDelta(0).to_json()) == {"type": "tool_call_delta", "index": 0}


class TestSerializationCompatibility:
    """`SerializationCompatibilityTests`: the flat shape, which is the seed's JSON."""

    def test_should_match_ollama_format(self) -> None:
        """A plain message."""
        assert Message.user("Write hello world").to_dict(shape="flat") == {
            "role": "user", "content": "Write hello world",
        }  # fmt: skip

    def test_should_match_ollama_tool_call_format(self) -> None:
        """Arguments as an object; no content where there is none."""
        call = ToolCall.create("call_1", "write_file", {"path": "test.cs", "content": "code"})
        assert Message.assistant(tool_calls=[call]).to_dict(shape="flat") == {
            "role": "assistant",
            "tool_calls": [
                {
                    "id": "call_1", "name": "write_file",
                    "arguments": {"path": "test.cs", "content": "code"},
                }
            ],
        }  # fmt: skip

    def test_should_match_vllm_format(self) -> None:
        """An assistant's answer."""
        assert Message.assistant("Here is your code.").to_dict(shape="flat") == {
            "role": "assistant", "content": "Here is your code.",
        }  # fmt: skip

    def test_should_handle_provider_extensions(self) -> None:
        """Fields that nobody knows do no harm; unlike in the seed they are kept."""
        message = Message.from_dict({
            "role": "assistant", "content": "Hello", "provider_specific_field": "kept",
            "metadata": {"model": "test"},
        })  # fmt: skip
        assert (message.role, message.content) == (Role.ASSISTANT, "Hello")
        assert message.extra("provider_specific_field") == "kept"
        assert message.metadata == {"model": "test"}

    def test_should_roundtrip_all_types(self) -> None:
        """A whole conversation in the seed's JSON."""
        call = ToolCall.create("call_1", "write_file", {"path": "func.cs"})
        messages = Messages(
            Message.system("You are a coding assistant."),
            Message.user("Write a function"),
            Message.assistant(None, tool_calls=[call]),
            Message.tool("call_1", "File written"),
            Message.assistant("Done! The file has been written."),
        )
        restored = Messages.from_any(json.loads(json.dumps(messages.to_list(shape="flat"))))
        assert restored == messages
        assert restored[2].tool_calls[0].id == "call_1"
        assert restored[3].tool_call_id == "call_1"

    def test_should_read_the_manuals_examples(self) -> None:
        """The three messages of its `JSON Format Examples`, `content: null` included."""
        asked = {
            "role": "assistant", "content": None,
            "tool_calls": [
                {"id": "call_001", "name": "write_file", "arguments": {"path": "hello.cs"}}
            ],
        }  # fmt: skip
        answered = {"role": "tool", "tool_call_id": "call_001", "content": "File written"}
        read = Messages.from_any([{"role": "user", "content": "Write"}, asked, answered])
        assert read.map(lambda message: message.kind) == ["user", "tool_call", "tool_result"]
        assert read[1].content is None
        assert read[1].tool_calls[0].argument("path", str) == "hello.cs"


class TestReload:
    """Seed 001's `MessageArrayTest`: what is loaded is of the type that it was."""

    @pytest.mark.parametrize(("data", "kind"), [
        ({"role": "user", "content": [{"type": "text", "text": "Hello"}]}, "user"),
        ({"role": "assistant", "content": "",
          "tool_calls": [{"id": "123", "function": {"name": "f", "arguments": "{}"}}]},
         "tool_call"),
        ({"role": "assistant", "content": "Hello!"}, "assistant"),
        ({"role": "assistant", "content": "Hello!", "tool_calls": []}, "assistant"),
        ({"role": "system", "content": "You are helpful"}, "system"),
        ({"role": "developer", "content": "You are helpful"}, "developer"),
        ({"role": "tool", "tool_call_id": "1", "content": "result"}, "tool_result"),
    ])  # fmt: skip
    def test_role_and_content_tell_the_kind(self, data: dict[str, Any], kind: str) -> None:
        """By role, and within the assistant's by its tool calls; a reload keeps it."""
        message = Message.from_dict(data)
        assert message.kind == kind
        assert Message.from_json(message.to_json()).kind == kind
        assert Message.from_dict(message.to_dict()).kind == kind

    def test_mixed_kinds_reload_in_order(self) -> None:
        """A whole conversation, from its document and from its dicts."""
        call = ToolCall.create("1", "f")
        messages = Messages(
            Message.system("s"), Message.user("u"), Message.assistant("a"),
            Message.assistant(tool_calls=[call]), Message.tool("1", "r"),
        )  # fmt: skip
        kinds = ["system", "user", "assistant", "tool_call", "tool_result"]
        for back in (
            Messages.from_json(messages.to_json()),
            Messages.from_any(messages.to_list(shape="openai")),
        ):
            assert back.map(lambda message: message.kind) == kinds

    @pytest.mark.parametrize("data", [{"role": "robot", "content": "x"}, {"role": 5}])
    def test_unknown_discriminators_are_refused(self, data: dict[str, Any]) -> None:
        """Nobody guesses what a robot is."""
        with pytest.raises(InvalidInputError, match="unknown role"):
            Messages.from_any([data])


class TestPlainJson:
    """`ToolDefinitionTests.Should_Deserialize_From_Json`: JSON as the seed has it."""

    PLAIN: ClassVar[dict[str, Any]] = {
        "name": "execute_command",
        "description": "Execute a shell command",
        "parameters": {
            "type": "object",
            "properties": {"command": {"type": "string"}},
            "required": ["command"],
        },
        "strict": True,
    }

    def test_a_definition_is_read(self) -> None:
        """And checked like one made by hand; a document of ours is read as before."""
        made = ToolDefinition.from_json(json.dumps(self.PLAIN))
        assert (made.name, made.description) == ("execute_command", "Execute a shell command")
        assert made.strict is True
        assert made.parameters is not None
        assert made.parameters["required"] == ["command"]
        assert made == ToolDefinition.create(*list(self.PLAIN.values())[:3])
        assert ToolDefinition.from_json(made.to_json()) == made

    @pytest.mark.parametrize(("change", "problem"), [
        ({"name": "bad name"}, "may only contain"),
        ({"name": None}, "must be str"),
        ({"description": ""}, "must not be empty"),
        ({"parameters": {"type": "string"}}, "JSON Schema with"),
        ({"strictly": True}, "a field that is not one of name, description"),
        ({"strict": "yes"}, "strict must be bool"),
    ])  # fmt: skip
    def test_a_wrong_one_is_refused(self, change: dict[str, Any], problem: str) -> None:
        """The message names what is wrong."""
        with pytest.raises(InvalidInputError, match=problem):
            ToolDefinition.from_json(json.dumps({**self.PLAIN, **change}))

    @pytest.mark.parametrize("arguments", [{"path": "a"}, '{"path": "a"}'])
    def test_a_call_is_read(self, arguments: Any) -> None:
        """As in the messages of the seed, and as OpenAI nests it."""
        flat = {"name": "read-file", "arguments": arguments}
        for plain in ({"id": "call_1", **flat}, {"id": "call_1", "function": flat}):
            made = ToolCall.from_json(json.dumps(plain))
            assert (made.id, made.name, made.arguments) == ("call_1", "read-file", {"path": "a"})
            assert ToolCall.from_json(made.to_json()) == made

    @pytest.mark.parametrize("plain", [
        {"tool_call_id": "call_1", "content": "Here.", "is_error": True},
        {"toolCallId": "call_1", "result": "Here.", "isError": True},
    ])  # fmt: skip
    def test_a_result_is_read(self, plain: dict[str, Any]) -> None:
        """With the names of a message, or with the seed's."""
        made = ToolResult.from_json(json.dumps(plain))
        assert made == ToolResult.error("call_1", "Here.")
        assert ToolResult.from_json(made.to_json()) == made

    @pytest.mark.parametrize("kind", [ToolDefinition, ToolCall, ToolResult])
    def test_other_json_is_refused(self, kind: Any) -> None:
        """A list, a text, an object of something else, or of another version."""
        newer = json.dumps({"dragoman": 99, "kind": kind.__name__, "value": {}})
        for raw in ("[]", '"x"', "{}", "{", '{"description": "x"}', '{"id": "1"}', newer):
            with pytest.raises(InvalidInputError):
                kind.from_json(raw)
        for plain in ({"name": "a b", "id": "1"}, {"tool_call_id": "", "content": "x"},
                      {"tool_call_id": "1", "content": "x", "more": 1},
                      {"id": "1", "name": "f", "arguments": "[1]"}):  # fmt: skip
            with pytest.raises(InvalidInputError):
                kind.from_json(json.dumps(plain))


@pytest.mark.parametrize("data", [
    {"content": "x"}, {"role": None, "content": "x"}, {"parts": [{"type": "text", "text": "x"}]},
])  # fmt: skip
@pytest.mark.parametrize("read", [
    Message.from_dict, Message.from_any, lambda data: Messages.from_any([data]),
    lambda data: Messages.from_json(json.dumps([data])),
    lambda data: Message.from_json(json.dumps(data)),
])  # fmt: skip
def test_a_missing_discriminator_is_refused(read: Any, data: dict[str, Any]) -> None:
    """Seed 001: nobody guesses who said it."""
    with pytest.raises(InvalidInputError, match="must have a role"):
        read(data)


def test_a_second_system_message_is_refused_in_the_words_of_the_seed() -> None:
    """`Should_Reject_Second_System_Message`."""
    history = ConversationHistory([Message.system("System 1")], policy="strict")
    with pytest.raises(OrderError, match="a system message is already"):
        history.add(Message.system("System 2"))
