"""Groq: refuses unknown fields (W109, W111)."""

from __future__ import annotations

from dragoman.providers.family import Family
from dragoman.providers.provider import Provider
from dragoman.wire.flags import (
    FieldFlags,
    MediaFlags,
    SamplingFlags,
    SchemaFlags,
    ThinkingFlags,
    ToolFlags,
    TurnFlags,
)
from dragoman.wire.target import Target

# From the types of Groq's SDK, without fields marked as not supported, and from recordings.
_REQUEST = (
    "messages", "model", "citation_options", "compound_custom", "disable_tool_validation",
    "documents", "exclude_domains", "frequency_penalty", "function_call", "functions",
    "include_domains", "include_reasoning", "max_completion_tokens", "max_tokens", "n",
    "parallel_tool_calls", "presence_penalty", "reasoning_effort", "reasoning_format",
    "response_format", "search_settings", "seed", "service_tier", "stop", "stream",
    "stream_options", "temperature", "tool_choice", "tools", "top_p", "user",
)  # fmt: skip
_MESSAGE = ("role", "content", "tool_calls", "function_call", "tool_call_id", "reasoning")
_SOURCE = ("groq 1.7 types; recorded traffic", "2026-11")
_THINKS = {"thinking.form": "effort", "thinking.sent_back": "own"}

PROVIDER = Provider(
    "groq",
    (
        Target(
            dialect="openai-chat",
            tools=ToolFlags(takes_text=False),
            turns=TurnFlags(
                takes_developer=False,  # W13
            ),
            thinking=ThinkingFlags(
                sent_back="never",  # W110
                fields=("reasoning",),
                form="never",
            ),
            sampling=SamplingFlags(
                refused=("choices", "logprobs", "top_logprobs"),  # W111; a temperature of 0 is
            ),
            media=MediaFlags(
                # accepted: recordings show that Groq replaces it by 1e-8
                kinds=("image",)
            ),
            schemas=SchemaFlags(outputs=("text", "json"), refuses_json_with_tools=True),
            fields=FieldFlags(
                in_request=_REQUEST,
                in_message=_MESSAGE,
                in_tool_message=("name",),  # recorded; refused in others (W111)
                content_types=("document",),
            ),
        ),
    ),
    "https://api.groq.com/openai/v1",
    keys=("GROQ_API_KEY",),
    address_variables={"GROQ_BASE_URL": "/openai/v1"},
    unused_variables=("GROQ_CUSTOM_HEADERS",),
    families=(
        Family(
            r"(openai/)?gpt-oss",
            {**_THINKS, "thinking.efforts": ("low", "medium", "high")},
            None,
            *_SOURCE,
        ),
        Family(
            r"qwen/qwen-?3", {**_THINKS, "thinking.efforts": ("none", "default")}, None, *_SOURCE
        ),
        Family(
            r"qwen/qwen3\.[5-9]",
            {**_THINKS, "thinking.efforts": ("none", "default", "low", "medium", "high")},
            None,
            *_SOURCE,
        ),
        Family(r"deepseek-r1|qwen-qwq", {"thinking.sent_back": "own"}, None, *_SOURCE),
        # Groq's list of models with enforced schemas.
        Family(
            r"(openai/)?gpt-oss|moonshotai/kimi-k2|meta-llama/llama-4",
            {"schemas.outputs": ("text", "json", "schema")},
            None,
            *_SOURCE,
        ),
    ),
    selectors={"compound_custom": "model"},
)
