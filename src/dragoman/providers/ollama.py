"""Ollama: its own dialect, OpenAI's beside it, and Anthropic's."""

from __future__ import annotations

from dragoman.providers.endpoints import Endpoints, without_counting
from dragoman.providers.provider import Provider
from dragoman.wire.anthropic.target import TARGET as ANTHROPIC
from dragoman.wire.ollama.target import TARGET as NATIVE
from dragoman.wire.target import Target

PROVIDER = Provider(
    "ollama",
    (
        NATIVE.replace(refuses_json_with_tools=True),  # with a form it calls no tools
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
            refuses_json_with_tools=True,
        ),
        ANTHROPIC.replace(
            verifies_thinking=False,
            takes_cache_ttl=False,
            takes_image_urls=False,
            outputs=("text",),  # it reads no form of the answer there
        ),
    ),
    "http://localhost:11434",
    auth=None,
    keys=("OLLAMA_API_KEY",),
    endpoints={
        **without_counting("anthropic"),
        "openai-chat": Endpoints(
            generate="/v1/chat/completions", embed="/v1/embeddings", models="/v1/models"
        ),
    },
)
