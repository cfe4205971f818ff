"""Claude Code prints the last block of an answer: that is the text, wherever its state arrives."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.model.parts import Origin, Text
from tests.gateway.answers import SAID, Provider, said
from tests.gateway.client_requests import ask, body_for
from tests.gateway.test_chat import gateway_to

AGENT = "claude-cli/2.1.328 (external, sdk-cli)"
LONE = Text("", signature="c2VhbGVk", origin=Origin(dialect="gemini"))


def blocks_by_stop(body: bytes) -> list[Any]:
    """The blocks of a stream, as Claude Code keeps them."""
    started: dict[int, Any] = {}
    stopped: list[Any] = []
    for line in body.splitlines():
        event = json.loads(line[6:]) if line.startswith(b"data: ") else {}
        if event.get("type") == "content_block_start":
            started[event["index"]] = event["content_block"]
        elif event.get("type") == "content_block_delta":
            started[event["index"]]["text"] += event["delta"]["text"]
        elif event.get("type") == "content_block_stop":
            stopped.append(started[event["index"]])
    return stopped


@pytest.mark.parametrize("stream", [True, False])
def test_a_signature_after_the_text_comes_back_after_it(stream: bool) -> None:
    """The text is the last block; in the next turn, Gemini gets the signature where it was."""
    provider = Provider("gemini", said(Text(SAID), LONE))
    with gateway_to(provider) as (serving, _):
        body = body_for("anthropic", stream=stream)
        reply = ask(serving.url, "/v1/messages", body, user_agent=AGENT)
        blocks = blocks_by_stop(reply.body) if stream else reply.json["content"]
        body["messages"] += [
            {"role": "assistant", "content": blocks},
            {"role": "user", "content": "Sure?"},
        ]
        ask(serving.url, "/v1/messages", body, user_agent=AGENT)
    assert [block["type"] for block in blocks] == ["redacted_thinking", "text"]
    assert blocks[-1]["text"] == SAID
    parts = provider.asked[1]["contents"][1]["parts"]
    assert [(part.get("text"), part.get("thoughtSignature")) for part in parts] == [
        (SAID, None), ("", "c2VhbGVk")
    ]  # fmt: skip


@pytest.mark.parametrize("stream", [True, False])
def test_answers_of_anthropic_are_passed_through(stream: bool) -> None:
    """Byte for byte."""
    provider = Provider("anthropic")
    with gateway_to(provider) as (serving, records):
        body = body_for("anthropic", stream=stream)
        reply = ask(serving.url, "/v1/messages", body, user_agent=AGENT)
    assert records[0].passes
    assert reply.body == provider.sent[0]
