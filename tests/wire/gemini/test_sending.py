"""Requests sent to Gemini are valid, wherever the conversation comes from."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import UNSET

import dragoman
from dragoman.errors import InvalidInputError
from dragoman.model.media import Image
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import Opaque, Origin, ServerToolCall, Text, Thinking
from dragoman.model.requests import Output, Request, ThinkingConfig
from dragoman.model.roles import Role
from dragoman.model.tools import (
    ServerTool,
    ToolCall,
    ToolChoice,
    ToolDefinition,
    ToolResult,
    make_call,
)
from dragoman.wire.fitting.turns import ENDING, OPENING
from dragoman.wire.gemini.codec import DIALECT
from dragoman.wire.gemini.dialect import SENTINEL, TARGET
from dragoman.wire.target import Target
from tests.wire.gemini.targets import SECOND, TARGETS, THIRD

ELSEWHERE, HERE = Origin(dialect="anthropic"), Origin(dialect="gemini")
ASK = Message.user("What is the weather?")
PIXEL = Image.from_base64("iVBORw0KGgo=")
PICTURE = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}
WEATHER = ToolDefinition.create("weather", "Tell the weather.")


def sent(*messages: Message, target: Target | None = None, **fields: Any) -> dict[str, Any]:
    """The encoded body of these messages, which violates no rule."""
    encoded = DIALECT.encode_request(Request(messages=messages, **fields), target)
    found = DIALECT.check(encoded.body, target=target)
    assert [violation for violation in found if violation.severity == "error"] == []
    return encoded.body


def losses(*messages: Message, target: Target | None = None, **fields: Any) -> list[str]:
    """The paths of the losses."""
    encoded = DIALECT.encode_request(Request(messages=messages, **fields), target)
    return [loss.path for loss in encoded.losses]


def called(*ids: str, name: str = "weather", **fields: Any) -> Message:
    """A message that calls a tool, once for each id."""
    return Message(Role.ASSISTANT, tuple(make_call(i, name, input={}, **fields) for i in ids))


def answered(*ids: str) -> Message:
    """A message with the results of those calls."""
    return Message(Role.TOOL, tuple(ToolResult(i, f"result of {i}") for i in ids))


def calls_in(body: dict[str, Any]) -> list[Any]:
    """The signatures of the calls, in order."""
    parts = [part for content in body["contents"] for part in content["parts"]]
    return [part.get("thoughtSignature") for part in parts if "functionCall" in part]


# --- contents


@pytest.mark.parametrize("target", TARGETS.values(), ids=list(TARGETS))
def test_system_prompt_alone_gets_an_opening_message(target: Target) -> None:
    """With only a system prompt, an opening user content is added (W75)."""
    opening = [{"role": "user", "parts": [{"text": OPENING}]}]
    assert sent(system=(Text("Be brief."),), target=target)["contents"] == opening
    assert sent(Message.system("Be brief."), target=target)["contents"] == opening


def test_messages_without_content() -> None:
    """An empty answer is left out; an empty user message gets a placeholder text (W76)."""
    body = sent(ASK, make_message(Role.ASSISTANT), make_message(Role.USER), Message.user(""))
    assert [content["parts"][0]["text"] for content in body["contents"]] == [
        "What is the weather?",
        "(no text)",
        "",
    ]


def test_messages_without_supported_content() -> None:
    """Foreign parts are losses; the user's turn is kept with a placeholder (W76)."""
    thought = Message(Role.ASSISTANT, (Thinking("hm", origin=ELSEWHERE),))
    strange = Message(Role.USER, (Opaque("openai-chat", {"type": "odd"}),))
    body = sent(ASK, thought, strange, called("a"), answered("a"))
    assert [content["role"] for content in body["contents"]] == ["user", "user", "model", "user"]
    assert losses(ASK, thought, strange) == ["messages[1].parts[0]", "messages[2].parts[0]"]


def test_conversation_starts_with_the_user() -> None:
    """A history that begins with a call gets an opening user message (W77)."""
    body = sent(called("a"), answered("a"))
    assert body["contents"][0] == {"role": "user", "parts": [{"text": OPENING}]}


def test_parallel_results_are_one_content() -> None:
    """Results are grouped in one content, with a placeholder for each missing result (W78)."""
    body = sent(ASK, called("a", "b", "c"), answered("c"), Message.user("wait"), answered("a"))
    results = body["contents"][2]["parts"]
    assert [part["functionResponse"]["id"] for part in results] == ["a", "b", "c"]
    assert "unknown" in results[1]["functionResponse"]["response"]["error"]
    assert body["contents"][3]["parts"] == [{"text": "wait"}]


