"""llama.cpp's server speaks three dialects, each with gaps that the flags of its targets bridge."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

import dragoman
from dragoman.model.events import ChoiceFinish
from dragoman.model.frozen import EMPTY
from dragoman.model.messages import Message
from dragoman.model.parts import Origin, Text, Thinking
from dragoman.model.requests import Output, Request, Sampling
from dragoman.model.roles import Role
from dragoman.model.tools import ToolChoice, ToolDefinition
from dragoman.model.usage import FinishReason
from dragoman.wire.encoded import Encoded
from dragoman.wire.target import Target

RESPONSES = "openai-responses"
DIALECTS = ("openai-chat", RESPONSES, "anthropic")
HI = Message.user("Hi")
SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer", "maximum": 3}},
    "required": ["n"],
    "additionalProperties": False,
}
TOOLS = (
    ToolDefinition("first", "One", SCHEMA),
    ToolDefinition("second", "Two", {"type": "object", "oneOf": [SCHEMA, SCHEMA]}),
    ToolDefinition("third", "Three", SCHEMA),
)


def _target(dialect: str, changes: Mapping[str, Any] = EMPTY) -> Target:
    return dragoman.provider("llama.cpp").target("m", dialect).with_flags(changes)


def _encoded(
    dialect: str, request: Request, changes: Mapping[str, Any] = EMPTY
) -> tuple[Encoded, dict[str, Any]]:
    """The encoded request, which must pass the rules for this server."""
    speaker, target = dragoman.dialect(dialect), _target(dialect, changes)
    made = speaker.encode_request(request, target)
    body: dict[str, Any] = json.loads(made.to_bytes())
    assert [one for one in speaker.check(body, target=target) if one.severity == "error"] == []
    return made, body


def _names(body: dict[str, Any]) -> list[str]:
    return [(tool.get("function") or tool)["name"] for tool in body.get("tools", [])]


def _chosen(body: dict[str, Any]) -> Any:
    choice = body.get("tool_choice")
    return choice["type"] if isinstance(choice, dict) else choice


# --- tool choice


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("choice", "sent", "words"),
    [
        (ToolChoice("named", ("third",)), ["third"], {"required", "any"}),
        (ToolChoice("allowed", ("third", "first")), ["first", "third"], {None, "auto"}),
        (
            ToolChoice("allowed", ("first",), is_required=True),
            ["first"],
            {"required", "any"},
        ),
        (ToolChoice("required"), ["first", "second", "third"], {"required", "any"}),
    ],
)
def test_unsupported_tool_choices_filter_the_tools(
    dialect: str, choice: ToolChoice, sent: list[str], words: set[str | None]
) -> None:
    """The server would take the choice for `auto`, so only the chosen tools are sent."""
    _, body = _encoded(dialect, Request(messages=(HI,), tools=TOOLS, tool_choice=choice))
    assert _names(body) == sent
    assert _chosen(body) in words


@pytest.mark.parametrize("dialect", DIALECTS)
def test_tool_choice_none(dialect: str) -> None:
    """The value "none" is sent if the dialect has it; otherwise the tools are left out."""
    request = Request(messages=(HI,), tools=TOOLS, tool_choice=ToolChoice("none"))
    _, body = _encoded(dialect, request)
    assert (_chosen(body) == "none") is (dialect != "anthropic")
    assert bool(_names(body)) is (dialect != "anthropic")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_choice_of_an_unknown_tool_keeps_all_tools(dialect: str) -> None:
    """Sending no tools would change the meaning."""
    request = Request(messages=(HI,), tools=TOOLS, tool_choice=ToolChoice("named", ("fourth",)))
    assert _names(_encoded(dialect, request)[1]) == ["first", "second", "third"]


def test_losses_have_the_tools_original_index() -> None:
    """The index counts tools that are not sent."""
    request = Request(messages=(HI,), tools=TOOLS, tool_choice=ToolChoice("named", ("second",)))
    made, _ = _encoded("anthropic", request)
    assert made.losses
    assert all(loss.path.startswith("tools[1]") for loss in made.losses)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_tool_schemas_are_unchanged(dialect: str) -> None:
    """The server's grammars support what vendors refuse in strict schemas."""
    made, body = _encoded(dialect, Request(messages=(HI,), tools=TOOLS[:1]))
    assert '"maximum": 3' in json.dumps(body["tools"])
    assert made.losses == ()


# --- forced calls


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("mode", ["required", "named"])
def test_a_forced_call_is_prefilled(dialect: str, mode: Any) -> None:
    """The start of the call is sent as the last assistant message."""
    names = ("first",) if mode == "named" else ()
    request = Request(messages=(HI,), tools=TOOLS, tool_choice=ToolChoice(mode, names))
    _, body = _encoded(dialect, request, {"tools.call_opening": "<call>"})
    said = body["input" if dialect == RESPONSES else "messages"]
    assert said[-1]["role"] == "assistant"
    assert said[-1]["content"] == "<call>"
    assert len(said) == 2


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "changes",
    [
        {"tool_choice": None},
        {"tool_choice": ToolChoice("auto")},
        {"tool_choice": ToolChoice("none")},
        {"tools": ()},
        {"messages": (HI, Message.assistant("I"))},
    ],
)
def test_no_call_is_prefilled_unless_forced(dialect: str, changes: dict[str, Any]) -> None:
    """Nor is one if the request has a prefilled answer already."""
    request = Request(messages=(HI,), tools=TOOLS, tool_choice=ToolChoice("required"))
    _, body = _encoded(dialect, request.replace(**changes), {"tools.call_opening": "<call>"})
    assert "<call>" not in json.dumps(body)


