"""Requests sent to OpenAI are valid, even after the history was edited."""

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
    """Encodes these items; returns the items sent and the paths of the losses.

    The origins are removed, so the messages count as edited and every repair applies.
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
def test_valid_requests_are_unchanged(file: Path) -> None:
    """Our own fixtures are encoded unchanged, except audio, which OpenAI doesn't support."""
    pair = json.loads(file.read_text(encoding="utf-8"))
    if pair["canonical"]["kind"] == "Request" and file.stem != "media":
        encoded = DIALECT.encode_request(DIALECT.decode_request(pair["wire"]))
        assert encoded.body == pair["wire"]
        assert encoded.losses == ()


# --- item ids


@pytest.mark.parametrize("item_id", ["toolu_1", "fc_1.2", "fc_" + "1" * 62, "fc_ü", ""])
def test_invalid_item_id_is_left_out(item_id: str) -> None:
    """An item id that OpenAI didn't issue is left out of a function call (W21)."""
    items, lost = sent(USER, call(id=item_id), output())
    assert items == [USER, {**plain_call(), "status": "completed"}, output()]
    assert lost == []


def test_message_without_id_is_written_as_plain_text() -> None:
    """Without an id, a message's content is a plain string; its phase is kept (W32)."""
    items, lost = sent(USER, said("item-1", phase="commentary"), USER)
    assert items[1] == said(None, type="message", phase="commentary")
    assert lost == []


def test_citations_and_refusals_survive_without_an_item_id() -> None:
    """A message that loses its id keeps citations and refusals as content parts."""
    cited = said("x_1")
    cited["content"][0]["annotations"] = [
        {"type": "url_citation", "url": "u", "title": "t", "start_index": 0, "end_index": 1}
    ]
    refused = said("x_2", content=[{"type": "refusal", "refusal": "No."}])
    items, lost = sent(USER, cited, refused, USER)
    assert [item["content"] for item in items[1:3]] == [cited["content"], refused["content"]]
    assert all("id" not in item and "status" not in item for item in items)
    assert lost == []


def test_items_that_need_an_id_are_left_out_without_one() -> None:
    """A web search or reasoning item with an invalid id is left out and reported as a loss."""
    search = {"type": "web_search_call", "id": "w.1", "status": "completed"}
    items, lost = sent(USER, search, thought(id="r.1"), said(), USER)
    assert kinds(items) == ["message"] * 3
    assert lost == ["messages[1].parts[0]", "messages[1].parts[1]"]


def test_duplicate_items_are_dropped() -> None:
    """A repeated item is sent without its id, or left out if it needs one (W28)."""
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
    """A call and its output get the same shortened id, even if the long id was used twice (W22)."""
    ids = {"call_id": "c" * 69}
    items, lost = sent(USER, plain_call() | ids, output() | ids, plain_call() | ids, output() | ids)
    assert items[1]["call_id"] == items[2]["call_id"]
    assert items[3]["call_id"] == items[4]["call_id"]
    assert items[1]["call_id"] != items[3]["call_id"]
    assert lost == []


def test_call_without_id_gets_one() -> None:
    """A call without an id gets one, and its output refers to it (W20)."""
    nameless = {key: value for key, value in plain_call().items() if key != "call_id"}
    answer = {key: value for key, value in output().items() if key != "call_id"}
    items, _ = sent(USER, nameless, answer)
    assert items[1]["call_id"] == items[2]["call_id"]


# --- reasoning


def test_complete_turns_with_reasoning_are_unchanged() -> None:
    """Reasoning followed by its call or message is sent unchanged."""
    whole = [USER, thought(), thought(2), call(), output(), thought(3), said(), USER]
    assert sent(*whole) == (whole, [])


@pytest.mark.parametrize(
    "after",
    [[], [USER], [output(), USER]],
    ids=["the end", "the user", "an output"],
)
def test_reasoning_without_a_following_item_is_left_out(after: list[Any]) -> None:
    """Reasoning without the item that followed it is left out and reported as a loss (W23)."""
    items, lost = sent(USER, call(), thought(9), *after)
    assert "reasoning" not in kinds(items)
    assert "messages[1].parts[1]" in lost


def test_reasoning_is_not_attached_to_the_next_answer() -> None:
    """Reasoning of a truncated answer isn't sent as the reasoning of the answer after it."""
    cut, next_ = (
        DIALECT.decode_response({"id": "resp_1", "output": found}).message
        for found in ([thought(1)], [said("msg_1")])
    )
    encoded = DIALECT.encode_request(Request(messages=(Message.user("Hi"), cut, next_)))
    items, lost = _sent(encoded)
    assert items == [USER, said("msg_1")]
    assert lost == ["messages[1].parts[0]"]


