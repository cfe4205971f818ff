"""Message dicts: all shapes of the seeds are read, and each of ours is written."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import InvalidInputError
from dragoman.model.collection import Messages
from dragoman.model.content import AnyPart
from dragoman.model.jsontext import dumps, loads
from dragoman.model.media import Audio, File, Image, Video
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import (
    Citation,
    Opaque,
    Origin,
    Refusal,
    ServerToolCall,
    ServerToolResult,
    Text,
    Thinking,
)
from dragoman.model.roles import Role
from dragoman.model.shapes import Shape
from dragoman.model.store import MessageStore
from dragoman.model.tools import ToolCall, ToolResult, make_call, make_result
from dragoman.model.usage import FinishReason, Usage
from tests.model import strategies as some

pytestmark = pytest.mark.whole  # each row is another form in which somebody writes a message

CALL = ToolCall("c1", "weather", input={"city": "Basel"})
NESTED: dict[str, Any] = {
    "id": "c1",
    "type": "function",
    "function": {"name": "weather", "arguments": '{"city":"Basel"}'},
}
FLAT = {"id": "c1", "name": "weather", "arguments": {"city": "Basel"}}
URL = "https://example.com/cat.png"
SHAPES: tuple[Shape, ...] = ("openai", "content", "flat")


def _is_result_part(part: AnyPart) -> bool:
    return isinstance(part, (Text, Image, Video, Opaque))


@pytest.mark.parametrize(("data", "message"), [
    ({"role": "user", "content": "hi"}, Message.user("hi")),
    ({"role": "USER", "content": "hi"}, Message.user("hi")),
    ({"role": "human", "content": "hi"}, Message.user("hi")),
    ({"role": "model", "content": "hi"}, Message.assistant("hi")),
    ({"role": "", "content": "hi"}, Message.user("hi")),
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
    ({"role": "assistant", "content": "", "tool_calls": [{"id": "123"}]},
     make_message(Role.ASSISTANT, (Text(""), make_call("123", "")))),
    ({"role": "assistant", "tool_calls": [{"id": "123", "type": "function", "function": {}}]},
     make_message(Role.ASSISTANT, (make_call("123", ""),))),
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
    """The id that links a call to its result, and the model's text, are unchanged."""
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


@pytest.mark.parametrize("extras", [
    {"x": {"a": 1}},
    {"x": {"a": 1}, "y": 2, "gemini": {"b": {}}},
    {"canonical": 5},
    {"canonical": {"x": {"a": 1}, "canonical": {"b": 1}}},
    {"dialect_extras": {"x": {"a": 1}}},
])  # fmt: skip
def test_stored_extras_are_found_by_their_names(extras: dict[str, Any]) -> None:
    """Seed 000's are flat; objects among them are values like any other, again and again."""
    message = Message.from_dict({"role": "user", "content": "hi", "extras": extras})
    own = extras["canonical"] if isinstance(extras.get("canonical"), dict) else extras
    for _ in range(3):
        assert {name: message.extra(name) for name in own} == own
        assert message.extras == {"canonical": own}
        message = Message.from_dict(message.to_dict(shape="openai"))


_keys = some.words | st.sampled_from(["canonical", "extras", "dialect_extras", "role"])


@given(st.dictionaries(_keys, st.dictionaries(_keys, some.json_values, min_size=1, max_size=3)))
def test_extras_survive_the_openai_shape(extras: dict[str, Any]) -> None:
    """Those of dialects stay theirs, and those of none are found by their names."""
    written = Message.user("hi", extras=extras).to_dict(shape="openai")
    read = Message.from_dict(loads(dumps(written)))
    assert read.extras == extras
    own = extras.get("canonical", {})
    assert "canonical" in own or written.get("extras", {}) == read.extras.get("canonical", {})


