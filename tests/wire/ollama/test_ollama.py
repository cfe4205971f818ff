"""Requests and responses of Ollama's native API."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import UNSET

from dragoman import (
    Audio,
    File,
    Image,
    Message,
    Refusal,
    Request,
    Response,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolDefinition,
    ToolResult,
    Video,
)
from dragoman.errors import WireError
from dragoman.model.catalogue import ModelInfo
from dragoman.model.content import AnyPart
from dragoman.model.messages import make_message
from dragoman.model.parts import CacheHint, Citation, Opaque, Origin, ServerToolCall
from dragoman.model.requests import Output, Sampling, State, ThinkingConfig
from dragoman.model.responses import Choice
from dragoman.model.tools import ServerTool, ToolChoice, make_call, make_definition
from dragoman.model.usage import FinishReason, Usage
from dragoman.wire.flags import StateFlags, TurnFlags
from dragoman.wire.ollama.codec import DIALECT
from dragoman.wire.ollama.services import encode_model
from dragoman.wire.target import Target
from tests.wire.test_matrix_random import touched

ELSEWHERE = Origin(dialect="anthropic")
PNG = "iVBORw0KGgo="
WAV = "UklGRiQAAABXQVZFZm10IBAAAAA="
LOOSE = Target(dialect="ollama", turns=TurnFlags(pairs_results=False), state=StateFlags(fields=()))


def request(*messages: Any, **fields: Any) -> dict[str, Any]:
    """A body with these messages."""
    return {"model": "m", "messages": list(messages), "stream": False, **fields}


def response(message: Any = None, **fields: Any) -> dict[str, Any]:
    """A body with this message."""
    said = {"role": "assistant", "content": "Hi"} if message is None else message
    return {
        "model": "m", "created_at": "2025-01-01T00:00:00Z", "message": said, "done": True,
        "done_reason": "stop", **fields,
    }  # fmt: skip


def call(name: str = "f", arguments: Any = None, **fields: Any) -> dict[str, Any]:
    """A call; without an `id` field it has none."""
    return {**fields, "function": {"name": name, "arguments": arguments or {}}}


def again(body: dict[str, Any]) -> Any:
    """A request, decoded and encoded."""
    return plain(DIALECT.encode_request(DIALECT.decode_request(body)).body)


def plain(value: Any) -> Any:
    """The body as plain JSON that distinguishes 1 from 1.0."""
    return json.loads(json.dumps(value, default=dict), parse_float=str)


def encoded(*messages: Message, **fields: Any) -> tuple[Any, dict[str, str]]:
    """The encoded messages, and the losses by path."""
    made = DIALECT.encode_request(Request(model="m", messages=messages, **fields), LOOSE)
    return plain(made.body["messages"]), {loss.path: loss.reason for loss in made.losses}


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"model": "m"},
        {"model": "m", "messages": None, "stream": None, "tools": None, "options": None},
        request(tools=[], options={}, format="", think=None, keep_alive=-1),
        request(options={"num_predict": -1, "top_k": 0, "stop": "END", "temperature": "hot"}),
        request(options={"temperature": 1, "top_p": 1.0, "seed": 0, "stop": [], "numa": True}),
        request(think="very", format="xml", logprobs=1, truncate=False, shift=True),
        request({"role": "user"}, {"role": "user", "content": None, "images": []}),
        request({"role": "USER", "content": "Hi"}, {"role": "developer", "content": "x"}),
        request({"role": "user", "content": "", "images": [PNG]}, {"role": "user", "content": ""}),
        request({"role": "user", "content": "x", "images": [1], "name": "Ann", "odd": {"a": None}}),
        request({"role": "Assistant", "content": "x", "images": None, "thinking": None}),
        request({"role": "assistant"}, {"role": "assistant", "content": "", "tool_calls": []}),
        request({"role": "assistant", "content": "a", "thinking": "b", "images": [PNG]}),
        request({"role": "assistant", "content": "", "tool_calls": [{"odd": 1}, "x", None]}),
        request(
            {"role": "assistant", "content": "", "tool_calls": [
                {"id": "a", "function": {"index": 0, "name": "f"}, "odd": None},
                {"id": "", "type": "function", "function": {"name": "g", "arguments": {"x": 1}}}]},
            {"role": "tool", "content": "1", "tool_call_id": "a"},
            {"role": "tool", "content": "2", "tool_name": "g", "odd": 1},
        ),
        request(tools=[
            {"type": "function", "function": {"name": "f", "description": None, "strict": True}},
            {"function": {"name": "g", "parameters": {"type": "object"}}, "items": 1},
            {"type": "search"}, {"type": "other", "function": {"name": "h"}},
        ]),
    ],
)  # fmt: skip
def test_unusual_requests_round_trip(body: dict[str, Any]) -> None:
    """Fields that the server ignores or interprets differently round-trip."""
    assert again(body) == plain(body)


# --- streaming, W101


@pytest.mark.parametrize(
    ("body", "meant"), [({}, True), ({"stream": None}, True), ({"stream": False}, False)]
)
def test_streaming_is_the_default(body: dict[str, Any], *, meant: bool) -> None:
    """Without `stream` the request streams, and the field stays absent when written."""
    read = DIALECT.decode_request({"model": "m", "messages": [], **body})
    assert read.stream is meant
    assert again({"model": "m", "messages": [], **body}).get("stream", ...) == body.get(
        "stream", ...
    )


def test_foreign_request_is_not_streamed_by_default() -> None:
    """In other dialects the default is not to stream, so `stream: false` is written."""
    assert DIALECT.encode_request(Request(model="m")).body["stream"] is False
    assert DIALECT.encode_request(Request(model="m", stream=True)).body["stream"] is True


# --- calls and results, W102 and W103


def test_text_arguments_are_sent_as_an_object() -> None:
    """In an edited message, arguments given as text become an object, as a repair."""
    body = request({"role": "assistant", "content": "",
                    "tool_calls": [call("f", '{"x":1}', id="a")]},
                   {"role": "tool", "content": "1", "tool_call_id": "a"})  # fmt: skip
    assert again(body) == plain(body)
    assert DIALECT.encode_request(DIALECT.decode_request(body), DIALECT.target).repairs == ()
    encoded = DIALECT.encode_request(touched(DIALECT.decode_request(body), "ollama"))
    made, _ = encoded.body["messages"]
    assert made["tool_calls"][0]["function"]["arguments"] == {"x": 1}
    assert [(each.path, each.rule, each.action) for each in encoded.repairs] == [
        ("messages[0].parts[0]", "W102", "retyped")
    ]


@pytest.mark.parametrize(
    ("made", "arguments", "is_lost"),
    [
        (ToolCall("a", "f", ""), {}, False),
        (ToolCall("a", "f", '{"x": [1]}'), {"x": [1]}, False),
        (make_call("a", "f", '{"x": '), {"input": '{"x": '}, True),
        (make_call("a", "f", "[1]"), {"input": "[1]"}, True),
        (ToolCall("a", "f", "free text", kind="custom"), {"input": "free text"}, True),
    ],
)
def test_arguments_are_always_an_object(made: ToolCall, arguments: Any, *, is_lost: bool) -> None:
    """Arguments that aren't an object are wrapped in one, which is reported (I6)."""
    spoken = Request(model="m", messages=(Message(Role.ASSISTANT, (made,)),))
    sent = DIALECT.encode_request(spoken)
    message = sent.body["messages"][0]
    reported = {loss.path for loss in sent.losses}
    reported |= {repair.path for repair in sent.repairs if repair.action == "retyped"}
    assert message["tool_calls"] == [{"id": "a", "function": {"name": "f", "arguments": arguments}}]
    assert ("messages[0].parts[0]" in reported) is is_lost


