"""The OpenAI Chat dialect: fixtures in both directions, variants, ids and foreign parts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import UNSET

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
    ServerToolResult,
    Text,
    Thinking,
)
from dragoman.model.requests import Output, Request, Sampling, ThinkingConfig
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
from dragoman.wire.openai_chat.codec import DIALECT
from tests.wire.unrepaired import unrepaired

encode_request = unrepaired(DIALECT)
ELSEWHERE = Origin(dialect="anthropic", model="m")
PICTURE = Image(data="iVBORw0KGgo=", mime="image/png")


def request(*messages: Any, **fields: Any) -> dict[str, Any]:
    """A body with these messages; a text or a list of parts becomes a user message."""
    written = [{"role": "user", "content": m} if isinstance(m, str | list) else m for m in messages]
    return {"model": "m", "messages": written, **fields}


def assistant(content: Any = None, **fields: Any) -> dict[str, Any]:
    """An assistant's message."""
    return {"role": "assistant", "content": content, **fields}


def response(message: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A body with one choice."""
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {"id": "r", "object": "chat.completion", "created": 1, "model": "m",
            "choices": [choice], **fields}  # fmt: skip


def call(call_id: Any, name: str = "weather", arguments: Any = "{}") -> dict[str, Any]:
    """A tool call."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def through(body: dict[str, Any]) -> dict[str, Any]:
    """Decodes and encodes a body."""
    encoded = (
        encode_request(DIALECT.decode_request(body))
        if "messages" in body
        else DIALECT.encode_response(DIALECT.decode_response(body))
    )
    assert encoded.losses == ()
    rebuilt: dict[str, Any] = json.loads(encoded.to_bytes())
    return rebuilt


def sent(*messages: Message, **fields: Any) -> list[dict[str, Any]]:
    """The encoded messages for these."""
    body = encode_request(Request(model="m", messages=messages, **fields)).body
    found: list[dict[str, Any]] = json.loads(json.dumps(body["messages"]))
    return found


def losses(*messages: Message, **fields: Any) -> list[str]:
    """The paths of the losses."""
    encoded = encode_request(Request(model="m", messages=messages, **fields))
    return [loss.path for loss in encoded.losses]


# --- round trips


@pytest.mark.parametrize(
    "body",
    [
        request(assistant(None), assistant(), {"role": "assistant"}, {"role": "user"}),
        request({"role": "user", "content": []}, {"role": "system", "content": None}),
        request(assistant("hi", tool_calls=[], refusal=None, annotations=[], audio=None)),
        request("hi", temperature=1, top_p=1.0, presence_penalty=-0.5, frequency_penalty=None),
        request("hi", max_tokens=1, max_completion_tokens=2, seed=None, random_seed=3, top_k=4),
        request("hi", stop=["a"]),
        request("hi", stop="a"),
        request("hi", stop=[], tools=None, tool_choice=None, response_format=None, model=None),
        request("hi", tools=[], stream=None, n=2, logprobs=True, top_logprobs=3, logit_bias={}),
        request("hi", tool_choice="auto", parallel_tool_calls=False),
        request("hi", parallel_tool_calls=True),
        request("hi", tool_choice="any"),
        request("hi", tool_choice={"type": "custom", "custom": {"name": "sh"}}),
        request("hi", tool_choice={"type": "function", "function": {"name": "f"}, "odd": 1}),
        request("hi", tool_choice={"type": "allowed_tools", "allowed_tools": {
            "mode": "required", "tools": [{"type": "function", "function": {"name": "f"}}]}}),
        request("hi", tool_choice={"type": "web"}, reasoning={"effort": "low", "odd": 1}),
        request("hi", thinking={"type": "disabled"}, reasoning_effort="low"),
        request("hi", thinking={"type": "enabled", "clear_thinking": True}),
        request("hi", response_format={"type": "json_object"}),
        request("hi", response_format={"type": "text", "odd": None}),
        request("hi", response_format={"type": "regex", "regex": "a+"}),
        request("hi", response_format={"type": "json_schema", "json_schema": {"schema": {}}}),
        request("hi", functions=[{"name": "f", "parameters": {}, "odd": 1}],
                function_call={"name": "f"}),
        request("hi", functions=[{"name": "f"}], function_call="auto"),
        request("hi", tools=[{"function": {"name": "f", "strict": None}}, {"type": "search"}]),
        request("hi", tools=[{"type": "function", "function": {"name": "f"},
                              "cache_control": {"type": "ephemeral", "ttl": "5m"}}]),
        request("hi", prediction={"type": "content", "content": "a"}, service_tier="flex"),
        request(assistant(None, tool_calls=[call("a"), {"id": "b", "type": "new"}, None])),
        request(assistant("", tool_calls=[{"id": "a", "function": {"name": "f"}, "index": 0}])),
        request(assistant("", tool_calls=[call("a", arguments={"city": "Basel"})])),
        request(assistant("", tool_calls=[{**call("a"), "extra_content": {
            "google": {"thought_signature": "sig"}}}])),
        request(assistant([{"type": "refusal", "refusal": "no"}]), assistant(refusal="no")),
        request(assistant(reasoning="a", reasoning_content="b"), assistant(reasoning_content="")),
        request(assistant(reasoning="a", reasoning_details=[{"type": "reasoning.text"}])),
        request(assistant([{"type": "thinking", "thinking": [
            {"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}])),
        request(assistant([{"type": "image_url", "image_url": {"url": "https://a/b"}}])),
        request({"role": "tool", "tool_call_id": "a", "content": [
            {"type": "image_url", "image_url": {"url": "https://a/b"}}]}),
        request({"role": "tool", "tool_call_id": "a", "content": None, "name": "f"},
                {"role": "tool", "content": []}, {"role": "function", "name": "f", "content": ""}),
    ],
)  # fmt: skip
def test_request_round_trips(body: dict[str, Any]) -> None:
    """Nulls, empty lists, absent fields, deprecated and foreign forms round-trip."""
    assert json.dumps(through(body), sort_keys=True) == json.dumps(body, sort_keys=True)


@pytest.mark.parametrize(
    "part",
    [
        {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}},
        {"type": "text", "text": "a", "cache_control": {"type": "other"}, "odd": None},
        {"type": "text", "text": None},
        {"type": "image_url", "image_url": "https://a/b"},
        {"type": "image_url", "image_url": {"url": "data:text/plain,hi", "detail": None}},
        {"type": "image_url", "image_url": {"url": "data:;base64,AAAA", "odd": 1}, "odd": 2},
        {"type": "image_url", "image_url": {"file_id": "f"}},
        {"type": "input_audio", "input_audio": "AAAA"},
        {"type": "input_audio", "input_audio": "https://a/b.mp3"},
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "pcm"}},
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": None}},
        {"type": "audio_url", "audio_url": {"url": "https://a/b.mp3"}},
        {"type": "video_url", "video_url": {"url": "https://a/b.mp4"}},
        {"type": "file", "file": {"file_data": "JVBERi0="}},
        {"type": "file", "file": {"file_data": "https://a/b.pdf", "filename": "b.pdf"}},
        {"type": "file", "file": {"file_id": "f", "file_data": "JVBERi0="}},
        {"type": "document_url", "document_url": "https://a/b.pdf", "document_name": "b"},
        {"type": "hologram", "hologram": {"x": 1}},
        "just a text",
        None,
    ],
)
def test_part_round_trips(part: Any) -> None:
    """Parts of any server of this dialect round-trip, well-formed or not."""
    body = request([part, {"type": "text", "text": "b"}])
    assert through(body) == body


@pytest.mark.parametrize(
    "body",
    [
        {"choices": []},
        {"id": None, "object": "x", "created": 1.5, "model": 3, "choices": [], "usage": None},
        {"id": "r", "choices": [{"finish_reason": "content_filter", "index": 0, "logprobs": None}]},
        {"id": "r", "choices": [{"message": {"content": "no role"}, "finish_reason": ""}]},
        {"id": "r", "choices": [{"message": {"role": "robot", "content": "hi"}, "index": 7}]},
        response(assistant("hi", executed_tools=[
            {"type": "search", "arguments": "{}", "index": 0, "output": "o"}, {"type": "python"}])),
        response(assistant("hi", images=[{"type": "image_url", "image_url": {"url": "https://a"}}])),
        response(assistant("hi", annotations=[{"type": "file", "file": {"name": "a"}}, {}])),
        response(assistant(None, annotations=[{"type": "url_citation"}])),
        response(assistant("hi", annotations=["odd"]), x_groq={"id": "a"}, citations=["https://a"]),
        response(assistant("hi"), usage={"prompt_tokens": 1, "total_tokens": None}),
        response(assistant("hi"), usage={"prompt_tokens": 5, "completion_tokens": 2,
                                         "total_tokens": 17, "prompt_tokens_details": None,
                                         "completion_tokens_details": {"reasoning_tokens": 10}}),
    ],
)  # fmt: skip
def test_response_round_trips(body: dict[str, Any]) -> None:
    """Missing fields, content filters and other servers' extensions round-trip."""
    assert json.dumps(through(body), sort_keys=True) == json.dumps(body, sort_keys=True)


def test_single_text_part_becomes_a_string() -> None:
    """A list of one plain text is normalized to a string, in messages and in results."""
    listed = [{"type": "text", "text": "a"}]
    body = request(listed, {"role": "tool", "tool_call_id": "c", "content": listed})
    assert [message["content"] for message in through(body)["messages"]] == ["a", "a"]


# --- meaning


def test_thinking_is_read_from_every_field() -> None:
    """Every server's form of thinking is decoded, with its signature and encrypted data."""
    details = [
        {"type": "reasoning.summary", "summary": "c", "id": "rs_1"},
        {"type": "reasoning.encrypted", "data": "d"},
    ]
    inline = {"type": "thinking", "thinking": [{"type": "text", "text": "e"}]}
    decoded = DIALECT.decode_request(
        request(
            assistant("x", reasoning_content="a"),
            assistant("x", reasoning="b"),
            assistant("x", reasoning_details=details, reasoning="c"),
            assistant([inline]),
        )
    )
    found = [part for m in decoded.messages for part in m.parts if isinstance(part, Thinking)]
    assert [part.text for part in found] == ["a", "b", "c", "", "e"]
    assert [part.form for part in found[2:4]] == ["summary", "redacted"]
    assert (found[2].item_id, found[3].data) == ("rs_1", "d")
    assert all(part.origin == Origin(dialect="openai-chat") for part in found)


def test_thinking_is_written_without_extras() -> None:
    """Thinking without its extras is written in the default field."""
    own = Origin(dialect="openai-chat")
    one = Message.assistant(Thinking("a", origin=own), "x")
    assert sent(one) == [assistant("x", reasoning_content="a")]
    sealed = Message.assistant(Thinking("", "d", "redacted", origin=own), "x")
    details = [{"type": "reasoning.encrypted", "data": "d"}]
    assert sent(sealed) == [assistant("x", reasoning_details=details)]


def test_repeated_and_missing_call_ids_become_unique() -> None:
    """Results match their calls by order, and the wire ids round-trip (I5)."""
    body = request(
        assistant(None, tool_calls=[call("x"), call("x"), call(""), call("")]),
        *({"role": "tool", "tool_call_id": i, "content": "r"} for i in ("x", "x", "", "")),
        assistant(None, tool_calls=[call("x")]),
        {"role": "tool", "tool_call_id": "x", "content": "r"},
    )
    messages = DIALECT.decode_request(body).messages
    calls = [part for message in messages for part in message.tool_calls]
    results = [part for message in messages for part in message.tool_results]
    assert [result.call_id for result in results] == [part.id for part in calls]
    assert len({part.id for part in calls}) == len(calls)
    assert [part.wire_id for part in calls] == [UNSET, "x", "", "", "x"]
    assert through(body) == body


def test_deprecated_function_call_is_a_call_without_id() -> None:
    """`function_call` and its result are paired, with and without extras."""
    body = request(
        assistant(None, function_call={"name": "f", "arguments": "{}"}),
        {"role": "function", "name": "f", "content": "r"},
    )
    asked, answered = DIALECT.decode_request(body).messages
    assert answered.tool_results[0].call_id == asked.tool_calls[0].id
    assert answered.tool_results[0].tool_name == "f"
    assert through(body) == body
    bare = [message.replace(extras=EMPTY) for message in (asked, answered)]
    del body["messages"][0]["content"]
    assert sent(*bare) == body["messages"]


def test_call_without_wire_id_gets_one() -> None:
    """Gemini's calls may lack an id; here each call and its result get one."""
    asked = ToolCall("c1", "f", input={"a": 1}, wire_id=None, origin=Origin(dialect="gemini"))
    found = sent(Message.assistant(asked), Message.tool("c1", "r"))
    assert found[0]["tool_calls"] == [call("c1", "f", '{"a":1}')]
    assert found[1] == {"role": "tool", "tool_call_id": "c1", "content": "r"}


def test_response_message_has_origin_finish_and_usage() -> None:
    """Origin, finish and usage are on the message; all choices share one origin."""
    choices = [{"index": i, "message": assistant("hi"), "finish_reason": "length"} for i in (0, 1)]
    two = DIALECT.decode_response({**response(assistant("hi")), "choices": choices})
    assert two.message.origin == Origin(dialect="openai-chat", model="m", response_id="r")
    assert two.choices[1].message.origin is two.message.origin
    assert two.message.finish is FinishReason.LENGTH
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    one = DIALECT.decode_response(response(assistant("hi"), usage=usage))
    assert one.message.usage == one.usage == Usage(1, 2, reported_total=3)


@pytest.mark.parametrize(
    ("wire", "usage"),
    [
        # xAI counts thinking separately from the answer.
        (
            {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 17,
             "completion_tokens_details": {"reasoning_tokens": 10}},
            Usage(5, 2, thinking=10, reported_total=17),
        ),
        # DeepSeek has its own field for cached tokens.
        (
            {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7,
             "prompt_cache_hit_tokens": 4},
            Usage(1, 2, 4, reported_total=7),
        ),
        ({"prompt_tokens": "many"}, Usage()),
    ],
)  # fmt: skip
def test_token_counts_do_not_overlap(wire: dict[str, Any], usage: Usage) -> None:
    """Counts that overlap on the wire are disjoint in the model (W19)."""
    assert DIALECT.decode_response(response(assistant("hi"), usage=wire)).usage == usage


def test_groq_executed_tools_are_calls_and_results() -> None:
    """Each executed tool becomes a server tool call and its result."""
    tool = {"type": "search", "arguments": "{}", "index": 0, "output": "found"}
    message = DIALECT.decode_response(response(assistant("hi", executed_tools=[tool]))).message
    asked, answered = message.parts[1:]
    assert asked == ServerToolCall("search", input="{}")
    assert answered == ServerToolResult("search", content={"output": "found"})


def test_edits_override_extra_fields() -> None:
    """A null content on the wire doesn't hide content that was added later."""
    body = request(assistant(None, tool_calls=[call("a")]))
    decoded = DIALECT.decode_request(body)
    message = decoded.messages[0].add_part("wait")
    assert sent(message)[0]["content"] == "wait"


def test_editing_text_keeps_extra_fields() -> None:
    """Replacing a part's text keeps its other fields."""
    part = {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}, "odd": 1}
    decoded = DIALECT.decode_request(request([part]))
    text = decoded.messages[0].parts[0].replace(text="b")
    changed = decoded.messages[0].replace(parts=(text,))
    assert sent(changed)[0]["content"] == [{**part, "text": "b"}]


# --- built in code


def test_messages_built_in_code_are_valid() -> None:
    """Every supported kind of content is written in OpenAI's form."""
    asked = ToolCall.create("c1", "weather", {"city": "Basel"})
    found = sent(
        Message.user("hi", PICTURE, Audio(data="AAAA", mime="audio/mpeg"), File(file_id="f")),
        Message.assistant("so", asked),
        Message.tool(ToolResult.success("c1", "sunny"), ToolResult.success("c2", [])),
        Message.assistant(Refusal("no")),
        system=(Text("be kind"),),
    )
    assert found == [
        {"role": "system", "content": "be kind"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "hi"},
                {"type": "image_url", "image_url": {"url": PICTURE.data_url}},
                {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}},
                {"type": "file", "file": {"file_id": "f"}},
            ],
        },
        assistant("so", tool_calls=[call("c1", arguments='{"city":"Basel"}')]),
        {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
        {"role": "tool", "tool_call_id": "c2", "content": ""},
        assistant([{"type": "refusal", "refusal": "no"}]),
    ]


def test_images_in_results_move_to_a_user_message_after_all_results() -> None:
    """Results hold only text and stay together; their images follow in a user message (W1, W4)."""
    results = [ToolResult.success("a", [Text("see"), PICTURE]), ToolResult.success("b", "ok")]
    found = sent(Message.tool(results[0]), Message.tool(results[1]), Message.assistant("nice"))
    assert [message["role"] for message in found] == ["tool", "tool", "user", "assistant"]
    assert found[2]["content"][0]["type"] == "image_url"
    assert losses(Message.tool(results[0])) == ["messages[0].parts[0].content[1]"]


def test_results_in_a_user_message_come_before_its_text() -> None:
    """Results in a user message, as in Anthropic, become tool messages before its text."""
    message = Message(Role.USER, (Text("go on"), ToolResult("c", "ok")))
    assert [m["role"] for m in sent(message)] == ["tool", "user"]


@pytest.mark.parametrize(
    ("part", "path"),
    [
        (Video(url="https://a/b"), ""),
        (File(url="https://a/b"), ""),
        (Image(file_id="f"), ""),
        (Audio(url="https://a/b"), ""),
        (Thinking("a", origin=ELSEWHERE), ""),
        (Opaque("gemini", {}), ""),
        (ServerToolCall("web", origin=ELSEWHERE), ""),
        (ServerToolResult("web", origin=ELSEWHERE), ""),
        (Text("a", cache=CacheHint("5m")), ".cache"),
    ],
)
@pytest.mark.parametrize("role", [Role.USER, Role.ASSISTANT])
def test_unsupported_parts_are_losses(part: Any, path: str, role: Role) -> None:
    """Unsupported parts are left out and reported; the rest is sent."""
    message = Message(role, (Text("hi"), part))
    assert losses(message) == [f"messages[0].parts[1]{path}"]
    assert "hi" in json.dumps(sent(message))


def test_message_that_becomes_empty_is_not_sent() -> None:
    """A message with only unsupported content is left out."""
    assert sent(Message.assistant(Thinking("a", origin=ELSEWHERE)), Message.user("hi")) == [
        {"role": "user", "content": "hi"}
    ]


OPEN = {"type": "object", "additionalProperties": True}


def test_settings_built_in_code() -> None:
    """Settings are written in OpenAI's fields; unsupported ones are losses."""
    encoded = encode_request(
        Request(
            model="m",
            messages=(Message.user("hi"),),
            tools=(
                make_definition("now", "The time.", OPEN),
                ToolDefinition("sh", "Runs.", kind="custom"),
                ServerTool("web_search_20250305", "anthropic"),
            ),
            tool_choice=ToolChoice("named", ("sh",)),
            sampling=Sampling(max_tokens=5, temperature=1.0, top_k=3),
            output=Output(format="schema", schema={"type": "object"}),
            thinking=ThinkingConfig(effort="low", budget=9),
        )
    )
    body = json.loads(encoded.to_bytes())
    assert body["max_completion_tokens"] == 5
    assert body["temperature"] == 1
    assert body["tool_choice"] == {"type": "custom", "custom": {"name": "sh"}}
    assert body["response_format"]["json_schema"]["name"] == "response"
    assert body["reasoning_effort"] == "low"
    assert [loss.path for loss in encoded.losses] == [
        "tools[0].strict",
        "tools[2]",
        "sampling.top_k",
        "thinking.budget",
    ]


def test_strict_is_kept_for_a_strict_schema() -> None:
    """A tool stays strict if its schema meets OpenAI's requirements (W14)."""
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"],
              "additionalProperties": False}  # fmt: skip
    request_ = Request(tools=(ToolDefinition.create("f", "Does.", schema),))
    encoded = encode_request(request_)
    assert encoded.body["tools"][0]["function"]["strict"] is True
    assert encoded.losses == ()


