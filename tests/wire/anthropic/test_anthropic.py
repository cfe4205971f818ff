"""The Anthropic dialect: fixtures in both directions, ids, foreign parts and malformed bodies."""

from __future__ import annotations

import json
from typing import Any

import pytest

import dragoman
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
    make_call,
    make_definition,
)
from dragoman.model.usage import FinishReason, Usage
from dragoman.wire.anthropic.codec import DIALECT
from dragoman.wire.losses import Note
from tests.wire.unrepaired import unrepaired

encode_request = unrepaired(DIALECT)
ELSEWHERE = Origin(dialect="gemini")


def request(*content: Any, **fields: Any) -> dict[str, Any]:
    """A minimal body with this content in one user message."""
    message = {"role": "user", "content": list(content)}
    return {"model": "m", "max_tokens": 1, "messages": [message], **fields}


def response(*content: Any, **fields: Any) -> dict[str, Any]:
    """A minimal response with this content."""
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": list(content),
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 1, "output_tokens": 2},
        **fields,
    }


def document_of(kind: str, mime: str, data: str, **fields: Any) -> dict[str, Any]:
    """A document block with inline content."""
    source = {"type": kind, "media_type": mime, "data": data}
    return {"type": "document", "source": source, **fields}


def sent(*messages: Message, **fields: Any) -> dict[str, Any]:
    """The encoded body of messages built in code."""
    return encode_request(Request(model="m", messages=messages, **fields)).body


def lost(*parts: Any) -> list[tuple[str, str]]:
    """The losses of these parts, in a message that has nothing else."""
    encoded = encode_request(Request(messages=(Message(Role.ASSISTANT, parts),)))
    assert encoded.body["messages"] == []
    return [(loss.path, loss.reason) for loss in encoded.losses]


def test_single_text_block_becomes_a_string() -> None:
    """A list of one plain text is normalized to a string, in messages, system and results."""
    block = {"type": "text", "text": "hi"}
    result = {"type": "tool_result", "tool_use_id": "t", "content": [block]}
    body = encode_request(
        DIALECT.decode_request(
            {**request(block, system=[block]), "messages": [{"role": "user", "content": [block]},
             {"role": "user", "content": [result]}]}
        )
    ).body  # fmt: skip
    assert body["system"] == body["messages"][0]["content"] == "hi"
    assert body["messages"][1]["content"] == [{**result, "content": "hi"}]


def test_response_content_stays_a_list() -> None:
    """A response's content is written as a list, even if it is a single text."""
    wire = response({"type": "text", "text": "hi"})
    assert DIALECT.encode_response(DIALECT.decode_response(wire)).body == wire


def test_response_message_has_origin_usage_and_finish() -> None:
    """Origin, usage and finish reason are on the message, to be stored with it."""
    message = DIALECT.decode_response(response()).message
    assert message.origin == Origin(dialect="anthropic", model="m", response_id="msg_1")
    assert (message.usage, message.finish) == (Usage(1, 2), FinishReason.STOP)


def test_unknown_stop_reason_is_kept() -> None:
    """An unknown stop reason is decoded as `OTHER` and round-trips."""
    decoded = DIALECT.decode_response(response(stop_reason="sunset"))
    assert decoded.finish is FinishReason.OTHER
    assert DIALECT.encode_response(decoded).body["stop_reason"] == "sunset"


def test_message_with_only_results_is_a_tool_message() -> None:
    """A message with results and other content stays a user message."""
    result = {"type": "tool_result", "tool_use_id": "t", "content": "ok"}
    alone = DIALECT.decode_request(request(result))
    beside = DIALECT.decode_request(request(result, {"type": "text", "text": "go on"}))
    assert alone.messages[0].role is Role.TOOL
    assert beside.messages[0].role is Role.USER


def test_repeated_call_ids_become_unique() -> None:
    """Each result matches its call, and the wire ids round-trip (I5)."""
    call = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": "ok"}
    turns = [
        {"role": "assistant", "content": [call, call]},
        {"role": "user", "content": [result, result]},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result, result]},
    ]
    wire = {**request(), "messages": turns}
    decoded = DIALECT.decode_request(wire)
    first, second, third = (c.id for m in decoded.messages for c in m.tool_calls)
    assert len({first, second, third}) == 3
    answered = [r.call_id for m in decoded.messages for r in m.tool_results]
    assert answered == [first, second, third, third]
    assert encode_request(decoded).body == wire