def test_results_have_tool_name_and_call_id() -> None:
    """A result has the tool's name and the call's id, for old and new servers (W103)."""
    messages, losses = encoded(
        Message(Role.ASSISTANT, (ToolCall("a", "f", input={}), ToolCall("b", "g", input={}))),
        Message(Role.TOOL, (ToolResult("a", "1"), ToolResult("b", "2", tool_name="g"))),
    )
    assert messages[1:] == [
        {"role": "tool", "content": "1", "tool_name": "f", "tool_call_id": "a"},
        {"role": "tool", "content": "2", "tool_name": "g", "tool_call_id": "b"},
    ]
    assert losses == {}


def test_results_of_a_tool_are_in_call_order() -> None:
    """Servers without ids match results by name and order (W103)."""
    calls = (
        ToolCall("a", "f", input={}),
        ToolCall("b", "g", input={}),
        ToolCall("c", "f", input={}),
    )
    asked = Message(Role.ASSISTANT, calls)

    def order(*ids: str) -> list[str]:
        results = [Message(Role.TOOL, (ToolResult(i, i),)) for i in ids]
        body = DIALECT.encode_request(Request(model="m", messages=(asked, *results))).body
        return [m["tool_call_id"] for m in body["messages"][1:]]

    assert order("b", "a", "c") == ["b", "a", "c"]
    assert order("c", "b", "a") == ["a", "b", "c"]


