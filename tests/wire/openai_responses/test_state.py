"""Conversations stored by the provider, and conversations sent in full."""

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
    """The encoded body, which violates no rule and has no losses."""
    encoded = DIALECT.encode_request(request)
    assert encoded.losses == ()
    assert [v for v in DIALECT.check(encoded.body) if v.path != "model"] == []
    return encoded.body


def first() -> Response:
    """The first response, which calls two tools."""
    return DIALECT.decode_response(FIRST)


def test_stateless_conversation_is_sent_in_full() -> None:
    """With `store: false` the whole history is sent, and encrypted reasoning is requested."""
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
def test_stored_conversation_sends_only_new_messages(state: State) -> None:
    """Only the new results are sent; the calls they answer are stored by the provider."""
    body = body_of(Request(model="m", messages=(RESULTS,), state=state))
    assert body.pop("input") == OUTPUTS
    assert body == {"model": "m"} | {
        name: getattr(state, name)
        for name in ("previous_response_id", "conversation", "store")
        if getattr(state, name) is not None
    }


def test_stored_and_stateless_requests_have_the_same_new_items() -> None:
    """The stateful request has the same items as the end of the stateless one."""
    whole = body_of(Request(messages=(Message.user("Hi"), first().message, RESULTS)))
    kept = State(previous_response_id=first().id)
    assert whole["input"][-2:] == body_of(Request(messages=(RESULTS,), state=kept))["input"]


def test_result_kind_sets_the_output_type_without_the_call() -> None:
    """The output type follows the call's kind or, without the call, the result's own kind."""
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


def test_result_kind_is_stored_but_not_compared() -> None:
    """A result's kind survives storing, and doesn't count in equality."""
    result = ToolResult("call_9", "ok", kind="custom")
    message = Message.tool(result)
    again = Message.from_json(message.to_json())
    assert again.identical(message)
    assert again.tool_results[0].kind == "custom"
    assert message == Message.tool(ToolResult("call_9", "ok"))
    with pytest.raises(dragoman.errors.InvalidInputError):
        result.replace(kind="odd")


def test_unanswered_calls_get_an_output_with_stored_state() -> None:
    """An unanswered call in the request gets a placeholder output, even with stored state."""
    call = ToolCall.create("call_5", "f")
    request = Request(
        messages=(Message.assistant(tool_calls=[call]), Message.user("Well?")),
        state=State(previous_response_id="resp_1"),
    )
    items = body_of(request)["input"]
    assert items[1] == {"type": "function_call_output", "call_id": "call_5", "output": UNKNOWN}
    assert items[2] == {"role": "user", "content": "Well?"}


@pytest.mark.parametrize("target", [n for n in dragoman.dialects() if n != "openai-responses"])
def test_stored_state_is_a_loss_in_other_dialects(target: str) -> None:
    """Provider-stored state is reported as a loss in every other dialect."""
    state = State(previous_response_id="resp_1")
    request = Request(model="m", messages=(RESULTS, Message.user("And?")), state=state)
    encoded = dragoman.dialect(target).encode_request(request)
    lost = [loss.path for loss in encoded.losses]
    assert any(path.startswith("state") for path in lost)


@pytest.mark.parametrize(
    "came", [{"previous_response_id": "r"}, {"conversation": {"id": "c", "x": 1}}]
)
def test_state_is_left_out_for_hosts_without_state(came: dict[str, Any]) -> None:
    """For a host without stored state, the state fields are left out and reported (W38)."""
    (field,) = came
    request = DIALECT.decode_request({"model": "m", "input": "Hi", **came})
    asked = request.replace(messages=(Message.user("Hi"),))
    encoded = DIALECT.encode_request(asked, TARGET.with_flags({"state.fields": ()}))
    assert encoded.body == {"model": "m", "input": "Hi"}
    assert [loss.path for loss in encoded.losses] == [f"state.{field}"]


# --- the `include` field


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
def test_include_is_unchanged_for_own_requests(fields: dict[str, Any]) -> None:
    """A request of this dialect keeps its `include` unchanged, even after being stored."""
    body = {"model": "m", "input": "Hi", **fields}
    request = DIALECT.decode_request(body)
    for value in (request, Request.from_json(request.to_json())):
        assert DIALECT.encode_request(value).body == body


def test_edits_change_include() -> None:
    """Turning log probabilities on and off changes `include` and keeps its other entries."""
    request = DIALECT.decode_request({"input": "Hi", "include": ["a", LOGPROBS]})
    off = request.replace(sampling=Sampling())
    assert body_of(off)["include"] == ["a"]
    on = off.replace(sampling=Sampling(logprobs=True), state=State(store=False))
    assert body_of(on)["include"] == ["a", LOGPROBS, SEALED]
    assert "include" not in body_of(
        Request(messages=(Message.user("Hi"),), state=State(store=True))
    )


def test_answer_that_starts_with_a_server_tool_is_unchanged() -> None:
    """An answer with hidden reasoning and a search first is sent back unchanged, with its ids."""
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
