"""xAI's Grok."""

from __future__ import annotations

from dragoman.providers.endpoints import without_counting
from dragoman.providers.provider import Family, Provider
from dragoman.wire.flags import MediaFlags, ThinkingFlags, TurnFlags
from dragoman.wire.openai_responses.dialect import TARGET as RESPONSES
from dragoman.wire.target import Target

PROVIDER = Provider(
    "xai",
    (
        Target(
            dialect="openai-chat",
            turns=TurnFlags(takes_developer=False),
            thinking=ThinkingFlags(fields=("reasoning_content",)),
            media=MediaFlags(kinds=("image",)),
        ),
        # An answer can be gone on from, but then with no other instructions.
        RESPONSES.with_flags(
            {
                "state.verifies_items": False,
                "host.resumes_answers": False,
                "sampling.min_output_tokens": 0,
            }
        ),
    ),
    "https://api.x.ai/v1",
    keys=("XAI_API_KEY",),
    families=(
        Family(r"grok-(2|3)", {"thinking.form": "never"}),
        Family(r"grok-3-mini", {"thinking.form": "effort", "thinking.efforts": ("low", "high")}),
        Family(
            r"grok-(4|code)",
            {
                "sampling.refused": ("presence_penalty", "frequency_penalty", "stop"),
                "thinking.form": "never",
            },
            "openai-chat",
        ),
    ),
    endpoints=without_counting("openai-responses"),
    aliases=("x.ai", "grok"),
)