@pytest.mark.parametrize(
    "results",
    [
        [{"tool_name": "f"}, {"tool_name": "g"}, {"tool_name": "f"}],
        [{"tool_name": "g"}, {"tool_name": "f"}, {"tool_name": "f"}],
        [{}, {}, {}],
    ],
)
def test_calls_without_ids_are_paired_by_name_and_order(results: list[dict[str, Any]]) -> None:
    """Every call gets a unique id, and every result matches its call (I5)."""
    body = request(
        {"role": "assistant", "content": "", "tool_calls": [call("f"), call("g"), call("f")]},
        *({"role": "tool", "content": "x", **result} for result in results),
    )
    read = DIALECT.decode_request(body)
    calls = read.messages[0].tool_calls
    ids = [call.id for call in calls]
    names = [{call.id: call.name for call in calls}[r.call_id]
             for m in read.messages for r in m.tool_results]  # fmt: skip
    answered = [r.call_id for m in read.messages for r in m.tool_results]
    assert len(set(ids)) == 3
    assert all(call.wire_id is None for call in calls)
    assert sorted(answered) == sorted(ids)
    if "tool_name" in results[0]:
        assert names == [result["tool_name"] for result in results]
    assert [i for i in answered if i in (ids[0], ids[2])] == [ids[0], ids[2]]
    assert again(body) == plain(body)


def test_repeated_call_ids_become_unique() -> None:
    """Servers number calls from zero in each turn; the wire ids round-trip (I5)."""
    turn = [
        {"role": "assistant", "content": "", "tool_calls": [call("f", id="0")]},
        {"role": "tool", "content": "x", "tool_name": "f", "tool_call_id": "0"},
    ]
    read = DIALECT.decode_request(request(*turn, *turn))
    first, second = (c for m in read.messages for c in m.tool_calls)
    assert first.id == "0"
    assert second.id != "0"
    assert second.wire_id == "0"
    assert [r.call_id for m in read.messages for r in m.tool_results] == [first.id, second.id]
    assert again(request(*turn, *turn)) == plain(request(*turn, *turn))


def test_foreign_call_is_sent_with_its_model_id() -> None:
    """A foreign call without a wire id is sent with its id in the model."""
    made = ToolCall("a", "f", input={}, wire_id=None, origin=ELSEWHERE)
    (message, result), _ = encoded(
        Message(Role.ASSISTANT, (made,)), Message(Role.TOOL, (ToolResult("a", "x"),))
    )
    assert message["tool_calls"][0]["id"] == result["tool_call_id"] == "a"


def test_results_come_before_the_text_of_a_user_message() -> None:
    """A user message with results becomes tool messages, then the user's text."""
    message = Message(Role.USER, (Text("and?"), ToolResult("a", "1"), Text("well?")))
    messages, losses = encoded(message)
    assert [m["role"] for m in messages] == ["tool", "user"]
    assert messages[1]["content"] == "and?\nwell?"
    assert losses == {}


def test_text_in_a_tool_message_becomes_a_user_message() -> None:
    """Text beside a result is sent as a user message."""
    messages, _ = encoded(make_message(Role.TOOL, (ToolResult("a", "1"), Text("note"))))
    assert messages[1] == {"role": "user", "content": "note"}


def test_unsupported_result_content_is_a_loss() -> None:
    """The error flag and files are losses; data is sent as JSON text."""
    result = ToolResult(
        "a", (Text("one"), Image(data=PNG), File(url="https://x/a.pdf"), Text("two")), is_error=True
    )
    (message,), losses = encoded(Message(Role.TOOL, (result,)))
    assert (message["content"], message["images"]) == ("one\ntwo", [PNG])
    path = "messages[0].parts[0]"
    assert set(losses) == {f"{path}.is_error", f"{path}.content[2]"}
    (message,), _ = encoded(Message(Role.TOOL, (ToolResult("a", "", {"x": 1}),)))
    assert message["content"] == '{"x":1}'


# --- content, W105


def test_texts_are_joined() -> None:
    """A user's texts are joined by newlines, an assistant's without a separator."""
    messages, losses = encoded(
        Message(Role.USER, (Text("one"), Image(data=PNG), Text("two"))),
        Message(Role.ASSISTANT, (Text("Ye"), Text("s."))),
        system=(Text("a"), Text("b")),
    )
    assert messages == [
        {"role": "system", "content": "a\nb"},
        {"role": "user", "content": "one\ntwo", "images": [PNG]},
        {"role": "assistant", "content": "Yes."},
    ]
    assert losses == {}


