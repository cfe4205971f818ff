"""Requests and responses of Ollama's own API."""

from __future__ import annotations

import json
from pathlib import Path
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
from dragoman.model import document
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

FIXTURES = Path(__file__).parents[2] / "fixtures" / "ollama"
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
    """A call; `id` is among the fields, or it has none."""
    return {**fields, "function": {"name": name, "arguments": arguments or {}}}


def again(body: dict[str, Any]) -> Any:
    """A request, read and written."""
    return plain(DIALECT.encode_request(DIALECT.decode_request(body)).body)


def plain(value: Any) -> Any:
    """A body as plain JSON, numbers told from truth."""
    return json.loads(json.dumps(value, default=dict), parse_float=str)


def encoded(*messages: Message, **fields: Any) -> tuple[Any, dict[str, str]]:
    """The messages that are written, and the losses by path."""
    made = DIALECT.encode_request(Request(model="m", messages=messages, **fields), LOOSE)
    return plain(made.body["messages"]), {loss.path: loss.reason for loss in made.losses}


@pytest.mark.parametrize("file", sorted(FIXTURES.glob("*.json")), ids=lambda file: file.stem)
def test_a_pair_reads_and_writes(file: Path) -> None:
    """The wire is read as the canonical value, and that is written as the wire."""
    pair = json.loads(file.read_text(encoding="utf-8"))
    canonical = document.read(json.dumps(pair["canonical"]))
    if isinstance(canonical, Request):
        assert DIALECT.decode_request(pair["wire"]) == canonical
        written = DIALECT.encode_request(canonical)
        assert written.path == "/api/chat"
    else:
        assert isinstance(canonical, Response)
        read = DIALECT.decode_response(pair["wire"])
        assert (read, read.usage) == (canonical, canonical.usage)
        written = DIALECT.encode_response(canonical)
    assert plain(written.body) == plain(pair["wire"])
    assert written.losses == ()


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
def test_odd_bodies_come_back_as_they_were(body: dict[str, Any]) -> None:
    """Whatever the server ignores, or takes for something else, is sent again as it came."""
    assert again(body) == plain(body)


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"messages": 1}, "$.messages"),
        ({"messages": {"role": "user"}}, "$.messages"),
    ],
)  # fmt: skip
def test_what_the_server_can_t_read_is_a_wire_error(body: Any, path: str) -> None:
    """The error names the dialect and the place, and quotes nothing."""
    with pytest.raises(WireError) as caught:
        DIALECT.decode_request(body)
    assert (caught.value.dialect, caught.value.path) == ("ollama", path)


# --- streaming, W101


@pytest.mark.parametrize(
    ("body", "meant"), [({}, True), ({"stream": None}, True), ({"stream": False}, False)]
)
def test_who_says_nothing_wants_a_stream(body: dict[str, Any], *, meant: bool) -> None:
    """The default is read as what it means, and is not spelled out on the way back."""
    read = DIALECT.decode_request({"model": "m", "messages": [], **body})
    assert read.stream is meant
    assert again({"model": "m", "messages": [], **body}).get("stream", ...) == body.get(
        "stream", ...
    )


def test_a_request_from_elsewhere_gets_no_stream_unasked() -> None:
    """Everywhere else no word means no stream, so it takes a word here."""
    assert DIALECT.encode_request(Request(model="m")).body["stream"] is False
    assert DIALECT.encode_request(Request(model="m", stream=True)).body["stream"] is True


# --- calls and results, W102 and W103


def test_arguments_as_text_are_sent_as_an_object() -> None:
    """The server refuses a text, so what somebody touched is put right; what came is not."""
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
    """Text that is no object stands in one, and that is told (I6)."""
    spoken = Request(model="m", messages=(Message(Role.ASSISTANT, (made,)),))
    sent = DIALECT.encode_request(spoken)
    message = sent.body["messages"][0]
    reported = {loss.path for loss in sent.losses}
    reported |= {repair.path for repair in sent.repairs if repair.action == "retyped"}
    assert message["tool_calls"] == [{"id": "a", "function": {"name": "f", "arguments": arguments}}]
    assert ("messages[0].parts[0]" in reported) is is_lost


def test_results_have_both_names() -> None:
    """A result says the tool's name and the call's id, for old servers and new ones (W103)."""
    messages, losses = encoded(
        Message(Role.ASSISTANT, (ToolCall("a", "f", input={}), ToolCall("b", "g", input={}))),
        Message(Role.TOOL, (ToolResult("a", "1"), ToolResult("b", "2", tool_name="g"))),
    )
    assert messages[1:] == [
        {"role": "tool", "content": "1", "tool_name": "f", "tool_call_id": "a"},
        {"role": "tool", "content": "2", "tool_name": "g", "tool_call_id": "b"},
    ]
    assert losses == {}


