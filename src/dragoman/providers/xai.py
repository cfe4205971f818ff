"""xAI's Grok."""

from __future__ import annotations

from dragoman.providers.endpoints import without_counting
from dragoman.providers.family import Family
from dragoman.providers.provider import Provider
from dragoman.wire.flags import MediaFlags, ThinkingFlags, ToolFlags, TurnFlags
from dragoman.wire.openai_responses.dialect import CLIENT_FIELDS
from dragoman.wire.openai_responses.dialect import TARGET as RESPONSES
from dragoman.wire.target import Target

_DOCS = ("xAI's documentation", "2026-11")
_PROBED = ("pydantic-ai 2.66 profiles; xAI's documentation", "2026-10")
_EFFORT = {"thinking.form": "effort"}
_LOW_TO_HIGH = ("low", "medium", "high")

PROVIDER = Provider(
    "xai",
    (
        Target(
            dialect="openai-chat",
            tools=ToolFlags(takes_text=False),
            turns=TurnFlags(takes_developer=False),
            thinking=ThinkingFlags(fields=("reasoning_content",)),
            media=MediaFlags(kinds=("image",)),
        ),
        # A response can be continued, but then without other instructions.
        RESPONSES.with_flags(
            {
                "state.verifies_items": False,
                "host.resumes_answers": False,
                "sampling.min_output_tokens": 0,
                "fields.refused": CLIENT_FIELDS,  # unknown fields are refused (W109)
            }
        ),
    ),
    "https://api.x.ai/v1",
    keys=("XAI_API_KEY",),
    model_pattern="grok-",
    families=(
        Family(r"grok-(2|3)", {"thinking.form": "never"}, None, *_DOCS),
        Family(
            r"grok-3-mini", {**_EFFORT, "thinking.efforts": ("none", "low", "high")}, None, *_PROBED
        ),
        Family(
            r"grok-(4|code)",
            {
                "sampling.refused": ("presence_penalty", "frequency_penalty", "stop"),
                "thinking.form": "never",
            },
            "openai-chat",
            *_DOCS,
        ),
        # These support an effort again.
        Family(
            r"grok-4\.3",
            {**_EFFORT, "thinking.efforts": ("none", *_LOW_TO_HIGH)},
            "openai-chat",
            *_PROBED,
        ),
        Family(
            r"grok-4\.[56]", {**_EFFORT, "thinking.efforts": _LOW_TO_HIGH}, "openai-chat", *_PROBED
        ),
        Family(
            r"grok-4\.7",
            {**_EFFORT, "thinking.efforts": (*_LOW_TO_HIGH, "xhigh")},
            "openai-chat",
            *_PROBED,
        ),
    ),
    endpoints=without_counting("openai-responses"),
    aliases=("x.ai", "grok"),
)