@pytest.mark.parametrize(
    ("part", "sent"),
    [
        (Image(data=PNG), PNG),
        (Image.from_url(f"data:image/png;base64,{PNG}"), PNG),
        (Image(data="-_-_"), "+/+/"),
        (Image(data="AAAAA-8"), "AAAAA+8="),
        (Audio(data=WAV), WAV),
        (Audio(data="AAAA", mime="audio/mpeg"), "AAAA"),
        (Audio(data="AAAA", mime="audio/x-wav"), "AAAA"),
        (Audio(data=WAV, mime="audio/odd"), WAV),
        (Audio(data="AAAA", mime="audio/flac"), None),
        (Image(url="https://example.com/a.png"), None),
        (Image(file_id="file_1"), None),
        (Audio(url="https://example.com/a.wav"), None),
        (Video(data="AAAA"), None),
        (File(data="AAAA", mime="application/pdf"), None),
        (Opaque("anthropic", {"type": "x"}), None),
    ],
)
def test_media_are_base64_or_a_loss(part: AnyPart, sent: str | None) -> None:
    """Images and audio are sent inline as base64; other media are losses."""
    (message,), losses = encoded(Message(Role.USER, (Text("x"), part)))
    assert message.get("images") == (None if sent is None else [sent])
    assert ("messages[0].parts[1]" in losses) is (sent is None)


def test_image_url_is_replaced_by_text() -> None:
    """An image URL is replaced by a text and reported as a loss."""
    message = Message.user(Image(url="https://example.com/a.png"))
    made = DIALECT.encode_request(Request(model="m", messages=(message,)))
    assert made.body["messages"][0]["content"] == "(image that can't be shown here)"
    assert [loss.path for loss in made.losses] == ["messages[0].parts[0]"]


@pytest.mark.parametrize(
    ("wire", "found"),
    [
        (PNG, Image(data=PNG, mime="image/png")),
        (WAV, Audio(data=WAV, mime="audio/wav")),
        (f"data:image/png;base64,{PNG}", Image(data=PNG, mime="image/png")),
        ("https://example.com/a.png", Image(url="https://example.com/a.png")),
        ("????", Image(data="????")),
    ],
)
def test_media_type_is_detected_from_the_data(wire: str, found: AnyPart) -> None:
    """`images` may contain audio; URLs are decoded too, although the server rejects them."""
    read = DIALECT.decode_request(request({"role": "user", "content": "", "images": [wire]}))
    assert read.messages[0].parts == (found,)


# --- thinking, W106


@pytest.mark.parametrize(
    ("part", "thinking", "is_lost"),
    [
        (Thinking("Hm."), "Hm.", False),
        (Thinking("Hm.", origin=Origin(dialect="ollama")), "Hm.", False),
        (Thinking("Hm.", origin=Origin(dialect="openai-chat")), None, True),
        (Thinking("Hm.", signature="s", origin=ELSEWHERE), None, True),
        (Thinking("", "sealed", "redacted", origin=ELSEWHERE), None, True),
    ],
)
def test_thinking_is_sent_back_to_its_origin(
    part: Thinking, thinking: str | None, *, is_lost: bool
) -> None:
    """Thinking of this dialect or of unknown origin is sent; foreign thinking is a loss."""
    (message,), losses = encoded(Message(Role.ASSISTANT, (part, Text("x"))))
    assert message.get("thinking") == thinking
    assert ("messages[0].parts[0]" in losses) is is_lost


def test_several_thinking_parts_are_joined() -> None:
    """Separate thinking parts are joined by newlines, the server's own without a separator."""
    thoughts = (Thinking("one"), Thinking("two"))
    (message,), _ = encoded(Message(Role.ASSISTANT, thoughts))
    assert message["thinking"] == "one\ntwo"
    (message,), _ = encoded(Message(Role.ASSISTANT, thoughts, origin=Origin(dialect="ollama")))
    assert message["thinking"] == "onetwo"


def test_message_that_becomes_empty_is_left_out() -> None:
    """An answer with only encrypted thinking is left out."""
    messages, losses = encoded(Message.user("Hi"), Message(Role.ASSISTANT, (Thinking("", "x"),)))
    assert len(messages) == 1
    assert set(losses) == {"messages[1].parts[0]"}


@pytest.mark.parametrize(
    ("config", "think", "lost"),
    [
        (ThinkingConfig(enabled=True), True, set()),
        (ThinkingConfig(enabled=False), False, set()),
        (ThinkingConfig(effort="none"), False, set()),
        (ThinkingConfig(effort="low"), "low", set()),
        (ThinkingConfig(effort="max"), "max", set()),
        (ThinkingConfig(effort="minimal"), "low", set()),
        (ThinkingConfig(effort="xhigh"), "max", set()),
        (ThinkingConfig(effort="odd"), True, {"thinking.effort"}),
        (ThinkingConfig(budget=9), True, {"thinking.budget"}),
        (ThinkingConfig(enabled=True, visible=True, summary="auto"), True, set()),
        (ThinkingConfig(enabled=True, visible=False, summary="concise"), True,
         {"thinking.visible", "thinking.summary"}),
        (ThinkingConfig(), None, set()),
    ],
)  # fmt: skip
def test_thinking_settings(config: ThinkingConfig, think: Any, lost: set[str]) -> None:
    """Only on, off and effort are supported; other thinking settings are losses."""
    made = DIALECT.encode_request(Request(model="m", thinking=config), LOOSE)
    assert made.body.get("think") == think
    assert {loss.path for loss in made.losses} == lost


