"""Mistral: ids of nine characters (C1), names of its own, and thinking as content."""

from __future__ import annotations

from dragoman.providers.provider import Family, Provider
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
            tool_id=r"[A-Za-z0-9]{9}",
            tool_id_length=9,
            takes_developer=False,
            token_limits=("max_tokens",),
            seed_field="random_seed",
            required_word="any",
            request_fields=_REQUEST,
            message_fields=_MESSAGE,
            refused_sampling=("logprobs", "top_logprobs", "top_k"),  # "not enabled for this model"
            media=("image", "audio", "file"),
            has_flat_media=True,
            content_parts=("reference", "thinking", "file"),
            thinking_fields=("content",),
            thinking_form="effort",
            efforts=("none", "high"),
        ),
    ),
    "https://api.mistral.ai/v1",
    keys=("MISTRAL_API_KEY",),
    families=(
        # They think in any case, or can't.
        Family(r"magistral|ministral|open-|codestral|pixtral|voxtral", {"thinking_form": "never"}),
    ),
    aliases=("mistralai",),
)
