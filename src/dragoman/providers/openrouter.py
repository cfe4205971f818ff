"""OpenRouter: many models behind one address, with extensions of its own (C4, W17)."""

from __future__ import annotations

from dragoman.providers.endpoints import without_counting
from dragoman.providers.provider import Provider
from dragoman.wire.openai_responses.target import TARGET as RESPONSES
from dragoman.wire.target import Target

PROVIDER = Provider(
    "openrouter",
    (
        Target(
            dialect="openai-chat",
            is_described=False,
            takes_developer=False,
            thinking_fields=("reasoning", "reasoning_details", "reasoning_content"),
            thinking_form="reasoning",
            checks_strict_schemas=False,  # that is its models' own business
            cache_field="cache_control",
            cache_markers=4,  # what Claude behind it takes
        ),
        RESPONSES.replace(
            is_described=False,
            state_fields=("store",),
            verifies_items=False,
            least_output_tokens=0,
            checks_strict_schemas=False,
        ),
    ),
    "https://openrouter.ai/api/v1",
    keys=("OPENROUTER_API_KEY",),
    endpoints=without_counting("openai-responses"),
    aliases=("open-router",),
)
