"""The Responses dialect: fixtures in both directions, items, ids, foreign and malformed parts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.model.frozen import EMPTY
from dragoman.model.media import Audio, File, Image, Video
from dragoman.model.messages import Message
from dragoman.model.parts import (
    CacheHint,
    Citation,
    Opaque,
    Origin,
    Refusal,
    ServerToolCall,
    Text,
    Thinking,
)
from dragoman.model.requests import Output, Request, Sampling, State, ThinkingConfig
from dragoman.model.responses import Choice, Response
from dragoman.model.roles import Role
from dragoman.model.tools import (
    ServerTool,
    ToolCall,
    ToolChoice,
    ToolDefinition,
    ToolResult,
    make_definition,
)
from dragoman.model.usage import FinishReason, Usage
from dragoman.wire.envelope import unwrap
from dragoman.wire.flags import StateFlags
from dragoman.wire.openai_responses.codec import DIALECT
from dragoman.wire.target import Target
from tests.wire.unrepaired import unrepaired

NAME = "openai-responses"
ELSEWHERE = Origin(dialect="gemini")
LOOSE = Target(
    dialect=NAME,
    state=StateFlags(fields=("previous_response_id", "conversation", "prompt", "store")),
)
"""A host that takes what it is given: what OpenAI's would refuse is in `test_request_repairs`."""

encode_request = unrepaired(DIALECT, LOOSE)


def decoded(*items: Any, **fields: Any) -> Request:
    """The request with these items as its input."""
    return DIALECT.decode_request({"model": "m", "input": list(items), **fields})


def again(*items: Any) -> list[Any]:
    """The items after decoding and encoding."""
    found: list[Any] = encode_request(decoded(*items)).body["input"]
    return found


def written(*messages: Message, **fields: Any) -> list[Any]:
    """The items of messages built in code; fails on any loss."""
    encoded = encode_request(Request(messages=messages, **fields))
    assert encoded.losses == ()
    found: list[Any] = encoded.body["input"]
    return found


def lost(*messages: Message, **fields: Any) -> list[str]:
    """The paths of the losses."""
    encoded = encode_request(Request(messages=messages, **fields))
    return [loss.path for loss in encoded.losses]


def said(text: str, **fields: Any) -> dict[str, Any]:
    """An assistant's message item."""
    return {"role": "assistant", "content": text, **fields}


def output_message(item_id: str, *texts: str, **fields: Any) -> dict[str, Any]:
    """An assistant's message item as the provider writes it."""
    parts = [{"type": "output_text", "text": text, "annotations": []} for text in texts]
    return {
        "type": "message",
        "id": item_id,
        "role": "assistant",
        "status": "completed",
        "content": parts,
        **fields,
    }


def call(call_id: str | None, **fields: Any) -> dict[str, Any]:
    """A function call item."""
    ids = {} if call_id is None else {"call_id": call_id}
    return {"type": "function_call", "name": "now", "arguments": "{}", **ids, **fields}


def output(call_id: str | None, text: str = "12:00", **fields: Any) -> dict[str, Any]:
    """The output of a function call."""
    ids = {} if call_id is None else {"call_id": call_id}
    return {"type": "function_call_output", "output": text, **ids, **fields}


def test_single_text_part_becomes_a_string() -> None:
    """A list of one plain text is normalized to a string, in messages and in tool outputs."""
    block = {"type": "input_text", "text": "hi"}
    items = again(
        {"role": "user", "content": [block]},
        {"role": "assistant", "content": [{"type": "output_text", "text": "hi"}]},
        {"type": "function_call_output", "call_id": "c", "output": [block]},
    )
    assert [items[0]["content"], items[1]["content"], items[2]["output"]] == ["hi", "hi", "hi"]


def test_string_input_stays_a_string() -> None:
    """`input` as a string and as a list of one message are kept distinct."""
    for given in ("hi", [{"role": "user", "content": "hi"}]):
        request = DIALECT.decode_request({"input": given})
        assert request.messages == (Message.user("hi"),)
        assert encode_request(request).body == {"input": given}


# --- grouping of items into messages


def test_consecutive_assistant_items_are_one_message() -> None:
    """Reasoning, texts and calls up to the next output or user message are one message."""
    request = decoded(
        {"role": "user", "content": "a"},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        said("b"),
        call("c1"),
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        output("c1"),
        output("c2"),
        said("d"),
    )
    assert [message.role for message in request.messages] == [
        Role.USER, Role.ASSISTANT, Role.TOOL, Role.TOOL, Role.ASSISTANT
    ]  # fmt: skip
    kinds = [type(part).__name__ for part in request.messages[1].parts]
    assert kinds == ["Thinking", "Text", "ToolCall", "ServerToolCall"]


