"""What the provider keeps, and what it does not: both ways to hold a conversation."""

from __future__ import annotations

from typing import Any

import pytest

import dragoman
from dragoman.model.messages import Message
from dragoman.model.requests import Request, Sampling, State
from dragoman.model.responses import Response
from dragoman.model.tools import ToolCall, ToolResult
from dragoman.wire.fitting.pairing import UNKNOWN
from dragoman.wire.openai_responses.codec import DIALECT
from dragoman.wire.openai_responses.dialect import TARGET

SEALED = "reasoning.encrypted_content"
LOGPROBS = "message.output_text.logprobs"
FIRST: dict[str, Any] = {
    "id": "resp_1",
    "model": "m",
    "status": "completed",
    "output": [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "eA=="},
        {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f",
         "arguments": "{}", "status": "completed"},
        {"type": "custom_tool_call", "id": "ctc_2", "call_id": "call_2", "name": "g",
         "input": "x", "status": "completed"},
    ],
}  # fmt: skip
RESULTS = Message.tool(
    ToolResult.success("call_1", "one"), ToolResult("call_2", "two", kind="custom")
)
OUTPUTS = [
    {"type": "function_call_output", "call_id": "call_1", "output": "one"},
    {"type": "custom_tool_call_output", "call_id": "call_2", "output": "two"},
]


def body_of(request: Request) -> dict[str, Any]:
    """What is sent for a request, which breaks no rule and loses nothing."""
    encoded = DIALECT.encode_request(request)
    assert encoded.losses == ()
    assert [v for v in DIALECT.check(encoded.body) if v.path != "model"] == []
    return encoded.body


def first() -> Response:
    """The first answer, which calls two tools."""
    return DIALECT.decode_response(FIRST)


def test_a_conversation_that_is_sent_whole() -> None:
    """Nothing is stored: the history goes along, and reasoning comes back sealed."""
    state = State(store=False)
    asked = (Message.user("Hi"),)
    assert body_of(Request(model="m", messages=asked, state=state)) == {
        "model": "m", "input": "Hi", "store": False, "include": [SEALED]
    }  # fmt: skip
    messages = (*asked, first().message, RESULTS)
    assert body_of(Request(model="m", messages=messages, state=state)) == {
        "model": "m",
        "input": [{"role": "user", "content": "Hi"}, *FIRST["output"], *OUTPUTS],
        "store": False,
        "include": [SEALED],
    }


@pytest.mark.parametrize(
    "state", [State(previous_response_id="resp_1"), State(conversation="conv_1", store=True)]
)
def test_a_conversation_that_the_provider_keeps(state: State) -> None:
    """Only what is new is sent; the calls that it answers are with the provider."""
    body = body_of(Request(model="m", messages=(RESULTS,), state=state))
    assert body.pop("input") == OUTPUTS
    assert body == {"model": "m"} | {
        name: getattr(state, name)
        for name in ("previous_response_id", "conversation", "store")
        if getattr(state, name) is not None
    }


def test_both_ways_say_the_same() -> None:
    """The stateful request and the last part of the stateless one are the same items."""
    whole = body_of(Request(messages=(Message.user("Hi"), first().message, RESULTS)))
    kept = State(previous_response_id=first().id)
    assert whole["input"][-2:] == body_of(Request(messages=(RESULTS,), state=kept))["input"]


def test_without_the_call_the_result_says_its_kind() -> None:
    """Results of calls that are elsewhere are of the kind that they say; others of their call's."""
    for kind in ("function", "custom"):
        result = ToolResult("call_9", "ok", kind=kind)
        request = Request(
            messages=(Message.tool(result),), state=State(previous_response_id="resp_1")
        )
        (item,) = body_of(request)["input"]
        assert DIALECT.decode_request({"input": [item]}).messages[0].tool_results[0].kind == kind
    call = ToolCall.create("call_9", "g", "x", kind="custom")
    messages = (Message.assistant(tool_calls=[call]), Message.tool("call_9", "ok"))
    assert body_of(Request(messages=messages))["input"][1]["type"] == "custom_tool_call_output"


