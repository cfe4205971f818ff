"""DeepSeek: text only, and its thinking wants to come back while it calls tools (C2)."""

from __future__ import annotations

from dragoman.providers.endpoints import Endpoints
from dragoman.providers.provider import Family, Provider
from dragoman.wire.anthropic.target import TARGET as ANTHROPIC
from dragoman.wire.target import Target

PROVIDER = Provider(
    "deepseek",
    (
        Target(
            dialect="openai-chat",
            takes_developer=False,
            media=(),
            token_limits=("max_tokens",),
            outputs=("text", "json"),
            thinking_back="all",
            thinking_fields=("reasoning_content",),
            thinking_form="switch",
            thinks_by_default=True,
            forces_tools_thinking=False,  # "Thinking mode does not support this tool_choice"
        ),
        ANTHROPIC.replace(
            verifies_thinking=False,
            takes_cache_ttl=False,
            media=(),
            thinking_begins_turns=False,
            outputs=("text",),
        ),
    ),
    "https://api.deepseek.com",
    keys=("DEEPSEEK_API_KEY",),
    families=(
        Family(
            r"deepseek-chat|deepseek-v3(?!\.[2-9])",  # which don't think
            {"thinks_by_default": False, "thinking_back": "own"},
        ),
    ),
    endpoints={"anthropic": Endpoints(generate="/anthropic/v1/messages")},
)
