"""What goes out to OpenAI fits together, whatever happened to the history before."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman.model.media import Audio, File, Image
from dragoman.model.messages import Message
from dragoman.model.parts import Origin, Refusal, Text, Thinking
from dragoman.model.requests import Request, Sampling, State
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolResult, make_definition
from dragoman.model.usage import Usage
from dragoman.wire.encoded import Encoded
from dragoman.wire.fitting.pairing import UNKNOWN
from dragoman.wire.fitting.turns import OPENING
from dragoman.wire.openai_responses.codec import DIALECT
from dragoman.wire.openai_responses.dialect import TARGET
from tests.wire.test_hostile import FIXTURES

NAME = "openai-responses"
USER = {"role": "user", "content": "Hi"}


def thought(number: int = 1, **fields: Any) -> dict[str, Any]:
    """A reasoning item."""
    return {"type": "reasoning", "id": f"rs_{number}", "summary": [], **fields}


def said(item_id: str | None = "msg_1", text: str = "Yes.", **fields: Any) -> dict[str, Any]:
    """An assistant's message item."""
    if item_id is None:
        return {"role": "assistant", "content": text, **fields}
    content = [{"type": "output_text", "text": text, "annotations": []}]
    body = {"type": "message", "id": item_id, "role": "assistant", "status": "completed"}
    return {**body, "content": content, **fields}


def call(number: int = 1, **fields: Any) -> dict[str, Any]:
    """A function call item with its id."""
    body = {"type": "function_call", "call_id": f"call_{number}", "name": "f", "arguments": "{}"}
    return {**body, "id": f"fc_{number}", "status": "completed", **fields}


def plain_call(number: int = 1) -> dict[str, Any]:
    """A function call item without an id."""
    return {"type": "function_call", "call_id": f"call_{number}", "name": "f", "arguments": "{}"}


def output(number: int = 1, **fields: Any) -> dict[str, Any]:
    """The output of a function call."""
    body = {"type": "function_call_output", "call_id": f"call_{number}", "output": "ok"}
    return {**body, **fields}


def sent(*items: Any, **fields: Any) -> tuple[list[Any], list[str]]:
    """The items that go out for these, and the paths of what was lost.

    Somebody has touched the messages, so that they are fitted to all that OpenAI demands.
    """
    request = DIALECT.decode_request({"model": "m", "input": list(items), **fields})
    touched = tuple(message.replace_unchecked(origin=None) for message in request.messages)
    return _sent(DIALECT.encode_request(request.replace(messages=touched), TARGET))


def _sent(encoded: Encoded) -> tuple[list[Any], list[str]]:
    found = [v for v in DIALECT.check(encoded.body) if v.severity == "error"]
    assert found == []
    items = encoded.body["input"]
    return json.loads(json.dumps(items)), [loss.path for loss in encoded.losses]


def kinds(items: list[Any]) -> list[str]:
    """The types of items."""
    return [item.get("type", "message") for item in items]


@pytest.mark.parametrize(
    "file", sorted((FIXTURES / "openai-responses").glob("*.json")), ids=lambda file: file.stem
)
def test_what_openai_takes_is_not_touched(file: Path) -> None:
    """Our own requests go out as they came, sound apart, which OpenAI does not take."""
    pair = json.loads(file.read_text(encoding="utf-8"))
    if pair["canonical"]["kind"] == "Request" and file.stem != "media":
        encoded = DIALECT.encode_request(DIALECT.decode_request(pair["wire"]))
        assert encoded.body == pair["wire"]
        assert encoded.losses == ()


# --- the ids of items


@pytest.mark.parametrize("item_id", ["toolu_1", "fc_1.2", "fc_" + "1" * 62, "fc_ü", ""])
def test_an_id_that_openai_did_not_make_is_left_out(item_id: str) -> None:
    """W21: a call can do without."""
    items, lost = sent(USER, call(id=item_id), output())
    assert items == [USER, {**plain_call(), "status": "completed"}, output()]
    assert lost == []


def test_a_message_without_its_id_is_written_as_a_text() -> None:
    """Without an id the types know a text only; its phase stays (W32)."""
    items, lost = sent(USER, said("item-1", phase="commentary"), USER)
    assert items[1] == said(None, type="message", phase="commentary")
    assert lost == []