# --- settings, W107 and W108


def test_sampling_is_written_to_the_options() -> None:
    """Sampling settings are options here, some under another name."""
    sampling = Sampling(
        max_tokens=9, temperature=0.5, top_p=0.9, top_k=5, stop=("a", "b"), seed=7,
        presence_penalty=0.1, frequency_penalty=0.2, logprobs=True, top_logprobs=3, choices=2,
    )  # fmt: skip
    made = DIALECT.encode_request(Request(model="m", sampling=sampling))
    assert made.body["options"] == {
        "temperature": 0.5, "top_p": 0.9, "presence_penalty": 0.1, "frequency_penalty": 0.2,
        "num_predict": 9, "top_k": 5, "seed": 7, "stop": ["a", "b"],
    }  # fmt: skip
    assert (made.body["logprobs"], made.body["top_logprobs"]) == (True, 3)
    assert [loss.path for loss in made.losses] == ["sampling.choices"]
    read = DIALECT.decode_request(made.to_bytes()).sampling
    assert read == sampling.replace(choices=None)


def test_unknown_options_round_trip() -> None:
    """Unknown options are kept when others are edited, and not sent in other dialects."""
    body = request(options={"num_ctx": 8192, "temperature": 1, "mirostat": 2})
    read = DIALECT.decode_request(body)
    changed = read.replace(sampling=read.sampling.replace(temperature=0.1, seed=1))
    assert plain(DIALECT.encode_request(changed).body["options"]) == plain(
        {"num_ctx": 8192, "temperature": 0.1, "mirostat": 2, "seed": 1}
    )


@pytest.mark.parametrize(
    ("output", "form", "lost"),
    [
        (Output(), None, set()),
        (Output(format="json"), "json", set()),
        (Output(format="schema", schema={"type": "object"}), {"type": "object"}, set()),
        (Output(format="schema", schema={"a": 1}, name="n", description="d"),
         {"a": 1, "title": "n", "description": "d"}, set()),
        (Output(format="json", name="n", description="d"), "json",
         {"output.name", "output.description"}),
    ],
)  # fmt: skip
def test_output_format(output: Output, form: Any, lost: set[str]) -> None:
    """JSON without or with a schema is written to `format`."""
    made = DIALECT.encode_request(Request(model="m", output=output))
    assert made.body.get("format") == form
    assert {loss.path for loss in made.losses} == lost


def test_unsupported_content_is_a_loss() -> None:
    """Names, cache hints, citations, refusals and state are each reported as a loss."""
    messages = (
        Message.user("Hi").replace(name="Ann"),
        Message(
            Role.ASSISTANT,
            (
                Text("a", (Citation(kind="url"),), cache=CacheHint(), signature="s"),
                Refusal("No."),
                ServerToolCall("search"),
                Opaque("gemini", {}),
                ToolCall("a", "f", input={}, signature="s"),
            ),
        ),
    )
    written, losses = encoded(*messages, state=State(store=True))
    assert written[1]["content"] == "aNo."
    first = "messages[1].parts[0]"
    assert set(losses) == {
        "messages[0].name", f"{first}.cache", f"{first}.signature", f"{first}.citations",
        "messages[1].parts[1]", "messages[1].parts[2]", "messages[1].parts[3]",
        "messages[1].parts[4].signature", "state.store",
    }  # fmt: skip


# --- tools

TOOLS = (
    ToolDefinition.create("f", "F.", strict=False),
    ToolDefinition.create("g", "G.", strict=False),
)


@pytest.mark.parametrize(
    ("choice", "names", "lost"),
    [
        (None, ["f", "g"], set()),
        (ToolChoice("auto"), ["f", "g"], set()),
        (ToolChoice("none"), [], {"tools[0]", "tools[1]"}),
        (ToolChoice("allowed", ("g",)), ["g"], {"tools[0]"}),
        (ToolChoice("allowed", ("g",), is_required=True), ["g"], {"tools[0]"}),
        (ToolChoice("required"), ["f", "g"], set()),
        (ToolChoice("named", ("f",)), ["f", "g"], set()),
        (ToolChoice("auto", parallel=False), ["f", "g"], {"tool_choice.parallel"}),
    ],
)
def test_tool_choice_selects_the_tools_sent(
    choice: ToolChoice | None, names: list[str], lost: set[str]
) -> None:
    """Tools that must not be called aren't sent; a required call is an output schema."""
    made = DIALECT.encode_request(Request(model="m", tools=TOOLS, tool_choice=choice))
    assert [tool["function"]["name"] for tool in made.body.get("tools", [])] == names
    assert {loss.path for loss in made.losses} == lost


