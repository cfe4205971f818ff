"""Clients of the Chat API that read thinking from `reasoning` alone, as Groq sends it."""

from __future__ import annotations

import json

import pytest

from dragoman.model.parts import Text
from tests.gateway.answers import KINDS, SAID, Provider, said
from tests.gateway.client_requests import ask, body_for
from tests.gateway.test_chat import gateway_to
from tests.gateway.test_mistral_clients import THOUGHT, thought

AGENTS = ("Agents/JavaScript 0.20.0", "Groq/Python 1.7.0", "pydantic-ai/2.66.0")


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("back", sorted(set(KINDS) - {"openai-chat"}))
def test_thinking_is_in_reasoning(back: str, stream: bool, agent: str) -> None:
    """Once, whoever thought; the text is where it was."""
    with gateway_to(Provider(back, said(thought(back), Text(SAID)))) as (serving, _):
        body = {**body_for("openai-chat", stream=stream), "reasoning_effort": "high"}
        reply = ask(serving.url, "/v1/chat/completions", body, user_agent=agent)
    lines = reply.body.splitlines() if stream else [b"data: " + reply.body]
    found = [
        choice.get("delta") or choice.get("message") or {}
        for line in lines
        if line.startswith(b"data: {")
        for choice in json.loads(line[6:])["choices"]
    ]
    assert "".join(each.get("reasoning") or "" for each in found) == THOUGHT
    assert "".join(each.get("content") or "" for each in found) == SAID
    assert not any("reasoning_content" in each for each in found)
