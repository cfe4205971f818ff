"""Message dicts: every shape of the seeds read, and each of ours written."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from dragoman.errors import InvalidInputError
from dragoman.model.media import Image
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import Citation, Origin, Refusal, Text, Thinking
from dragoman.model.roles import Role
from dragoman.model.shapes import Shape
from dragoman.model.tools import ToolCall, ToolResult
from dragoman.model.usage import FinishReason, Usage
from tests.model import strategies as some

CALL = ToolCall("c1", "weather", input={"city": "Basel"})
NESTED: dict[str, Any] = {
    "id": "c1",
    "type": "function",
    "function": {"name": "weather", "arguments": '{"city":"Basel"}'},
}
FLAT = {"id": "c1", "name": "weather", "arguments": {"city": "Basel"}}
URL = "https://example.com/cat.png"


@pytest.mark.parametrize(("data", "message"), [
    ({"role": "user", "content": "hi"}, Message.user("hi")),
    ({"role": "USER", "content": "hi"}, Message.user("hi")),
    ({"role": "human", "content": "hi"}, Message.user("hi")),
    ({"role": "model", "content": "hi"}, Message.assistant("hi")),
    ({"content": "hi"}, Message.user("hi")),
    ({"role": "", "content": "hi"}, Message.user("hi")),
    ({"role": None, "content": "hi"}, Message.user("hi")),
    ({"role": "system", "content": "hi"}, Message.system("hi")),
    ({"role": "developer", "content": "hi"}, Message.developer("hi")),
    ({"role": "user", "content": ["Hello", "World"]}, Message.user("Hello", "World")),
    ({"role": "user", "content": [{"type": "text", "text": "hi"},
                                  {"type": "image_url", "image_url": {"url": URL}}]},
     Message.user("hi", Image(url=URL))),
    ({"role": "user", "content": {"type": "text", "text": "hi"}}, Message.user("hi")),
    ({"role": "user", "content": "hi", "name": "Ann"}, Message.user("hi", name="Ann")),
    ({"role": "user", "content": "hi", "name": ""}, Message.user("hi")),
    ({"role": "user", "content": "hi", "metadata": {"a": 1}},
     Message.user("hi", metadata={"a": 1})),
    ({"role": "user", "content": "hi", "_metadata": {"a": 1}},
     Message.user("hi", metadata={"a": 1})),
    ({"role": "user", "content": "hi", "metadata": []}, Message.user("hi")),
    ({"role": "user", "_metadata": {"a": 2}, "content": "hi", "metadata": {"a": 1}},
     Message.user("hi", metadata={"a": 1})),
    ({"role": "user", "name": "Ann"}, make_message(Role.USER, name="Ann")),
    ({"role": "user", "content": None}, Message.empty()),
    ({"role": "assistant", "tool_calls": [NESTED]}, Message.assistant(tool_calls=[CALL])),
    ({"role": "assistant", "content": None, "tool_calls": [NESTED]},
     Message.assistant(tool_calls=[CALL])),
    ({"role": "assistant", "content": "so", "tool_calls": [FLAT]},
     Message.assistant("so", tool_calls=[CALL])),
    ({"role": "assistant", "toolCalls": [FLAT]}, Message.assistant(tool_calls=[CALL])),
    ({"role": "assistant", "tool_calls": [{**FLAT, "arguments": '{"city":"Basel"}'}]},
     Message.assistant(tool_calls=[CALL])),
    ({"role": "assistant", "tool_calls": [CALL]}, Message.assistant(tool_calls=[CALL])),
    ({"role": "assistant", "tool_calls": [{"id": "c", "name": "now", "arguments": []}]},
     Message.assistant(tool_calls=[ToolCall.create("c", "now")])),
    ({"role": "assistant", "tool_calls": [{"id": "c", "name": "now"}]},
     Message.assistant(tool_calls=[ToolCall.create("c", "now")])),
    ({"role": "assistant", "content": "hi", "tool_calls": []}, Message.assistant("hi")),
    ({"role": "assistant", "content": "hi", "tool_calls": None}, Message.assistant("hi")),
    ({"role": "assistant", "tool_calls": [
        {"id": "c", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}]},
     Message.assistant(tool_calls=[ToolCall.create("c", "sql", "select 1", kind="custom")])),
    ({"role": "assistant", "content": None, "refusal": "no"}, Message.assistant(Refusal("no"))),
    ({"role": "assistant", "content": "so", "reasoning_content": "hm"},
     Message.assistant(Thinking("hm"), "so")),
    ({"role": "tool", "tool_call_id": "c1", "content": "sunny"}, Message.tool("c1", "sunny")),
    ({"role": "tool", "toolCallId": "c1", "content": "sunny"}, Message.tool("c1", "sunny")),
    ({"role": "tool", "tool_call_id": "c1", "content": ""}, Message.tool("c1", "")),
    ({"role": "tool", "tool_call_id": "c1", "content": "bad", "isError": True},
     Message.tool("c1", "bad", is_error=True)),
    ({"role": "tool", "tool_call_id": "c1", "content": "sunny", "toolName": "weather"},
     Message.tool("c1", "sunny", tool_name="weather")),
    ({"role": "function", "tool_call_id": "c1", "name": "weather", "content": "sunny"},
     Message.tool("c1", "sunny", tool_name="weather")),
    ({"role": "tool",
      "content": {"content": "sunny", "tool_call_id": "c1", "tool_name": "weather"}},
     Message.tool("c1", "sunny", tool_name="weather")),
    ({"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "sunny"}]},
     Message.tool("c1", "sunny")),
    ({"role": "tool", "content": [ToolResult.success("c1", "a"), ToolResult.success("c2", "b")]},
     Message.tool(ToolResult.success("c1", "a"), ToolResult.success("c2", "b"))),
    ({"role": "tool", "content": [{"type": "tool_result", "call_id": "c1", "content": "a"}]},
     Message.tool("c1", "a")),
])  # fmt: skip
def test_every_shape_of_a_message_is_read(data: dict[str, Any], message: Message) -> None:
    """OpenAI's, nested or flat calls, camelCase, both metadata keys, old and stored forms."""
    read = Message.from_dict(data)
    assert read == message
    assert read.kind == message.kind
    assert read.extras == {}
    assert Message.from_any(data) == message