OPENAIS = Origin(dialect="openai-chat")
SAYS = 'The value takes one of these forms: [{"properties":{"a":{"$ref":"#/$defs/A"}}}].'


@pytest.mark.parametrize(
    ("parameters", "sent", "is_lost"),
    [
        (None, {"type": "object", "properties": {}}, False),
        ({}, {"type": "object"}, False),
        ({"type": "object", "properties": {"a": {"type": ["string", "null"], "enum": ["x", None]}}},
         {"type": "object", "properties": {"a": {"type": ["string", "null"], "enum": ["x", None]}}},
         False),
        ({"type": "object", "properties": {"a": True, "b": {"anyOf": [True, {"type": 1}]}}},
         {"type": "object", "properties": {"a": {}, "b": {"anyOf": [{}]}}}, True),
        ({"type": "object", "properties": [], "required": True, "description": 1},
         {"type": "object"}, True),
        ({"type": "object", "properties": {"a": {"properties": {"b": False}}}, "x-odd": True},
         {"type": "object", "properties": {"a": {"properties": {}, "description": "No `b`."}}},
         True),
        ({"type": "object", "$defs": {"A": {"type": "integer", "minimum": 3}},
          "anyOf": [{"properties": {"a": {"$ref": "#/$defs/A"}}}, {"type": "null"}]},
         {"type": "object", "description": SAYS,
          "properties": {"a": {"type": "integer", "description": "At least 3."}}}, True),
    ],
)  # fmt: skip
def test_schemas_are_adapted_to_the_server(parameters: Any, sent: Any, *, is_lost: bool) -> None:
    """What the server can't parse is removed from schemas, since the request would fail."""
    tool = make_definition("f", "F.", parameters, origin=OPENAIS)
    made = DIALECT.encode_request(Request(model="m", tools=(tool,)))
    assert plain(made.body["tools"][0]["function"]["parameters"]) == plain(sent)
    assert bool(made.losses) is is_lost
    assert DIALECT.check(made.body) == []


def test_other_tools_than_functions() -> None:
    """A free-text tool gets one argument; another provider's server tool is a loss."""
    tools = (
        ToolDefinition("shell", "Runs.", kind="custom", origin=OPENAIS),
        ServerTool("web_search", "anthropic"),
        make_definition("f", "F.", {"type": "object"}, strict=True, cache=CacheHint()),
    )
    made = DIALECT.encode_request(Request(model="m", tools=tools))
    shell, function = (tool["function"] for tool in made.body["tools"])
    assert list(shell["parameters"]["properties"]) == ["input"]
    assert function["name"] == "f"
    assert {loss.path for loss in made.losses} == {
        "tools[0]", "tools[1]", "tools[2].strict", "tools[2].cache",
    }  # fmt: skip


# --- responses, W104


@pytest.mark.parametrize(
    ("body", "finish"),
    [
        (response(), FinishReason.STOP),
        (response(done_reason="length"), FinishReason.LENGTH),
        (response(done_reason="load"), FinishReason.OTHER),
        (response({"role": "assistant", "content": "", "tool_calls": [call()]}),
         FinishReason.TOOL_CALLS),
        (response({"role": "assistant", "content": "", "tool_calls": [call()]},
                  done_reason="length"), FinishReason.LENGTH),
        ({k: v for k, v in response().items() if k != "done_reason"}, FinishReason.STOP),
        ({k: v for k, v in response(done=False).items() if k != "done_reason"}, None),
    ],
)  # fmt: skip
def test_finish_reasons(body: dict[str, Any], finish: FinishReason | None) -> None:
    """A response with calls finishes with `TOOL_CALLS`, which the server doesn't have (W11)."""
    read = DIALECT.decode_response(body)
    assert read.finish is read.message.finish is finish
    assert plain(DIALECT.encode_response(read).body) == plain(body)


@pytest.mark.parametrize(
    "time",
    [
        "2023-08-04T08:52:19.385406455-07:00", "2023-12-12T14:13:43.416799Z",
        "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999+23:59", "2025-02-30T00:00:00Z",
        "yesterday", "", None, 7,
    ],
)  # fmt: skip
def test_times_round_trip_exactly(time: Any) -> None:
    """Nanoseconds, time zones and invalid times round-trip."""
    body = response(created_at=time)
    assert plain(DIALECT.encode_response(DIALECT.decode_response(body)).body) == plain(body)


