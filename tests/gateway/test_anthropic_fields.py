"""Fields that Anthropic's newest API always sends, in answers of other providers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.model.parts import Text
from dragoman.model.tools import ToolCall
from dragoman.model.usage import FinishReason
from tests.gateway.answers import KINDS, SAID, Provider, said
from tests.gateway.client_requests import ask, body_for
from tests.gateway.test_chat import gateway_to

BACKS = [kind for kind in KINDS if kind != "anthropic"]
ANSWER = said(Text(SAID), ToolCall.create("1", "f", {}), finish=FinishReason.TOOL_CALLS)
USAGE = {
    "cache_creation_input_tokens", "cache_read_input_tokens", "input_tokens", "output_tokens",
    "output_tokens_details", "server_tool_use",
}  # fmt: skip
DIRECT = {"type": "direct"}


def asked(back: str, *, stream: bool, **headers: str) -> Any:
    """The body of an answer, or the events of a stream."""
    with gateway_to(Provider(back, ANSWER)) as (serving, _):
        body = body_for("anthropic", stream=stream)
        answer = ask(serving.url, "/v1/messages", body, **headers)
    if not stream:
        return answer.json
    lines = answer.body.split(b"\n")
    return [json.loads(line[6:]) for line in lines if line.startswith(b"data: ")]


@pytest.mark.parametrize("back", BACKS)
def test_whole_answers_have_every_field(back: str) -> None:
    """Of the message, its usage and its blocks."""
    body = asked(back, stream=False)
    assert {"stop_details", "container", "stop_sequence"} <= body.keys()
    assert body["usage"].keys() >= USAGE | {"cache_creation", "inference_geo", "service_tier"}
    text, call = (block for block in body["content"] if block["type"] in {"text", "tool_use"})
    assert (text["citations"], call["caller"]) == (None, DIRECT)


@pytest.mark.parametrize("back", BACKS)
def test_streams_have_every_field(back: str) -> None:
    """At the start and the end of the message, and at the start of each block."""
    events = asked(back, stream=True)
    begun = events[0]["message"]
    assert {"stop_details", "container"} <= begun.keys()
    assert begun["usage"].keys() >= USAGE | {"cache_creation", "service_tier"}
    blocks = [e["content_block"] for e in events if e["type"] == "content_block_start"]
    found = {block["type"]: block for block in blocks}
    assert (found["text"]["citations"], found["tool_use"]["caller"]) == (None, DIRECT)
    [end] = [event for event in events if event["type"] == "message_delta"]
    assert {"stop_details", "container"} <= end["delta"].keys()
    assert end["usage"].keys() >= USAGE


@pytest.mark.parametrize(("agent", "has_null"), [
    ("ai/6.0.326 ai-sdk/provider-utils/4.0.64 runtime/node.js/v20", False),
    ("ai/7.0.173 ai-sdk/provider-utils/5.0.1 runtime/node.js/v20", True),
    ("anthropic/JS 0.90.0", True),
])  # fmt: skip
def test_older_ai_sdks_get_no_null_citations(agent: str, has_null: bool) -> None:
    """They refuse the whole answer for it."""
    content = asked("openai-chat", stream=False, user_agent=agent)["content"]
    assert ("citations" in content[0]) is has_null


@pytest.mark.parametrize("back", BACKS)
def test_what_a_client_sends_back_is_no_loss(back: str) -> None:
    """`citations: null` and a direct `caller` say nothing."""
    provider = Provider(back, ANSWER, said())
    with gateway_to(provider) as (serving, records):
        body = body_for("anthropic") | {"max_tokens": 4096}
        content = ask(serving.url, "/v1/messages", body).json["content"]
        call = next(block for block in content if block["type"] == "tool_use")
        result = {"type": "tool_result", "tool_use_id": call["id"], "content": "ok"}
        messages = [*body["messages"], {"role": "assistant", "content": content}]
        messages.append({"role": "user", "content": [result]})
        answer = ask(serving.url, "/v1/messages", body | {"messages": messages})
    assert answer.status == 200, answer.body
    assert not [path for path in records[-1].losses if path.startswith("messages")]
