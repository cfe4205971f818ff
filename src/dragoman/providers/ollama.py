"""Ollama: its own dialect, OpenAI's, and Anthropic's."""

from __future__ import annotations

from dragoman.providers.endpoints import Endpoints, without_counting
from dragoman.providers.provider import Provider
from dragoman.wire.anthropic.dialect import TARGET as ANTHROPIC
from dragoman.wire.flags import (
    IdFlags,
    MediaFlags,
    SamplingFlags,
    SchemaFlags,
    ThinkingFlags,
    ToolFlags,
    TurnFlags,
)
from dragoman.wire.ollama.dialect import TARGET as NATIVE
from dragoman.wire.target import Target

PROVIDER = Provider(
    "ollama",
    (
        # With an output format the model calls no tools.
        NATIVE.with_flags({"schemas.refuses_json_with_tools": True}),
        Target(
            dialect="openai-chat",
            tools=ToolFlags(takes_text=False),
            ids=IdFlags(max_length=256),
            turns=TurnFlags(takes_developer=False),
            thinking=ThinkingFlags(fields=("reasoning", "reasoning_content"), form="effort"),
            sampling=SamplingFlags(token_limit_fields=("max_tokens", "max_completion_tokens")),
            media=MediaFlags(
                kinds=("image",),
                takes_image_urls=False,  # W105
            ),
            schemas=SchemaFlags(
                checks_strict=False,  # it compiles any schema to a grammar
                refuses_json_with_tools=True,
            ),
        ),
        ANTHROPIC.with_flags(
            {
                "sampling.default_output_tokens": 4096,  # any model has that much
                "thinking.verifies_signatures": False,
                "cache.takes_ttl": False,
                "media.takes_image_urls": False,
                "schemas.outputs": ("text",),  # output formats are ignored in this dialect
            }
        ),
    ),
    "http://localhost:11434",
    auth=None,
    keys=("OLLAMA_API_KEY",),
    address_variables={"OLLAMA_HOST": ""},
    model_pattern=(
        "(code|tiny)?llama-?[1-9]|gemma|qwen|qwq|phi-?[1-9]|gpt-oss|deepseek-r|mixtral|granite"
    ),
    endpoints={
        **without_counting("anthropic"),
        "openai-chat": Endpoints(
            generate="/v1/chat/completions", embed="/v1/embeddings", models="/v1/models"
        ),
    },
)
