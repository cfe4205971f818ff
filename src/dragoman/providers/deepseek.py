"""DeepSeek: text only, and thinking must be sent back during tool calls (C2)."""

from __future__ import annotations

from dragoman.providers.endpoints import Endpoints
from dragoman.providers.family import Family
from dragoman.providers.provider import Provider
from dragoman.wire.anthropic.dialect import TARGET as ANTHROPIC
from dragoman.wire.flags import (
    MediaFlags,
    SamplingFlags,
    SchemaFlags,
    ThinkingFlags,
    ToolFlags,
    TurnFlags,
)
from dragoman.wire.target import Target

PROVIDER = Provider(
    "deepseek",
    (
        Target(
            dialect="openai-chat",
            tools=ToolFlags(takes_text=False),
            turns=TurnFlags(takes_developer=False),
            thinking=ThinkingFlags(
                sent_back="all",
                fields=("reasoning_content",),
                form="switch",
                is_on_by_default=True,
                allows_forced_tools=False,  # "Thinking mode does not support this tool_choice"
            ),
            sampling=SamplingFlags(token_limit_fields=("max_tokens",)),
            media=MediaFlags(kinds=()),
            schemas=SchemaFlags(outputs=("text", "json")),
        ),
        ANTHROPIC.with_flags(
            {
                "sampling.default_output_tokens": 4096,  # any model has that much
                "thinking.verifies_signatures": False,
                "cache.takes_ttl": False,
                "media.kinds": (),
                "thinking.begins_turns": False,
                "schemas.outputs": ("text",),
            }
        ),
    ),
    "https://api.deepseek.com",
    keys=("DEEPSEEK_API_KEY",),
    model_pattern="deepseek-(chat|reasoner|v[1-9])",
    families=(
        Family(
            r"deepseek-chat|deepseek-v3(?!\.[2-9])",  # models without thinking
            {"thinking.is_on_by_default": False, "thinking.sent_back": "own"},
            None,
            "recorded traffic",
            "2026-11",
        ),
    ),
    endpoints={"anthropic": Endpoints(generate="/anthropic/v1/messages")},
)