def test_foreign_response_is_written_as_clients_expect() -> None:
    """Content is one string, missing fields are null, and thinking is shown (W11)."""
    cited = Text("b", citations=(Citation(kind="web", url="https://a"), Citation(kind="page")))
    thought = Thinking("t", signature="s")
    asked = ToolCall.create("c", "f", {})
    message = Message.assistant(thought, "a", cited, PICTURE, asked, origin=ELSEWHERE)
    choice = Choice(0, message, FinishReason.STOP, "end_turn", logprobs={"x": 1})
    encoded = DIALECT.encode_response(Response(choices=(choice,), usage=Usage(3, 4)))
    body = json.loads(encoded.to_bytes())
    assert body["choices"][0]["finish_reason"] == "tool_calls"
    written = body["choices"][0]["message"]
    assert (written["content"], written["refusal"]) == ("ab", None)
    assert written["reasoning_content"] == "t"
    assert written["images"][0]["type"] == "image_url"
    assert written["annotations"][0]["url_citation"]["url"] == "https://a"
    assert body["usage"]["total_tokens"] == 7
    assert [loss.path for loss in encoded.losses] == [
        "choices[0].message.parts[2].citations",
        "choices[0].logprobs",
    ]


def test_unsupported_finish_reason_is_a_loss() -> None:
    """The nearest finish reason is written, and the loss is reported."""
    choice = Choice(0, Message.assistant("a"), FinishReason.PAUSE)
    encoded = DIALECT.encode_response(Response(choices=(choice,)))
    assert encoded.body["choices"][0]["finish_reason"] == "stop"
    assert [loss.path for loss in encoded.losses] == ["choices[0].finish"]