def test_odd_extras_of_a_document_do_no_harm() -> None:
    """The canonical form is accepted as is; reading extras never fails."""
    odd = Message.from_json(
        b'{"dragoman":1,"kind":"Message","value":{"role":"user","extras":{"canonical":5}}}'
    )
    assert (odd.extra("x"), odd.has_extra("x")) == (None, False)
    assert odd.with_extra("x", 1).extra("x") == 1
    assert odd.to_dict(shape="openai")["role"] == "user"


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
    {"role": None, "content": "hi"},
    {"content": "hi"},
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
    {"role": "assistant", "tool_calls": [{}]},
    {"role": "assistant", "tool_calls": [{"id": "", "type": "function"}]},
    {"role": "assistant", "tool_calls": [{"id": "c", "name": 5}]},
    {"role": "assistant", "tool_calls": [{"id": 5, "name": "f"}]},
    {"role": "assistant", "tool_calls": [{"id": "c", "name": "f", "signature": 5}]},
    {"role": "assistant", "tool_calls": [{"id": "c", "name": "f", "arguments": [1]}]},
    {"role": "assistant", "tool_calls": [{"id": "c", "type": "custom", "name": "f"}]},
    {"role": "assistant", "function_call": "f"},
    {"role": "tool", "content": "hi"},
    {"role": "tool", "content": "hi", "tool_call_id": ""},
    {"role": "tool", "content": "hi", "tool_call_id": 5},
    {"role": "tool", "content": None, "tool_call_id": "c"},
    {"role": "tool", "content": "hi", "tool_call_id": "c", "tool_name": 5},
    {"role": "tool", "content": "hi", "tool_call_id": "c", "is_error": "yes"},
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
                      "dialect_extras": {"x": {"y": 1}}, "metadata": {"a": [1]}}),
    ("content", FULL, {"role": "user", "name": "Ann", "content": "hi", "_metadata": {"a": [1]}}),
    ("flat", FULL, {"role": "user", "name": "Ann", "content": "hi", "metadata": {"a": [1]}}),
    ("openai", Message.assistant(tool_calls=[CALL], id="m1"),
     {"id": "m1", "role": "assistant", "tool_calls": [NESTED]}),
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
    Message.tool(ToolResult.success("c1", "a"), ToolResult.success("c2", "b")),
    Message.user("so", ToolResult.success("c1", "a")),
])  # fmt: skip
def test_what_is_several_messages_in_a_shape_is_an_error(message: Message) -> None:
    """For one message; a conversation is written with the results split."""
    for shape in SHAPES:
        with pytest.raises(InvalidInputError, match=r"Messages\.to_list"):
            message.to_dict(shape=shape)
        listed = Messages(message).to_list(shape=shape)
        assert len(listed) == 2
        assert Messages.from_any(listed) == Messages(message).split_results()


ODD_CALLS = (
    make_call("c1", "f", raw='{"a": 1'),
    make_call("c2", "f", raw="[1]"),
    make_call("c3", "f", raw=""),
    make_call("c4", "mcp.read-file", input={"a": [1]}, signature="sig"),
    make_call("c5", "sql", raw="select {", kind="custom"),
)
THOUGHTS = (
    Thinking("hm", signature="sig"),
    Thinking("in short", form="summary"),
    Thinking(data="sealed", form="redacted", item_id="rs_1"),
    Thinking("both", "sealed"),
    Thinking(),
)
ODD_PARTS = (
    ServerToolCall("web_search", "s1", {"q": "x"}),
    ServerToolResult("web_search", "s1", [{"url": "x"}], is_error=False),
    Opaque("anthropic", {"type": "container_upload", "source": 1}),
    Opaque.custom("custom", {"widget": "map", "at": None, "_private": [1]}),
    Opaque.custom("custom", {"widget": "map"}).with_field("note", 1),
    Opaque("anthropic", {"type": "custom", "a": 1}),
    Opaque.custom("hologram", {"depth": 3}),
    Video(url=URL),
    Audio(url=URL, transcript="la"),
    Audio(data="", mime="audio/wav"),
    File(data="", name="empty.txt"),
    Refusal("no"),
)


