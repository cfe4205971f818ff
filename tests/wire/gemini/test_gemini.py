"""The Gemini dialect: fixtures in both directions, ids, names, foreign and malformed parts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.errors import WireError
from dragoman.model.frozen import EMPTY
from dragoman.model.media import Audio, File, Image, Video
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import (
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
)
from dragoman.model.usage import FinishReason, Usage
from dragoman.wire.gemini.codec import DIALECT
from dragoman.wire.gemini.dialect import TARGET
from tests.wire.unrepaired import unrepaired

encode_request = unrepaired(DIALECT)
PATH = "/v1beta/models/gemini-test:generateContent"
ELSEWHERE = Origin(dialect="anthropic")


def request(*parts: Any, **fields: Any) -> dict[str, Any]:
    """A minimal body with these parts in one user content."""
    return {"contents": [{"role": "user", "parts": list(parts)}], **fields}


def response(*parts: Any, **fields: Any) -> dict[str, Any]:
    """A minimal response with these parts."""
    content = {"role": "model", "parts": list(parts)}
    return {"candidates": [{"content": content, "finishReason": "STOP", "index": 0, **fields}]}


def part_of(wire: Any) -> Any:
    """The first decoded part of a request with this part."""
    return DIALECT.decode_request(request(wire)).messages[0].parts[0]


def parts_for(*parts: Any, role: Role = Role.USER, origin: Origin | None = None) -> list[Any]:
    """The encoded form of these parts of one message."""
    encoded = encode_request(Request(messages=(make_message(role, parts, origin=origin),)))
    contents = encoded.body.get("contents", [{}])
    return list(contents[0].get("parts", []))


def losses_of(*parts: Any, origin: Origin | None = None) -> list[str]:
    """The reasons of the losses of these parts."""
    message = Message(Role.ASSISTANT, parts, origin=origin)
    return [loss.reason for loss in encode_request(Request(messages=(message,))).losses]


def exactly(value: Any) -> str:
    """JSON text that distinguishes 1 from 1.0 and ignores the order of keys."""
    return json.dumps(value, sort_keys=True)


# --- both directions


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"contents": None, "tools": [], "systemInstruction": {}, "generationConfig": {}},
        {"contents": {"role": "user", "parts": {"text": "hi"}}},
        {"contents": [{"parts": [{"text": "hi"}]}, {"role": "model"}, {"role": None, "parts": []}]},
        {"contents": [{"role": "system", "parts": [{"text": "hi"}]}]},
        {"contents": [{"role": "function", "parts": []}, {"role": "odd", "parts": None, "x": 1}]},
        {"contents": [], "tools": [{}, {"codeExecution": None}, {"mcpServers": [{"name": "a"}]}]},
        {"tools": {"function_declarations": [{"name": "f", "parameters": None, "x": 1}]}},
        {"tools": [{"functionDeclarations": [], "googleSearch": {}, "urlContext": {}}]},
        {"tools": [{"functionDeclarations": [{"name": n}]} for n in "ab"]},
        {"toolConfig": {"functionCallingConfig": {"mode": "VALIDATED"}, "retrievalConfig": {}}},
        {"toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": []}}},
        {"toolConfig": {"functionCallingConfig": {"mode": "AUTO", "allowedFunctionNames": ["f"]}}},
        {"toolConfig": {"functionCallingConfig": {"mode": {}}}},
        {"generationConfig": {"topK": 40.0, "temperature": 1, "seed": 2.5, "maxOutputTokens": "9"}},
        {"generationConfig": {"seed": 10**400, "temperature": -(10**400)}},
        {"generationConfig": {"thinkingConfig": {"thinkingBudget": -1, "thinkingLevel": "high"}}},
        {"generationConfig": {"thinkingConfig": {}, "responseMimeType": "text/plain"}},
        {"generationConfig": {"responseSchema": {"type": ["string", "null"], "any_of": []}}},
        {"generationConfig": {"responseMimeType": "text/x.enum", "responseJsonSchema": {}}},
        request({"inlineData": {"data": "AA==", "mimeType": None}}),
        request({"fileData": {"file_uri": "gs://a"}, "inline_data": None}),
        request({"functionCall": {"name": "f"}}, {"functionCall": {"name": "f", "args": None}}),
        request({"functionResponse": {"name": "f"}}, {"functionResponse": {"name": "f", "id": 1}}),
        request({"functionResponse": {"name": "f", "response": None, "parts": [None, {}]}}),
        request({"text": "hi", "thought": False, "partMetadata": {"mimeType": 1}}),
        request({"text": None, "thoughtSignature": "s"}, {"thoughtSignature": ""}),
        request({"toolCall": {"tool_type": "URL_CONTEXT", "args": None, "id": None}}),
    ],
)
def test_unusual_request_round_trips(body: dict[str, Any]) -> None:
    """Nulls, snake_case names, single items instead of lists and missing fields round-trip."""
    assert exactly(encode_request(DIALECT.decode_request(body)).body) == exactly(body)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"candidates": [], "promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {}},
        {"candidates": None, "usageMetadata": None, "createTime": "yesterday"},
        {"candidates": [{}, {"content": None}, {"content": {}}, {"content": {"role": "model"}}]},
        response({"text": "hi"}, finishReason=1),
        response({"text": "hi"}, finishReason="NEW_REASON", index=None),
        response(
            {"text": "hi"}, citationMetadata={"citationSources": [{"uri": "a", "license": "b"}]}
        ),
        response({"text": "hi"}, citationMetadata={"citations": [{"endIndex": 2, "title": "t"}]}),
        response({"text": "hi"}, groundingMetadata={"groundingSupports": [{"segment": {}}]}),
        response({"text": "hi"}, logprobsResult={"chosenCandidates": []}, avgLogprobs=-1),
        {"usageMetadata": {"promptTokenCount": 0, "thoughtsTokenCount": None}},
        {"usageMetadata": {"promptTokenCount": 3, "totalTokenCount": 3.0}},
        {"response_id": "r", "usage_metadata": {"prompt_token_count": 3, "total_token_count": 3}},
    ],
)
def test_unusual_response_round_trips(body: dict[str, Any]) -> None:
    """Blocked prompts, empty candidates, numeric enums and unusual counts round-trip."""
    assert exactly(DIALECT.encode_response(DIALECT.decode_response(body)).body) == exactly(body)


# --- the path


@pytest.mark.parametrize(
    ("path", "model", "stream"),
    [
        ("/v1beta/models/gemini-2.5-pro:generateContent", "gemini-2.5-pro", False),
        ("/v1/models/m:streamGenerateContent?alt=sse", "m", True),
        ("/v1/projects/p/locations/l/publishers/google/models/m:generateContent", "m", False),
        ("/v1beta/tunedModels/t:generateContent", "tunedModels/t", False),
        ("/v1beta/cachedContents", None, None),
        (None, None, None),
    ],
)
def test_path_has_model_and_streaming(
    path: str | None, model: str | None, stream: bool | None
) -> None:
    """Model and streaming are read from the path."""
    decoded = DIALECT.decode_request({}, path=path)
    assert (decoded.model, decoded.stream) == (model, stream)


def test_request_gets_its_path() -> None:
    """The path is built from model and streaming; special characters are escaped."""
    for made, path in [
        (Request(model="m", stream=True), "/v1beta/models/m:streamGenerateContent?alt=sse"),
        (Request(model="tunedModels/t"), "/v1beta/tunedModels/t:generateContent"),
        (Request(model="a?b#c"), "/v1beta/models/a%3Fb%23c:generateContent"),
        (Request(), None),
    ]:
        assert encode_request(made).path == path


def test_model_in_the_body_is_read_without_a_path() -> None:
    """Without a path, the model is read from the body, and round-trips."""
    decoded = DIALECT.decode_request({"model": "models/m"})
    assert decoded.model == "m"
    assert encode_request(decoded).body == {"model": "models/m"}


# --- calls and results


def turns(*contents: tuple[str, list[Any]]) -> Request:
    """The request with these contents."""
    return DIALECT.decode_request(
        {"contents": [{"role": role, "parts": parts} for role, parts in contents]}
    )


def call(name: str, wire_id: str | None = None) -> dict[str, Any]:
    """A function call."""
    body = {"name": name, "args": {}}
    return {"functionCall": body if wire_id is None else {**body, "id": wire_id}}


def answer(name: str, output: str, wire_id: str | None = None) -> dict[str, Any]:
    """A function response."""
    body = {"name": name, "response": {"output": output}}
    return {"functionResponse": body if wire_id is None else {**body, "id": wire_id}}


def test_results_without_ids_are_paired_by_name_and_order() -> None:
    """Within a turn, the first result of a name answers the first call of that name (W81)."""
    made = turns(
        ("model", [call("a"), call("b"), call("a")]),
        ("user", [answer("b", "1"), answer("a", "2"), answer("a", "3")]),
        ("model", [call("a")]),
        ("user", [answer("a", "4")]),
    )
    first, second, third = made.messages[0].tool_calls
    assert [result.call_id for result in made.messages[1].tool_results] == [
        second.id,
        first.id,
        third.id,
    ]
    assert made.messages[3].tool_results[0].call_id == made.messages[2].tool_calls[0].id
    assert len({first.id, second.id, third.id, made.messages[2].tool_calls[0].id}) == 4


def test_repeated_ids_become_unique_and_round_trip() -> None:
    """Calls with the same id become distinct; results match them in order (I5)."""
    made = turns(
        ("model", [call("a", "x"), call("a", "x")]),
        ("user", [answer("a", "1", "x"), answer("a", "2", "x")]),
    )
    first, second = made.messages[0].tool_calls
    assert first.id == "x"
    assert second.id != "x"
    assert second.wire_id == "x"
    assert [result.call_id for result in made.messages[1].tool_results] == ["x", second.id]
    written = encode_request(made).body["contents"]
    assert [part["functionResponse"]["id"] for part in written[1]["parts"]] == ["x", "x"]


def test_result_without_id_answers_the_turn_before_it() -> None:
    """A result without an id never answers an earlier, unanswered call."""
    made = turns(("model", [call("a")]), ("user", [{"text": "never mind"}]), ("model", [call("a")]),
                 ("user", [answer("a", "1")]))  # fmt: skip
    assert made.messages[3].tool_results[0].call_id == made.messages[2].tool_calls[0].id


def test_content_with_only_results_is_a_tool_message() -> None:
    """A user content with only results is a tool message; with text it stays a user message."""
    made = turns(("user", [answer("a", "1")]), ("user", [answer("a", "1"), {"text": "and?"}]))
    assert [message.role for message in made.messages] == [Role.TOOL, Role.USER]


def test_arguments_may_be_missing() -> None:
    """Missing arguments are decoded as empty, and stay missing when written (W80)."""
    made = part_of({"functionCall": {"name": "now"}})
    assert made.arguments == {}
    assert parts_for(made) == [{"functionCall": {"name": "now"}}]


def test_error_result_is_recognized() -> None:
    """A response with the documented `error` key is an error result (W82)."""
    wire = {"functionResponse": {"name": "f", "response": {"error": "no"}}}
    assert part_of(wire).is_error is True
    assert part_of(answer("f", "yes")).is_error is None


def test_calls_and_results_built_in_code() -> None:
    """Arguments become an object, results an object with the documented keys (W80, W82)."""
    conversation = Request(
        messages=(
            Message.assistant(
                tool_calls=[
                    ToolCall.create("c1", "f", '{"a": 1}'),
                    make_call("c2", "g", raw="not json"),
                    ToolCall("c3", "h", raw="free text", kind="custom"),
                ]
            ),
            Message.tool(
                ToolResult.success("c1", "fine"),
                ToolResult.error("c2", "broken"),
                ToolResult.success("c3", [Text("see"), Image.from_base64("iVBORw0KGgo=")]),
                ToolResult("c1", data=[1, 2]),
            ),
        )
    )
    encoded = encode_request(conversation, TARGET.with_flags({"media.in_results": True}))
    model, user = encoded.body["contents"]
    assert [part["functionCall"] for part in model["parts"]] == [
        {"name": "f", "id": "c1", "args": {"a": 1}},
        {"name": "g", "id": "c2", "args": {"input": "not json"}},
        {"name": "h", "id": "c3", "args": {"input": "free text"}},
    ]
    picture = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}
    assert [part["functionResponse"] for part in user["parts"]] == [
        {"name": "f", "id": "c1", "response": {"output": "fine"}},
        {"name": "g", "id": "c2", "response": {"error": "broken"}},
        {"name": "h", "id": "c3", "response": {"output": "see"}, "parts": [picture]},
        {"name": "f", "id": "c1", "response": {"output": [1, 2]}},
    ]
    assert user["role"] == "user"
    assert [repair.path for repair in encoded.repairs] == ["messages[0].parts[1]"]


def test_a_result_of_an_unknown_tool_still_has_a_name() -> None:
    """The name is required (W81); if it is unknown, a placeholder is sent, which is a loss."""
    encoded = encode_request(Request(messages=(Message.tool("c9", "fine"),)))
    (part,) = encoded.body["contents"][0]["parts"]
    assert part["functionResponse"]["name"] == "unknown"
    assert len(encoded.losses) == 1


# --- parts


def test_signatures_stay_on_their_part() -> None:
    """Texts, thoughts and calls keep their own signature and origin (W83)."""
    for wire in [
        {"text": "a", "thoughtSignature": "s"},
        {"text": "a", "thought": True, "thoughtSignature": "s"},
        {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "s"},
        {"inlineData": {"mimeType": "image/png", "data": "AA=="}, "thoughtSignature": "s"},
    ]:
        part = part_of(wire)
        assert part.signature == "s"
        assert part.origin == Origin(dialect="gemini")
        assert parts_for(part) == [wire]


def test_media_type_follows_the_mime_type() -> None:
    """Without a MIME type, a file with video metadata is a video."""
    for mime, kind in [("image/webp", Image), ("audio/mp3", Audio), ("video/mp4", Video),
                       ("text/plain", File)]:  # fmt: skip
        assert type(part_of({"inlineData": {"mimeType": mime, "data": "AA=="}})) is kind
    assert type(part_of({"fileData": {"fileUri": "https://youtu.be/x"}})) is File
    film = {"fileData": {"fileUri": "https://youtu.be/x"}, "videoMetadata": {"fps": 1}}
    assert type(part_of(film)) is Video


@pytest.mark.parametrize("mime", ["application/pdf", "audio/wav", "video/mp4", "image/png"])
def test_media_resolution_round_trips_without_loss(mime: str) -> None:
    """`mediaResolution` round-trips on every kind of media, without a reported loss."""
    blob = {"inlineData": {"mimeType": mime, "data": "AA=="}}
    part = {**blob, "mediaResolution": {"level": "MEDIA_RESOLUTION_LOW"}}
    read = DIALECT.decode_request({"contents": [{"role": "user", "parts": [part]}]})
    encoded = encode_request(read)
    assert encoded.body["contents"][0]["parts"] == [part]
    assert encoded.losses == ()


def test_media_built_in_code() -> None:
    """Media are sent inline, by URL or by file id."""
    assert parts_for(
        Image.from_url("https://example.com/cat.png", detail="low"),
        File(data="AA=="),
        File.from_file_id("files/abc", "application/pdf"),
    ) == [
        {
            "fileData": {"fileUri": "https://example.com/cat.png"},
            "mediaResolution": {"level": "MEDIA_RESOLUTION_LOW"},
        },
        {"inlineData": {"mimeType": "application/octet-stream", "data": "AA=="}},
        {
            "fileData": {
                "mimeType": "application/pdf",
                "fileUri": "https://generativelanguage.googleapis.com/v1beta/files/abc",
            }
        },
    ]


@pytest.mark.parametrize(
    "wire",
    [
        None,
        {},
        {"newThing": {}},
        {"text": 1},
        {"text": "a", "functionCall": {"name": "f"}},
        {"inlineData": {"mimeType": "image/png"}},
        {"fileData": "x"},
        {"functionCall": {"name": None}},
        {"functionCall": {"name": "f", "args": "x"}},
        {"executableCode": "x"},
        {"toolCall": {}},
        {"toolCall": {"toolType": "code_execution"}},
        {"videoMetadata": {"fps": 1}},
    ],
)
def test_unknown_part_is_kept_as_opaque(wire: Any) -> None:
    """Unknown and malformed parts become opaque parts and round-trip."""
    part = part_of(wire)
    assert type(part) is Opaque
    assert parts_for(part) == [wire]


def test_foreign_state_is_left_out() -> None:
    """Foreign thinking, tools and opaque parts are losses; text and calls are kept (W86)."""
    assert parts_for(
        Thinking("hm", signature="theirs"),
        Text("hello", signature="theirs"),
        ServerToolCall("web_search", "s1", {}),
        ServerToolResult("web_search", "s1", []),
        Opaque("anthropic", {"type": "x"}),
        Image.from_file_id("file-abc"),
        ToolCall.create("c1", "f", {}),
        role=Role.ASSISTANT,
        origin=ELSEWHERE,
    ) == [{"text": "hello"}, {"functionCall": {"name": "f", "id": "c1", "args": {}}}]
    for part in [Thinking("hm"), Text("a", signature="s"), ServerToolCall("x"), Opaque("anthropic"),
                 Image.from_file_id("file-abc")]:  # fmt: skip
        assert len(losses_of(part, origin=ELSEWHERE)) == 1


def test_unsupported_parts_are_losses() -> None:
    """A refusal becomes text; encrypted thinking, citations and names are losses."""
    assert parts_for(Refusal("I won't.")) == [{"text": "I won't."}]
    assert losses_of(Refusal("I won't.")) == ["a refusal is sent as text"]
    assert losses_of(Thinking(data="sealed", form="redacted")) == [
        "encrypted thinking is not supported"
    ]
    assert losses_of(Text("a", (Citation(kind="x"),))) == ["citations are not supported"]
    named = Request(messages=(Message.user("hi", name="ann"),))
    assert [loss.path for loss in encode_request(named).losses] == ["messages[0].name"]


# --- system prompt, tools and settings


def test_system_messages_go_to_the_system_instruction() -> None:
    """There is no system role (W75); moving a late system message is a repair."""
    encoded = encode_request(
        Request(
            system=(Text("A"),),
            messages=(Message.system("B"), Message.user("hi"), Message.developer("C")),
        )
    )
    assert encoded.body == {
        "systemInstruction": {"parts": [{"text": "A"}, {"text": "B"}, {"text": "C"}]},
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
    }
    assert [(each.path, each.action) for each in encoded.repairs] == [("messages[2]", "moved")]


def test_tool_built_in_code_keeps_its_json_schema() -> None:
    """The schema is written to `parametersJsonSchema` unchanged (W93)."""
    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}},
              "additionalProperties": False, "$defs": {"A": {"enum": [1]}}}  # fmt: skip
    made = Request(tools=(ToolDefinition.create("f", "Does it.", schema),))
    assert encode_request(made).body["tools"] == [
        {
            "functionDeclarations": [
                {"name": "f", "description": "Does it.", "parametersJsonSchema": schema}
            ]
        }
    ]


def test_openapi_schemas_are_decoded_as_json_schema() -> None:
    """Upper-case types and `nullable` are converted at every depth (W91), and round-trip."""
    item = {"type": "OBJECT", "properties": {"type": {"type": "STRING", "nullable": True}}}
    wire = {"anyOf": [{"type": "ARRAY", "items": item}, {"type": "NULL"}]}
    body = {"tools": [{"functionDeclarations": [{"name": "f", "parameters": wire}]}]}
    decoded = DIALECT.decode_request(body)
    (tool,) = decoded.tools
    assert isinstance(tool, ToolDefinition)
    read = {"type": "object", "properties": {"type": {"type": ["string", "null"]}}}
    assert tool.parameters == {"anyOf": [{"type": "array", "items": read}, {"type": "null"}]}
    assert encode_request(decoded).body == body


def test_changed_tools_are_grouped_again() -> None:
    """The wire's grouping of tools is kept only if the tools are unchanged."""
    body = {"tools": [{"functionDeclarations": [{"name": "f"}], "codeExecution": None}]}
    decoded = DIALECT.decode_request(body)
    search = ServerTool("googleSearch", "gemini")
    changed = decoded.replace(tools=(*decoded.tools, search))
    assert encode_request(changed).body["tools"] == [
        {"functionDeclarations": [{"name": "f"}]},
        {"googleSearch": {}},
    ]


