"""Settings about tools in requests that have none."""

from __future__ import annotations

from typing import Any

from tests.peers.claims import (
    comes_back,
    has,
    is_valid,
    lacks,
    reports,
    violates,
)
from tests.peers.rows import Claim, Request, Row

_CHAT: dict[str, Any] = {"model": "gpt-4o", "messages": [{"role": "user", "content": "Hi"}]}
_CLAUDE: dict[str, Any] = {
    "model": "claude-sonnet-4-5", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]
}  # fmt: skip
_RESPONSES: dict[str, Any] = {"model": "gpt-5", "input": "Hi"}
_GEMINI: dict[str, Any] = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}
_TOOL: dict[str, Any] = {
    "type": "function", "function": {"name": "weather", "parameters": {"type": "object"}},
}  # fmt: skip
_GONE: tuple[Claim, ...] = (
    lacks("tool_choice", "parallel_tool", "toolConfig", "function_call"),
    reports("tool_choice"),
    is_valid,
)
_NOT_GEMINI = ("anthropic", "openai-chat", "openai-responses")


def _others(name: str) -> tuple[str, ...]:
    return tuple(each for each in (*_NOT_GEMINI, "gemini") if each != name)


ROWS = (
    *(
        Row(
            f"Without tools, {key} is sent to no dialect",
            "BerriAI/litellm#25477, Upsonic/Upsonic#323, langgenius/dify#12485",
            Request("openai-chat", _CHAT | {key: value}),
            _GONE,
            (*_others("openai-chat"), "openai", "vllm"),
        )
        for key, value in {
            "tool_choice": "auto",
            "parallel_tool_calls": False,
            "function_call": "none",
        }.items()
    ),
    Row(
        "Without tools, a forced call is a loss",
        "raullenchai/Rapid-MLX#744",
        Request("openai-chat", _CHAT | {"tool_choice": "required", "tools": []}),
        _GONE,
        (*_others("openai-chat"), "openai"),
    ),
    Row(
        "Without tools, Claude's tool choice is sent to no other dialect",
        "the same, from Claude Code's web search without its tool",
        Request("anthropic", _CLAUDE | {"tool_choice": {"type": "any"}}),
        _GONE,
        _others("anthropic"),
    ),
    Row(
        "Without tools, the choice of a Responses request is sent to no other dialect",
        "the same, from Codex",
        Request("openai-responses", _RESPONSES | {"tool_choice": "auto", "tools": []}),
        _GONE,
        _others("openai-responses"),
    ),
    Row(
        "Without tools, Gemini's mode is sent to no other dialect",
        "the same, for the next dialect",
        Request(
            "gemini",
            _GEMINI | {"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}},
            "/v1beta/models/gemini-3-pro:generateContent",
        ),
        _GONE,
        _others("gemini"),
    ),
    Row(
        "A choice is not sent either if the only tool could not be translated",
        "the same, after a provider's own tool was left out",
        Request(
            "anthropic",
            _CLAUDE | {
                "tools": [{"type": "web_fetch_20250910", "name": "web_fetch"}],
                "tool_choice": {"type": "tool", "name": "web_fetch"},
            },
        ),
        _GONE,
        ("openai-chat",),
    ),
    Row(
        "The choice of a tool that could not be translated is not sent, beside others",
        "the same, after a provider's own tool was left out",
        Request(
            "anthropic",
            _CLAUDE
            | {
                "tools": [
                    {"type": "web_fetch_20250910", "name": "web_fetch"},
                    {"name": "weather", "input_schema": {"type": "object"}},
                ],
                "tool_choice": {"type": "tool", "name": "web_fetch"},
            },
        ),
        (lacks("tool_choice", "toolConfig"), has("weather"), reports("tool_choice"), is_valid),
        ("openai-chat", "gemini", "openai-responses"),
    ),
    Row(
        "`check` finds a choice without tools",
        "BerriAI/litellm#25477",
        Request("openai-chat", _CHAT | {"tool_choice": "auto"}),
        (violates("W121"),),
        ("openai-chat",),
    ),
    Row(
        "`check` warns of Claude's choice without tools",
        "BerriAI/litellm#25477",
        Request("anthropic", _CLAUDE | {"tool_choice": {"type": "auto"}}),
        (violates("W121"),),
        ("anthropic",),
    ),
    Row(
        "A choice beside tools stays",
        "the control",
        Request("openai-chat", _CHAT | {"tools": [_TOOL], "tool_choice": "auto"}),
        (has("tool_choice"), is_valid, comes_back),
        ("anthropic", "openai-chat", "openai-responses"),
    ),
    Row(
        "A choice stays beside tools that are in the input",
        "pydantic-ai's recordings of `additional_tools`",
        Request(
            "openai-responses",
            _RESPONSES | {
                "tool_choice": "auto",
                "input": [
                    {"type": "additional_tools", "role": "developer", "tools": [
                        {"type": "function", "name": "weather", "parameters": {"type": "object"}},
                    ]},
                    {"role": "user", "content": "Hi"},
                ],
            },
        ),
        (has("tool_choice"), comes_back),
        ("openai-responses",),
    ),
)  # fmt: skip