@pytest.mark.parametrize("shape", ["openai", "content", "flat"])
@pytest.mark.parametrize("message", [
    Message.assistant(Thinking("hm"), "so"),
    Message.assistant(Thinking("hm"), tool_calls=[CALL]),
    Message.assistant(Thinking("hm")),
    *(Message.assistant(thought, "so", CALL) for thought in THOUGHTS),
    Message.assistant(*THOUGHTS, "so"),
    *(Message.assistant("so", call) for call in ODD_CALLS),
    Message.assistant(*ODD_CALLS),
    *(Message.assistant(part) for part in ODD_PARTS),
    Message.assistant("so", *ODD_PARTS, CALL),
    Message.user("see", Video(url=URL), Opaque.custom("custom", {"a": 1})),
    Message.tool(ToolResult("c1", "", {"a": [1, None]}, "weather", is_error=False)),
    Message.tool(ToolResult("c1", "", None)),
    Message.tool(ToolResult("c1", (Text("a"), Video(url=URL), Opaque("gemini", {"x": 1})))),
    Message.tool(ToolResult("c1", ())),
    make_message(Role.TOOL, (Text("no result"),)),
    make_message(Role.TOOL, (make_result("", "no id"),)),
    make_message(Role.TOOL, (ToolResult("c1", "named"),), name="Ann"),
])  # fmt: skip
def test_what_agents_produce_has_a_place_in_every_shape(message: Message, shape: Shape) -> None:
    """Nothing is refused, and all of it is read again as what it was, through JSON."""
    written = json.loads(json.dumps(message.to_dict(shape=shape)))
    read = Message.from_dict(written)
    assert read == message
    assert [(call.id, call.signature) for call in read.tool_calls] == [
        (call.id, call.signature) for call in message.tool_calls
    ]
    assert [result.call_id for result in read.tool_results] == [
        result.call_id for result in message.tool_results
    ]


def test_thinking_is_in_its_own_field() -> None:
    """`content` stays a plain text for those who don't know of it."""
    message = Message.assistant(Thinking("hm"), "so", id="m1")
    assert message.to_dict(shape="openai") == {
        "id": "m1", "role": "assistant", "content": "so", "reasoning_content": "hm",
    }  # fmt: skip
    signed = Message.assistant(Thinking("a", signature="s"), Thinking("b", form="summary"), "so")
    assert signed.to_dict(shape="flat") == {
        "role": "assistant", "content": "so", "reasoning_content": "a\nb",
        "reasoning_details": [
            {"format": "dragoman", "type": "reasoning.text", "text": "a", "signature": "s"},
            {"format": "dragoman", "type": "reasoning.summary", "summary": "b"},
        ],
    }  # fmt: skip


@pytest.mark.parametrize("details", [
    "x", [], ["x"], [{}], [{"type": 5}], [{"type": "song"}],
    [{"type": "reasoning.text", "text": "hm"}, {"type": "song"}],
    [{"type": "reasoning.text", "text": 5}],
    [{"type": "reasoning.text", "text": "hm", "signature": 5}],
    [{"type": "reasoning.text", "text": "something else"}],
])  # fmt: skip
def test_details_that_do_not_fit_are_kept_as_they_came(details: Any) -> None:
    """The text counts then; nothing is lost."""
    data = {"role": "assistant", "content": "so", "reasoning_content": "hm",
            "reasoning_details": details}  # fmt: skip
    read = Message.from_dict(data)
    assert read == Message.assistant(Thinking("hm"), "so")
    assert read.extra("reasoning_details") == details


def test_details_of_a_server_are_read_with_what_nobody_knows() -> None:
    """Without a text of their own, too; their further fields are written again."""
    detail = {"type": "reasoning.encrypted", "data": "x", "format": "google-gemini-v1", "index": 0}
    data = {"role": "assistant", "content": "so", "reasoning_details": [detail]}
    read = Message.from_dict(data)
    assert read == Message.assistant(Thinking(data="x", form="redacted"), "so")
    assert read.extras == {}
    assert read.to_dict(shape="openai")["reasoning_details"] == [detail]


def test_somebody_elses_data_is_no_result() -> None:
    """Only if the content is its JSON; otherwise it is an unknown field."""
    data = {"role": "tool", "tool_call_id": "c1", "content": "hi", "data": {"a": 1}}
    read = Message.from_dict(data)
    assert read == Message.tool("c1", "hi")
    assert read.extra("data") == {"a": 1}
    with pytest.raises(InvalidInputError):
        Message.from_dict({**data, "data": {1}})


