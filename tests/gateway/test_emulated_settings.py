"""Settings that a provider doesn't have, expressed by others that it has: repairs, not losses."""

from __future__ import annotations

import json
from typing import Any

import pytest

import dragoman
from dragoman.model.parts import Text
from dragoman.model.usage import FinishReason
from dragoman.providers.registry import provider
from tests.gateway.answers import SAID, Provider, said
from tests.gateway.client_requests import ask, body_for, path_for
from tests.gateway.test_chat import gateway_to

TOOLS = [
    {"type": "function", "function": {
        "name": name, "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    }}
    for name in ("weather", "map")
]  # fmt: skip
CALL = json.dumps({"name": "map", "arguments": {"city": "Mostar"}})


def encoded(to: str, **fields: Any) -> Any:
    """A Chat request with these fields, for another dialect."""
    request = dragoman.dialect("openai-chat").decode_request(body_for("openai-chat") | fields)
    return dragoman.dialect(to).encode_request(request)


def test_anthropic_is_asked_for_json_in_words() -> None:
    """`json_object` has no field there."""
    made = encoded("anthropic", response_format={"type": "json_object"})
    assert not made.losses
    assert "JSON object" in json.dumps(made.body["system"])
    assert ("output", "moved") in [(repair.path, repair.action) for repair in made.repairs]


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        ("required", ["weather", "map"]),
        ({"type": "function", "function": {"name": "map"}}, ["map"]),
    ],
)
def test_ollama_is_forced_to_call_by_a_schema(choice: Any, names: list[str]) -> None:
    """It has no tool choice; the model still sees the tools."""
    made = encoded("ollama", tools=TOOLS, tool_choice=choice)
    assert not made.losses
    assert [repair.rule for repair in made.repairs] == ["W74"]
    schema = made.body["format"]
    calls = schema.get("anyOf", [schema])
    assert [call["properties"]["name"]["const"] for call in calls] == names
    assert len(made.body["tools"]) == 2


@pytest.mark.parametrize("choice", ["auto", "none"])
def test_without_force_there_is_no_schema(choice: str) -> None:
    """Nor where the client asked for an output of its own."""
    assert "format" not in encoded("ollama", tools=TOOLS, tool_choice=choice).body
    own = {"type": "json_object"}
    made = encoded("ollama", tools=TOOLS, tool_choice="required", response_format=own)
    assert made.body["format"] == "json"
    assert [loss.path for loss in made.losses] == ["tool_choice"]


def _asked(text: str, stream: bool) -> tuple[list[tuple[str, Any]], str, str | None]:
    """The calls, the text and the finish reason that a Chat client gets of Ollama's answer."""
    provider = Provider("ollama", said(Text(text)))
    body = body_for("openai-chat", stream=stream) | {"tools": TOOLS, "tool_choice": "required"}
    with gateway_to(provider) as (serving, _):
        answer = ask(serving.url, path_for("openai-chat"), body)
    assert answer.status == 200, answer.body
    if stream:
        full: Any = dragoman.dialect("openai-chat")
        decoder = full.stream_decoder()
        decoder.feed(answer.body)
        decoder.close()
        response = decoder.response
    else:
        response = dragoman.dialect("openai-chat").decode_response(answer.body)
    calls = [(call.name, call.arguments) for call in response.message.tool_calls]
    finish = response.finish
    assert len({call.id for call in response.message.tool_calls}) == len(calls)
    return calls, response.text, finish and finish.value


@pytest.mark.parametrize("stream", [False, True])
def test_the_answer_is_a_call_again(stream: bool) -> None:
    """Whole and streamed, with its finish reason."""
    calls, text, finish = _asked(CALL, stream)
    assert calls == [("map", {"city": "Mostar"})]
    assert not text
    assert finish == FinishReason.TOOL_CALLS.value


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("text", [SAID, CALL[:-3], '{"name": "other", "arguments": {}}', "[1]"])
def test_other_texts_stay_texts(text: str, stream: bool) -> None:
    """A server that ignores the schema, an answer that was cut off, an unknown tool."""
    assert _asked(text, stream) == ([], text, "stop")


@pytest.mark.parametrize(
    ("to", "fields", "path"),
    [
        ("anthropic", {"reasoning_effort": "minimal"}, "thinking.effort"),
        ("ollama", {"reasoning_effort": "minimal"}, "thinking.effort"),
        ("gemini", {"reasoning_effort": "xhigh"}, "thinking.effort"),
        ("gemini", {"messages": [{"role": "user", "content": [{
            "type": "image_url",
            "image_url": {"url": "data:image/png;base64,aGk=", "detail": "original"},
        }]}]}, "messages[0].parts[0]"),
    ],
)  # fmt: skip
def test_the_nearest_value_is_a_repair(to: str, fields: dict[str, Any], path: str) -> None:
    """What was asked for is done as far as possible, and reported."""
    made = encoded(to, **fields)
    assert not made.losses
    assert path in [repair.path for repair in made.repairs]


@pytest.mark.parametrize(("target", "is_kept"), [
    ("openai:gpt-5", True), ("xai:grok-4", False), ("mistral:mistral-large-latest", False),
])  # fmt: skip
def test_codex_metadata_goes_where_it_is_taken(target: str, is_kept: bool) -> None:
    """A host known to refuse unknown fields does not get it, and `check` says so (W109)."""
    body = {"model": "m", "input": "Hi", "client_metadata": {"x-codex-installation-id": "1"}}
    request = dragoman.dialect("openai-responses").decode_request(body)
    name, _, model = target.partition(":")
    found = provider(name).target(model, dialect="openai-responses")
    made = dragoman.dialect("openai-responses").encode_request(request, found)
    assert ("client_metadata" in made.body) is is_kept
    assert [loss.path for loss in made.losses] == ([] if is_kept else ["extras.client_metadata"])
    rules = [each.rule for each in dragoman.check(body, target=found) if each.severity == "error"]
    assert ("W109" in rules) is not is_kept