def test_a_message_that_says_more_than_a_text_keeps_its_parts() -> None:
    """What it cites, and that it refused."""
    cited = said("x_1")
    cited["content"][0]["annotations"] = [
        {"type": "url_citation", "url": "u", "title": "t", "start_index": 0, "end_index": 1}
    ]
    refused = said("x_2", content=[{"type": "refusal", "refusal": "No."}])
    items, lost = sent(USER, cited, refused, USER)
    assert [item["content"] for item in items[1:3]] == [cited["content"], refused["content"]]
    assert all("id" not in item and "status" not in item for item in items)
    assert lost == []


def test_what_needs_its_id_is_left_out_without() -> None:
    """A search, or reasoning, whose id can't be is a loss."""
    search = {"type": "web_search_call", "id": "w.1", "status": "completed"}
    items, lost = sent(USER, search, thought(id="r.1"), said(), USER)
    assert kinds(items) == ["message"] * 3
    assert lost == ["messages[1].parts[0]", "messages[1].parts[1]"]


def test_no_item_stands_there_twice() -> None:
    """W28: the second has no id, or is left out where it needs one."""
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    items, lost = sent(USER, search, said(), USER, search, said(), USER)
    assert kinds(items) == [
        "message",
        "web_search_call",
        "message",
        "message",
        "message",
        "message",
    ]
    assert [item.get("id") for item in items] == [None, "ws_1", "msg_1", None, None, None]
    assert lost == ["messages[3].parts[0]"]


def test_long_call_ids_are_the_same_for_call_and_output() -> None:
    """W22: also where an id was used twice, and the wire's own is too long."""
    ids = {"call_id": "c" * 69}
    items, lost = sent(USER, plain_call() | ids, output() | ids, plain_call() | ids, output() | ids)
    assert items[1]["call_id"] == items[2]["call_id"]
    assert items[3]["call_id"] == items[4]["call_id"]
    assert items[1]["call_id"] != items[3]["call_id"]
    assert lost == []


def test_a_call_that_had_no_id_gets_one() -> None:
    """W20: the output names its call, so there must be something to name."""
    nameless = {key: value for key, value in plain_call().items() if key != "call_id"}
    answer = {key: value for key, value in output().items() if key != "call_id"}
    items, _ = sent(USER, nameless, answer)
    assert items[1]["call_id"] == items[2]["call_id"]


# --- reasoning


def test_reasoning_goes_with_what_it_led_to() -> None:
    """Whole turns stay as they are."""
    whole = [USER, thought(), thought(2), call(), output(), thought(3), said(), USER]
    assert sent(*whole) == (whole, [])


@pytest.mark.parametrize(
    "after",
    [[], [USER], [output(), USER]],
    ids=["the end", "the user", "an output"],
)
def test_reasoning_that_led_nowhere_is_left_out(after: list[Any]) -> None:
    """W23: what it led to is gone, so it goes, too, and is named."""
    items, lost = sent(USER, call(), thought(9), *after)
    assert "reasoning" not in kinds(items)
    assert "messages[1].parts[1]" in lost


def test_reasoning_of_a_cut_off_answer_is_not_the_next_ones() -> None:
    """Two answers in a row: the second did not come of the first one's reasoning."""
    cut, next_ = (
        DIALECT.decode_response({"id": "resp_1", "output": found}).message
        for found in ([thought(1)], [said("msg_1")])
    )
    encoded = DIALECT.encode_request(Request(messages=(Message.user("Hi"), cut, next_)))
    items, lost = _sent(encoded)
    assert items == [USER, said("msg_1")]
    assert lost == ["messages[1].parts[0]"]


def test_an_edited_answer_goes_without_its_reasoning() -> None:
    """As recorded: the new words have no id, and OpenAI misses what the reasoning led to."""
    message = DIALECT.decode_response({"id": "resp_1", "output": [thought(), said()]}).message
    edited = message.replace(parts=(message.parts[0], message.parts[1].with_text("42")))  # type: ignore[union-attr]
    items, lost = _sent(DIALECT.encode_request(Request(messages=(edited, Message.user("Hi")))))
    assert items == [said(None, "42"), USER]
    assert lost == ["messages[0].parts[0]"]
    kept = DIALECT.decode_request(
        {"store": False, "input": [thought(encrypted_content="x"), said(None, "42"), USER]}
    )
    assert _sent(DIALECT.encode_request(kept))[1] == []  # nothing is stored that it could look up