def test_a_calls_id_and_text_survive_reading() -> None:
    """What pairs a call with its result, and what the model wrote, are as they were."""
    (call,) = Message.from_dict({"role": "assistant", "tool_calls": [NESTED]}).tool_calls
    assert (call.id, call.raw_arguments) == ("c1", '{"city":"Basel"}')


@pytest.mark.parametrize("key", ["function_call", "functionCall"])
def test_the_old_form_of_a_call_is_read(key: str) -> None:
    """It has no id on the wire, and gets one."""
    data = {"role": "assistant", key: {"name": "weather", "arguments": '{"city":"Basel"}'}}
    read = Message.from_dict(data)
    assert read.equal_ignoring_call_ids(Message.assistant(tool_calls=[CALL]))
    assert read.tool_calls[0].id
    assert read.extras == {}


def test_calls_without_ids_are_told_apart() -> None:
    """Each gets an id of its own, the same each time, and another in another message."""
    data = {"role": "assistant", "tool_calls": [{"name": "f"}, {"name": "f", "id": ""}]}
    first, second = Message.from_dict(data).tool_calls
    assert first.id != second.id
    assert Message.from_dict(data) == Message.from_dict(data)
    one, other = (Message.from_dict({**data, "id": id}) for id in ("m1", "m2"))
    assert len({call.id for call in (*one.tool_calls, *other.tool_calls)}) == 4


def test_id_and_time_are_read() -> None:
    """In both spellings; a message without id gets one."""
    data = {"role": "user", "content": "hi", "id": "m1", "createdAt": 5.0}
    read = Message.from_dict(data)
    assert (read.id, read.created_at) == ("m1", 5.0)
    assert Message.from_dict({"role": "user", "content": "hi"}).id.startswith("msg_")


@pytest.mark.parametrize("base", [
    {"role": "system", "content": "hi"},
    {"role": "user", "content": "hi"},
    {"role": "assistant", "content": "hi"},
    {"role": "assistant", "tool_calls": [NESTED]},
    {"role": "tool", "tool_call_id": "c1", "content": "hi"},
    {"role": "user", "parts": [{"type": "text", "text": "hi"}]},
])  # fmt: skip
def test_unknown_fields_are_kept_as_extras_of_no_dialect(base: dict[str, Any]) -> None:
    """For every kind of message, and they survive a reload."""
    message = Message.from_dict({**base, "mood": {"now": ["good"]}, "nothing": None})
    assert message.extras == {"canonical": {"mood": {"now": ["good"]}, "nothing": None}}
    assert message.extra("mood") == {"now": ["good"]}
    assert Message.from_dict(message.to_dict()).identical(message)
    assert Message.from_json(message.to_json()).identical(message)
    if message.kind != "tool_call":
        assert Message.from_dict(message.to_dict(shape="openai")).extras == message.extras


