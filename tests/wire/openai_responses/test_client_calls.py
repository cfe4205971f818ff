"""Calls that the client runs (shell, patch, computer) are tool calls and round-trip."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman
from dragoman import Image, Message, Request, Response, ServerToolCall, ToolCall, ToolResult
from dragoman.model.messages import make_message
from dragoman.model.parts import Origin, ServerToolResult
from dragoman.model.roles import Role
from dragoman.model.usage import FinishReason
from dragoman.wire.openai_responses.content_types import BUILT_IN_CALLS

DIALECT = dragoman.dialect("openai-responses")
USER = {"role": "user", "content": "Hi"}
CALLS: dict[str, dict[str, Any]] = {
    "shell_call": {"action": {"commands": ["ls"], "timeout_ms": None}},
    "local_shell_call": {"action": {"type": "exec", "command": ["ls"], "env": {}}},
    "apply_patch_call": {"operation": {"type": "delete_file", "path": "a"}},
    "computer_call": {"action": {"type": "screenshot"}, "pending_safety_checks": []},
}
SCREEN = {"type": "computer_screenshot", "image_url": "data:image/png;base64,iVBORw0KGgo="}
RAN = {"stdout": "a\n", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}
OUTPUTS: dict[str, dict[str, Any]] = {
    "shell_call": {"output": [RAN]},
    "local_shell_call": {"output": "a"},
    "apply_patch_call": {"output": "ok", "status": "completed"},
    "computer_call": {"output": SCREEN},
}
KINDS = sorted(CALLS)


def asked(kind: str, call_id: str = "call_1", **fields: Any) -> dict[str, Any]:
    """A call item as the provider sends it."""
    item = {"type": kind, "id": "x_1", "call_id": call_id, "status": "completed"}
    return {**item, **CALLS[kind], **fields}


def answer(kind: str, call_id: str = "call_1", **fields: Any) -> dict[str, Any]:
    """The output item that the client sends."""
    named = "id" if kind == "local_shell_call" else "call_id"
    return {"type": f"{kind}_output", named: call_id, **OUTPUTS[kind], **fields}


def read(*items: Any, **fields: Any) -> Request:
    """Decodes a request with these items."""
    return DIALECT.decode_request({"model": "gpt-5", "input": [USER, *items], **fields})


def items(request: Request, **options: Any) -> list[Any]:
    """The request's encoded items, without the first one."""
    found: list[Any] = DIALECT.encode_request(request, **options).body["input"][1:]
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_client_run_call_is_a_tool_call(kind: str) -> None:
    """A call that the client runs has a name, arguments and a result, and round-trips."""
    request = read(asked(kind), answer(kind))
    [call], [result] = request.messages[1].tool_calls, request.messages[2].tool_results
    said = CALLS[kind].get("action") or CALLS[kind]["operation"]
    assert (call.name, call.id) == (kind.removesuffix("_call"), "call_1")
    assert dict(call.arguments) == said
    assert result.call_id == "call_1"
    assert items(request) == [asked(kind), answer(kind)]
    assert items(request, target=DIALECT.target) == [asked(kind), answer(kind)]
    again = Request.from_json(request.to_json())
    assert items(again) == [asked(kind), answer(kind)]


def test_results_have_text_json_or_images() -> None:
    """Text-only results hold text, others the wire's JSON; screenshots are images."""
    pairs = [item for kind in KINDS for item in (asked(kind, kind), answer(kind, kind))]
    many = {"type": "shell_call_output", "call_id": "m", "output": [RAN, RAN]}
    request = read(*pairs, asked("shell_call", "m"), many)
    found = {r.call_id: r for message in request.messages for r in message.tool_results}
    assert found["shell_call"].content == "a\n"
    assert found["m"].data == [RAN, RAN]
    assert found["local_shell_call"].content == "a"
    assert found["apply_patch_call"].content == "ok"
    [picture] = found["computer_call"].parts
    assert isinstance(picture, Image)
    assert picture.data == "iVBORw0KGgo="


@pytest.mark.parametrize("kind", KINDS)
def test_older_stored_histories_encode_to_the_same_items(kind: str) -> None:
    """Histories stored with server tool parts encode to the same items."""
    name, origin = kind.removesuffix("_call"), Origin(dialect="openai-responses")
    call = ServerToolCall(name, "call_1", input=CALLS[kind], item_id="x_1", origin=origin)
    fields = {key: value for key, value in OUTPUTS[kind].items() if key != "status"}
    result = ServerToolResult(name, "call_1", fields, origin=origin)
    said, given_back = Message.assistant([call]), make_message(Role.TOOL, (result,))
    messages = (Message.user("Hi"), said, given_back)
    stored = Request.from_json(Request(model="gpt-5", messages=messages).to_json())
    found = items(stored)
    assert found[0] == asked(kind)
    assert found[1]["output"] == OUTPUTS[kind]["output"]


