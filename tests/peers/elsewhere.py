"""Requests that have no conversation of their own, and settings that one provider alone accepts."""

from __future__ import annotations

from typing import Any

from tests.peers.claims import comes_back, has, is_valid, lacks, raises, reports
from tests.peers.rows import Request, Row

_OTHERS = ("openai-chat", "anthropic", "gemini", "ollama")
_HELD = "the whole conversation is stored by another provider"


def _responses(**fields: Any) -> Request:
    return Request("openai-responses", {"model": "m", **fields})


def _claude(**fields: Any) -> Request:
    messages = [{"role": "user", "content": "Hi"}]
    return Request("anthropic", {"model": "m", "max_tokens": 9, "messages": messages, **fields})


ROWS = (
    Row(
        "A stored prompt without input is an error for other dialects, not an empty list",
        "BerriAI/litellm: prompt templates through /v1/responses",
        _responses(prompt={"id": "pmpt_1"}),
        (raises(_HELD, "state.prompt"),),
        _OTHERS,
    ),
    Row(
        "So is the continuation of a response",
        "a neighbour of the former",
        _responses(previous_response_id="resp_1", instructions="Be brief."),
        (raises(_HELD, "state.previous_response_id"),),
        _OTHERS,
    ),
    Row(
        "So are references to items alone",
        "a neighbour of the former",
        _responses(input=[{"type": "item_reference", "id": "msg_1"}]),
        (raises(_HELD, "references"),),
        _OTHERS,
    ),
    Row(
        "So is a cached content without contents",
        "a neighbour of the former",
        Request("gemini", {"cachedContent": "cachedContents/1"}),
        (raises(_HELD, "state.cached_content"),),
        ("openai-chat", "openai-responses", "anthropic", "ollama"),
    ),
    Row(
        "An empty conversation is an error for other dialects",
        "a neighbour of the former",
        Request("openai-chat", {"model": "m", "messages": []}),
        (raises("no messages"),),
        ("openai-responses", "anthropic", "gemini", "ollama"),
    ),
    Row(
        "Requests whose conversation the provider stores come back as they came",
        "a control",
        _responses(prompt={"id": "pmpt_1"}),
        (comes_back,),
        ("openai-responses",),
    ),
    Row(
        "A continued response with a message of its own is sent, and the loss is reported",
        "a control",
        _responses(previous_response_id="resp_1", input="And now?"),
        (has("And now?"), reports("previous_response_id"), is_valid),
        _OTHERS,
    ),
    Row(
        "Thinking that is off beside an effort is a budget of 0, without a level",
        "router-for-me/CLIProxyAPI: Claude Code with thinking disabled",
        _claude(thinking={"type": "disabled"}, output_config={"effort": "high"}),
        (has('"thinkingBudget": 0'), lacks("thinkingLevel"), reports("thinking.effort"), is_valid),
        ("gemini",),
    ),
    Row(
        "A `top_p` that Anthropic took is moved into OpenAI's range",
        "BerriAI/litellm: `top_p` and `temperature` of Anthropic's clients",
        _claude(top_p=1.5),
        (has('"top_p": 1'), lacks("1.5"), reports("sampling.top_p"), is_valid),
        ("openai-chat", "openai-responses", "openai:gpt-4.1"),
    ),
    Row(
        "A negative limit means none, and is never raised to the least",
        "ollama/ollama, ggml-org/llama.cpp: `-1` for no limit",
        Request("openai-chat", {"model": "m", "max_tokens": -1, "messages": [
            {"role": "user", "content": "Hi"},
        ]}),
        (lacks("-1", '"max_output_tokens"', "num_predict"), reports("negative limit"), is_valid),
        ("openai-responses", "anthropic", "gemini", "ollama"),
    ),
)  # fmt: skip