@pytest.mark.parametrize("wire_id", [{}, {"id": None}, {"id": ""}], ids=["absent", "null", "empty"])
def test_call_without_id_gets_one(wire_id: dict[str, Any]) -> None:
    """The generated id is written in other dialects, but not in this one."""
    wire = request({"type": "tool_use", "name": "f", "input": {}, **wire_id})
    decoded = DIALECT.decode_request(wire)
    (call,) = decoded.messages[0].tool_calls
    assert call.id.startswith("call_")
    assert encode_request(decoded).body == wire
    moved = Message(Role.ASSISTANT, (call.replace(origin=ELSEWHERE, extras=EMPTY),))
    assert sent(moved)["messages"][0]["content"][0]["id"] == call.id


@pytest.mark.parametrize(
    "block",
    [
        {"type": "text", "text": 5},
        {"type": "thinking", "thinking": None},
        {"type": "redacted_thinking"},
        {"type": "tool_use", "id": "t", "name": "f", "input": "text"},
        {"type": "tool_use", "id": 7, "name": "f", "input": {}},
        {"type": "tool_result", "content": "for nobody"},
        {"type": "server_tool_use", "id": "t", "input": {}},
        {"type": "web_search_tool_result", "content": []},
        {"type": "image", "source": {"type": "base64", "data": "AA=="}},
        {"type": "image", "source": None},
        {"type": "document", "source": {"type": "content", "content": []}},
        {"type": "document", "source": {"type": "text", "data": 1, "media_type": "text/plain"}},
        {"type": ["text"], "text": "hi"},
        {"name": "hi"},
        None,
    ],
)
def test_malformed_block_is_kept_as_opaque(block: Any) -> None:
    """A malformed block becomes an opaque part and round-trips."""
    wire = request(block, {"type": "text", "text": "go on"})
    decoded = DIALECT.decode_request(wire)
    assert type(decoded.messages[0].parts[0]) is Opaque
    assert encode_request(decoded).body == wire


@pytest.mark.parametrize(
    "fields",
    [
        {"system": []},
        {"system": None},
        {"system": [{"type": "image", "source": {"type": "url", "url": "https://x.test/"}}]},
        {"tools": []},
        {"tools": None},
        {"tools": [{"name": "f", "input_schema": None, "strict": 1, "type": None}]},
        {"tools": [{"type": "bash_20250124", "cache_control": {"type": "ephemeral", "odd": 1}}]},
        {"tool_choice": {"type": "none", "disable_parallel_tool_use": True}},
        {"tool_choice": {"type": "any", "disable_parallel_tool_use": True}},
        {"tool_choice": {"type": "auto", "odd": 0}},
        {"tool_choice": {"type": "tool"}},
        {"tool_choice": "auto"},
        {"temperature": True, "top_k": 1.0, "stop_sequences": ["a", 1], "stream": None},
        {"temperature": 10**400},
        {"thinking": {"type": "enabled", "budget_tokens": 1.5, "display": "updates"}},
        {"thinking": {"type": "between_tools"}, "output_config": {"effort": "low"}},
        {"thinking": {"type": "disabled"}, "output_config": {"effort": "huge"}},
        {"thinking": None, "output_config": {"format": None}},
        {"output_format": {"type": "json_schema", "schema": {"type": "object"}, "odd": None}},
        {"output_config": {"format": {"type": "json_schema", "schema": {}, "odd": 1}}},
        {"output_config": {"format": {"type": "json_schema", "schema": 1}}},
        {"model": None},
        {"unknown": {"deep": [1, 1.0, True, None]}},
    ],
)
def test_malformed_settings_round_trip(fields: dict[str, Any]) -> None:
    """Settings that are unknown, empty or of the wrong type round-trip."""
    wire = request(**fields)
    body = encode_request(DIALECT.decode_request(wire)).body
    assert json.dumps(body, sort_keys=True) == json.dumps(wire, sort_keys=True)


@pytest.mark.parametrize(
    "block",
    [
        {"type": "text", "text": "a", "citations": []},
        {"type": "text", "text": "a", "citations": [{"type": "char_location"}]},
        {"type": "text", "text": "a", "citations": [{"type": "new_location", "at": 1}]},
        {"type": "text", "text": "a", "citations": [5]},
        {"type": "text", "text": "a", "cache_control": {"type": "forever"}},
        {"type": "thinking", "thinking": "", "signature": None},
        {"type": "tool_result", "tool_use_id": "t", "content": [], "is_error": None},
        {"type": "tool_result", "tool_use_id": "t", "content": None},
        {"type": "tool_result", "tool_use_id": "t",
         "content": [{"type": "tool_reference", "tool_name": "f"}, {"type": "text", "text": "a"}]},
        {"type": "mcp_tool_result", "tool_use_id": "t", "is_error": None},
        {"type": "new_tool_result", "tool_use_id": "t", "content": None},
        {"type": "image", "source": {"type": "url", "url": "u", "odd": 1}, "transformations": {}},
        document_of("base64", "text/plain", "not base64", title=None),
        document_of("base64", "text/csv", "YQ=="),
        document_of("base64", "a/b", "YQ=="),
        document_of("text", "text/css", "\ud800"),
    ],
)  # fmt: skip
def test_blocks_with_unusual_fields_round_trip(block: dict[str, Any]) -> None:
    """Known blocks with unusual fields or values are decoded and round-trip."""
    wire = request(block, {"type": "text", "text": "go on"})
    decoded = DIALECT.decode_request(wire)
    assert type(decoded.messages[0].parts[0]) is not Opaque
    assert encode_request(decoded).body == wire