def test_with_the_reasoning_goes_the_id_of_the_call() -> None:
    """W24: an id that asks for reasoning which is not sent is left out; what needs it is lost."""
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    bare = {"id": None}
    items, lost = sent(
        USER, thought() | bare, call(), search, said(), thought(2), call(2), output(), output(2)
    )
    assert [item.get("id") for item in items] == [None, None, None, "rs_2", "fc_2", None, None]
    assert kinds(items)[1:5] == ["function_call", "message", "reasoning", "function_call"]
    assert lost == ["messages[1].parts[0]", "messages[1].parts[2]"]


def test_a_chain_of_reasoning_is_whole_or_not_there() -> None:
    """One of two without its seal: neither goes."""
    items, lost = sent(
        USER, thought(1, encrypted_content="x"), thought(2), call(), output(), store=False
    )
    assert items == [USER, {**plain_call(), "status": "completed"}, output()]
    assert sorted(lost) == ["messages[1].parts[0]", "messages[1].parts[1]"]


def test_reasoning_that_was_taken_out_takes_the_ids_with_it() -> None:
    """The message's own usage tells that its model had reasoned."""
    message = DIALECT.decode_response({"id": "resp_1", "output": [thought(), call()]}).message
    trimmed = message.replace(parts=message.parts[1:])
    results = Message.tool("call_1", "ok")
    for usage, item_id in ((None, "fc_1"), (Usage(1, 1), "fc_1"), (Usage(1, 1, thinking=9), None)):
        request = Request(messages=(trimmed.replace(usage=usage), results))
        items, lost = _sent(DIALECT.encode_request(request))
        assert items[0].get("id") == item_id
        assert lost == []


def test_without_thinking_there_are_no_ids_that_ask_for_it() -> None:
    """W27: to recover from seals that can't be verified, a target is told to take none back."""
    request = DIALECT.decode_request({"input": [USER, thought(), call(), output()]})
    touched = tuple(message.replace_unchecked(origin=None) for message in request.messages)
    never = TARGET.with_flags({"thinking.sent_back": "never"})
    encoded = DIALECT.encode_request(request.replace(messages=touched), never)
    assert encoded.body["input"][1:] == [{**plain_call(), "status": "completed"}, output()]


def test_bare_reasoning_is_not_sent_where_nothing_is_stored() -> None:
    """W25: with `store: false` an id alone is not found."""
    turn = [USER, thought(), said(), USER]
    assert sent(*turn) == (turn, [])
    items, lost = sent(*turn, store=False)
    assert items == [USER, said(None, type="message"), USER]
    assert lost == ["messages[1].parts[0]"]


def test_thinking_of_others_never_goes_out_as_reasoning() -> None:
    """Another dialect's, another provider's, another model's: a loss, and the words stay."""
    made = Thinking("hm", data="seal", form="summary", item_id="rs_1")
    target = TARGET.replace(model="gpt-example-2")
    for origin in (
        Origin(dialect="anthropic"),
        Origin(dialect=NAME, provider="elsewhere"),
        Origin(dialect=NAME, model="gpt-example-1"),
        None,
    ):
        answer = Message(Role.ASSISTANT, (made, Text("Yes.", item_id="msg_1")), origin=origin)
        encoded = DIALECT.encode_request(Request(messages=(answer, Message.user("Hi"))), target)
        items, lost = _sent(encoded)
        assert kinds(items) == ["message", "message"]
        assert lost == ["messages[0].parts[0]"]
        assert items[0].get("id") is None or origin is None
    own = Origin(dialect=NAME, provider="openai", model="gpt-example-2-2026-01-01")
    answer = Message(Role.ASSISTANT, (made, Text("Yes.", item_id="msg_1")), origin=own)
    encoded = DIALECT.encode_request(Request(messages=(answer, Message.user("Hi"))), target)
    assert kinds(_sent(encoded)[0]) == ["reasoning", "message", "message"]


# --- calls and outputs


