"""llama.cpp's server, according to its source and a running instance (2026).

All three dialects are handled by its Chat endpoint, which only supports the tool choices `auto`,
`none` and `required`: any other is treated as `auto`.
"""

from __future__ import annotations

from dragoman.providers.endpoints import Endpoints
from dragoman.providers.facts.open_models import TEMPLATES
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
from dragoman.wire.openai_responses.dialect import TARGET as RESPONSES
from dragoman.wire.target import Target

_CHOICES = ("auto", "none", "required")

PROVIDER = Provider(
    "llama.cpp",
    (
        Target(
            dialect="openai-chat",
            ids=IdFlags(max_length=256),
            tools=ToolFlags(
                takes_text=False,
                parses_arguments=True,  # W114
                choices=_CHOICES,
            ),
            turns=TurnFlags(takes_developer=False),
            thinking=ThinkingFlags(fields=("reasoning_content",), form="template"),
            sampling=SamplingFlags(
                token_limit_fields=("max_tokens", "max_completion_tokens"),
                host_fields=("top_k", "min_p", "typical_p"),
            ),
            media=MediaFlags(kinds=("image", "audio")),
            schemas=SchemaFlags(
                checks_strict=False,  # it compiles any schema to a grammar
                refuses_json_with_tools=True,  # with an enforced schema the model can't call tools
            ),
        ),
        RESPONSES.with_flags(
            {
                "state.fields": ("store",),
                "state.verifies_items": False,
                "fields.needs_message_type": True,
                "thinking.is_plain_text": True,
                "sampling.min_output_tokens": 0,
                "schemas.checks_strict": False,
                "schemas.uses_chat_format": True,
                "host.hides_cut_offs": True,
                "tools.choices": _CHOICES,
                "schemas.refuses_json_with_tools": True,
                "media.kinds": ("image",),
            }
        ),
        # It converts a fixed list of fields to a Chat request: output formats and parallel tool
        # calls are not among them, and only two tool choices.
        ANTHROPIC.with_flags(
            {
                "sampling.default_output_tokens": 4096,  # any model has that much
                "thinking.verifies_signatures": False,
                "cache.takes_ttl": False,
                "schemas.checks_strict": False,
                "schemas.outputs": ("text",),
                "tools.takes_parallel_choice": False,
                "tools.choices": ("auto", "required"),
            }
        ),
    ),
    "http://localhost:8080/v1",
    auth=None,
    families=TEMPLATES,
    endpoints={
        "anthropic": Endpoints(generate="/messages", count="/messages/count_tokens"),
    },
    aliases=("llama-server",),
    selectors={"lora": "model"},
)