def test_foreign_server_tools_are_left_out() -> None:
    """Another provider's server tool is left out and reported as a loss."""
    encoded = encode_request(Request(tools=(ServerTool("web_search_20250305", "anthropic"),)))
    assert encoded.body == {}
    assert [loss.path for loss in encoded.losses] == ["tools[0]"]


@pytest.mark.parametrize(
    ("choice", "calling"),
    [
        (ToolChoice("auto"), {"mode": "AUTO"}),
        (ToolChoice("none"), {"mode": "NONE"}),
        (ToolChoice("required"), {"mode": "ANY"}),
        (ToolChoice("named", ("f",)), {"mode": "ANY", "allowedFunctionNames": ["f"]}),
        (
            ToolChoice("allowed", ("f", "g")),
            {"mode": "VALIDATED", "allowedFunctionNames": ["f", "g"]},
        ),
        (
            ToolChoice("allowed", ("f", "g"), is_required=True),
            {"mode": "ANY", "allowedFunctionNames": ["f", "g"]},
        ),
    ],
)
def test_tool_choices(choice: ToolChoice, calling: dict[str, Any]) -> None:
    """Each tool choice maps to its mode and back (W99)."""
    body = {"toolConfig": {"functionCallingConfig": calling}}
    assert encode_request(Request(tool_choice=choice)).body == body
    assert DIALECT.decode_request(body).tool_choice == choice