def test_given_extras_and_unknown_fields_are_merged() -> None:
    """Those of a dialect stay there; those of seed 000, keyed by nothing, belong to none."""
    data = {
        "role": "user", "content": "hi", "mood": "good",
        "extras": {"gemini": {"a": 1}, "canonical": {"b": 2}, "loose": 3},
    }  # fmt: skip
    assert Message.from_dict(data).extras == {
        "gemini": {"a": 1},
        "canonical": {"b": 2, "mood": "good", "loose": 3},
    }
    assert Message.from_dict({"role": "user", "content": "hi", "extras": []}).extras == {}


def test_unknown_fields_of_a_call_survive() -> None:
    """Some servers put a signature there, without which the call is not accepted back."""
    data = {**NESTED, "extra_content": {"google": {"thought_signature": "s"}},
            "function": {**NESTED["function"], "strange": 1}}  # fmt: skip
    message = Message.from_dict({"role": "assistant", "content": None, "tool_calls": [data]})
    assert message.to_dict(shape="openai")["tool_calls"] == [data]
    flat = {**FLAT, "note": "x"}
    message = Message.from_dict({"role": "assistant", "tool_calls": [flat]})
    assert message.to_dict(shape="flat")["tool_calls"] == [flat]


@pytest.mark.parametrize("data", [
    {"role": "robot", "content": "hi"},
    {"role": "user", "content": 5},
    {"role": "user", "content": [{"type": "hologram"}]},
    {"role": "user", "content": "hi", "name": 5},
    {"role": "user", "content": "hi", "id": 5},
    {"role": "user", "content": "hi", "metadata": "x"},
    {"role": "user", "content": "hi", "metadata": [1]},
    {"role": "user", "content": "hi", "extras": "x"},
    {"role": "user", "content": "hi", "extras": [1], "mood": 1},
    {"role": "user", "content": "hi", "created_at": "today"},
    {"role": "user", "content": "hi", "mood": {1}},
    {"role": "assistant", "tool_calls": "f"},
    {"role": "assistant", "tool_calls": ["f"]},
    {"role": "assistant", "tool_calls": [{"id": "c"}]},
    {"role": "assistant", "tool_calls": [{"id": 5, "name": "f"}]},
    {"role": "assistant", "tool_calls": [{"id": "c", "name": "f", "arguments": [1]}]},
    {"role": "assistant", "tool_calls": [{"id": "c", "type": "custom", "name": "f"}]},
    {"role": "assistant", "function_call": "f"},
    {"role": "tool", "content": "hi"},
    {"role": "tool", "content": "hi", "tool_call_id": ""},
    {"role": "tool", "content": "hi", "tool_call_id": 5},
    {"role": "tool", "content": None, "tool_call_id": "c"},
    {"role": "tool", "content": "hi", "tool_call_id": "c", "tool_name": 5},
    {"role": "tool", "content": "hi", "tool_call_id": "c", "is_error": "yes"},
    {"role": "user", "parts": [{"text": "hi"}]},
    {"role": "user", "parts": [{"type": "text", "text": "hi", "unknown": 1}]},
    {"role": "user", "parts": "hi"},
])  # fmt: skip
def test_what_is_no_message_is_refused(data: dict[str, Any]) -> None:
    """Whatever is wrong with a dict, the error is ours."""
    with pytest.raises(InvalidInputError):
        Message.from_dict(data)


def test_a_message_dict_is_a_mapping() -> None:
    """A list or a text is not a dict."""
    with pytest.raises(InvalidInputError, match="a message dict must be Mapping"):
        Message.from_dict(["hi"])  # type: ignore[arg-type]


# --- writing


@given(some.messages)
def test_the_canonical_dict_holds_everything(message: Message) -> None:
    """What is written as a dict reads as the very same message."""
    assert Message.from_dict(message.to_dict()).identical(message)


def test_the_canonical_dict_leaves_out_what_is_not_there() -> None:
    """Fields without a value are not written; the id always is."""
    message = Message.user("hi", id="m1")
    assert json.loads(json.dumps(message.to_dict())) == {
        "role": "user", "id": "m1", "parts": [{"type": "text", "text": "hi"}],
    }  # fmt: skip


FULL = Message.user(
    "hi", id="m1", name="Ann", metadata={"a": [1]}, extras={"x": {"y": 1}},
    origin=Origin(dialect="x"), usage=Usage(1), finish=FinishReason.STOP, created_at=5.0,
)  # fmt: skip