@pytest.mark.parametrize(
    "items",
    [
        [said("a"), said("b")],
        [said("a", type="message"), said("b", phase="commentary"), said("c")],
        [output_message("msg_1", "a", "b"), output_message("msg_2", "c")],
        [output_message("msg_1", "a"), output_message("msg_1", "b")],
        [{"role": "assistant", "content": [{"type": "output_text", "text": t} for t in "ab"]}],
        [output_message("msg_1", "a"), said("b"), output_message("msg_2", "c", phase="x")],
        [{"type": "reasoning", "summary": []}, {"type": "reasoning", "summary": []}],
        [{"type": "reasoning", "id": "rs_1", "summary": [], "content": []}, said("a")],
        [output_message("msg_1"), output_message("msg_2", "b")],
    ],
)
def test_item_boundaries_are_kept(items: list[Any]) -> None:
    """Neighbouring items are neither merged nor split, with and without ids."""
    assert again(*items) == items


def test_texts_without_id_are_separate_items() -> None:
    """Several texts share an item only if it has an id; otherwise each text is an item."""
    assert written(Message.assistant("a", "b")) == [said("a"), said("b")]


def test_results_beside_text_become_separate_items() -> None:
    """In a user message with results and text, the results become items before the text."""
    message = Message(Role.USER, (ToolResult("c1", "ok"), Text("go on"), Image(file_id="f")))
    image = {"type": "input_image", "file_id": "f", "detail": "auto"}
    assert written(message) == [
        output("c1", "ok"),
        {"role": "user", "content": [{"type": "input_text", "text": "go on"}, image]},
    ]


def test_editing_text_keeps_extra_fields() -> None:
    """Extra fields of a part and its item are kept when only the text is replaced."""
    item = output_message("msg_1", "a", "b", phase="final_answer", odd=None)
    request = decoded(item)
    first, second = request.messages[0].parts
    message = request.messages[0].replace(parts=(first.replace(text="c"), second))
    changed = encode_request(request.replace(messages=(message,))).body["input"]
    item["content"][0]["text"] = "c"
    assert changed == [item]


def test_edits_override_extra_fields() -> None:
    """An explicit null on the wire doesn't override a value that the caller sets later."""
    body: dict[str, Any] = {
        "input": "hi",
        "temperature": None,
        "tools": [],
        "text": {"verbosity": "low"},
    }
    request = DIALECT.decode_request(body)
    assert encode_request(request).body == body
    tool = ServerTool("web_search", NAME)
    edited = request.replace(
        sampling=request.sampling.replace(temperature=0.5),
        tools=(tool,),
        output=Output(format="json"),
    )
    assert encode_request(edited).body == {
        "input": "hi",
        "temperature": 0.5,
        "tools": [{"type": "web_search"}],
        "text": {"format": {"type": "json_object"}, "verbosity": "low"},
    }


# --- ids


def test_repeated_and_missing_call_ids_become_unique() -> None:
    """Ids are unique in the model, results match their calls, and the wire ids round-trip."""
    items = [
        call("x"),
        output("x", "1"),
        call("x"),
        output("x", "2"),
        call(None),
        output(None, "3"),
    ]
    request = decoded(*items)
    calls = [c for message in request.messages for c in message.tool_calls]
    results = [r for message in request.messages for r in message.tool_results]
    assert len({made.id for made in calls}) == 3
    assert [made.id for made in calls] == [result.call_id for result in results]
    assert again(*items) == items


def test_call_without_wire_id_is_sent_with_its_model_id() -> None:
    """A call that had no id in its dialect (Gemini) is sent with its id in the model."""
    made = ToolCall("call_7", "now", "{}", wire_id=None, origin=ELSEWHERE)
    items = written(Message(Role.ASSISTANT, (made,)), Message.tool("call_7", "12:00"))
    assert items == [call("call_7"), output("call_7")]


def test_output_type_follows_the_call_type() -> None:
    """A custom tool's result is a `custom_tool_call_output`, even without its call."""
    custom = {"type": "custom_tool_call", "call_id": "c1", "name": "sh", "input": "ls"}
    answer = {"type": "custom_tool_call_output", "call_id": "c1", "output": "a.txt"}
    assert again(custom, answer) == [custom, answer]
    assert again(answer) == [answer]
    made = ToolCall.create("c1", "sh", "ls", kind="custom")
    assert written(Message.assistant(tool_calls=[made]), Message.tool("c1", "a.txt")) == [
        custom, answer
    ]  # fmt: skip


