"""Clients of Mistral's SDK: usage without a request for it, and calls in one piece."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.model.parts import Text
from dragoman.model.tools import ToolCall
from dragoman.model.usage import FinishReason
from tests.gateway.answers import KINDS, Provider, said
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