@pytest.mark.parametrize("shape", SHAPES)
@given(messages=some.conversations)
def test_any_conversation_has_every_shape(messages: Messages, shape: Shape) -> None:
    """Whatever is in it, as JSON; and each entry is a message dict."""
    listed = messages.to_list(shape=shape, skip_empty=False)
    dumps(listed)
    assert Messages.is_messages(listed)
    store = MessageStore.from_messages(messages)
    assert len(store.to_flat(shape=shape)) <= len(listed)


_names = st.text(st.sampled_from("abc_-."), min_size=1, max_size=8)
_spoken: st.SearchStrategy[AnyPart] = st.one_of(
    st.builds(Text, some.texts), st.builds(Refusal, some.texts),
    st.builds(Opaque, some.words, some.json_values),
    st.builds(Opaque.custom, _names, some.json_objects),
    st.builds(ServerToolCall, _names, some.words, some.json_values),
    st.builds(ServerToolResult, _names, some.words, some.json_values, st.booleans()),
    st.builds(Image.from_bytes, st.binary(min_size=1, max_size=9), st.just("image/png")),
    st.builds(Video.from_bytes, st.binary(min_size=1, max_size=9), st.just("video/mp4")),
)  # fmt: skip
_thoughts = st.builds(
    Thinking, some.texts, st.none() | some.texts, st.sampled_from(["full", "summary", "redacted"]),
    signature=st.none() | some.texts,
)  # fmt: skip
_results = st.builds(
    ToolResult, some.words,
    some.texts | st.lists(_spoken.filter(_is_result_part), max_size=2).map(tuple),
    tool_name=st.none() | _names, is_error=st.booleans(),
)  # fmt: skip
_data = st.builds(ToolResult, some.words, st.just(""), some.json_values, st.none() | _names)
_turns: st.SearchStrategy[Message] = st.one_of(
    st.builds(
        lambda thought, said, calls: make_message(Role.ASSISTANT, (*thought, *said, *calls)),
        st.lists(_thoughts, max_size=2), st.lists(_spoken, max_size=3),
        st.lists(some.tool_calls, max_size=2),
    ),
    st.lists(_results | _data, min_size=1, max_size=3).map(
        lambda parts: make_message(Role.TOOL, tuple(parts))
    ),
    st.lists(_spoken, min_size=1, max_size=3).map(
        lambda parts: make_message(Role.USER, tuple(parts))
    ),
)  # fmt: skip


def _with_own_ids(turns: list[Message]) -> Messages:
    """The turns with an id of its own for each call, as agents see to."""
    numbers = itertools.count()
    return Messages.of(
        turn.replace_unchecked(parts=tuple(
            part.replace_unchecked(id=f"c{next(numbers)}") if isinstance(part, ToolCall) else part
            for part in turn.parts
        ))
        for turn in turns
    )  # fmt: skip


@given(st.lists(_turns, max_size=4).map(_with_own_ids))
def test_what_agents_produce_comes_back_from_the_default_shape(messages: Messages) -> None:
    """Thinking, text, calls, rounds of results and all else; only the results stand apart."""
    listed = loads(dumps(messages.to_list(skip_empty=False)))
    read = Messages.from_any(listed)
    apart = messages.split_results()
    assert [message.is_null or message == other
            for message, other in zip(apart, read, strict=True)] == [True] * len(apart)  # fmt: skip
    assert [m.id for m in apart if not m.tool_results] == [m.id for m in read if not m.tool_results]


def test_citations_survive_the_openai_shape() -> None:
    """A text with sources is written as a part."""
    message = Message.assistant(Text("so", (Citation(kind="url", url=URL),)))
    assert Message.from_dict(message.to_dict(shape="openai")) == message


def test_unknown_shapes_are_refused() -> None:
    """The error lists the known ones."""
    with pytest.raises(InvalidInputError, match="canonical, openai, content, flat"):
        FULL.to_dict(shape="xml")  # type: ignore[arg-type]