def test_foreign_item_id_is_left_out() -> None:
    """An item id with another provider's prefix is left out (W21)."""
    made = ToolCall("c1", "now", "{}", item_id="toolu_1")
    assert written(Message(Role.ASSISTANT, (made,), origin=ELSEWHERE)) == [call("c1")]


# --- built in code


def test_messages_built_in_code_are_valid() -> None:
    """Messages, media, calls and results built in code are written in valid wire form."""
    items = written(
        Message.system("Be brief."),
        Message.user(
            "Look",
            Image.from_url("https://example.com/a.png"),
            File.from_base64("JVBERi0=", "application/pdf"),
            Audio.from_format("UklGRg==", "wav"),
        ),
        Message.assistant("Yes.", tool_calls=[ToolCall.create("c1", "now", {"zone": "CET"})]),
        Message.tool(ToolResult.error("c1", "no clock"), ToolResult.success("c2", "ok")),
    )
    assert items == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [
            {"type": "input_text", "text": "Look"},
            {"type": "input_image", "image_url": "https://example.com/a.png", "detail": "auto"},
            {"type": "input_file", "file_data": "data:application/pdf;base64,JVBERi0=",
             "filename": "file"},
            {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
        ]},
        said("Yes."),
        call("c1", arguments='{"zone":"CET"}'),
        output("c1", "no clock", status="incomplete"),
        output("c2", "ok"),
    ]  # fmt: skip


def test_settings_built_in_code() -> None:
    """Sampling, format, effort, state, tools and tool choice are all written."""
    tool = ToolDefinition.create("now", "The time.")
    encoded = encode_request(
        Request(
            model="m",
            system=(Text("a"), Text("b")),
            tools=(tool,),
            tool_choice=ToolChoice("allowed", ("now",), parallel=False),
            sampling=Sampling(max_tokens=9, logprobs=True, top_logprobs=2),
            output=Output(format="schema", schema={"type": "object"}, strict=True),
            thinking=ThinkingConfig(enabled=False, visible=True),
            state=State(conversation="conv_1"),
            stream=True,
        )
    )
    assert encoded.losses == ()
    nothing = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    assert encoded.body == {
        "model": "m",
        "instructions": "a\n\nb",
        "tools": [{"type": "function", "name": "now", "description": "The time.",
                   "parameters": nothing, "strict": True}],
        "tool_choice": {"type": "allowed_tools", "mode": "auto",
                        "tools": [{"type": "function", "name": "now"}]},
        "parallel_tool_calls": False,
        "max_output_tokens": 9,
        "include": ["message.output_text.logprobs"],
        "top_logprobs": 2,
        "text": {"format": {"type": "json_schema", "name": "answer",
                            "schema": nothing, "strict": True}},
        "reasoning": {"effort": "none", "summary": "auto"},
        "conversation": "conv_1",
        "stream": True,
    }  # fmt: skip


def test_foreign_tools_are_written_as_not_strict() -> None:
    """A foreign tool gets `strict: false`, since strict is the default here (W16)."""
    tool = make_definition("a.b", origin=ELSEWHERE)
    body = encode_request(Request(tools=(tool,))).body
    nothing = {"type": "object", "properties": {}}
    assert body["tools"] == [
        {"type": "function", "name": "a.b", "parameters": nothing, "strict": False}
    ]


@pytest.mark.parametrize(
    "chosen",
    [
        "auto",
        "none",
        "required",
        "someday",
        {"type": "function", "name": "now"},
        {"type": "custom", "name": "sh"},
        {"type": "web_search"},
        {"type": "mcp", "server_label": "wiki", "name": "ask"},
        {"type": "mcp", "server_label": "unknown"},
        {"type": "allowed_tools", "mode": "required", "tools": [{"type": "custom", "name": "sh"}]},
        {
            "type": "allowed_tools",
            "mode": "auto",
            "tools": [{"type": "mcp", "server_label": "wiki"}],
        },
        {"type": "allowed_tools", "mode": "auto", "tools": [5]},
        None,
        {},
    ],
)
@pytest.mark.parametrize("parallel", [{}, {"parallel_tool_calls": False}])
def test_every_tool_choice_round_trips(chosen: Any, parallel: dict[str, Any]) -> None:
    """Known and unknown tool choices round-trip, with and without parallel calls."""
    tools = [
        {"type": "function", "name": "now", "parameters": None, "strict": None},
        {"type": "custom", "name": "sh"},
        {"type": "web_search"},
        {"type": "mcp", "server_label": "wiki"},
    ]
    body = {"input": "hi", "tools": tools, "tool_choice": chosen, **parallel}
    assert encode_request(DIALECT.decode_request(body)).body == body