@pytest.mark.parametrize(
    ("thinking", "wire"),
    [
        (
            ThinkingConfig(budget=100, visible=True),
            {"thinkingBudget": 100, "includeThoughts": True},
        ),
        (ThinkingConfig(enabled=False), {"thinkingBudget": 0}),
        (ThinkingConfig(effort="none"), {"thinkingBudget": 0}),
        (ThinkingConfig(enabled=True), {"thinkingBudget": -1}),
        (ThinkingConfig(enabled=True, effort="low"), {"thinkingLevel": "LOW"}),
        (ThinkingConfig(effort="xhigh"), {"thinkingLevel": "HIGH"}),
    ],
)
def test_thinking_built_in_code(thinking: ThinkingConfig, wire: dict[str, Any]) -> None:
    """Thinking is written as a budget, a level, or on and off."""
    body = encode_request(Request(thinking=thinking)).body
    assert body == {"generationConfig": {"thinkingConfig": wire}}


@pytest.mark.parametrize(
    ("output", "wire"),
    [
        (Output(format="json"), {"responseMimeType": "application/json"}),
        (Output(format="text"), {"responseMimeType": "text/plain"}),
        (
            Output(format="schema", schema={"type": "object"}),
            {"responseMimeType": "application/json", "responseJsonSchema": {"type": "object"}},
        ),
    ],
)
def test_output_formats(output: Output, wire: dict[str, Any]) -> None:
    """Text, JSON and JSON with a schema map to their fields and back."""
    body = {"generationConfig": wire}
    assert encode_request(Request(output=output)).body == body
    assert DIALECT.decode_request(body).output == output