@pytest.mark.parametrize("kind", KINDS)
def test_response_with_a_client_run_call_finishes_with_tool_calls(kind: str) -> None:
    """The finish reason of such a response is `TOOL_CALLS`, and the response round-trips."""
    body = {"id": "r", "object": "response", "status": "completed", "model": "m",
            "output": [asked(kind)]}  # fmt: skip
    response = DIALECT.decode_response(body)
    assert response.finish is FinishReason.TOOL_CALLS
    assert [call.name for call in response.tool_calls] == [kind.removesuffix("_call")]
    assert DIALECT.encode_response(response).body == body


def test_shell_run_by_the_provider_is_a_server_tool() -> None:
    """A shell call that runs in the provider's container is a server tool call with its result."""
    there = {"type": "container_reference", "container_id": "c"}
    ran = asked("shell_call", environment=there)
    output = {"type": "shell_call_output", "id": "sho_1", "call_id": "call_1", "output": [RAN]}
    request = read(ran, output)
    assert request.messages[1].tool_calls == ()
    assert [type(part) for part in request.messages[1].parts] == [ServerToolCall, ServerToolResult]
    assert items(request) == [ran, output]
    local = asked("shell_call", environment={"type": "local"})
    assert len(read(local).messages[1].tool_calls) == 1


def test_client_output_with_an_id_is_still_a_tool_result() -> None:
    """An output with an id from the API is a tool result if its call is run by the client."""
    output = answer("shell_call", id="sho_1")
    request = read(asked("shell_call"), output)
    assert [message.role.value for message in request.messages] == ["user", "assistant", "tool"]
    assert items(request) == [asked("shell_call"), output]


# --- edits


@pytest.mark.parametrize("kind", KINDS)
def test_edited_call_is_written_with_its_new_arguments(kind: str) -> None:
    """Edited arguments are written to the item; a renamed call becomes a function call."""
    request = read(asked(kind), answer(kind))
    message = request.messages[1]
    [call] = message.tool_calls
    said = {"type": "new", "path": "b"}
    changed = message.replace(parts=(call.replace(input=said),))
    first, last, result = request.messages[0], changed, request.messages[2]
    [item, output] = items(request.replace(messages=(first, last, result)))
    assert item[next(key for key in ("action", "operation") if key in CALLS[kind])] == said
    assert output == answer(kind)
    renamed = message.replace(parts=(call.replace(name="other"),))
    untouched = items(request.replace(messages=(first, renamed, result)))
    assert [each["type"] for each in untouched] == ["function_call", f"{kind}_output"]
    edited = result.replace(parts=result.parts)
    found = items(request.replace(messages=(first, renamed, edited)))
    assert [each["type"] for each in found] == ["function_call", "function_call_output"]
    assert found[0].keys() == {"type", "call_id", "name", "arguments"}
    assert found[1].keys() == {"type", "call_id", "output"}


@pytest.mark.parametrize("kind", KINDS)
def test_result_built_in_code_gets_the_output_type_of_its_call(kind: str) -> None:
    """The output has the type that its call requires, for errors too."""
    for is_error in (False, True):
        request = read(asked(kind))
        result = ToolResult("call_1", "a text", is_error=is_error)
        messages = (*request.messages, Message.tool(result))
        [_, item] = items(request.replace(messages=messages))
        assert item["type"] == f"{kind}_output"
        assert "a text" in json.dumps(item) or kind == "computer_call"
        if kind == "apply_patch_call":
            assert item["status"] == ("failed" if is_error else "completed")
        elif is_error:
            assert item["status"] == "incomplete"


def test_computer_result_without_an_image_is_reported() -> None:
    """A text result for a computer call gets a placeholder image, and the text is a loss."""
    request = read(asked("computer_call"))
    messages = (*request.messages, Message.tool(ToolResult.error("call_1", "no screen")))
    encoded = DIALECT.encode_request(request.replace(messages=messages))
    assert [loss.path for loss in encoded.losses] == ["messages[2].parts[0].content"]
    assert [repair.path for repair in encoded.repairs] == ["messages[2].parts[0]"]


