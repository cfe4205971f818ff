"""Clients of Mistral's SDK: usage without a request for it, whole calls, thinking as content."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.model.parts import Origin, Text, Thinking
from dragoman.model.tools import ToolCall
from dragoman.model.usage import FinishReason
from tests.gateway.answers import KINDS, SAID, Provider, said
from tests.gateway.client_requests import ask, body_for
from tests.gateway.test_chat import gateway_to

AGENT = "mistral-client-python/3.7.0"
CALLS = (ToolCall.create("1", "weather", {"city": "Mostar"}), ToolCall.create("2", "now", {}))


def frames(body: bytes) -> list[Any]:
    """The chunks of a stream."""
    return [json.loads(line[6:]) for line in body.split(b"\n\n") if line[6:7] == b"{"]


@pytest.mark.parametrize("back", KINDS)
def test_calls_arrive_whole_and_usage_is_included(back: str) -> None:
    """Each call chunk has the name and all arguments; the last chunk has the usage."""
    answer = said(Text("I look."), *CALLS, finish=FinishReason.TOOL_CALLS)
    with gateway_to(Provider(back, answer)) as (serving, records):
        body = body_for("openai-chat", stream=True)
        reply = ask(serving.url, "/v1/chat/completions", body, user_agent=AGENT)
    chunks = frames(reply.body)
    pieces = [
        call["function"]
        for chunk in chunks
        for choice in chunk["choices"]
        for call in choice["delta"].get("tool_calls") or ()
    ]
    assert [(piece["name"], json.loads(piece["arguments"])) for piece in pieces] == [
        (call.name, call.arguments) for call in CALLS
    ]
    assert chunks[-1]["usage"]["prompt_tokens"] == 11
    assert not records[0].passes
    text = [c["delta"].get("content") or "" for chunk in chunks for c in chunk["choices"]]
    assert "".join(text) == "I look."


def test_others_get_streams_as_before() -> None:
    """Another client's bytes are passed through."""
    provider = Provider("openai-chat", said(*CALLS, finish=FinishReason.TOOL_CALLS))
    with gateway_to(provider) as (serving, records):
        ask(serving.url, "/v1/chat/completions", body_for("openai-chat", stream=True))
    assert records[0].passes


def test_invalid_bodies_are_still_rejected() -> None:
    """Adding the option does not hide what is wrong."""
    with gateway_to(Provider("openai-chat")) as (serving, _):
        for body in (b"", b"[]", b'{"stream":1}', b'{"stream":true,"messages":3}'):
            reply = ask(serving.url, "/v1/chat/completions", body, user_agent=AGENT)
            assert reply.status == 400


THOUGHT = "It has one arch."
PATH = "/v1/chat/completions"
SIGNED = {"anthropic": "signature", "gemini": "signature", "openai-responses": "data"}
"""The field of sealed thinking in each dialect that has it."""


def thought(back: str) -> Thinking:
    """Thinking as a provider of that dialect sends it."""
    sealed = {SIGNED[back]: "c2VhbGVk"} if back in SIGNED else {}
    item = {"item_id": "rs_1", "form": "summary"} if back == "openai-responses" else {}
    return Thinking(THOUGHT, origin=Origin(dialect=back), **sealed, **item)  # type: ignore[arg-type]


def asked(*turns: Any, stream: bool = False, **more: Any) -> dict[str, Any]:
    """A request with these turns after the first."""
    body: dict[str, Any] = body_for("openai-chat", stream=stream)
    body["messages"] += turns
    return {**body, **more}


def answer_of(url: str, body: Any, agent: str = AGENT) -> tuple[list[Any], dict[str, Any]]:
    """The chunks of the content, and the other fields of the message."""
    reply = ask(url, PATH, body, user_agent=agent)
    assert reply.status == 200, reply.body
    if not body.get("stream"):
        message = reply.json["choices"][0]["message"]
        return listed(message.pop("content")), message
    deltas = [choice["delta"] for chunk in frames(reply.body) for choice in chunk["choices"]]
    message = {key: value for delta in deltas for key, value in delta.items()}
    return [item for delta in deltas for item in listed(delta.get("content"))], message


def listed(content: Any) -> list[Any]:
    """The content as chunks."""
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if content else []


def joined(chunks: list[Any]) -> tuple[str, str]:
    """The thinking and the text of chunks."""
    thoughts = [piece for chunk in chunks for piece in chunk.get("thinking", ())]
    return "".join(p["text"] for p in thoughts), "".join(c.get("text", "") for c in chunks)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("back", KINDS)
