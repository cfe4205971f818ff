"""OpenRouter: many models behind one API, with its own extensions (C4, W17)."""

from __future__ import annotations

from dragoman.providers.endpoints import without_counting
from dragoman.providers.provider import Provider, Selector
from dragoman.wire.flags import (
    CacheFlags,
    MediaFlags,
    SamplingFlags,
    SchemaFlags,
    ThinkingFlags,
    ToolFlags,
)
from dragoman.wire.openai_responses.dialect import TARGET as RESPONSES
from dragoman.wire.target import Target

SELECTORS: dict[str, Selector] = {
    "models": "model",  # the fallbacks of `model`
    "preset": "model",
    "plugins": "model",  # some choose a model
    "route": "host",
    "provider": "host",
}
"""Fields that choose what serves a request. Other routers have taken them over."""
PROVIDER = Provider(
    "openrouter",
    (
        Target(
            dialect="openai-chat",
            tools=ToolFlags(takes_text=False),
            is_described=False,
            thinking=ThinkingFlags(
                fields=("reasoning", "reasoning_details", "reasoning_content"), form="reasoning"
            ),
            sampling=SamplingFlags(
                host_fields=("top_k", "min_p", "repetition_penalty"),
            ),
            media=MediaFlags(
                url_parts=("video_url", "file"),  # recorded; its documentation: no URLs for audio
            ),
            schemas=SchemaFlags(
                checks_strict=False,  # depends on the model
            ),
            cache=CacheFlags(
                field="cache_control",
                max_hints=4,  # the limit of Claude
            ),
        ),
        RESPONSES.with_flags(
            {
                "is_described": False,
                "state.fields": ("store",),
                "state.verifies_items": False,
                "sampling.min_output_tokens": 0,
                "schemas.checks_strict": False,
            }
        ),
    ),
    "https://openrouter.ai/api/v1",
    keys=("OPENROUTER_API_KEY",),
    endpoints=without_counting("openai-responses"),
    aliases=("open-router",),
    selectors=SELECTORS,
)
