"""vLLM's server: lenient itself, but the models' chat templates are not (W114 to W119)."""

from __future__ import annotations

from dragoman.providers.endpoints import Endpoints, without_counting
from dragoman.providers.families import TEMPLATES
from dragoman.providers.provider import Provider
from dragoman.wire.anthropic.target import TARGET as ANTHROPIC
from dragoman.wire.openai_responses.target import TARGET as RESPONSES
from dragoman.wire.target import Target

PROVIDER = Provider(
    "vllm",
    (
        Target(
            dialect="openai-chat",
            tool_id_length=256,
            parses_arguments=True,  # W114
            takes_developer=False,  # W13
            checks_strict_schemas=False,  # it makes a grammar of any
            thinking_fields=("reasoning", "reasoning_content"),  # W115
            thinking_form="template",
            refuses_json_with_tools=True,  # held to a schema, the model can't call
        ),
        RESPONSES.replace(
            state_fields=("store",),
            verifies_items=False,
            least_output_tokens=0,
            checks_strict_schemas=False,
            refuses_json_with_tools=True,
        ),
        ANTHROPIC.replace(
            verifies_thinking=False,
            takes_cache_ttl=False,
            outputs=("text",),
            checks_strict_schemas=False,
        ),
    ),
    "http://localhost:8000/v1",
    auth=None,
    families=TEMPLATES,
    endpoints={
        **without_counting("openai-responses"),  # 405; in Anthropic's dialect it does count
        "anthropic": Endpoints(generate="/messages", count="/messages/count_tokens"),
    },
)