def test_unsupported_settings_are_losses() -> None:
    """Parallel calls can't be turned off, which is a loss."""
    losses = encode_request(Request(tool_choice=ToolChoice(parallel=False))).losses
    assert [loss.path for loss in losses] == ["tool_choice.parallel"]


# --- edits


def test_edits_override_extra_fields() -> None:
    """Nulls, field names and missing fields are restored only if the value is unchanged."""
    decoded = DIALECT.decode_request(
        {
            "contents": [{"parts": [{"thoughtSignature": "s"}]}],
            "systemInstruction": None,
            "toolConfig": None,
            "generation_config": {"top_k": 40.0, "temperature": None},
        }
    )
    message = decoded.messages[0]
    changed = decoded.replace(
        system=(Text("Be brief."),),
        tool_choice=ToolChoice("none"),
        sampling=Sampling(top_k=3, temperature=0.5),
        messages=(message.replace(parts=(message.parts[0].replace(text="hi"),)),),
    )
    assert encode_request(changed).body == {
        "contents": [{"parts": [{"text": "hi", "thoughtSignature": "s"}]}],
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "toolConfig": {"functionCallingConfig": {"mode": "NONE"}},
        "generation_config": {"top_k": 3, "temperature": 0.5},
    }


def test_without_extras_field_names_are_camel_case() -> None:
    """A part without extras is written with the API's own field names."""
    decoded = DIALECT.decode_request(
        request({"inline_data": {"mime_type": "image/png", "data": "AA=="}})
    )
    (message,) = decoded.messages
    bare = message.replace(parts=(message.parts[0].replace(extras=EMPTY),))
    body = encode_request(decoded.replace(messages=(bare,))).body
    assert body == request({"inlineData": {"mimeType": "image/png", "data": "AA=="}})