@pytest.mark.parametrize(
    "fields",
    [
        {"usage": None},
        {"usage": {"input_tokens": 1.0, "output_tokens": 2}},
        {"usage": {"input_tokens": 1, "output_tokens": 2,
                   "output_tokens_details": {"thinking_tokens": 9}}},
        {"stop_reason": None, "stop_sequence": "x"},
        {"stop_details": {"type": "refusal", "explanation": None}},
        {"id": None, "model": 5, "container": {"id": "c"}},
        {"role": "user"},
    ],
)  # fmt: skip
def test_responses_with_unusual_fields_round_trip(fields: dict[str, Any]) -> None:
    """Unusual values in the fields around a response's content round-trip."""
    wire = response(**fields)
    assert DIALECT.encode_response(DIALECT.decode_response(wire)).body == wire


def test_conversation_built_in_code() -> None:
    """System messages move to `system`, results to user messages; arguments are objects."""
    body = sent(
        Message.system("Be brief."),
        Message.user("Look:", Image.from_url("https://example.com/cat.png")),
        Message.assistant("Hm.", tool_calls=[ToolCall.create("c1", "look", '{"at": "cat"}')]),
        Message.tool(ToolResult.error("c1", "too dark")),
        tools=(ToolDefinition.create("look", "Look at it.", strict=False),),
        tool_choice=ToolChoice("required", parallel=False),
        sampling=Sampling(max_tokens=4096),
    )
    schema = {"type": "object", "properties": {}}
    call = {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": "cat"}}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": "too dark", "is_error": True}
    image = {"type": "image", "source": {"type": "url", "url": "https://example.com/cat.png"}}
    assert body == {
        "model": "m",
        "max_tokens": 4096,
        "system": "Be brief.",
        "tools": [{"name": "look", "description": "Look at it.", "input_schema": schema}],
        "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Look:"}, image]},
            {"role": "assistant", "content": [{"type": "text", "text": "Hm."}, call]},
            {"role": "user", "content": [result]},
        ],
    }


def test_system_message_between_others_is_moved() -> None:
    """A late system message moves to `system`, which is reported as a repair (W49)."""
    asked = Request(messages=(Message.user("hi"), Message.developer("Be brief.", Image(url="u:v"))))
    encoded = encode_request(asked)
    assert encoded.body["system"] == "Be brief."
    assert [loss.path for loss in encoded.losses] == ["messages[1].parts[1]"]
    assert [(each.path, each.action) for each in encoded.repairs[:1]] == [("messages[1]", "moved")]


def test_files_built_in_code() -> None:
    """Text files are sent as text, images as images, PDFs as documents."""
    text = File.from_bytes("Grüezi".encode(), "text/markdown", name="a.md")
    picture = File(data="iVBORw0KGgo=", mime="image/png")
    blocks = sent(Message.user(text, picture, File(data="JVBERi0="), Image(data="iVBORw0KGgo=")))
    markdown, png, pdf, sniffed = blocks["messages"][0]["content"]
    assert markdown["source"] == {"type": "text", "media_type": "text/plain", "data": "Grüezi"}
    assert markdown["title"] == "a.md"
    assert png["type"] == "image"
    assert pdf["source"]["media_type"] == "application/pdf"
    assert sniffed["source"]["media_type"] == "image/png"


