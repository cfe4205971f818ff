"""vLLM's server: lenient, but the models' chat templates are not (W114 to W119)."""

from __future__ import annotations

from dragoman.providers.endpoints import Endpoints, without_counting
from dragoman.providers.facts.open_models import TEMPLATES
from dragoman.providers.provider import Provider, Selector
from dragoman.wire.anthropic.dialect import TARGET as ANTHROPIC
from dragoman.wire.flags import (
    FieldFlags,
    IdFlags,
    MediaFlags,
    SamplingFlags,
    SchemaFlags,
    ThinkingFlags,
    ToolFlags,
    TurnFlags,
)
from dragoman.wire.openai_responses.dialect import TARGET as RESPONSES
from dragoman.wire.target import Target

_PARTS = (
    *("refusal", "thinking", "tool_reference", "input_text", "output_text", "input_image"),
    *("image_pil", "image_embeds", "audio_embeds", "prompt_embeds"),
)
"""The part types that it has besides OpenAI's."""

SELECTORS: dict[str, Selector] = {"kv_transfer_params": "address"}
"""Fields that name hosts from which a server fetches the state of other requests."""
PROVIDER = Provider(
    "vllm",
    (
        Target(
            dialect="openai-chat",
            ids=IdFlags(max_length=256),
            tools=ToolFlags(
                takes_text=False,
                parses_arguments=True,  # W114
            ),
            turns=TurnFlags(
                takes_developer=False,  # W13
            ),
            thinking=ThinkingFlags(
                fields=("reasoning", "reasoning_content"),  # W115
                form="template",
            ),
            sampling=SamplingFlags(
                host_fields=("top_k", "min_p", "repetition_penalty"),
            ),
            media=MediaFlags(  # vLLM's entrypoints/chat_utils.py: other types are an error
                kinds=("image", "audio", "video"),
                url_parts=("video_url", "audio_url"),
            ),
            fields=FieldFlags(content_types=_PARTS),
            schemas=SchemaFlags(
                checks_strict=False,  # it compiles any schema to a grammar
                refuses_json_with_tools=True,  # with an enforced schema the model can't call tools
            ),
        ),
        RESPONSES.with_flags(
            {
                "state.fields": ("store",),
                "state.verifies_items": False,
                "sampling.min_output_tokens": 0,
                "schemas.checks_strict": False,
                "schemas.refuses_json_with_tools": True,
            }
        ),
        ANTHROPIC.with_flags(
            {
                "sampling.default_output_tokens": 4096,  # any model has that much
                "thinking.verifies_signatures": False,
                "cache.takes_ttl": False,
                "schemas.outputs": ("text",),
                "schemas.checks_strict": False,
            }
        ),
    ),
    "http://localhost:8000/v1",
    auth=None,
    families=TEMPLATES,
    endpoints={
        **without_counting("openai-responses"),  # 405; it only counts in Anthropic's dialect
        "anthropic": Endpoints(generate="/messages", count="/messages/count_tokens"),
    },
    selectors=SELECTORS,
)