def test_spoken_answer_is_sent_back_by_its_id() -> None:
    """Audio in an answer is sent back by its id, without the data."""
    audio = {"id": "audio_1", "data": "AAAA", "expires_at": 9, "transcript": "hi"}
    answer = DIALECT.decode_response(response(assistant(None, audio=audio))).message
    assert sent(answer)[0]["audio"] == {"id": "audio_1"}
    assert losses(Message.assistant(Audio(data="AAAA"))) == ["messages[0].parts[0]"]


# --- malformed bodies


def test_messages_without_a_role_are_not_merged() -> None:
    """Where roles must alternate, messages without a role are sent unchanged."""
    target = DIALECT.target.with_flags({"turns.alternates_roles": True})
    odd = [{"role": "user", "content": "a"}, {"content": "b"}, {"content": "c"}]
    request_ = DIALECT.decode_request({"model": "m", "messages": odd})
    edited = request_.replace(messages=(*request_.messages, Message.user("d")))
    assert encode_request(edited, target).body["messages"][1:3] == odd[1:]


def test_thinking_with_only_a_signature_is_sent_back() -> None:
    """Thinking with only a signature is sent in `reasoning_details`, without a repair (W110)."""
    target = DIALECT.target.with_flags({"thinking.fields": ("reasoning", "reasoning_details")})
    details = [{"type": "reasoning.text", "text": "", "signature": "s"}]
    said = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b", "reasoning_details": details},
        {"role": "user", "content": "c"},
    ]
    encoded = DIALECT.encode_request(
        DIALECT.decode_request({"model": "m", "messages": said}), target
    )
    assert (encoded.body["messages"], encoded.repairs, encoded.losses) == (said, (), ())


def test_thinking_with_only_a_signature_is_left_out_without_details() -> None:
    """If the host has no `reasoning_details`, no empty thinking is written (W110)."""
    target = DIALECT.target.with_flags({"thinking.fields": ("reasoning",)})
    details = [{"type": "reasoning.text", "text": "", "signature": "s"}]
    said = {"role": "assistant", "content": "b", "reasoning_details": details}
    request_ = DIALECT.decode_request({"model": "m", "messages": [said]})
    encoded = DIALECT.encode_request(request_.replace(model="n"), target, repair=False)
    assert encoded.body["messages"] == [{"role": "assistant", "content": "b"}]
    assert [loss.path for loss in encoded.losses] == ["messages[0].parts[0]"]