# --- responses


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("STOP", FinishReason.STOP),
        ("MAX_TOKENS", FinishReason.LENGTH),
        ("SAFETY", FinishReason.CONTENT_FILTER),
        ("MALFORMED_FUNCTION_CALL", FinishReason.MALFORMED_CALL),
        ("LANGUAGE", FinishReason.ERROR),
        ("TOO_MANY_TOOL_CALLS", FinishReason.MALFORMED_CALL),
        ("MODEL_ARMOR", FinishReason.CONTENT_FILTER),
        ("FINISH_REASON_UNSPECIFIED", FinishReason.OTHER),
        (2, FinishReason.LENGTH),
    ],
)
def test_finish_reasons(word: Any, reason: FinishReason) -> None:
    """Choice and message have the finish reason that matches the wire's (W88)."""
    choice = DIALECT.decode_response(response({"text": "a"}, finishReason=word)).choices[0]
    assert choice.finish is choice.message.finish is reason


def test_response_has_its_origin() -> None:
    """The message's origin has the model and the response id."""
    wire = {**response({"text": "a"}), "modelVersion": "m-1", "responseId": "r"}
    decoded = DIALECT.decode_response(wire)
    assert decoded.message.origin == Origin(dialect="gemini", model="m-1", response_id="r")
    assert (decoded.model, decoded.id) == ("m-1", "r")


