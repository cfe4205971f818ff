"""Any other server that speaks OpenAI's dialect, with cautious assumptions."""

from __future__ import annotations

from dragoman.providers import openrouter, vllm
from dragoman.providers.facts.open_models import TEMPLATES
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
        **openrouter.SELECTORS,
        **vllm.SELECTORS,
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
        "litellm_credential_name": "address",
        "azure_ad_token": "address",
        "aws_access_key_id": "address",
        "aws_bedrock_runtime_endpoint": "address",
        "aws_profile_name": "address",
        "aws_region_name": "address",
        "aws_role_name": "address",
        "aws_secret_access_key": "address",
        "aws_session_token": "address",
        "aws_sts_endpoint": "address",
        "aws_web_identity_token": "address",
        "vertex_credentials": "address",
        "vertex_location": "address",
        "vertex_project": "address",
        # Vercel's gateway
        "providerOptions": "model",
        # TGI and LoRAX
        "adapter_id": "model",
        "adapter_source": "address",
        # SGLang
        "bootstrap_host": "address",
        "bootstrap_port": "address",
        "lora_path": "model",
    },
)