@pytest.mark.parametrize(
    "part",
    [
        Audio(data="AA==", mime="audio/wav"),
        Video(url="https://example.com/film.mp4"),
        File(data="AA==", mime="application/zip"),
        File(file_id="f", origin=ELSEWHERE),
        Image(file_id="f", origin=ELSEWHERE),
        Thinking("unsigned"),
        Thinking("signed by another", signature="s", origin=ELSEWHERE),
        ServerToolCall("web_search", "c", {}, origin=ELSEWHERE),
        ServerToolResult("web_search", "c", [], origin=ELSEWHERE),
        ServerToolCall("web_search"),
        Opaque("gemini", {"odd": 1}),
    ],
    ids=lambda part: type(part).__name__,
)
def test_unsupported_parts_are_losses(part: Any) -> None:
    """Unsupported parts are left out and reported, in messages and in tool results."""
    assert [path for path, _ in lost(part)] == ["messages[0].parts[0]"]
    if type(part) in {Audio, Video, File, Image, Opaque}:
        result = ToolResult("c", (Text("see"), part))
        encoded = encode_request(Request(messages=(Message(Role.TOOL, (result,)),)))
        assert encoded.body["messages"][0]["content"][0]["content"] == "see"
        assert [loss.path for loss in encoded.losses] == ["messages[0].parts[0].content[1]"]


def test_unsupported_parts_keep_their_text() -> None:
    """Refusals become text; free-text input and invalid arguments become objects; all reported."""
    calls = [make_call("c1", "shell", "ls", kind="custom"), make_call("c2", "f", '{"cut')]
    message = Message(Role.ASSISTANT, (Refusal("No."), *calls), name="Ada")
    encoded = encode_request(Request(messages=(message,)))
    text, shell, broken = encoded.body["messages"][0]["content"]
    assert text == {"type": "text", "text": "No."}
    assert (shell["input"], broken["input"]) == ({"input": "ls"}, {"input": '{"cut'})
    notes: list[Note] = [*encoded.losses[:1], *encoded.repairs[:2], *encoded.losses[1:]]
    assert [note.path for note in notes] == [
        *(f"messages[0].parts[{index}]" for index in range(3)),
        "messages[0].name",
    ]


def test_result_data_is_sent_as_json() -> None:
    """Structured data of a result is sent as JSON text."""
    result = ToolResult("c", data={"sun": True})
    body = sent(Message(Role.TOOL, (result, result.replace(content=()))))
    assert [block["content"] for block in body["messages"][0]["content"]] == ['{"sun":true}'] * 2


def test_cache_hint_is_written() -> None:
    """Cache hints are written on parts and tools, with their TTL."""
    tool = ToolDefinition.create("f", "Does it.").replace(cache=CacheHint())
    body = sent(Message.user(Text("hi", cache=CacheHint("1h"))), tools=(tool,))
    control = body["messages"][0]["content"][0]["cache_control"]
    assert control == {"type": "ephemeral", "ttl": "1h"}
    assert body["tools"][0]["cache_control"] == {"type": "ephemeral"}


def test_foreign_tools() -> None:
    """Free-text tools get one string argument, and strict needs a closed schema (W62).

    A schema with additional properties isn't closed, since that would change its meaning.
    """
    closed = {"type": "object", "properties": {}, "additionalProperties": False}
    asked = Request(
        messages=(Message.user("hi"),),
        tools=(
            ToolDefinition("shell", "Runs it.", kind="custom"),
            make_definition("open", "Open.", {"type": "object", "additionalProperties": True}),
            ToolDefinition("closed", "Closed.", closed),
            make_definition("bare", origin=ELSEWHERE),
            ServerTool("google_search", "gemini"),
        ),
    )
    encoded = encode_request(asked)
    shell, is_open, is_closed, bare = encoded.body["tools"]
    assert shell["input_schema"]["required"] == ["input"]
    assert ("strict" in is_open, is_closed["strict"]) == (False, True)
    assert bare == {"name": "bare", "input_schema": {"type": "object", "properties": {}}}
    assert [loss.path for loss in encoded.losses] == ["tools[0]", "tools[1].strict", "tools[4]"]


def test_only_allowed_tools_are_sent() -> None:
    """`allowed` is expressed by sending only these tools (W74)."""
    tools = tuple(ToolDefinition.create(name, "Does it.", strict=False) for name in ("a", "b"))
    body = sent(Message.user("hi"), tools=tools, tool_choice=ToolChoice("allowed", ("b",)))
    assert [tool["name"] for tool in body["tools"]] == ["b"]
    assert body["tool_choice"] == {"type": "auto"}