def test_edited_answer_is_sent_without_its_reasoning() -> None:
    """Reasoning is left out if the text after it was edited: OpenAI needs the original item."""
    message = DIALECT.decode_response({"id": "resp_1", "output": [thought(), said()]}).message
    edited = message.replace(parts=(message.parts[0], message.parts[1].with_text("42")))  # type: ignore[union-attr]
    items, lost = _sent(DIALECT.encode_request(Request(messages=(edited, Message.user("Hi")))))
    assert items == [said(None, "42"), USER]
    assert lost == ["messages[0].parts[0]"]
    kept = DIALECT.decode_request(
        {"store": False, "input": [thought(encrypted_content="x"), said(None, "42"), USER]}
    )
    assert _sent(DIALECT.encode_request(kept))[1] == []  # nothing stored to look up


def test_call_ids_are_dropped_with_their_reasoning() -> None:
    """Without its reasoning, an item is sent without its id, or left out if it needs one (W24)."""
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    bare = {"id": None}
    items, lost = sent(
        USER, thought() | bare, call(), search, said(), thought(2), call(2), output(), output(2)
    )
    assert [item.get("id") for item in items] == [None, None, None, "rs_2", "fc_2", None, None]
    assert kinds(items)[1:5] == ["function_call", "message", "reasoning", "function_call"]
    assert lost == ["messages[1].parts[0]", "messages[1].parts[2]"]


def test_reasoning_chain_is_sent_whole_or_not_at_all() -> None:
    """If one of two reasoning items lacks encrypted content, neither is sent."""
    items, lost = sent(
        USER, thought(1, encrypted_content="x"), thought(2), call(), output(), store=False
    )
    assert items == [USER, {**plain_call(), "status": "completed"}, output()]
    assert sorted(lost) == ["messages[1].parts[0]", "messages[1].parts[1]"]


def test_removed_reasoning_also_removes_item_ids() -> None:
    """If usage shows that reasoning was removed, the call is sent without its id."""
    message = DIALECT.decode_response({"id": "resp_1", "output": [thought(), call()]}).message
    trimmed = message.replace(parts=message.parts[1:])
    results = Message.tool("call_1", "ok")
    for usage, item_id in ((None, "fc_1"), (Usage(1, 1), "fc_1"), (Usage(1, 1, thinking=9), None)):
        request = Request(messages=(trimmed.replace(usage=usage), results))
        items, lost = _sent(DIALECT.encode_request(request))
        assert items[0].get("id") == item_id
        assert lost == []


def test_ids_are_dropped_when_thinking_is_never_sent_back() -> None:
    """With `thinking.sent_back="never"`, calls are sent without their item ids (W27)."""
    request = DIALECT.decode_request({"input": [USER, thought(), call(), output()]})
    touched = tuple(message.replace_unchecked(origin=None) for message in request.messages)
    never = TARGET.with_flags({"thinking.sent_back": "never"})
    encoded = DIALECT.encode_request(request.replace(messages=touched), never)
    assert encoded.body["input"][1:] == [{**plain_call(), "status": "completed"}, output()]


def test_reasoning_without_encrypted_content_needs_stored_state() -> None:
    """With `store: false`, reasoning that has only an id is left out (W25)."""
    turn = [USER, thought(), said(), USER]
    assert sent(*turn) == (turn, [])
    items, lost = sent(*turn, store=False)
    assert items == [USER, said(None, type="message"), USER]
    assert lost == ["messages[1].parts[0]"]


def test_foreign_thinking_is_not_sent_as_reasoning() -> None:
    """Thinking of another dialect, provider or model is a loss; the text is kept."""
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
    """An orphaned output is sent as text and is a loss; an unanswered call gets a placeholder."""
    items, lost = sent(USER, output(7), call(), USER)
    assert kinds(items) == [
        "message",
        "message",
        "function_call",
        "function_call_output",
        "message",
    ]
    assert items[1]["content"][1]["text"] == "ok"  # sent as text
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
    """Calls that the client runs itself are sent only together with their outputs."""
    asked = {**asked, "status": "completed"}
    assert sent(USER, asked, answered, USER) == ([USER, asked, answered, USER], [])
    items, lost = sent(USER, answered, USER)
    assert lost == ["messages[1].parts[0]"]
    assert set(kinds(items)) == {"message"}  # sent as text, or left out
    if "approval" not in asked["type"]:  # an approval request may stay unanswered
        items, lost = sent(USER, thought(), asked, USER)
        assert kinds(items)[1:-1] == ["reasoning", asked["type"], answered["type"]]
        assert lost == []


def test_calls_and_outputs_are_paired_by_id_not_by_type() -> None:
    """A custom tool's output answers a function call with the same id and keeps its type."""
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
def test_output_may_answer_any_item_with_its_call_id(asked: Any, answered: str) -> None:
    """An output is paired with any item that has its call id, and is sent unchanged."""
    asked = {**asked, "call_id": "call_1", "status": "completed"}
    output_item = {"type": answered, "call_id": "call_1", "output": "ok"}
    assert sent(USER, asked, output_item, USER) == ([USER, asked, output_item, USER], [])