def test_results_without_ids_are_in_call_order() -> None:
    """Without ids, the results of a tool are in the order of its calls (W78, W81)."""
    other = ToolCall("x", "time", input={})
    calls = called("a", "b").with_parts(*called("a", "b").parts, other)
    body = sent(ASK, calls, answered("b", "x", "a"), target=SECOND)
    said = [part["functionResponse"] for part in body["contents"][2]["parts"]]
    assert [one["response"]["output"][-1] for one in said] == ["a", "x", "b"]
    assert all("id" not in one for one in said)
    assert all("id" not in part["functionCall"] for part in body["contents"][1]["parts"])


def test_conversation_ends_with_the_user() -> None:
    """For models without prefill, a user content is appended, as a repair (W79)."""
    begun = (ASK, Message.assistant("It is"))
    assert sent(*begun)["contents"][-1] == {"role": "user", "parts": [{"text": ENDING}]}
    encoded = DIALECT.encode_request(Request(messages=begun))
    assert [repair.path for repair in encoded.repairs] == ["messages[1]"]
    assert sent(*begun, target=SECOND)["contents"][-1]["role"] == "model"
    assert losses(*begun, target=SECOND) == []


def test_unanswered_final_call_gets_only_a_result() -> None:
    """A call at the end gets a placeholder result, and no extra text (W79)."""
    body = sent(ASK, called("a"))
    assert [list(part) for part in body["contents"][-1]["parts"]] == [["functionResponse"]]


# --- calls and results


@pytest.mark.parametrize(
    ("result", "response"),
    [
        (ToolResult("a", "sun"), {"output": "sun"}),
        (ToolResult("a", ""), {"output": ""}),
        (ToolResult("a", "no", is_error=True), {"error": "no"}),
        (ToolResult("a", data=[1, "b"]), {"output": [1, "b"]}),
        (ToolResult("a", data=None), {"output": None}),
        (ToolResult("a", data=5, is_error=True), {"error": 5}),
        (ToolResult("a", data={"b": 1}), {"b": 1}),
        (ToolResult("a", data={"b": 1}, is_error=True), {"error": {"b": 1}}),
        (ToolResult("a", data={"error": 1}, is_error=False), {"output": {"error": 1}}),
    ],
)
def test_result_is_wrapped_in_an_object_and_round_trips(
    result: ToolResult, response: dict[str, Any]
) -> None:
    """Text and scalars are wrapped when encoded and unwrapped when decoded (W82)."""
    body = sent(ASK, called("a"), Message(Role.TOOL, (result,)))
    assert body["contents"][2]["parts"][0]["functionResponse"]["response"] == response
    (back,) = DIALECT.decode_request(body).messages[2].tool_results
    assert bool(back.is_error) == bool(result.is_error)
    if not isinstance(result.data, dict):
        assert (back.text, back.data) == (result.text, result.data)


@pytest.mark.parametrize("through", [n for n in dragoman.dialects() if n != "gemini"])
def test_results_of_other_dialects_round_trip_through_gemini(through: str) -> None:
    """A foreign result keeps its text and its error flag (W82)."""
    other = dragoman.dialect(through)
    said = (ToolResult("a", "sun"), ToolResult("b", "broken", is_error=True))
    request = Request(model="m", messages=(ASK, called("a", "b"), Message(Role.TOOL, said)))
    arrived = DIALECT.decode_request(DIALECT.encode_request(request).body)
    texts = [result.text for m in arrived.messages for result in m.tool_results]
    assert texts == ["sun", "broken"]
    assert [bool(r.is_error) for m in arrived.messages for r in m.tool_results] == [False, True]
    back = other.decode_request(other.encode_request(arrived).to_bytes())
    assert [r.text for m in back.messages for r in m.tool_results] == texts


def test_data_that_looks_like_references_is_sent_as_text() -> None:
    """Data with `$ref` is sent as text, and decodes to the same text (W95)."""
    schema = {"a": [{"$ref": "#/$defs/b"}]}
    result = ToolResult("a", data=schema)
    body = sent(ASK, called("a"), Message(Role.TOOL, (result,)))
    (back,) = DIALECT.decode_request(body).messages[2].tool_results
    assert back.text == result.text