def test_foreign_response_is_written() -> None:
    """Text, calls, citations, usage and finish reason are written in Gemini's form."""
    message = Message(
        Role.ASSISTANT,
        (
            Text("Long.", (Citation(kind="url_citation", url="https://a.example", title="A"),)),
            ToolCall.create("c1", "f", {}),
        ),
        origin=ELSEWHERE,
    )
    choice = Choice(0, message, FinishReason.TOOL_CALLS, "tool_use", {"content": []})
    made = Response(choices=(choice,), usage=Usage(10, 5, cache_read=2), id="r", created_at=0.5)
    encoded = DIALECT.encode_response(made)
    assert [loss.path for loss in encoded.losses] == ["choices[0].logprobs"]
    source = {"web": {"uri": "https://a.example", "title": "A"}}
    assert encoded.body == {
        "candidates": [
            {
                "index": 0,
                "finishReason": "STOP",
                "content": {
                    "role": "model",
                    "parts": [
                        {"text": "Long."},
                        {"functionCall": {"name": "f", "id": "c1", "args": {}}},
                    ],
                },
                "groundingMetadata": {"groundingChunks": [source]},
            }
        ],
        "usageMetadata": {
            "promptTokenCount": 12,
            "cachedContentTokenCount": 2,
            "candidatesTokenCount": 5,
            "totalTokenCount": 17,
        },
        "responseId": "r",
        "createTime": "1970-01-01T00:00:00.500000Z",
    }