def test_a_kind_is_not_what_was_said() -> None:
    """A result reloads with its kind, and says the same as one without."""
    result = ToolResult("call_9", "ok", kind="custom")
    message = Message.tool(result)
    again = Message.from_json(message.to_json())
    assert again.identical(message)
    assert again.tool_results[0].kind == "custom"
    assert message == Message.tool(ToolResult("call_9", "ok"))
    with pytest.raises(dragoman.errors.InvalidInputError):
        result.replace(kind="odd")


def test_calls_that_were_not_answered_are_with_state_too() -> None:
    """The provider may have earlier calls, but not the output of one that is sent here."""
    call = ToolCall.create("call_5", "f")
    request = Request(
        messages=(Message.assistant(tool_calls=[call]), Message.user("Well?")),
        state=State(previous_response_id="resp_1"),
    )
    items = body_of(request)["input"]
    assert items[1] == {"type": "function_call_output", "call_id": "call_5", "output": UNKNOWN}
    assert items[2] == {"role": "user", "content": "Well?"}


@pytest.mark.parametrize("target", [n for n in dragoman.dialects() if n != "openai-responses"])
def test_other_dialects_have_no_such_state(target: str) -> None:
    """A history that is with one provider can't be continued at another, and that is told."""
    state = State(previous_response_id="resp_1")
    request = Request(model="m", messages=(RESULTS, Message.user("And?")), state=state)
    encoded = dragoman.dialect(target).encode_request(request)
    lost = [loss.path for loss in encoded.losses]
    assert any(path.startswith("state") for path in lost)


@pytest.mark.parametrize(
    "came", [{"previous_response_id": "r"}, {"conversation": {"id": "c", "x": 1}}]
)
def test_a_host_that_keeps_nothing_is_asked_for_nothing(came: dict[str, Any]) -> None:
    """W38: the same dialect at a host without a memory; that the past is missing is told."""
    (field,) = came
    request = DIALECT.decode_request({"model": "m", "input": "Hi", **came})
    asked = request.replace(messages=(Message.user("Hi"),))
    encoded = DIALECT.encode_request(asked, TARGET.with_flags({"state.fields": ()}))
    assert encoded.body == {"model": "m", "input": "Hi"}
    assert [loss.path for loss in encoded.losses] == [f"state.{field}"]


# --- what should come along


@pytest.mark.parametrize(
    "fields",
    [
        {"store": False},
        {"store": False, "include": []},
        {"store": False, "include": None},
        {"store": False, "include": ["a"]},
        {"store": False, "include": ["a", SEALED]},
        {"store": False, "include": [LOGPROBS]},
        {"store": True, "include": [SEALED]},
        {"include": [SEALED, LOGPROBS]},
        {"include": 5},
    ],
)
def test_a_request_asks_for_what_it_asked_for(fields: dict[str, Any]) -> None:
    """What came in this dialect does not ask for more than it did, also after being stored."""
    body = {"model": "m", "input": "Hi", **fields}
    request = DIALECT.decode_request(body)
    for value in (request, Request.from_json(request.to_json())):
        assert DIALECT.encode_request(value).body == body


def test_what_is_asked_for_is_added_and_taken_away() -> None:
    """Edits count: log probabilities on and off, beside what else was asked for."""
    request = DIALECT.decode_request({"input": "Hi", "include": ["a", LOGPROBS]})
    off = request.replace(sampling=Sampling())
    assert body_of(off)["include"] == ["a"]
    on = off.replace(sampling=Sampling(logprobs=True), state=State(store=False))
    assert body_of(on)["include"] == ["a", LOGPROBS, SEALED]
    assert "include" not in body_of(
        Request(messages=(Message.user("Hi"),), state=State(store=True))
    )


def test_the_provider_s_own_tools_may_come_first() -> None:
    """An answer that thought in silence and searched first goes back as it came, ids and all."""
    searched: list[dict[str, Any]] = [
        {"type": "web_search_call", "id": "ws_1", "status": "completed",
         "action": {"type": "search", "query": "x"}},
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
         "content": [{"type": "output_text", "text": "Found.", "annotations": []}]},
    ]  # fmt: skip
    usage = {"input_tokens": 1, "output_tokens": 9, "total_tokens": 10,
             "output_tokens_details": {"reasoning_tokens": 5}}  # fmt: skip
    answer = DIALECT.decode_response({**FIRST, "output": searched, "usage": usage}).message
    sent = body_of(Request(messages=(Message.user("Hi"), answer, Message.user("And?"))))
    assert sent["input"][1:3] == searched