# --- Responses


@pytest.mark.parametrize(
    "answer",
    [
        Message.assistant("Yes."),
        Message(Role.ASSISTANT, (Text("Yes."), Text("No."))),
        Message(Role.ASSISTANT, (Text("Yes.", item_id="msg_1"),)),
    ],
)
def test_an_assistant_message_has_its_type(answer: Message) -> None:
    """The server refuses it otherwise; OpenAI gets it as before."""
    request = Request(messages=(HI, answer, HI))
    _, body = _encoded(RESPONSES, request)
    assert all(item["type"] == "message" for item in body["input"][1:-1])
    assert "type" not in body["input"][0]
    _, usual = _encoded(RESPONSES, request, {"fields.needs_message_type": False})
    assert ["type" in item for item in usual["input"][1:-1]] == [
        part.item_id is not None for part in answer.parts
    ][: len(usual["input"]) - 2]


def test_thinking_is_sent_as_one_text() -> None:
    """Summaries become text and seals are losses, as the server refuses both."""
    parts = (
        Thinking("One.", None, "summary", item_id="rs_1"),
        Thinking("Two.", None, "full", item_id="rs_1"),
        Thinking("", "sealed", "redacted", item_id="rs_2"),
        Text("Yes."),
    )
    answer = Message(Role.ASSISTANT, parts, origin=Origin(dialect=RESPONSES))
    request = Request(messages=(HI, answer, HI))
    made, body = _encoded(RESPONSES, request)
    (thought,) = (item for item in body["input"] if item.get("type") == "reasoning")
    assert thought["content"] == [{"type": "reasoning_text", "text": "One.\n\nTwo."}]
    assert thought["summary"] == []
    assert [loss.path for loss in made.losses] == ["messages[1].parts[2]"]


def test_the_response_format_is_where_the_server_looks() -> None:
    """It is sent in Chat's field as well as in the dialect's own."""
    output = Output(format="schema", schema=SCHEMA, name="n", strict=True)
    _, body = _encoded(RESPONSES, Request(messages=(HI,), output=output))
    asked = body["response_format"]
    assert asked["type"] == "json_schema"
    assert asked["json_schema"] == {"name": "n", "schema": SCHEMA, "strict": True}
    assert body["text"]["format"]["schema"] == SCHEMA
    _, body = _encoded(RESPONSES, Request(messages=(HI,), output=Output(format="json")))
    assert body["response_format"] == {"type": "json_object"}
    _, body = _encoded(RESPONSES, Request(messages=(HI,), output=Output()))
    assert "response_format" not in body


def test_an_unsupported_response_format_is_a_loss() -> None:
    """The server's Anthropic endpoint has no field for it."""
    output = Output(format="schema", schema=SCHEMA)
    made, body = _encoded("anthropic", Request(messages=(HI,), output=output))
    assert "output_config" not in body
    assert [loss.path for loss in made.losses] == ["output"]


def _answer(written: int, *items: dict[str, Any]) -> dict[str, Any]:
    text = {"type": "output_text", "text": "Well", "annotations": []}
    said = {
        "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
        "content": [text],
    }  # fmt: skip
    usage = {"input_tokens": 9, "output_tokens": written, "total_tokens": 9 + written}
    return {
        "id": "resp_1", "object": "response", "created_at": 1, "model": "m",
        "status": "completed", "output": list(items) or [said], "usage": usage,
    }  # fmt: skip


CALL = {
    "type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "first",
    "arguments": '{"n": 1', "status": "completed",
}  # fmt: skip


@pytest.mark.parametrize("is_streamed", [False, True])
@pytest.mark.parametrize(
    ("limit", "body", "finish"),
    [
        (5, _answer(5), FinishReason.LENGTH),
        (5, _answer(4), FinishReason.STOP),
        (None, _answer(5), FinishReason.STOP),
        (5, _answer(5, CALL), FinishReason.LENGTH),
        (5, _answer(4, CALL), FinishReason.TOOL_CALLS),
        (5, {**_answer(5), "status": "failed"}, FinishReason.ERROR),
    ],
)
def test_truncation_is_detected_by_the_token_count(
    limit: int | None, body: dict[str, Any], finish: FinishReason, *, is_streamed: bool
) -> None:
    """The server reports `completed`, but a truncated call must not be run."""
    request = Request(messages=(HI,), sampling=Sampling(max_tokens=limit))
    context = _encoded(RESPONSES, request)[0].context
    speaker = dragoman.dialect(RESPONSES)
    if is_streamed:
        decoder = speaker.stream_decoder(context)
        kind = f"response.{body['status']}"
        frame = json.dumps({"type": kind, "response": body})
        events = decoder.feed(f"event: {kind}\ndata: {frame}\n\n".encode())
        ends = [event.finish for event in events if isinstance(event, ChoiceFinish)]
        assert ends == [finish]
        response = decoder.response
    else:
        response = speaker.decode_response(json.dumps(body), context)
    assert response.finish is finish
    assert response.message.finish is finish


def test_other_servers_status_is_trusted() -> None:
    """OpenAI reports truncation itself."""
    request = Request(messages=(HI,), sampling=Sampling(max_tokens=16))
    speaker = dragoman.dialect(RESPONSES)
    context = speaker.encode_request(request).context
    assert speaker.decode_response(json.dumps(_answer(16)), context).finish is FinishReason.STOP