@pytest.mark.parametrize(("shape", "message", "written"), [
    ("openai", FULL, {"id": "m1", "role": "user", "name": "Ann", "content": "hi",
                      "extras": {"x": {"y": 1}}, "metadata": {"a": [1]}}),
    ("content", FULL, {"role": "user", "name": "Ann", "content": "hi", "_metadata": {"a": [1]}}),
    ("flat", FULL, {"role": "user", "name": "Ann", "content": "hi", "metadata": {"a": [1]}}),
    ("openai", Message.assistant(tool_calls=[CALL], id="m1"),
     {"id": "m1", "role": "assistant", "content": None, "tool_calls": [NESTED]}),
    ("content", Message.assistant(tool_calls=[CALL]),
     {"role": "assistant", "content": None, "tool_calls": [NESTED]}),
    ("flat", Message.assistant(tool_calls=[CALL]), {"role": "assistant", "tool_calls": [FLAT]}),
    ("flat", Message.assistant("so", tool_calls=[CALL]),
     {"role": "assistant", "content": "so", "tool_calls": [FLAT]}),
    ("openai", Message.tool("c1", "sunny", id="m1", tool_name="weather"),
     {"id": "m1", "role": "tool", "content": "sunny", "tool_call_id": "c1",
      "tool_name": "weather"}),
    ("flat", Message.tool("c1", "bad", is_error=True),
     {"role": "tool", "content": "bad", "tool_call_id": "c1", "is_error": True}),
    ("content", Message.user("a", "b"),
     {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}),
    ("flat", Message.user("a", "b"), {"role": "user", "content": "a\nb"}),
    ("content", Message.user(Image(url=URL)),
     {"role": "user", "content": [{"type": "image_url", "image_url": {"url": URL}}]}),
    ("content", Message.empty(), {"role": "user", "content": ""}),
    ("content", Message.user(""), {"role": "user", "content": ""}),
    ("content", Message.tool(ToolResult("c1", (Text("a"), Image(url=URL)))),
     {"role": "tool", "tool_call_id": "c1",
      "content": [{"type": "text", "text": "a"},
                  {"type": "image_url", "image_url": {"url": URL}}]}),
    ("flat", Message.assistant(tool_calls=[ToolCall.create("c", "sql", "x", kind="custom")]),
     {"role": "assistant",
      "tool_calls": [{"id": "c", "type": "custom", "name": "sql", "input": "x"}]}),
])  # fmt: skip
def test_each_shape_is_written_its_own_way(
    shape: Shape, message: Message, written: dict[str, Any]
) -> None:
    """Seed 000's with id, extras and metadata, seed 003's with `_metadata`, seed 004's flat."""
    assert message.to_dict(shape=shape) == written
    if message.text != "a\nb":  # flat joins texts, the others come back
        assert Message.from_dict(written) == message or message == Message.empty()


def test_custom_calls_are_nested_under_their_kind() -> None:
    """As OpenAI has them."""
    message = Message.assistant(tool_calls=[ToolCall.create("c", "sql", "x", kind="custom")])
    assert message.to_dict(shape="openai")["tool_calls"] == [
        {"id": "c", "type": "custom", "custom": {"name": "sql", "input": "x"}}
    ]


@pytest.mark.parametrize("shape", ["canonical", "openai", "content", "flat"])
def test_metadata_can_be_left_out(shape: Shape) -> None:
    """Of every shape; nothing else goes with it."""
    with_it, without = FULL.to_dict(shape=shape), FULL.to_dict(shape=shape, metadata=False)
    assert set(with_it) - set(without) == {"_metadata" if shape == "content" else "metadata"}
    assert without == {key: with_it[key] for key in without}


@pytest.mark.parametrize("shape", ["canonical", "openai", "content", "flat"])
def test_what_is_written_can_be_changed_without_harm(shape: Shape) -> None:
    """The dict is the caller's own: the message does not change with it."""
    written = FULL.to_dict(shape=shape)
    written["_metadata" if shape == "content" else "metadata"]["a"] = 2
    written["role"] = "tool"
    assert FULL.metadata == {"a": [1]}


@pytest.mark.parametrize("message", [
    Message.assistant(Thinking("hm"), "so"),
    Message.tool(ToolResult.success("c1", "a"), ToolResult.success("c2", "b")),
    Message.user("so", ToolResult.success("c1", "a")),
])  # fmt: skip
def test_what_a_shape_cannot_say_is_an_error(message: Message) -> None:
    """Only the canonical form holds everything; the others say so."""
    for shape in ("openai", "content", "flat"):
        with pytest.raises(InvalidInputError):
            message.to_dict(shape=shape)


def test_citations_survive_the_openai_shape() -> None:
    """A text with sources is written as a part."""
    message = Message.assistant(Text("so", (Citation(kind="url", url=URL),)))
    assert Message.from_dict(message.to_dict(shape="openai")) == message


def test_unknown_shapes_are_refused() -> None:
    """The error lists the known ones."""
    with pytest.raises(InvalidInputError, match="canonical, openai, content, flat"):
        FULL.to_dict(shape="xml")  # type: ignore[arg-type]