def test_calls_and_outputs_are_paired() -> None:
    """An orphaned output is a loss; a call without one gets one that says so."""
    items, lost = sent(USER, output(7), call(), USER)
    assert kinds(items) == [
        "message",
        "message",
        "function_call",
        "function_call_output",
        "message",
    ]
    assert items[1]["content"][1]["text"] == "ok"  # carried as text
    assert items[3]["output"] == UNKNOWN
    assert lost == ["messages[1].parts[0]"]


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        ({"type": "shell_call", "id": "sh_1", "call_id": "c", "action": {}},
         {"type": "shell_call_output", "call_id": "c", "output": []}),
        ({"type": "computer_call", "id": "cu_1", "call_id": "c", "action": {}},
         {"type": "computer_call_output", "call_id": "c", "output": {}}),
        ({"type": "local_shell_call", "id": "lsh_1", "call_id": "c", "action": {}},
         {"type": "local_shell_call_output", "id": "c", "output": ""}),
        ({"type": "mcp_approval_request", "id": "mcpr_1", "name": "f", "arguments": "{}"},
         {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True}),
    ],
)  # fmt: skip
def test_built_in_calls_and_outputs_are_paired(asked: Any, answered: Any) -> None:
    """What the client carries out itself has to be there from both sides."""
    asked = {**asked, "status": "completed"}
    assert sent(USER, asked, answered, USER) == ([USER, asked, answered, USER], [])
    items, lost = sent(USER, answered, USER)
    assert lost == ["messages[1].parts[0]"]
    assert set(kinds(items)) == {"message"}  # carried as text, or left out
    if "approval" not in asked["type"]:  # the model may be told something else instead
        items, lost = sent(USER, thought(), asked, USER)
        assert kinds(items)[1:-1] == ["reasoning", asked["type"], answered["type"]]
        assert lost == []


def test_calls_and_outputs_are_paired_by_id_whatever_their_types() -> None:
    """The provider takes a function's output for a custom call's, so it stays one."""
    other = {"type": "custom_tool_call_output", "call_id": "call_1", "output": "ok"}
    items, lost = sent(USER, plain_call(), other)
    assert items[2] == other
    assert lost == []


@pytest.mark.parametrize(
    "asked",
    [
        {"type": "tool_search_call", "execution": "client", "arguments": {"queries": ["rates"]}},
        {"type": "call_of_the_future", "what": {"is": "asked"}},
    ],
    ids=["tool_search_call", "unknown"],
)
@pytest.mark.parametrize("answered", ["function_call_output", "tool_search_output"])
def test_an_output_may_answer_any_item_with_its_call_id(asked: Any, answered: str) -> None:
    """Recorded: a function's output answers a client-run tool search; it goes out as it came."""
    asked = {**asked, "call_id": "call_1", "status": "completed"}
    output_item = {"type": answered, "call_id": "call_1", "output": "ok"}
    assert sent(USER, asked, output_item, USER) == ([USER, asked, output_item, USER], [])


def test_a_failure_is_told_as_far_as_it_can_be() -> None:
    """W31: a function's output has a status; a custom tool's has none, so that is a loss."""
    calls = (ToolCall.create("a", "f"), ToolCall.create("b", "g", "x", kind="custom"))
    results = (ToolResult.error("a", "no"), ToolResult.error("b", "no"))
    messages = (Message.assistant(tool_calls=calls), Message.tool(*results))
    items, lost = _sent(DIALECT.encode_request(Request(messages=messages)))
    assert items[2] == {
        "type": "function_call_output", "call_id": "a", "output": "no", "status": "incomplete"
    }  # fmt: skip
    assert items[3] == {"type": "custom_tool_call_output", "call_id": "b", "output": "no"}
    assert lost == ["messages[1].parts[1].is_error"]


def test_media_in_outputs_are_native() -> None:
    """W31: pictures and documents stay where they are; sound and film have no place."""
    content = (
        Text("see"),
        Image.from_url("https://example.com/a.png"),
        File.from_base64("JVBERi0=", "application/pdf", name="a.pdf"),
        Audio.from_format("UklGRg==", "wav"),
        File.from_base64("UklGRg==", "audio/mpeg"),
        Refusal("no"),
    )
    messages = (
        Message.assistant(tool_calls=[ToolCall.create("a", "f")]),
        Message.tool(ToolResult("a", content)),
    )
    items, lost = _sent(DIALECT.encode_request(Request(messages=messages)))
    assert [part["type"] for part in items[1]["output"]] == [
        "input_text", "input_image", "input_file", "input_text", "input_text", "input_text"
    ]  # fmt: skip
    assert lost == ["messages[1].parts[0].content[3]", "messages[1].parts[0].content[4]"]


def test_names_of_arguments_are_cut_to_what_is_taken() -> None:
    """W39: two long names that begin alike stay apart; the call stays in the history."""
    arguments = {"n" * 300 + "a": 1, "n" * 300 + "b": [{"m" * 257: 2}], "short": 3}
    asked = plain_call() | {"arguments": json.dumps(arguments)}
    items, lost = sent(USER, asked, output())
    told = json.loads(items[1]["arguments"])
    assert len(told) == 3
    assert told["short"] == 3
    assert max(map(len, told)) == 256
    assert lost == ["messages[1].parts[0].arguments"]


