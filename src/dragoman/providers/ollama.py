"""Ollama: its own dialect, OpenAI's beside it, and Anthropic's."""

from __future__ import annotations

from dragoman.providers.endpoints import Endpoints
from dragoman.providers.provider import Provider
from dragoman.wire.anthropic.target import TARGET as ANTHROPIC
from dragoman.wire.ollama.target import TARGET as NATIVE
from dragoman.wire.target import Target

PROVIDER = Provider(
    "ollama",
    (
        NATIVE,
        Target(
            dialect="openai-chat",
            tool_id_length=256,
            takes_developer=False,
            checks_strict_schemas=False,  # it makes a grammar of any
            media=("image",),
            takes_image_urls=False,  # W105
            token_limits=("max_tokens", "max_completion_tokens"),
            thinking_fields=("reasoning", "reasoning_content"),
            thinking_form="effort",
        ),
        ANTHROPIC.replace(verifies_thinking=False, takes_cache_ttl=False, takes_image_urls=False),
    ),
    "http://localhost:11434",
    auth=None,
    keys=("OLLAMA_API_KEY",),
    endpoints={
        "openai-chat": Endpoints(
            generate="/v1/chat/completions", embed="/v1/embeddings", models="/v1/models"
        ),
    },
)