@pytest.mark.parametrize(
    "fields",
    [
        {"temperature": 1}, {"temperature": 1.0}, {"temperature": "hot"}, {"top_p": 2**80},
        {"conversation": {"id": "conv_1", "odd": 1}}, {"conversation": "conv_1"},
        {"reasoning": {"effort": None, "mode": "pro"}}, {"reasoning": {}}, {"reasoning": "low"},
        {"text": {"format": {"type": "json_schema", "schema": {}}}}, {"text": {}},
        {"include": ["a", "message.output_text.logprobs"]}, {"instructions": None},
        {"instructions": ["a"]}, {"tools": None}, {"model": 5}, {"stream": None},
    ],
)  # fmt: skip
def test_malformed_settings_round_trip(fields: dict[str, Any]) -> None:
    """Settings of the wrong type, empty or null round-trip, even after being stored."""
    body = {"input": "hi", **fields}
    request = DIALECT.decode_request(json.dumps(body))
    reloaded = Request.from_json(request.to_json())
    for value in (request, reloaded):
        written = encode_request(value).body
        assert json.dumps(written, sort_keys=True) == json.dumps(body, sort_keys=True)


# --- parts


@pytest.mark.parametrize(
    "part",
    [
        {"type": "input_text", "text": 5},
        {"type": "input_text", "text": "a", "item": {}},
        {"type": "output_text", "text": "a"},
        {"type": "input_image", "image_url": "data:image/png;charset=x;base64,aGk="},
        {"type": "input_image", "image_url": None, "file_id": "f", "detail": None},
        {"type": "input_image", "image_url": "u:x", "file_id": "f"},
        {"type": "input_image"},
        {"type": "input_file", "file_data": "aGk="},
        {"type": "input_file", "file_data": "data:,hi", "filename": "a"},
        {"type": "input_file", "file_data": "data:text/plain;base64,aGk=", "detail": "low"},
        {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "x-wav"}},
        {"type": "input_audio", "input_audio": "aGk="},
        {"type": "input_text", "text": "a", "prompt_cache_breakpoint": {"mode": "explicit"}},
        {"type": "input_text", "text": "a", "prompt_cache_breakpoint": {"mode": "auto"}},
        {"type": "hologram"},
        5,
        None,
    ],
)
def test_every_part_round_trips(part: Any) -> None:
    """Known parts, unusual variants and unknown parts round-trip."""
    items = [
        {"role": "user", "content": [part, {"type": "input_text", "text": "b"}]},
        {"role": "assistant", "content": [part, part]},
        {"type": "function_call_output", "call_id": "c", "output": [part, part]},
    ]
    assert again(*items) == items
    assert len(decoded(*items).messages[0].parts) == 2


@pytest.mark.parametrize(
    ("item", "role"),
    [
        ({"type": "item_reference", "id": "msg_1"}, Role.ASSISTANT),
        ({"id": "msg_1"}, Role.ASSISTANT),
        ({"type": "compaction", "encrypted_content": "x"}, Role.ASSISTANT),
        ({"type": "compaction_trigger"}, Role.USER),
        ({"type": "mcp_approval_response", "approval_request_id": "a", "approve": True}, Role.USER),
        ({"type": "additional_tools", "role": "developer", "tools": []}, Role.DEVELOPER),
        ({"type": "message", "role": "critic", "content": "no"}, Role.USER),
        ({"role": "user", "content": None}, Role.USER),
        ({"role": "user", "content": [], "id": "msg_1"}, Role.USER),
        ({"role": "user", "content": "a", "id": "msg_1", "type": "message"}, Role.USER),
        ({"type": "function_call", "name": "now", "arguments": {}}, Role.ASSISTANT),
        ({"type": "function_call_output", "output": None, "call_id": "c"}, Role.TOOL),
        ({"type": "function_call_output", "output": "orphan"}, Role.TOOL),
        ({"type": "computer_call_output", "call_id": "c", "output": {}}, Role.TOOL),
        ({"type": "shell_call_output", "call_id": "c", "output": []}, Role.TOOL),
        ({"type": "shell_call_output", "id": "o", "call_id": "c", "output": []}, Role.ASSISTANT),
        ({"type": "tool_search_output", "execution": "client", "tools": []}, Role.TOOL),
        ({"type": "tool_search_output", "call_id": None, "tools": []}, Role.ASSISTANT),
        ({"type": "program", "id": "p", "call_id": "c", "code": "1"}, Role.ASSISTANT),
        ({"type": "future_call", "id": 5, "call_id": "", "status": None}, Role.ASSISTANT),
        ({"type": "mcp_call", "id": "m", "error": {"a": 1}, "output": "x"}, Role.ASSISTANT),
        ({"type": "image_generation_call", "id": "i", "result": None}, Role.ASSISTANT),
        ({"type": "reasoning", "summary": "odd"}, Role.ASSISTANT),
        ({"type": ["odd"]}, Role.ASSISTANT),
        (5, Role.ASSISTANT),
    ],
)
def test_every_item_round_trips(item: Any, role: Role) -> None:
    """Items of every type, malformed and unknown ones too, get the right role and round-trip."""
    assert [message.role for message in decoded(item).messages] == [role]
    assert again(item) == [item]