def test_time_is_seconds_since_the_epoch() -> None:
    """The same moment in two time zones is the same number."""
    one = DIALECT.decode_response(response(created_at="2023-08-04T08:52:19.385406455-07:00"))
    other = DIALECT.decode_response(response(created_at="2023-08-04T15:52:19.385406Z"))
    assert one.created_at == other.created_at == 1691164339.385406


@pytest.mark.parametrize(
    ("fields", "counts"),
    [
        ({"prompt_eval_count": 7, "eval_count": 3}, (7, 3)),
        ({"eval_count": 3, "total_duration": 1}, (0, 3)),
        ({"prompt_eval_count": 0, "eval_count": 3, "eval_duration": None}, (0, 3)),
        ({"prompt_eval_count": -1, "eval_count": 3}, (0, 3)),
        ({"total_duration": 1, "load_duration": 2}, None),
    ],
)
def test_usage(fields: dict[str, Any], counts: tuple[int, int] | None) -> None:
    """Token counts are decoded, durations are kept; a cached prompt may have no count."""
    body = response(**fields)
    read = DIALECT.decode_response(body)
    assert (read.usage and (read.usage.input, read.usage.output)) == counts
    assert plain(DIALECT.encode_response(read).body) == plain(body)


def test_foreign_response() -> None:
    """Text, thinking and calls are written; unsupported fields are losses."""
    parts = (
        Thinking("Hm.", signature="s"), Text("Let me see."),
        ToolCall("a", "f", '{"x": 1}'), ToolCall("b", "g", input={}),
    )  # fmt: skip
    message = Message(Role.ASSISTANT, parts, origin=ELSEWHERE)
    made = DIALECT.encode_response(
        Response(
            choices=(
                Choice(0, message, FinishReason.TOOL_CALLS, "tool_use", {"content": []}),
                Choice(1, message),
            ),
            usage=Usage(input=3, output=2, cache_read=4, thinking=5),
            model="c", id="msg_1", created_at=1.5,
        )
    )  # fmt: skip
    assert plain(made.body) == plain({
        "model": "c", "created_at": "1970-01-01T00:00:01.500000Z",
        "message": {"role": "assistant", "thinking": "Hm.", "content": "Let me see.",
                    "tool_calls": [
            {"id": "a", "function": {"index": 0, "name": "f", "arguments": {"x": 1}}},
            {"id": "b", "function": {"index": 1, "name": "g", "arguments": {}}}]},
        "done": True, "done_reason": "stop", "prompt_eval_count": 7, "eval_count": 7,
    })  # fmt: skip
    assert {loss.path for loss in made.losses} == {
        "choices[0].message.parts[0].signature", "choices[0].logprobs", "choices[1]", "id",
        "usage.cache_read", "usage.thinking",
    }  # fmt: skip


def test_truncated_call_is_left_out() -> None:
    """Clients run every call they get, so a truncated one is left out (I7)."""
    parts = (make_call("a", "f", '{"x": 1}'), make_call("b", "g", '{"y'))
    message = Message(Role.ASSISTANT, parts, origin=ELSEWHERE)
    made = DIALECT.encode_response(
        Response(choices=(Choice(0, message, FinishReason.LENGTH, "max_tokens"),))
    )
    assert [c["id"] for c in made.body["message"]["tool_calls"]] == ["a"]
    assert made.body["done_reason"] == "length"
    assert [loss.path for loss in made.losses] == ["choices[0].message.parts[1]"]


@pytest.mark.parametrize("finish", list(FinishReason))
def test_unsupported_finish_reason_is_a_loss(finish: FinishReason) -> None:
    """Finish reasons that Ollama lacks are losses; a cut-off answer stays recognisable."""
    message = Message.assistant("x").replace(origin=ELSEWHERE)
    made = DIALECT.encode_response(Response(choices=(Choice(0, message, finish),)))
    is_cut = finish.is_cut_off and finish is not FinishReason.REFUSAL  # whose text is whole
    assert made.body["done_reason"] == ("length" if is_cut else "stop")
    assert bool(made.losses) is (finish not in {"stop", "tool_calls", "length", "context_full"})


def test_empty_response() -> None:
    """Without a choice an empty message is written."""
    made = DIALECT.encode_response(Response())
    assert made.body["message"] == {"role": "assistant", "content": ""}
    assert made.body["done"] is True


