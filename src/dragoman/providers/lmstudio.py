"""LM Studio's server."""

from __future__ import annotations

from dragoman.providers.endpoints import without_counting
from dragoman.providers.facts.open_models import TEMPLATES
from dragoman.providers.provider import Provider
from dragoman.wire.flags import (
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

PROVIDER = Provider(
    "lmstudio",
    (
        Target(
            dialect="openai-chat",
            is_described=False,
            ids=IdFlags(max_length=256),
            tools=ToolFlags(
                takes_text=False,
                parses_arguments=True,  # W114
            ),
            turns=TurnFlags(takes_developer=False),
            thinking=ThinkingFlags(fields=("reasoning_content", "reasoning")),
            sampling=SamplingFlags(token_limit_fields=("max_tokens", "max_completion_tokens")),
            media=MediaFlags(
                kinds=("image",),
                takes_image_urls=False,  # as Ollama's: W105
            ),
            schemas=SchemaFlags(
                checks_strict=False,  # it compiles any schema to a grammar
                refuses_json_with_tools=True,  # with an enforced schema the model can't call tools
            ),
        ),
        RESPONSES.with_flags(
            {
                "is_described": False,
                "state.verifies_items": False,
                "host.resumes_answers": False,  # stored only while the server runs
                "sampling.min_output_tokens": 0,
                "schemas.checks_strict": False,
                "schemas.refuses_json_with_tools": True,
            }
        ),
    ),
    "http://localhost:1234/v1",
    auth=None,
    families=TEMPLATES,
    endpoints=without_counting("openai-responses"),
    aliases=("lm-studio",),
)