def test_generated_image_is_an_image() -> None:
    """A generated image is in the message's media, and round-trips in its call."""
    item = {"type": "image_generation_call", "id": "ig_1", "status": "completed",
            "result": "iVBORw0KGgo=", "output_format": "webp"}  # fmt: skip
    request = decoded(item)
    (picture,) = request.messages[0].media
    assert (picture.data, picture.mime) == ("iVBORw0KGgo=", "image/webp")
    assert again(item) == [item]


def test_foreign_citations_keep_their_url() -> None:
    """A foreign citation with a URL becomes a `url_citation`; others are losses."""
    sources = (
        Citation(kind="web_search_result_location", url="https://example.com"),
        Citation(kind="char_location", quote="a"),
    )
    message = Message(Role.ASSISTANT, (Text("a", sources),))
    encoded = encode_request(Request(messages=(message,)))
    (annotation,) = encoded.body["input"][0]["content"][0]["annotations"]
    assert annotation == {
        "type": "url_citation",
        "url": "https://example.com",
        "title": "https://example.com",
        "start_index": 0,
        "end_index": 0,
    }
    assert [loss.path for loss in encoded.losses] == ["messages[0].parts[0].citations"]


@pytest.mark.parametrize("annotations", [[{"type": "odd"}], [5, {"type": "url_citation"}], {}])
def test_malformed_annotations_round_trip(annotations: Any) -> None:
    """Unknown annotation types and annotations that aren't objects round-trip."""
    part = {"type": "output_text", "text": "a", "annotations": annotations}
    item = {"role": "assistant", "content": [part]}
    assert again(item) == [item]


# --- what this dialect doesn't support


def test_foreign_parts_are_reported_as_losses() -> None:
    """Parts that only another dialect supports are left out and reported."""
    message = Message(
        Role.ASSISTANT,
        (
            Thinking("hm", signature="s"),
            ServerToolCall("web_search", input={}, origin=ELSEWHERE),
            Opaque("gemini", {"x": 1}),
            Image(url="https://example.com/a.png"),
            Text("ok", cache=CacheHint("5m")),
        ),
    )
    assert lost(message) == [
        "messages[0].parts[0]", "messages[0].parts[1]", "messages[0].parts[2]",
        "messages[0].parts[3]", "messages[0].parts[4].cache",
    ]  # fmt: skip
    assert encode_request(Request(messages=(message,))).body["input"] == [
        {"role": "assistant", "content": "ok"}
    ]


def test_unsupported_media_tools_and_settings_are_losses() -> None:
    """Video, names, foreign tools and unsupported settings are reported as losses."""
    clip = Video(url="https://example.com/a.mp4")
    assert lost(Message.user(clip, name="Ann")) == ["messages[0].name", "messages[0].parts[0]"]
    result = Message(Role.TOOL, (ToolResult("c1", (clip, Refusal("no"))),))
    assert lost(result) == ["messages[0].parts[0].content[0]"]
    assert lost(
        tools=(ServerTool("web_search_20250305", "anthropic"),),
        sampling=Sampling(stop=("x",), seed=1, top_k=2),
        thinking=ThinkingConfig(budget=1000),
        system=(clip, Text("a")),
    ) == [
        "sampling.top_k",
        "sampling.stop",
        "sampling.seed",
        "thinking.budget",
        "system[0]",
        "tools[0]",
    ]


# --- responses