def test_arguments_that_are_no_json_stay_as_they_are() -> None:
    """They are a text here, which nobody parses."""
    items, lost = sent(USER, plain_call() | {"arguments": "{broken"}, output())
    assert items[1]["arguments"] == "{broken"
    assert lost == []


# --- contents and settings


def test_texts_have_the_type_of_their_speaker() -> None:
    """W30: what another host took under the other's type goes out under its own."""
    parts = [{"type": "text", "text": "a"}, {"type": "input_text", "text": "b"}]
    parts.append({"type": "output_text", "text": "c"})
    items, lost = sent({"role": "user", "content": parts}, {"role": "assistant", "content": parts})
    assert [part["type"] for part in items[0]["content"]] == ["input_text"] * 3
    assert [part["type"] for part in items[1]["content"]] == ["output_text"] * 3
    assert lost == []


def test_sound_is_told_in_words() -> None:
    """The Responses API has no place for it; the loss is named."""
    request = Request(messages=(Message.user("Listen:", Audio.from_format("UklGRg==", "wav")),))
    items, lost = _sent(DIALECT.encode_request(request))
    assert [part["type"] for part in items[0]["content"]] == ["input_text", "input_text"]
    assert lost == ["messages[0].parts[1]"]


def test_a_cap_that_is_too_low_is_raised() -> None:
    """At least 16 tokens have to be allowed; that it was raised is told."""
    request = Request(messages=(Message.user("Hi"),), sampling=Sampling(max_tokens=5))
    encoded = DIALECT.encode_request(request)
    assert encoded.body["max_output_tokens"] == 16
    assert [loss.path for loss in encoded.losses] == ["sampling.max_tokens"]


def test_a_schema_that_can_t_be_strict_is_not() -> None:
    """W14: where a schema allows names of its own, closing it would change what it means."""
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"],
              "additionalProperties": {"type": "string"}}  # fmt: skip
    closed = {**schema, "additionalProperties": False}
    elsewhere = Origin(dialect="openai-chat")
    tools = tuple(
        make_definition("f", "d", found, strict=True, origin=elsewhere)
        for found in (schema, closed)
    )
    request = Request(messages=(Message.user("Hi"),), tools=tools)
    encoded = DIALECT.encode_request(request)
    assert [tool["strict"] for tool in encoded.body["tools"]] == [False, True]
    assert [loss.path for loss in encoded.losses] == ["tools[0].strict"]


@pytest.mark.parametrize(
    "form",
    [
        {"type": "grammar", "grammar": {"syntax": "regex", "definition": "a+"}},
        {"type": "grammar", "syntax": "regex", "definition": "a+"},
    ],
)
def test_a_grammar_is_flat(form: dict[str, Any]) -> None:
    """Chat has it in an object of its own."""
    tool = make_definition("f", kind="custom", format=form, origin=Origin(dialect="openai-chat"))
    body = DIALECT.encode_request(Request(messages=(Message.user("Hi"),), tools=(tool,))).body
    assert body["tools"][0]["format"] == {"type": "grammar", "syntax": "regex", "definition": "a+"}


def test_something_is_said_where_nothing_is_left() -> None:
    """A history of which nothing can be sent is one that begins, unless the provider has more."""
    state = State(previous_response_id="resp_1")
    foreign = Message(Role.ASSISTANT, (Thinking("hm"),))
    encoded = DIALECT.encode_request(Request(messages=(foreign,)))
    assert encoded.body["input"] == OPENING
    assert [loss.path for loss in encoded.losses] == ["messages[0].parts[0]"]
    assert [repair.action for repair in encoded.repairs] == ["added"]
    assert DIALECT.encode_request(Request(messages=(foreign,), state=state)).body["input"] == []


def test_an_edited_call_keeps_the_result_that_came() -> None:
    """The result stands in a message that nobody touched: no other is made up beside it."""
    wire = {"model": "m", "input": [USER, plain_call(), output()]}
    request = DIALECT.decode_request(wire)
    first, said, answered = request.messages
    edited = said.replace(parts=(said.tool_calls[0].replace(input={"edited": True}),))
    encoded = DIALECT.encode_request(request.replace(messages=(first, edited, answered)))
    assert kinds(encoded.body["input"]) == ["message", "function_call", "function_call_output"]
    assert encoded.body["input"][2] == output()
