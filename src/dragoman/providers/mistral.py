"""Mistral: call ids of nine characters (C1), its own field names, and thinking as content."""

from __future__ import annotations

from dragoman.providers.endpoints import without_counting
from dragoman.providers.family import Family
from dragoman.providers.provider import Provider
from dragoman.wire.flags import (
    FieldFlags,
    IdFlags,
    MediaFlags,
    SamplingFlags,
    ThinkingFlags,
    ToolFlags,
    TurnFlags,
)
from dragoman.wire.openai_responses.dialect import CLIENT_FIELDS
from dragoman.wire.openai_responses.dialect import TARGET as RESPONSES
from dragoman.wire.target import Target

_REQUEST = (
    "messages", "model", "frequency_penalty", "guardrails", "max_tokens", "metadata", "n",
    "parallel_tool_calls", "prediction", "presence_penalty", "prompt_cache_key", "prompt_mode",
    "random_seed", "reasoning_effort", "response_format", "safe_prompt", "stop", "stream",
    "temperature", "tool_choice", "tools", "top_p",
)  # fmt: skip
_MESSAGE = ("role", "content", "tool_calls", "tool_call_id", "name", "prefix")

PROVIDER = Provider(
    "mistral",
    (
        Target(
            dialect="openai-chat",
            ids=IdFlags(pattern=r"[A-Za-z0-9]{9}", max_length=9),
            tools=ToolFlags(takes_text=False, required_word="any"),
            turns=TurnFlags(takes_developer=False),
            thinking=ThinkingFlags(fields=("content",), form="effort", efforts=("none", "high")),
            sampling=SamplingFlags(
                token_limit_fields=("max_tokens",),
                seed_field="random_seed",
                refused=("logprobs", "top_logprobs", "top_k"),  # "not enabled for this model"
            ),
            media=MediaFlags(kinds=("image", "audio", "file"), is_flat=True),
            fields=FieldFlags(
                in_request=_REQUEST,
                in_message=_MESSAGE,
                content_types=("reference", "thinking", "file"),
            ),
        ),
        # In public preview, and stateless: nothing is stored, so nothing can be continued.
        RESPONSES.with_flags(
            {
                "is_described": False,  # from documentation only
                "state.fields": (),
                "state.verifies_items": False,
                "host.resumes_answers": False,
                "sampling.min_output_tokens": 0,
                "fields.refused": CLIENT_FIELDS,  # unknown fields are refused (W109)
                "media.kinds": ("image", "file"),
                "thinking.form": "effort",
                "thinking.is_plain_text": True,
            }
        ),
    ),
    "https://api.mistral.ai/v1",
    keys=("MISTRAL_API_KEY",),
    model_pattern="mistral-|ministral|codestral|devstral|magistral|pixtral|voxtral|open-mi",
    families=(
        # They always think, or never.
        Family(
            r"magistral|ministral|open-|codestral|pixtral|voxtral",
            {"thinking.form": "never"},
            None,
            "Mistral's documentation",
            "2026-11",
        ),
    ),
    endpoints=without_counting("openai-responses"),
    aliases=("mistralai",),
)