def test_calls_of_a_response_get_unique_ids() -> None:
    """The wire's id is used if it is unique, else a generated one (I5)."""
    read = DIALECT.decode_response(
        response({"role": "assistant", "tool_calls": [
            call(id="a"), call(id="a"), call(), call(id="")]})
    )  # fmt: skip
    ids = [made.id for made in read.tool_calls]
    assert ids[0] == "a"
    assert len(set(ids)) == 4
    assert [made.wire_id for made in read.tool_calls] == [UNSET, "a", None, ""]


# --- edge cases


def deep(levels: int = 2000) -> str:
    """JSON nested too deeply."""
    return "[" * levels + "]" * levels


def test_deep_nesting_raises_wire_error() -> None:
    """In requests and responses, whether the parser accepts it or not."""
    for levels in (200, 2000):
        with pytest.raises(WireError):
            DIALECT.decode_request(f'{{"model":"m","messages":[],"odd":{deep(levels)}}}')
        with pytest.raises(WireError):
            DIALECT.decode_response(
                f'{{"message":{{"role":"assistant","content":""}},"odd":{deep(levels)}}}'
            )


@pytest.mark.parametrize("arguments", [1, [], True])
def test_malformed_call_is_kept_as_opaque(arguments: Any) -> None:
    """A malformed call becomes an opaque part and round-trips."""
    wire = {"id": "a", "function": {"name": "f", "arguments": arguments}}
    body = request({"role": "assistant", "content": "", "tool_calls": [wire]})
    assert DIALECT.decode_request(body).messages[0].parts == (Opaque("ollama", wire),)
    assert again(body) == plain(body)


@pytest.mark.parametrize("index", [0, 7, True, 1.0, None])
def test_call_indexes_round_trip(index: Any) -> None:
    """Indexes of any type round-trip; `true` isn't 1."""
    wire = {"id": "a", "function": {"index": index, "name": "f", "arguments": {}}}
    body = request({"role": "assistant", "content": "", "tool_calls": [wire]},
                   {"role": "TOOL", "content": "x", "tool_call_id": "a"})  # fmt: skip
    assert again(body) == plain(body)


def test_result_without_a_call_gets_an_id() -> None:
    """The result gets a generated id and round-trips without losses."""
    body = request({"role": "tool", "content": "x"}, {"role": "user", "content": "Hi"})
    read = DIALECT.decode_request(body)
    (result,) = read.messages[0].tool_results
    assert result.call_id
    assert plain(DIALECT.encode_request(read, LOOSE).body) == plain(body)
    assert DIALECT.encode_request(read).losses == ()
    assert DIALECT.encode_request(read, DIALECT.target).losses == ()


def test_response_role_is_always_assistant() -> None:
    """A message with another role is written as the assistant's, which is a loss."""
    choice = Choice(0, Message.user("Hi"), FinishReason.STOP)
    made = DIALECT.encode_response(Response(choices=(choice,)))
    assert made.body["message"] == {"role": "assistant", "content": "Hi"}
    assert [loss.path for loss in made.losses] == ["choices[0].message.role"]


def test_response_without_a_model_round_trips() -> None:
    """Some proxies leave out the model."""
    body = {key: value for key, value in response().items() if key != "model"}
    read = DIALECT.decode_response(body)
    assert read.model is None
    assert plain(DIALECT.encode_response(read).body) == plain(body)


def test_unsupported_tool_settings_are_losses() -> None:
    """For a target that accepts them, `strict` and `parallel` are still losses here."""
    tool = make_definition("f", "F.", {"type": "object"})
    choice = ToolChoice("auto", parallel=True)
    made = DIALECT.encode_request(Request(model="m", tools=(tool,), tool_choice=choice), LOOSE)
    assert {loss.path for loss in made.losses} == {"tools[0].strict", "tool_choice.parallel"}


def test_edits_override_extra_fields() -> None:
    """Text added to a message that had no content is written."""
    read = DIALECT.decode_request(
        request({"role": "assistant", "tool_calls": [call("f", id="a")]},
                {"role": "tool", "content": "x", "tool_call_id": "a"})
    )  # fmt: skip
    said = read.messages[0]
    changed = read.replace(
        messages=(said.replace(parts=(Text("Hm"), *said.parts)), *read.messages[1:])
    )
    assert DIALECT.encode_request(changed).body["messages"][0]["content"] == "Hm"


@pytest.mark.parametrize(
    ("details", "family"),
    [({"family": "qwen3"}, "qwen3"), ({"family": ""}, "unknown"), ({"family": 3}, "unknown")],
)
def test_context_window_is_written_for_the_model_family(
    details: dict[str, Any], family: str
) -> None:
    """Ollama's clients read `<architecture>.context_length`."""
    model = ModelInfo("m", context_window=4096, extras={"ollama": {"details": details}})
    info = encode_model(model).body["model_info"]
    assert info == {"general.architecture": family, f"{family}.context_length": 4096}