def test_thinking_is_part_of_the_content_and_comes_back(back: str, stream: bool) -> None:
    """Thinking comes as `ThinkChunk`s; sent back, the provider gets its own form again."""
    provider = Provider(back, said(thought(back), Text(SAID)))
    with gateway_to(provider) as (serving, _):
        chunks, message = answer_of(serving.url, asked(stream=stream, reasoning_effort="high"))
        turn = {"role": "assistant", "content": chunks}
        answer_of(serving.url, asked(turn, {"role": "user", "content": "Sure?"}))
    assert joined(chunks) == (THOUGHT, SAID)
    assert message.keys().isdisjoint({"reasoning_content", "reasoning_details"})
    sent = json.dumps(provider.asked[1])
    assert ("c2VhbGVk" in sent) is (back in SIGNED)
    assert "dragoman" not in sent
    assert "ZHJhZ29tYW4x" not in sent
    if back in ("openai-chat", "ollama"):
        assert THOUGHT in sent


@pytest.mark.parametrize("back", SIGNED)
def test_thinking_that_was_edited_loses_its_signature(back: str) -> None:
    """The provider would refuse it."""
    provider = Provider(back, said(thought(back), Text(SAID)))
    with gateway_to(provider) as (serving, _):
        chunks, _ = answer_of(serving.url, asked(reasoning_effort="high"))
        chunks[0]["thinking"][0]["text"] = "It has two arches."
        turn = {"role": "assistant", "content": chunks}
        answer_of(serving.url, asked(turn, {"role": "user", "content": "Sure?"}))
    assert "c2VhbGVk" not in json.dumps(provider.asked[1])


@pytest.mark.parametrize("stream", [False, True])
def test_the_signature_of_a_call_travels_in_a_chunk(stream: bool) -> None:
    """The SDK drops the field in which other Chat clients keep it."""
    call = ToolCall.create("1", "weather", {"city": "Mostar"}).replace(
        signature="c2VhbGVk", origin=Origin(dialect="gemini")
    )
    provider = Provider("gemini", said(call, finish=FinishReason.TOOL_CALLS))
    with gateway_to(provider) as (serving, _):
        chunks, message = answer_of(serving.url, asked(stream=stream, reasoning_effort="high"))
        [called] = message["tool_calls"]
        kept = {key: called[key] for key in ("id", "type", "function")}
        result = {"role": "tool", "tool_call_id": called["id"], "content": "31 °C"}
        turn = {"role": "assistant", "content": chunks, "tool_calls": [kept]}
        answer_of(serving.url, asked(turn, result))
    assert called.keys() <= {"id", "type", "function", "index"}
    [part] = [part for turn in provider.asked[1]["contents"] for part in turn["parts"]
              if "functionCall" in part]  # fmt: skip
    assert part["thoughtSignature"] == "c2VhbGVk"


@pytest.mark.parametrize("more", [{}, {"reasoning_effort": "none"}], ids=["unasked", "off"])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("back", SIGNED)
def test_content_is_a_string_if_there_is_no_thinking_to_read(
    back: str, stream: bool, more: dict[str, Any]
) -> None:
    """Programs that didn't ask for thinking often can't read lists."""
    origin = Origin(dialect=back)
    hidden = Thinking("", "c2VhbGVk", "redacted", origin=origin, item_id="rs_1")
    text = Text(SAID, origin=origin)
    if back == "gemini":
        text, hidden = text.replace(signature="c2VhbGVk"), Thinking("", origin=origin)
    with gateway_to(Provider(back, said(hidden, text))) as (serving, _):
        reply = ask(serving.url, PATH, asked(stream=stream, **more), user_agent=AGENT)
    if stream:
        found = [c["delta"].get("content") for each in frames(reply.body) for c in each["choices"]]
    else:
        found = [reply.json["choices"][0]["message"]["content"]]
    assert "".join(content or "" for content in found) == SAID


@pytest.mark.parametrize("back", KINDS)
def test_others_get_thinking_as_before(back: str) -> None:
    """Only Mistral's SDK gets lists."""
    with gateway_to(Provider(back, said(thought(back), Text(SAID)))) as (serving, _):
        body = asked(reasoning_effort="high")
        reply = ask(serving.url, PATH, body, user_agent="OpenAI/Python 3.49.0")
    message = reply.json["choices"][0]["message"]
    assert (message["content"], message["reasoning_content"]) == (SAID, THOUGHT)


@pytest.mark.whole
@pytest.mark.parametrize("agent", [
    AGENT, "mistral-client-typescript/2.7.0",
    "speakeasy-sdk/typescript 2.7.0 2.884.13 1.0.0 @mistralai/mistralai",
])  # fmt: skip
@pytest.mark.parametrize("back", KINDS)
def test_the_usage_is_in_the_last_chunk_only(back: str, agent: str) -> None:
    """The TypeScript SDK refuses a chunk whose usage is null."""
    with gateway_to(Provider(back)) as (serving, _):
        body = body_for("openai-chat", stream=True)
        chunks = frames(ask(serving.url, "/v1/chat/completions", body, user_agent=agent).body)
    *before, last = ("usage" in chunk for chunk in chunks)
    assert not any(before)
    assert last
    assert chunks[-1]["usage"]["completion_tokens"] == 7