@pytest.mark.parametrize("kind", KINDS)
def test_output_type_follows_the_tool_name_without_the_call(kind: str) -> None:
    """If the call is stored by the provider, the tool name determines the output type."""
    name = kind.removesuffix("_call")
    picture = Image(data="iVBORw0KGgo=", mime="image/png")
    result = ToolResult("call_1", (picture,), tool_name=name)
    request = Request(messages=(Message.tool(result),)).replace(
        tools=DIALECT.decode_request({"tools": [{"type": name}], "input": []}).tools,
        state=dragoman.model.State(previous_response_id="resp_1"),
    )
    [item] = DIALECT.encode_request(request).body["input"]
    assert item["type"] == f"{kind}_output"


# --- arbitrary items

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=4,
)  # fmt: skip
_FIELDS = st.sampled_from(
    ["id", "call_id", "status", "action", "actions", "operation", "output", "environment", "caller",
     "max_output_length", "pending_safety_checks", "acknowledged_safety_checks", "new"]
)  # fmt: skip
_GOOD = st.sampled_from(["call_1", "incomplete", "failed", "completed", "", SCREEN, [RAN], RAN,
                         {"type": "local"}, {"commands": ["ls"]}, {"type": "wait"}])  # fmt: skip


@given(
    st.lists(
        st.tuples(
            st.sampled_from([*BUILT_IN_CALLS, *BUILT_IN_CALLS.values()]),
            st.dictionaries(_FIELDS, _GOOD | _JSON, max_size=6),
            st.booleans(),
        ),
        max_size=4,
    )
)
def test_arbitrary_items_round_trip(given_items: list[Any]) -> None:
    """Unusual ids, values of the wrong type and unknown fields round-trip."""
    made: list[Any] = []
    for kind, fields, is_good in given_items:
        base = {}
        if is_good:
            base = asked(kind) if kind in CALLS else answer(kind.removesuffix("_output"))
        made.append({**base, **fields, "type": kind})
    wire = {"model": "gpt-5", "input": [USER, *made]}
    request = DIALECT.decode_request(wire)
    assert DIALECT.encode_request(request).body == wire
    stored = Request.from_json(request.to_json())
    assert DIALECT.encode_request(stored).body == wire
    for name in dragoman.dialects():
        dragoman.dialect(name).encode_request(request)  # must not raise


# --- streams


def test_streamed_client_call_is_complete_at_the_end() -> None:
    """A patch call streamed in deltas is complete at the end, in every dialect."""
    events: list[dict[str, Any]] = [
        {"type": "response.created",
         "response": {"id": "r", "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": {
            "id": "apc_1", "type": "apply_patch_call", "status": "in_progress", "call_id": "c",
            "operation": {"type": "create_file", "diff": "", "path": "a"}}},
        {"type": "response.apply_patch_call_operation_diff.delta", "output_index": 0,
         "item_id": "apc_1", "delta": "+hello"},
        {"type": "response.output_item.done", "output_index": 0, "item": {
            "id": "apc_1", "type": "apply_patch_call", "status": "completed", "call_id": "c",
            "operation": {"type": "create_file", "diff": "+hello", "path": "a"}}},
        {"type": "response.completed", "response": {"id": "r", "status": "completed",
                                                    "output": []}},
    ]  # fmt: skip
    decoder = DIALECT.stream_decoder()
    told = [event for frame in events for event in decoder.feed(_sse(frame))]
    [call] = decoder.response.tool_calls
    assert call.arguments["diff"] == "+hello"
    for name in dragoman.dialects():
        dialect = dragoman.dialect(name)
        encoder, back = dialect.stream_encoder(), dialect.stream_decoder()
        back.feed(b"".join(encoder.feed(event) for event in told) + encoder.close())
        [again] = back.response.tool_calls
        assert dict(again.arguments) == dict(call.arguments)
        assert [loss.path for loss in encoder.losses if loss.path != "id"] == []


def _sse(frame: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(frame)}\n\n".encode()


def test_response_calls_keep_their_item_type() -> None:
    """Client-run calls in a stored response are written with their original items."""
    body = {"id": "r", "object": "response", "status": "completed", "model": "m",
            "output": [asked(kind, kind) for kind in KINDS]}  # fmt: skip
    response = Response.from_json(DIALECT.decode_response(body).to_json())
    assert DIALECT.encode_response(response).body["output"] == body["output"]
    assert all(isinstance(part, ToolCall) for part in response.message.parts)