def test_own_references_round_trip() -> None:
    """References in a request of this dialect are sent unchanged (W95)."""
    response = {"name": "weather", "response": {"image": {"$ref": "a"}}}
    content = {"role": "user", "parts": [{"functionResponse": response}]}
    model = {"role": "model", "parts": [{"functionCall": {"name": "weather", "args": {}}}]}
    body = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}, model, content]}
    assert DIALECT.encode_request(DIALECT.decode_request(body)).body == body


def test_result_has_the_name_of_its_call() -> None:
    """A result gets its call's sanitized name, whatever its own tool name (W81, W89)."""
    result = ToolResult("a", "sun", tool_name="the weather!")
    body = sent(ASK, called("a", name="mcp/weather"), Message(Role.TOOL, (result,)))
    call, response = (body["contents"][i]["parts"][0] for i in (1, 2))
    assert call["functionCall"]["name"] == response["functionResponse"]["name"] != "mcp/weather"


# --- signatures


def test_unsigned_calls_of_the_current_turn() -> None:
    """The first call of each step in the current turn gets the sentinel signature (W84)."""
    earlier = (ASK, called("a"), answered("a"))
    now = (ASK, called("b", "c"), answered("b", "c"), called("d"), answered("d"))
    body = sent(*earlier, *now, target=THIRD)
    assert calls_in(body) == [None, SENTINEL, None, SENTINEL]
    assert calls_in(sent(*earlier, *now)) == [None, None, None, None]


def test_consecutive_answers_are_one_step() -> None:
    """The API treats them as one turn, so only one call needs a signature."""
    body = sent(ASK, called("a"), Message.assistant("and"), answered("a"), target=THIRD)
    assert calls_in(body) == [SENTINEL]


def test_own_signature_is_sent_back() -> None:
    """The model's own signatures are sent back; foreign ones aren't (W84, W86)."""
    own = called("a", signature="c2ln", origin=HERE)
    foreign = called("b", signature="Zm9yZWlnbg==", origin=ELSEWHERE)
    conversation = (ASK, own, answered("a"), foreign, answered("b"))
    assert calls_in(sent(*conversation, target=THIRD)) == ["c2ln", SENTINEL]
    assert calls_in(sent(*conversation)) == ["c2ln", None]
    assert losses(*conversation, target=THIRD) == ["messages[3].parts[0]"]


@pytest.mark.parametrize(
    ("origin", "is_sent"),
    [
        (Origin(dialect="gemini", model="gemini-3-pro-preview"), True),
        (Origin(dialect="gemini", model="gemini-2.5-flash"), False),
        (Origin(dialect="gemini", provider="vertex"), False),
        (Origin(dialect="gemini", provider="google"), True),
        (HERE, True),
        (None, True),
    ],
)
def test_signature_needs_the_same_model_and_provider(origin: Origin | None, is_sent: bool) -> None:
    """A signature is sent only if known model and provider match the target (W86)."""
    call = called("a", signature="c2ln", origin=origin)
    body = sent(ASK, call, answered("a"), target=THIRD)
    assert calls_in(body) == ["c2ln" if is_sent else SENTINEL]