def test_response_built_in_code_has_the_required_fields() -> None:
    """A response built in code gets ids, a status and all fields that the types require."""
    message = Message.assistant(
        Thinking("hm", signature="s"), "Yes.", tool_calls=[ToolCall.create("c1", "now")], id="msg_7"
    ).replace(origin=ELSEWHERE)
    response = Response(choices=(Choice(0, message, FinishReason.TOOL_CALLS),), usage=Usage(3, 4))
    encoded = DIALECT.encode_response(response)
    body = encoded.body
    assert body == DIALECT.encode_response(response).body
    assert (body["id"], body["object"], body["status"]) == ("resp_msg_7", "response", "completed")
    seal = body["output"][0].pop("encrypted_content")
    sealed = unwrap(seal)
    assert sealed is not None
    assert sealed.part.signature == "s"
    assert body["output"] == [
        {"type": "reasoning", "id": "rs_7_0", "summary": [],
         "content": [{"type": "reasoning_text", "text": "hm"}]},
        output_message("msg_7_1", "Yes."),
        call("c1", id="fc_7_2", status="completed"),
    ]  # fmt: skip
    assert body["usage"]["total_tokens"] == 7
    assert not encoded.losses


def test_second_choice_is_a_loss() -> None:
    """A response has one choice on this wire; further choices are losses."""
    choices = (Choice(0, Message.assistant("a")), Choice(1, Message.assistant("b")))
    encoded = DIALECT.encode_response(Response(choices=choices))
    assert [loss.path for loss in encoded.losses] == ["choices[1]"]
    assert DIALECT.encode_response(Response()).body["output"] == []


@pytest.mark.parametrize(
    ("fields", "finish", "raw"),
    [
        ({"status": "completed"}, FinishReason.STOP, "completed"),
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
         FinishReason.LENGTH, "max_output_tokens"),
        ({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}},
         FinishReason.CONTENT_FILTER, "content_filter"),
        ({"status": "incomplete", "incomplete_details": {"reason": "steered"}},
         FinishReason.LENGTH, "steered"),
        ({"status": "incomplete", "incomplete_details": None}, FinishReason.LENGTH, "incomplete"),
        ({"status": "failed", "error": {"code": "x"}}, FinishReason.ERROR, "failed"),
        ({"status": "cancelled"}, FinishReason.CANCELLED, "cancelled"),
        ({"status": "queued"}, None, "queued"),
        ({"status": 5}, None, None),
        ({}, None, None),
    ],
)  # fmt: skip
def test_status_maps_to_finish_reason(
    fields: dict[str, Any], finish: FinishReason | None, raw: str | None
) -> None:
    """Each status is decoded into the finish of choice and message, and round-trips (W37)."""
    body = {"id": "resp_1", "output": [], **fields}
    response = DIALECT.decode_response(body)
    assert (response.finish, response.choices[0].finish_raw) == (finish, raw)
    assert response.message.finish is finish
    assert DIALECT.encode_response(response).body == body


@pytest.mark.parametrize(
    "usage",
    [
        {"input_tokens": 5, "output_tokens": 2},
        {"input_tokens": 0, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 0},
        {"input_tokens": 1.0, "output_tokens": "2", "total_tokens": None, "cost": 0.1},
        {"input_tokens_details": None, "output_tokens_details": {"reasoning_tokens": 3}},
        {},
        None,
    ],
)
def test_usage_round_trips(usage: Any) -> None:
    """Missing, zero and malformed token counts round-trip."""
    body = {"output": [], "usage": usage, "created_at": 1.0}
    response = Response.from_json(DIALECT.decode_response(body).to_json())
    written = DIALECT.encode_response(response).body
    assert json.dumps(written, sort_keys=True) == json.dumps(body, sort_keys=True)


def test_answer_is_sent_back_unchanged_in_the_next_request() -> None:
    """A response's message has its origin, so its reasoning is sent back in the next request."""
    items = [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "eA=="},
        output_message("msg_1", "Yes.", phase="final_answer"),
        call("c1", id="fc_1", status="completed"),
    ]
    message = DIALECT.decode_response({"id": "resp_1", "model": "m", "output": items}).message
    assert message.origin == Origin(dialect=NAME, model="m", response_id="resp_1")
    assert written(message, Message.tool("c1", "ok")) == [*items, output("c1", "ok")]
    stripped = message.replace(parts=tuple(part.replace(extras=EMPTY) for part in message.parts))
    assert written(stripped)[0] == items[0]


# --- malformed bodies