def test_tool_errors_use_the_status_where_there_is_one() -> None:
    """A failed function output gets a status; for a custom tool the failure is a loss (W31)."""
    calls = (ToolCall.create("a", "f"), ToolCall.create("b", "g", "x", kind="custom"))
    results = (ToolResult.error("a", "no"), ToolResult.error("b", "no"))
    messages = (Message.assistant(tool_calls=calls), Message.tool(*results))
    items, lost = _sent(DIALECT.encode_request(Request(messages=messages)))
    assert items[2] == {
        "type": "function_call_output", "call_id": "a", "output": "no", "status": "incomplete"
    }  # fmt: skip
    assert items[3] == {"type": "custom_tool_call_output", "call_id": "b", "output": "no"}
    assert lost == ["messages[1].parts[1].is_error"]


def test_media_in_outputs_are_sent_natively() -> None:
    """Images and files in outputs are sent natively; audio is a loss (W31)."""
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


def test_long_argument_names_are_shortened() -> None:
    """Long argument names are shortened and stay distinct; the call is kept (W39)."""
    arguments = {"n" * 300 + "a": 1, "n" * 300 + "b": [{"m" * 257: 2}], "short": 3}
    asked = plain_call() | {"arguments": json.dumps(arguments)}
    items, lost = sent(USER, asked, output())
    told = json.loads(items[1]["arguments"])
    assert len(told) == 3
    assert told["short"] == 3
    assert max(map(len, told)) == 256
    assert lost == ["messages[1].parts[0].arguments"]


def test_invalid_json_arguments_are_unchanged() -> None:
    """Arguments are a string on this wire, so invalid JSON is sent unchanged."""
    items, lost = sent(USER, plain_call() | {"arguments": "{broken"}, output())
    assert items[1]["arguments"] == "{broken"
    assert lost == []


# --- contents and settings


def test_text_types_follow_the_role() -> None:
    """Text parts are sent as `input_text` or `output_text`, depending on the role (W30)."""
    parts = [{"type": "text", "text": "a"}, {"type": "input_text", "text": "b"}]
    parts.append({"type": "output_text", "text": "c"})
    items, lost = sent({"role": "user", "content": parts}, {"role": "assistant", "content": parts})
    assert [part["type"] for part in items[0]["content"]] == ["input_text"] * 3
    assert [part["type"] for part in items[1]["content"]] == ["output_text"] * 3
    assert lost == []


def test_audio_is_replaced_by_text() -> None:
    """Audio isn't supported here: it is replaced by a text and reported as a loss."""
    request = Request(messages=(Message.user("Listen:", Audio.from_format("UklGRg==", "wav")),))
    items, lost = _sent(DIALECT.encode_request(request))
    assert [part["type"] for part in items[0]["content"]] == ["input_text", "input_text"]
    assert lost == ["messages[0].parts[1]"]


def test_low_max_tokens_is_raised() -> None:
    """`max_output_tokens` is raised to the minimum of 16, and the change is reported."""
    request = Request(messages=(Message.user("Hi"),), sampling=Sampling(max_tokens=5))
    encoded = DIALECT.encode_request(request)
    assert encoded.body["max_output_tokens"] == 16
    assert [loss.path for loss in encoded.losses] == ["sampling.max_tokens"]


def test_open_schemas_are_not_strict() -> None:
    """A schema with `additionalProperties` is sent without strict mode (W14)."""
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
def test_nested_grammar_format_is_flattened(form: dict[str, Any]) -> None:
    """Chat's nested grammar format is written in the flat form of this dialect."""
    tool = make_definition("f", kind="custom", format=form, origin=Origin(dialect="openai-chat"))
    body = DIALECT.encode_request(Request(messages=(Message.user("Hi"),), tools=(tool,))).body
    assert body["tools"][0]["format"] == {"type": "grammar", "syntax": "regex", "definition": "a+"}


def test_empty_history_gets_an_opening_message() -> None:
    """If nothing can be sent, an opening is added, unless the provider stores the history."""
    state = State(previous_response_id="resp_1")
    foreign = Message(Role.ASSISTANT, (Thinking("hm"),))
    encoded = DIALECT.encode_request(Request(messages=(foreign,)))
    assert encoded.body["input"] == OPENING
    assert [loss.path for loss in encoded.losses] == ["messages[0].parts[0]"]
    assert [repair.action for repair in encoded.repairs] == ["added"]
    assert DIALECT.encode_request(Request(messages=(foreign,), state=state)).body["input"] == []


def test_edited_call_keeps_its_result() -> None:
    """Editing a call doesn't add a placeholder output beside the existing one."""
    wire = {"model": "m", "input": [USER, plain_call(), output()]}
    request = DIALECT.decode_request(wire)
    first, said, answered = request.messages
    edited = said.replace(parts=(said.tool_calls[0].replace(input={"edited": True}),))
    encoded = DIALECT.encode_request(request.replace(messages=(first, edited, answered)))
    assert kinds(encoded.body["input"]) == ["message", "function_call", "function_call_output"]
    assert encoded.body["input"][2] == output()