def test_citations_are_assigned_by_part_index() -> None:
    """Without a part index, a citation belongs to the first text that isn't a thought."""
    chunks = [{"web": {"uri": "u"}}]
    supports = [
        {"segment": {"endIndex": 1}, "groundingChunkIndices": [0]},
        {"segment": {"partIndex": 2, "endIndex": 1}, "groundingChunkIndices": [0, 7]},
    ]
    metadata = {"groundingChunks": chunks, "groundingSupports": supports}
    parts = [{"text": "hm", "thought": True}, {"text": "a"}, {"text": "b"}]
    wire = response(*parts, groundingMetadata=metadata)
    decoded = DIALECT.decode_response(wire)
    cited = [len(part.citations) for part in decoded.message.parts if isinstance(part, Text)]
    assert cited == [1, 1]
    assert exactly(DIALECT.encode_response(decoded).body) == exactly(wire)


# --- malformed bodies


def test_nesting_depth_is_limited() -> None:
    """JSON nested too deeply raises `WireError`."""
    deep: Any = {}
    for _ in range(5000):
        deep = {"a": deep}
    for body in [{"x": deep}, request({"functionCall": {"name": "f", "args": deep}}), request(deep),
                 {"generationConfig": {"responseSchema": deep}}]:  # fmt: skip
        with pytest.raises(WireError):
            DIALECT.decode_request(body)


