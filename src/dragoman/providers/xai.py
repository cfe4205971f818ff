"""xAI's Grok."""

from __future__ import annotations

from dragoman.providers.endpoints import without_counting
from dragoman.providers.provider import Family, Provider
from dragoman.wire.openai_responses.target import TARGET as RESPONSES
from dragoman.wire.target import Target

PROVIDER = Provider(
    "xai",
    (
        Target(
            dialect="openai-chat",
            takes_developer=False,
            thinking_fields=("reasoning_content",),
            media=("image",),
        ),
        # An answer can be gone on from, but then with no other instructions.
        RESPONSES.replace(verifies_items=False, resumes_answers=False, least_output_tokens=0),
    ),
    "https://api.x.ai/v1",
    keys=("XAI_API_KEY",),
    families=(
        Family(r"grok-(2|3)", {"thinking_form": "never"}),
        Family(r"grok-3-mini", {"thinking_form": "effort", "efforts": ("low", "high")}),
        Family(
            r"grok-(4|code)",
            {
                "refused_sampling": ("presence_penalty", "frequency_penalty", "stop"),
                "thinking_form": "never",
            },
            "openai-chat",
        ),
    ),
    endpoints=without_counting("openai-responses"),
    aliases=("x.ai", "grok"),
)