def test_results_of_one_tool_stand_in_the_order_of_its_calls() -> None:
    """A server that knows names only would mix them up (W103); others stay where they are."""
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
    """Every call has an id of its own with us, and every result its call (I5)."""
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


def test_an_id_that_comes_twice_is_two_calls() -> None:
    """Servers number calls from zero in each turn; ours are unique, theirs go back (I5)."""
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


def test_a_call_from_elsewhere_keeps_our_id() -> None:
    """The id that another wire had is not sent here, nor is its absence."""
    made = ToolCall("a", "f", input={}, wire_id=None, origin=ELSEWHERE)
    (message, result), _ = encoded(
        Message(Role.ASSISTANT, (made,)), Message(Role.TOOL, (ToolResult("a", "x"),))
    )
    assert message["tool_calls"][0]["id"] == result["tool_call_id"] == "a"


def test_results_beside_words_come_first() -> None:
    """A user's message with results is several here, and its words are the last."""
    message = Message(Role.USER, (Text("and?"), ToolResult("a", "1"), Text("well?")))
    messages, losses = encoded(message)
    assert [m["role"] for m in messages] == ["tool", "user"]
    assert messages[1]["content"] == "and?\nwell?"
    assert losses == {}


def test_words_in_a_tools_message_are_the_users() -> None:
    """What is no result has no place in a tool message, and is said all the same."""
    messages, _ = encoded(make_message(Role.TOOL, (ToolResult("a", "1"), Text("note"))))
    assert messages[1] == {"role": "user", "content": "note"}


def test_what_a_result_can_t_say_is_told() -> None:
    """Failure is in the words alone; data is JSON; files can't be shown."""
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


def test_parts_are_one_text() -> None:
    """A user's texts stand on lines of their own; an assistant's are one utterance."""
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
def test_media_are_raw_base64_or_a_loss(part: AnyPart, sent: str | None) -> None:
    """Pictures and sounds go inline; what can't is left out and named."""
    (message,), losses = encoded(Message(Role.USER, (Text("x"), part)))
    assert message.get("images") == (None if sent is None else [sent])
    assert ("messages[0].parts[1]" in losses) is (sent is None)


def test_words_stand_for_what_can_t_be_shown() -> None:
    """To Ollama itself, a picture by its address is told of in words, and as a loss."""
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
def test_images_are_read_by_what_they_are(wire: str, found: AnyPart) -> None:
    """Sounds stand among the pictures; addresses are understood, though the server refuses them."""
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
def test_thinking_is_plain_text(part: Thinking, thinking: str | None, *, is_lost: bool) -> None:
    """It goes back to who made it, or where nobody knows; another's, sealed or not, does not."""
    (message,), losses = encoded(Message(Role.ASSISTANT, (part, Text("x"))))
    assert message.get("thinking") == thinking
    assert ("messages[0].parts[0]" in losses) is is_lost


def test_thoughts_share_one_field() -> None:
    """Separate thoughts stand a line apart, the server's own pieces are one text."""
    thoughts = (Thinking("one"), Thinking("two"))
    (message,), _ = encoded(Message(Role.ASSISTANT, thoughts))
    assert message["thinking"] == "one\ntwo"
    (message,), _ = encoded(Message(Role.ASSISTANT, thoughts, origin=Origin(dialect="ollama")))
    assert message["thinking"] == "onetwo"


def test_an_answer_of_nothing_that_can_be_said_is_left_out() -> None:
    """A message of sealed thinking alone would be an empty answer."""
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
        (ThinkingConfig(effort="minimal"), "low", {"thinking.effort"}),
        (ThinkingConfig(effort="xhigh"), "max", {"thinking.effort"}),
        (ThinkingConfig(effort="odd"), True, {"thinking.effort"}),
        (ThinkingConfig(budget=9), True, {"thinking.budget"}),
        (ThinkingConfig(enabled=True, visible=True, summary="auto"), True,
         {"thinking.visible", "thinking.summary"}),
        (ThinkingConfig(), None, set()),
    ],
)  # fmt: skip
def test_how_to_think(config: ThinkingConfig, think: Any, lost: set[str]) -> None:
    """A model may be told to think, or how hard, and no more."""
    made = DIALECT.encode_request(Request(model="m", thinking=config), LOOSE)
    assert made.body.get("think") == think
    assert {loss.path for loss in made.losses} == lost