EVERYWHERE: dict[str, Any] = {
    "systemInstruction": {"parts": [{"text": "Be brief."}]},
    "contents": [
        {"role": "user", "parts": [
            {"text": "Look."},
            {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo=", "displayName": "a"},
             "mediaResolution": {"level": "MEDIA_RESOLUTION_LOW"}},
            {"fileData": {"mimeType": "video/mp4", "fileUri": "https://example.com/a"},
             "videoMetadata": {"startOffset": "1s"}},
        ]},
        {"role": "model", "parts": [
            {"text": "hm", "thought": True, "thoughtSignature": "c2ln"},
            {"functionCall": {"name": "f", "id": "c1", "args": {"someName": 1}},
             "thoughtSignature": "c2ln"},
            {"executableCode": {"language": "PYTHON", "code": "1"}},
            {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
            {"toolCall": {"toolType": "URL_CONTEXT", "id": "t", "args": {"a_b": 1}}},
            {"toolResponse": {"toolType": "URL_CONTEXT", "id": "t", "response": {}}},
        ]},
        {"role": "user", "parts": [
            {"functionResponse": {"name": "f", "id": "c1", "response": {"output": "a"}, "parts": [
                {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}]}},
        ]},
    ],
    "tools": [
        {"functionDeclarations": [
            {"name": "f", "parametersJsonSchema": {"type": "object"},
             "responseJsonSchema": {"type": "string"}}]},
        {"googleSearch": {}}, {"urlContext": {}}, {"codeExecution": {}},
    ],
    "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}},
    "generationConfig": {
        "maxOutputTokens": 5, "topK": 4, "topP": 0.5, "candidateCount": 2, "stopSequences": ["a"],
        "presencePenalty": 0.5, "frequencyPenalty": 0.5, "responseLogprobs": True, "logprobs": 3,
        "responseMimeType": "application/json", "responseJsonSchema": {"type": "object"},
        "thinkingConfig": {"includeThoughts": True, "thinkingBudget": 5},
    },
}  # fmt: skip
"""Every field that the model understands."""
ALONG: dict[str, Any] = {
    "safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}],
    "cachedContent": "cachedContents/a",
    "labels": {"a_b": "c"},
    "toolConfig": {"retrievalConfig": {"latLng": {"latitude": 1}}},
    "tools": [{"googleSearch": {"timeRangeFilter": {"startTime": "a"}}}],
    "generationConfig": {"speechConfig": {"voiceConfig": {"prebuiltVoiceConfig": {}}},
                         "responseModalities": ["TEXT"], "mediaResolution": "LOW"},
}  # fmt: skip
"""Fields that ride along."""
_OWN_KEYS = frozenset({"args", "labels", "parametersJsonSchema", "responseJsonSchema"})


def snake_case(value: Any) -> Any:
    """The body in snake_case; user-defined keys are unchanged."""
    if isinstance(value, list):
        return [snake_case(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        "".join(f"_{c.lower()}" if c.isupper() else c for c in key): (
            inner if key in _OWN_KEYS else snake_case(inner)
        )
        for key, inner in value.items()
    }


def test_snake_case_and_camel_case_are_equivalent() -> None:
    """Each field is decoded in both spellings, and written in the one it came in."""
    other = snake_case(EVERYWHERE)
    assert DIALECT.decode_request(other) == DIALECT.decode_request(EVERYWHERE)
    for body in (EVERYWHERE, other, ALONG, snake_case(ALONG)):
        assert exactly(encode_request(DIALECT.decode_request(body)).body) == exactly(body)


def test_a_voice_is_read_in_snake_case() -> None:
    """Settings deep inside an object are read in both spellings, and written as they came."""
    voice = {"voice_config": {"prebuilt_voice_config": {"voice_name": "Kore"}}}
    body = request({"text": "hi"}, generation_config={"speech_config": voice})
    decoded = DIALECT.decode_request(body)
    assert decoded.media is not None
    assert decoded.media.voice == "Kore"
    assert encode_request(decoded).body == body


@pytest.mark.parametrize(
    "more", [{"mediaResolution": {"level": "MEDIA_RESOLUTION_LOW"}}, {"thoughtSignature": "aGk="}]
)
def test_media_of_results_are_readable_with_other_fields(more: dict[str, Any]) -> None:
    """A resolution or a signature beside media in a function response stays in this dialect."""
    shown = {"inlineData": {"mimeType": "image/png", "data": "aGk="}, **more}
    answer = {"name": "draw", "id": "c1", "response": {"output": ""}, "parts": [shown]}
    body = request({"functionResponse": answer})
    (part,) = part_of({"functionResponse": answer}).content
    assert (type(part), part.data) == (Image, "aGk=")
    assert encode_request(DIALECT.decode_request(body)).body == body


def test_a_resolution_is_read_beside_other_fields() -> None:
    """What else the object of a resolution has is kept, and doesn't hide the detail."""
    level = {"level": "MEDIA_RESOLUTION_HIGH", "numTokens": 280}
    wire = {"fileData": {"fileUri": "https://x.example/a.png", "mimeType": "image/png"}}
    body = request({**wire, "mediaResolution": level})
    assert part_of({**wire, "mediaResolution": level}).detail == "high"
    assert encode_request(DIALECT.decode_request(body)).body == body