@pytest.mark.parametrize("stand_in", [SENTINEL, "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="])
def test_sentinel_is_not_a_signature(stand_in: str) -> None:
    """The sentinel round-trips, but isn't decoded as a signature (W84)."""
    call = {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": stand_in}
    answer = {"functionResponse": {"name": "f", "response": {"output": "a"}}}
    contents = [("user", {"text": "hi"}), ("model", call), ("user", answer)]
    body = {"contents": [{"role": role, "parts": [part]} for role, part in contents]}
    request = DIALECT.decode_request(body)
    assert request.messages[1].tool_calls[0].signature is None
    assert DIALECT.encode_request(request).body == body
    assert DIALECT.encode_request(request, THIRD).body == body


def test_signature_on_empty_text_is_kept() -> None:
    """An empty text with a signature is sent (W85)."""
    signed = Message(Role.ASSISTANT, (Text("So"), Text("", signature="c2ln", origin=HERE)))
    body = sent(ASK, signed, ASK, target=THIRD)
    assert body["contents"][1]["parts"][1] == {"text": "", "thoughtSignature": "c2ln"}


# --- media in tool results


def shown() -> tuple[Message, ...]:
    """A conversation in which a tool returns an image."""
    return ASK, called("a"), Message(Role.TOOL, (ToolResult("a", (Text("see"), PIXEL)),))


def test_media_are_inside_the_response_if_supported() -> None:
    """Gemini 3 accepts media inside function responses (W96)."""
    response = sent(*shown(), target=THIRD)["contents"][2]["parts"][0]["functionResponse"]
    assert response["parts"] == [PICTURE]
    assert losses(*shown(), target=THIRD) == []


@pytest.mark.parametrize("target", [None, SECOND])
def test_media_follow_the_responses_otherwise(target: Target | None) -> None:
    """Otherwise the media follow in a user content, which is reported (W96)."""
    body = sent(*shown(), Message.user("and?"), target=target)
    assert "parts" not in body["contents"][2]["parts"][0]["functionResponse"]
    assert body["contents"][3]["parts"] == [{"text": "(Shown by the tool weather:)"}, PICTURE]
    assert body["contents"][4]["parts"] == [{"text": "and?"}]
    assert losses(*shown(), target=target) == ["messages[2].parts[0].content[1]"]


def test_data_with_media_is_also_text() -> None:
    """A response with data and media also has the data as text (W96)."""
    response = {"name": "f", "response": {"width": 1}, "parts": [PICTURE]}
    wire = {"contents": [{"role": "user", "parts": [{"functionResponse": response}]}]}
    (result,) = DIALECT.decode_request(wire).messages[0].tool_results
    assert result.text == '{"width":1}'
    assert result.data == {"width": 1}


def test_opaque_content_in_a_result_is_a_loss() -> None:
    """Another dialect's opaque content in a result is a loss."""
    strange = Message(Role.TOOL, (ToolResult("a", (Opaque("anthropic", {"type": "odd"}),)),))
    assert losses(ASK, called("a"), strange) == ["messages[2].parts[0].content[0]"]


# --- settings


def test_json_output_is_dropped_if_exclusive_with_tools() -> None:
    """If the model can't combine them, tools are kept and the JSON format is a loss (W97)."""
    fields: dict[str, Any] = {"tools": (WEATHER,), "output": Output(format="json")}
    assert "generationConfig" not in sent(ASK, target=SECOND, **fields)
    assert losses(ASK, target=SECOND, **fields) == ["output"]
    assert sent(ASK, target=THIRD, **fields)["generationConfig"] == {
        "responseMimeType": "application/json"
    }
    plain = {**fields, "output": Output(format="text")}
    assert losses(ASK, target=SECOND, **plain) == []


def test_server_tools_are_dropped_if_exclusive_with_functions() -> None:
    """If the model can't combine them, functions are kept (W97)."""
    search = ServerTool("googleSearch", "gemini")
    assert len(sent(ASK, tools=(search, WEATHER), target=SECOND)["tools"]) == 1
    assert losses(ASK, tools=(search, WEATHER), target=SECOND) == ["tools[0]"]
    assert len(sent(ASK, tools=(search,), target=SECOND)["tools"]) == 1
    assert len(sent(ASK, tools=(search, WEATHER), target=THIRD)["tools"]) == 2


def test_tool_choice_without_functions_is_left_out() -> None:
    """A required call without functions is left out as a loss (W99)."""
    assert "toolConfig" not in sent(ASK, tool_choice=ToolChoice("required"))
    assert losses(ASK, tool_choice=ToolChoice("required")) == ["tool_choice"]
    assert losses(ASK, tool_choice=ToolChoice("none")) == []


@pytest.mark.parametrize(
    ("thinking", "target", "wire", "lost"),
    [
        ({"effort": "medium"}, SECOND, {"thinkingBudget": 8192}, ["thinking.effort"]),
        ({"enabled": False}, SECOND, {"thinkingBudget": 0}, []),
        ({"budget": 100, "effort": "low"}, SECOND, {"thinkingBudget": 100}, []),
        ({"budget": 100, "effort": "low"}, TARGET, {"thinkingBudget": 100}, ["thinking.effort"]),
        ({"effort": "medium"}, TARGET, {"thinkingLevel": "MEDIUM"}, []),
        ({"budget": 2000}, THIRD, {"thinkingLevel": "LOW"}, ["thinking.budget"]),
        ({"budget": 17000}, THIRD, {"thinkingLevel": "HIGH"}, ["thinking.budget"]),
        ({"enabled": False}, THIRD, {"thinkingLevel": "LOW"}, ["thinking"]),
        ({"effort": "high", "budget": 5}, THIRD, {"thinkingLevel": "HIGH"}, ["thinking.budget"]),
    ],
)
def test_thinking_is_a_budget_or_a_level(
    thinking: dict[str, Any], target: Target, wire: dict[str, Any], lost: list[str]
) -> None:
    """Thinking is written as the model supports it: a budget or a level, never both."""
    config = ThinkingConfig(**thinking)
    assert sent(ASK, thinking=config, target=target)["generationConfig"] == {"thinkingConfig": wire}
    assert losses(ASK, thinking=config, target=target) == lost


# --- the path


@pytest.mark.parametrize("model", ["", "..", "a/../b", "a//b", "a\nb", "\ud800", "tunedModels/.."])
def test_invalid_model_name_is_rejected(model: str) -> None:
    """A model name can't escape its path segment; the error doesn't quote it."""
    with pytest.raises(InvalidInputError) as caught:
        DIALECT.encode_request(Request(model=model, messages=(ASK,)))
    assert not model or model not in str(caught.value)


@pytest.mark.parametrize(
    "model", ["google/gemini", "a?b", "x:y", "%2e%2e/x", "é", "a b", "a\\..\\b"]
)
def test_unusual_model_name_round_trips(model: str) -> None:
    """The name is escaped in the path and decoded unchanged."""
    path = DIALECT.encode_request(Request(model=model, messages=(ASK,))).path
    assert path is not None
    assert path.count("/") == 3
    assert DIALECT.decode_request({}, path=path).model == model


def test_valid_request_is_unchanged() -> None:
    """A valid request is sent unchanged, and results get no extra data."""
    request = Request(messages=(ASK, called("a"), answered("a")), tools=(WEATHER,))
    arrived = DIALECT.decode_request(DIALECT.encode_request(request).body)
    assert (
        arrived.messages
        == request.replace(messages=tuple(_named(message) for message in request.messages)).messages
    )
    assert arrived.messages[2].tool_results[0].data is UNSET


def _named(message: Message) -> Message:
    """The message with the tool name in each result, as on the wire."""
    parts = tuple(
        part.replace(tool_name="weather") if isinstance(part, ToolResult) else part
        for part in message.parts
    )
    return message.replace(parts=parts)


def test_server_tool_parts_of_an_older_model_are_sent() -> None:
    """Code run by an older Gemini model is sent to a newer one, without its signature."""
    older = Origin(dialect="gemini", model="gemini-2.5-pro")
    ran = ServerToolCall("code_execution", None, {"code": "1"}, signature="c2ln")
    body = sent(ASK, Message(Role.ASSISTANT, (ran,), origin=older), ASK, target=THIRD)
    assert body["contents"][1]["parts"] == [{"executableCode": {"code": "1"}}]


def test_calls_of_consecutive_answers_are_answered_together() -> None:
    """Calls of consecutive answers get one results content, paired without ids too."""
    conversation = (ASK, called("a"), called("b", name="time"), answered("a", "b"))
    body = sent(*conversation, target=SECOND)
    assert [content["role"] for content in body["contents"]] == ["user", "model", "model", "user"]
    read = DIALECT.decode_request(body).messages
    ids = [call.id for message in read for call in message.tool_calls]
    assert [result.call_id for result in read[-1].tool_results] == ids


@pytest.mark.parametrize("names", [("inlineData", "mimeType"), ("inline_data", "mime_type")])
def test_url_safe_base64_is_converted_for_other_dialects(names: tuple[str, str]) -> None:
    """URL-safe base64 round-trips to Gemini and becomes standard base64 elsewhere."""
    outer, mime = names
    blob = {mime: "image/png", "data": "iVBORw0KGgr_-_4="}
    contents = [{"role": "user", "parts": [{"text": "?"}, {outer: blob}]}]
    request = DIALECT.decode_request({"contents": contents})
    image = request.messages[0].parts[1]
    assert isinstance(image, Image)
    assert image.content == b"\x89PNG\r\n\x1a\n\xff\xfb\xfe"
    assert DIALECT.encode_request(request).body["contents"] == contents
    for name in ("anthropic", "openai-chat", "openai-responses", "ollama"):
        elsewhere = dragoman.dialect(name).encode_request(request.replace(model="m"))
        assert b"iVBORw0KGgr/+/4=" in elsewhere.to_bytes()
        assert not elsewhere.losses