# --- settings, W107 and W108


def test_sampling_nests_in_the_options() -> None:
    """What others have at the top is an option here, some of it by another name."""
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


def test_options_that_nobody_else_has_stay_with_their_request() -> None:
    """They go back beside what was changed since, and to no other dialect."""
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
def test_the_form_of_the_answer(output: Output, form: Any, lost: set[str]) -> None:
    """JSON of any form, or of a schema."""
    made = DIALECT.encode_request(Request(model="m", output=output))
    assert made.body.get("format") == form
    assert {loss.path for loss in made.losses} == lost


def test_what_has_no_place_is_told() -> None:
    """Names, hints, citations, refusals and state: each is a loss of its own."""
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
        (ToolChoice("allowed", ("g",), is_required=True), ["g"], {"tools[0]", "tool_choice"}),
        (ToolChoice("required"), ["f", "g"], {"tool_choice"}),
        (ToolChoice("named", ("f",)), ["f", "g"], {"tool_choice"}),
        (ToolChoice("auto", parallel=False), ["f", "g"], {"tool_choice.parallel"}),
    ],
)
def test_a_choice_is_what_is_sent(
    choice: ToolChoice | None, names: list[str], lost: set[str]
) -> None:
    """Tools that must not be called are not sent; that one must be called can't be said."""
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
def test_schemas_fit_the_server_s_types(parameters: Any, sent: Any, *, is_lost: bool) -> None:
    """What the server could not read would fail the whole request."""
    tool = make_definition("f", "F.", parameters, origin=OPENAIS)
    made = DIALECT.encode_request(Request(model="m", tools=(tool,)))
    assert plain(made.body["tools"][0]["function"]["parameters"]) == plain(sent)
    assert bool(made.losses) is is_lost
    assert DIALECT.check(made.body) == []


def test_tools_that_are_no_functions() -> None:
    """Free text is an argument; another provider's own tool is left out."""
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
def test_why_it_ended(body: dict[str, Any], finish: FinishReason | None) -> None:
    """A turn with calls is a tool turn, though the server has no word for it (W11)."""
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
def test_times_are_kept_to_the_letter(time: Any) -> None:
    """Nanoseconds, zones and nonsense come back as they were."""
    body = response(created_at=time)
    assert plain(DIALECT.encode_response(DIALECT.decode_response(body)).body) == plain(body)


def test_a_time_is_a_number_of_seconds() -> None:
    """The same moment in two zones is the same number."""
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
    """Counts are counts, durations stay beside them; a cached prompt may have none."""
    body = response(**fields)
    read = DIALECT.decode_response(body)
    assert (read.usage and (read.usage.input, read.usage.output)) == counts
    assert plain(DIALECT.encode_response(read).body) == plain(body)


def test_a_response_from_elsewhere() -> None:
    """Text, thinking and calls are said; ids, seals, choices, probabilities, counts are told."""
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


def test_a_call_that_was_cut_off_is_not_shown() -> None:
    """A client runs every call that it sees, so half of one is no call (I7)."""
    parts = (make_call("a", "f", '{"x": 1}'), make_call("b", "g", '{"y'))
    message = Message(Role.ASSISTANT, parts, origin=ELSEWHERE)
    made = DIALECT.encode_response(
        Response(choices=(Choice(0, message, FinishReason.LENGTH, "max_tokens"),))
    )
    assert [c["id"] for c in made.body["message"]["tool_calls"]] == ["a"]
    assert made.body["done_reason"] == "length"
    assert [loss.path for loss in made.losses] == ["choices[0].message.parts[1]"]


@pytest.mark.parametrize("finish", list(FinishReason))
def test_every_reason_has_a_word_or_is_told(finish: FinishReason) -> None:
    """Reasons that Ollama does not know end as a stop, and that is a loss."""
    message = Message.assistant("x").replace(origin=ELSEWHERE)
    made = DIALECT.encode_response(Response(choices=(Choice(0, message, finish),)))
    known = {"stop": "stop", "tool_calls": "stop", "length": "length", "context_full": "length"}
    assert made.body["done_reason"] == known.get(finish.value, "stop")
    assert bool(made.losses) is (finish.value not in known)


def test_a_response_of_nothing() -> None:
    """Without a choice there is still a message, which says nothing."""
    made = DIALECT.encode_response(Response())
    assert made.body["message"] == {"role": "assistant", "content": ""}
    assert made.body["done"] is True