@pytest.mark.parametrize(
    ("config", "fields", "is_lossless"),
    [
        (ThinkingConfig(enabled=True), {"thinking": {"type": "adaptive"}}, True),
        (ThinkingConfig(enabled=False), {"thinking": {"type": "disabled"}}, True),
        (ThinkingConfig(effort="none"), {"thinking": {"type": "disabled"}}, True),
        (ThinkingConfig(effort="high"), {"output_config": {"effort": "high"}}, True),
        (ThinkingConfig(effort="minimal"), {"output_config": {"effort": "low"}}, True),
        (ThinkingConfig(effort="huge"), {}, False),
        (
            ThinkingConfig(budget=30_000, visible=True),
            {
                "thinking": {"type": "enabled", "budget_tokens": 30_000, "display": "summarized"},
                "max_tokens": 34_096,  # room for the answer beside the budget
            },
            True,
        ),
    ],
)
def test_thinking_built_in_code(
    config: ThinkingConfig, fields: dict[str, Any], is_lossless: bool
) -> None:
    """Budget and effort are written in this dialect's form; unknown efforts are losses."""
    encoded = DIALECT.encode_request(Request(thinking=config))
    assert encoded.body == {"max_tokens": 32_000, "messages": [], **fields}
    assert (encoded.losses == ()) is is_lossless


def test_unsupported_settings_are_losses() -> None:
    """Seed, several choices and log probabilities are losses."""
    asked = Request(sampling=Sampling(seed=1, choices=2, logprobs=True))
    encoded = DIALECT.encode_request(asked)
    assert encoded.body == {"max_tokens": 32_000, "messages": []}
    assert {loss.path for loss in encoded.losses} == {
        *("sampling.seed", "sampling.choices", "sampling.logprobs"),
    }


def test_output_format_is_written_with_the_effort() -> None:
    """Both are in `output_config`; the description moves into the schema."""
    output = Output(format="schema", schema={"type": "object"}, description="A river.")
    encoded = encode_request(Request(output=output, thinking=ThinkingConfig(effort="max")))
    closed = {"type": "object", "properties": {}, "additionalProperties": False}
    form = {"type": "json_schema", "schema": {**closed, "description": "A river."}}
    assert encoded.body["output_config"] == {"effort": "max", "format": form}
    assert "output" in [repair.path for repair in encoded.repairs]
    assert encoded.losses == ()
    assert "output_config" not in encode_request(Request(output=Output())).body


def test_foreign_citation_is_left_out() -> None:
    """A citation without its sealed reference is left out; the text is kept (W71)."""
    cited = Text("It is long.", (Citation(kind="url", url="https://example.com"),))
    encoded = encode_request(Request(messages=(Message.user(cited),)))
    assert encoded.body["messages"][0]["content"] == "It is long."
    assert [loss.path for loss in encoded.losses] == ["messages[0].parts[0].citations[0]"]


def test_foreign_response_gets_the_required_fields() -> None:
    """A foreign response gets the id, model, stop reason and usage that clients expect."""
    message = Message(Role.ASSISTANT, (Text("No?"), Refusal("No.")), origin=ELSEWHERE)
    choices = (Choice(0, message, FinishReason.STOP, "STOP", [0.5]), Choice(1, message))
    encoded = DIALECT.encode_response(Response(choices=choices))
    assert encoded.body == {
        "type": "message",
        "role": "assistant",
        "id": message.id,
        "model": "",
        "content": [{"type": "text", "text": "No?"}],
        "stop_reason": "refusal",
        "stop_sequence": None,
        "stop_details": {"type": "refusal", "explanation": "No."},
        "usage": {"input_tokens": 0, "output_tokens": 0},
    }
    assert [loss.path for loss in encoded.losses] == ["choices[1]", "choices[0].logprobs"]
    assert DIALECT.encode_response(Response()).body["content"] == []


@pytest.mark.parametrize("finish", list(FinishReason))
def test_every_finish_reason_has_a_stop_reason(finish: FinishReason) -> None:
    """The nearest stop reason is written; a truncated answer stays truncated (I7)."""
    message = Message(Role.ASSISTANT, (Text("hi"),))
    body = DIALECT.encode_response(Response(choices=(Choice(0, message, finish),))).body
    again = DIALECT.decode_response(body).finish
    assert again is not None
    assert again.is_cut_off is finish.is_cut_off


def test_beta_header_round_trips() -> None:
    """The beta header is sent with the request, also after storing; elsewhere it is a loss."""
    body = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "Hi"}]}
    headers = {"Anthropic-Beta": "files-1,other-2", "x-api-key": "secret"}
    request = DIALECT.decode_request(body, headers=headers)
    for value in (request, Request.from_json(request.to_json())):
        encoded = DIALECT.encode_request(value)
        assert encoded.headers == {"anthropic-beta": "files-1,other-2"}
        assert encoded.body == body
    elsewhere = dragoman.dialect("openai-chat").encode_request(request)
    assert elsewhere.headers == {}
    assert [loss.path for loss in elsewhere.losses] == ["extras.anthropic-beta"]
