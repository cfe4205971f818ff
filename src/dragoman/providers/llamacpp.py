"""llama.cpp's server, as its source and a running one (2026) show it.

All three dialects end in its Chat endpoint, which knows but the words `auto`, `none` and `required`
for a choice among tools: any other is taken for `auto`.
"""

from __future__ import annotations

from dragoman.providers.endpoints import Endpoints
from dragoman.providers.families import TEMPLATES
from dragoman.providers.provider import Provider
from dragoman.wire.anthropic.target import TARGET as ANTHROPIC
from dragoman.wire.openai_responses.target import TARGET as RESPONSES
from dragoman.wire.target import Target

_CHOICES = ("auto", "none", "required")

PROVIDER = Provider(
    "llama.cpp",
    (
        Target(
            dialect="openai-chat",
            tool_id_length=256,
            parses_arguments=True,  # W114
            takes_developer=False,
            checks_strict_schemas=False,  # it makes a grammar of any
            media=("image", "audio"),
            token_limits=("max_tokens", "max_completion_tokens"),
            thinking_fields=("reasoning_content",),
            thinking_form="template",
            heeded_choices=_CHOICES,
            refuses_json_with_tools=True,  # held to a schema, the model can't call
        ),
        RESPONSES.replace(
            state_fields=("store",),
            verifies_items=False,
            types_messages=True,
            reads_reasoning=True,
            least_output_tokens=0,
            checks_strict_schemas=False,
            heeds_chat_format=True,
            hides_cut_offs=True,
            heeded_choices=_CHOICES,
            refuses_json_with_tools=True,
            media=("image",),
        ),
        # What it makes a Chat request of is a list of fields: no form of the answer is among them,
        # how many calls may come neither, and of the choices there are two.
        ANTHROPIC.replace(
            verifies_thinking=False,
            takes_cache_ttl=False,
            checks_strict_schemas=False,
            outputs=("text",),
            takes_parallel_choice=False,
            heeded_choices=("auto", "required"),
        ),
    ),
    "http://localhost:8080/v1",
    auth=None,
    families=TEMPLATES,
    endpoints={
        "anthropic": Endpoints(generate="/messages", count="/messages/count_tokens"),
    },
    aliases=("llama-server",),
)