@pytest.mark.parametrize("body", [{}, {"error": None}, {"message": "x"}, {"message": None}, b"["])
def test_what_is_no_response_is_a_wire_error(body: Any) -> None:
    """A body without a message is not one."""
    with pytest.raises(WireError):
        DIALECT.decode_response(body)


def test_calls_of_a_response_have_ids() -> None:
    """Theirs, where they have one that is not taken; else one of ours (I5)."""
    read = DIALECT.decode_response(
        response({"role": "assistant", "tool_calls": [
            call(id="a"), call(id="a"), call(), call(id="")]})
    )  # fmt: skip
    ids = [made.id for made in read.tool_calls]
    assert ids[0] == "a"
    assert len(set(ids)) == 4
    assert [made.wire_id for made in read.tool_calls] == [UNSET, "a", None, ""]


# --- at the edges


def deep(levels: int = 2000) -> str:
    """JSON that nests deeper than anybody means."""
    return "[" * levels + "]" * levels


def test_what_nests_too_deeply_is_a_wire_error() -> None:
    """In a request and in a response, whether it can be parsed or not."""
    for levels in (200, 2000):
        with pytest.raises(WireError):
            DIALECT.decode_request(f'{{"model":"m","messages":[],"odd":{deep(levels)}}}')
        with pytest.raises(WireError):
            DIALECT.decode_response(
                f'{{"message":{{"role":"assistant","content":""}},"odd":{deep(levels)}}}'
            )


@pytest.mark.parametrize("arguments", [1, [], True])
def test_a_call_of_nonsense_is_carried_whole(arguments: Any) -> None:
    """It is no call to us, and goes back as it came."""
    wire = {"id": "a", "function": {"name": "f", "arguments": arguments}}
    body = request({"role": "assistant", "content": "", "tool_calls": [wire]})
    assert DIALECT.decode_request(body).messages[0].parts == (Opaque("ollama", wire),)
    assert again(body) == plain(body)


@pytest.mark.parametrize("index", [0, 7, True, 1.0, None])
def test_numbers_of_calls_come_back(index: Any) -> None:
    """As what they were: true is not one."""
    wire = {"id": "a", "function": {"index": index, "name": "f", "arguments": {}}}
    body = request({"role": "assistant", "content": "", "tool_calls": [wire]},
                   {"role": "TOOL", "content": "x", "tool_call_id": "a"})  # fmt: skip
    assert again(body) == plain(body)


def test_a_result_of_nothing_gets_an_id_of_its_own() -> None:
    """Its server would take it; to others it is the result of a call that is not there."""
    body = request({"role": "tool", "content": "x"}, {"role": "user", "content": "Hi"})
    read = DIALECT.decode_request(body)
    (result,) = read.messages[0].tool_results
    assert result.call_id
    assert plain(DIALECT.encode_request(read, LOOSE).body) == plain(body)
    assert DIALECT.encode_request(read).losses == ()
    assert DIALECT.encode_request(read, DIALECT.target).losses == ()


def test_an_assistant_alone_answers() -> None:
    """A response by anybody else is written as the assistant's, and that is told."""
    choice = Choice(0, Message.user("Hi"), FinishReason.STOP)
    made = DIALECT.encode_response(Response(choices=(choice,)))
    assert made.body["message"] == {"role": "assistant", "content": "Hi"}
    assert [loss.path for loss in made.losses] == ["choices[0].message.role"]


def test_a_response_without_a_model_comes_back() -> None:
    """Proxies leave it out."""
    body = {key: value for key, value in response().items() if key != "model"}
    read = DIALECT.decode_response(body)
    assert read.model is None
    assert plain(DIALECT.encode_response(read).body) == plain(body)


def test_marks_on_tools_are_told_where_nobody_fits_them() -> None:
    """A deployment that is said to take them is told that they have no place."""
    tool = make_definition("f", "F.", {"type": "object"})
    choice = ToolChoice("auto", parallel=True)
    made = DIALECT.encode_request(Request(model="m", tools=(tool,), tool_choice=choice), LOOSE)
    assert {loss.path for loss in made.losses} == {"tools[0].strict", "tool_choice.parallel"}


def test_what_an_answer_says_is_what_was_changed() -> None:
    """A text that replaces none, and a reason that was not there, count over what was noted."""
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
def test_a_models_window_is_told_under_its_family(details: dict[str, Any], family: str) -> None:
    """Ollama's clients look for `<architecture>.context_length`."""
    model = ModelInfo("m", context_window=4096, extras={"ollama": {"details": details}})
    info = encode_model(model).body["model_info"]
    assert info == {"general.architecture": family, f"{family}.context_length": 4096}
