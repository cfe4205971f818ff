"""Any other server that speaks OpenAI's dialect, with cautious assumptions."""

from __future__ import annotations

from dragoman.providers.facts.open_models import TEMPLATES
from dragoman.providers.openrouter import SELECTORS
from dragoman.providers.provider import Provider
from dragoman.wire.flags import IdFlags, MediaFlags, SamplingFlags, ToolFlags, TurnFlags
from dragoman.wire.target import Target

PROVIDER = Provider(
    "openai-compatible",
    (
        Target(
            dialect="openai-chat",
            is_described=False,
            ids=IdFlags(max_length=256),
            tools=ToolFlags(takes_text=False),
            media=MediaFlags(takes_bucket_urls=True),  # LiteLLM's proxy
            turns=TurnFlags(
                takes_developer=False,  # W13
            ),
            sampling=SamplingFlags(
                token_limit_fields=("max_tokens", "max_completion_tokens"),  # W12
            ),
        ),
    ),
    keys=("OPENAI_COMPATIBLE_API_KEY",),
    families=TEMPLATES,
    parameters={},
    aliases=("compatible",),
    selectors={
        **SELECTORS,
        # LiteLLM's proxy
        "fallbacks": "model",
        "context_window_fallbacks": "model",
        "content_policy_fallbacks": "model",
        "deployment_id": "model",
        "extra_body": "model",  # may hold any field
        "model_list": "address",
        "user_config": "address",
        "custom_llm_provider": "address",
        "api_base": "address",
        "base_url": "address",
        "api_key": "address",
        "api_version": "address",
        "organization": "address",
        "extra_headers": "address",
        "headers": "address",
    },
)
