"""The same wish under other names: tiers, schemas, stop reasons, limits that nobody set."""

from __future__ import annotations

from typing import Any

from dragoman import FinishReason
from tests.peers.claims import comes_back, has, is_valid, lacks, reports, reports_nothing
from tests.peers.rows import Answer, Claim, Outcome, Request, Row

_HI: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
_SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
_FUNCTION = {"name": "f", "parametersJsonSchema": _SCHEMA}


def _chat(**fields: Any) -> Request:
    return Request("openai-chat", {**_HI, **fields})


def _claude(**fields: Any) -> Request:
    return Request("anthropic", {**_HI, "max_tokens": 99, **fields})


def _sends(field: str, value: object) -> Claim:
    """The body has this value in a field."""

    def claim(outcome: Outcome) -> None:
        assert outcome.error is None, outcome.error
        assert outcome.body[field] == value

    return claim


def _is_filtered(outcome: Outcome) -> None:
    """The front's client sees that content was filtered, or a loss says so."""
    assert outcome.read is not None
    assert outcome.read.finish is FinishReason.CONTENT_FILTER  # type: ignore[union-attr]
    assert outcome.seen is not None
    is_seen = outcome.seen.finish in {FinishReason.CONTENT_FILTER, FinishReason.REFUSAL}
    assert is_seen or "finish" in outcome.reports  # Ollama has no such reason


ROWS = (
    Row(
        "A stop reason of `sensitive` means that the content was filtered",
        "Z.ai's and MiniMax's endpoints for Anthropic's clients",
        Answer("anthropic", {
            "id": "msg_1", "type": "message", "role": "assistant", "model": "glm-5",
            "content": [{"type": "text", "text": "I"}], "stop_reason": "sensitive",
            "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
        }),
        (_is_filtered,),
        ("openai-chat", "openai-responses", "anthropic", "gemini", "ollama"),
    ),
    Row(
        "`parametersJsonSchema` of a Chat function is its schema",
        "router-for-me/CLIProxyAPI",
        _chat(tools=[{"type": "function", "function": _FUNCTION}]),
        (has('"city"'), comes_back, is_valid),
        ("openai-chat", "openai-responses", "anthropic", "gemini", "ollama"),
    ),
    Row(
        "`parametersJsonSchema` of a legacy function is its schema, too",
        "router-for-me/CLIProxyAPI",
        _chat(functions=[_FUNCTION]),
        (has('"city"'), comes_back, is_valid),
        ("openai-chat", "openai-responses", "anthropic", "gemini", "ollama"),
    ),
    Row(
        "`service_tier: priority` asks Claude for its fast mode",
        "OpenRouter's documentation: both mean the same",
        _chat(service_tier="priority"),
        (_sends("speed", "fast"), lacks("service_tier"), is_valid),
        ("anthropic", "anthropic:claude-opus-5-5"),
    ),
    Row(
        "`service_tier: priority` is a loss for a Claude without fast mode",
        "Anthropic's documentation: other models refuse `speed`",
        _chat(service_tier="priority"),
        (lacks("speed", "service_tier"), reports("service.tier"), is_valid),
        ("anthropic:claude-sonnet-4-5", "vertex:claude-opus-5"),
    ),
    Row(
        "Claude's `speed: fast` is OpenAI's priority tier",
        "OpenAI's types: `fast` and `priority` mean the same",
        _claude(speed="fast"),
        (_sends("service_tier", "priority"), reports_nothing, is_valid),
        ("openai-chat", "openai-responses"),
    ),
    Row(
        "Claude's `speed: fast` comes back as it came",
        "a control",
        _claude(speed="fast"),
        (comes_back,),
        ("anthropic",),
    ),
    Row(
        "A limit that nobody set is the most that Claude Opus can produce",
        "BerriAI/litellm and vercel/ai: answers were cut at 4096 tokens",
        _chat(),
        (_sends("max_tokens", 128_000), reports("max_tokens"), is_valid),
        ("anthropic:claude-opus-4-6", "anthropic:claude-opus-5-5", "vertex:claude-sonnet-5"),
    ),
    Row(
        "A limit that nobody set is no more than an older Claude can produce",
        "a control",
        _chat(),
        (_sends("max_tokens", 8192), is_valid),
        ("anthropic:claude-3-5-sonnet-20241022",),
    ),
    Row(
        "A limit that was set is sent as it is",
        "a control",
        _chat(max_completion_tokens=500),
        (_sends("max_tokens", 500), reports_nothing),
        ("anthropic", "anthropic:claude-opus-4-6"),
    ),
)  # fmt: skip
