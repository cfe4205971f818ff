"""Responses clients that ask for a summary find the model's thinking in it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.model.parts import Text, Thinking
from tests.gateway.answers import SAID, Provider, said
from tests.gateway.client_requests import ask, body_for
from tests.gateway.test_chat import gateway_to

THOUGHT = "Let me see."
BACKS = ("openai-chat", "anthropic", "ollama")


def output_of(back: str, stream: bool, **fields: Any) -> tuple[list[Any], set[str]]:
    """The items of an answer, and the types of the events of a stream."""
    with gateway_to(Provider(back, said(Thinking(THOUGHT, signature="c2ln"), Text(SAID)))) as (
        serving,
        _,
    ):
        body = body_for("openai-responses", stream=stream) | fields
        answer = ask(serving.url, "/v1/responses", body)
    if not stream:
        return answer.json["output"], set()
    lines = answer.body.split(b"\n")
    events = [json.loads(line[6:]) for line in lines if line.startswith(b"data: {")]
    return events[-1]["response"]["output"], {event["type"] for event in events}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("back", BACKS)
def test_thinking_is_the_summary_that_was_asked_for(back: str, stream: bool) -> None:
    """In the item and in the events, once."""
    items, kinds = output_of(back, stream, reasoning={"effort": "low", "summary": "auto"})
    assert items[0]["type"] == "reasoning"
    assert items[0]["summary"] == [{"type": "summary_text", "text": THOUGHT}]
    assert not items[0].get("content")
    if stream:
        assert "response.reasoning_summary_text.delta" in kinds
        assert "response.reasoning_text.delta" not in kinds


@pytest.mark.parametrize("fields", [{}, {"reasoning": {"effort": "low"}}])
@pytest.mark.parametrize("back", BACKS)
def test_without_a_summary_it_is_the_content(back: str, fields: dict[str, Any]) -> None:
    """As servers of open models send it."""
    items, _ = output_of(back, False, **fields)
    assert items[0]["summary"] == []
    assert [part["text"] for part in items[0]["content"]] == [THOUGHT]


@pytest.mark.parametrize("back", ["openai-chat", "anthropic"])
def test_the_summary_returns_as_the_thinking_that_it_is(back: str) -> None:
    """The provider gets its thinking back in its own form."""
    provider = Provider(back, said(Thinking(THOUGHT, signature="c2ln"), Text(SAID)))
    with gateway_to(provider) as (serving, _):
        body = body_for("openai-responses") | {"reasoning": {"effort": "low", "summary": "auto"}}
        output = ask(serving.url, "/v1/responses", body).json["output"]
        again = [{"role": "user", "content": "Where?"}, *output, {"role": "user", "content": "?"}]
        answer = ask(serving.url, "/v1/responses", body | {"input": again})
    assert answer.status == 200, answer.body
    assert THOUGHT in json.dumps(provider.asked[1]["messages"])
