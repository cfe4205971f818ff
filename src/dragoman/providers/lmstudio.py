"""LM Studio's server."""

from __future__ import annotations

from dragoman.providers.endpoints import without_counting
from dragoman.providers.families import TEMPLATES
from dragoman.providers.provider import Provider
from dragoman.wire.openai_responses.target import TARGET as RESPONSES
from dragoman.wire.target import Target

PROVIDER = Provider(
    "lmstudio",
    (
        Target(
            dialect="openai-chat",
            is_described=False,
            tool_id_length=256,
            parses_arguments=True,  # W114
            takes_developer=False,
            checks_strict_schemas=False,  # it makes a grammar of any
            media=("image",),
            takes_image_urls=False,  # as Ollama's: W105
            token_limits=("max_tokens", "max_completion_tokens"),
            thinking_fields=("reasoning_content", "reasoning"),
            refuses_json_with_tools=True,  # held to a schema, the model can't call
        ),
        RESPONSES.replace(
            is_described=False,
            verifies_items=False,
            resumes_answers=False,  # only as long as the server runs
            least_output_tokens=0,
            checks_strict_schemas=False,
            refuses_json_with_tools=True,
        ),
    ),
    "http://localhost:1234/v1",
    auth=None,
    families=TEMPLATES,
    endpoints=without_counting("openai-responses"),
    aliases=("lm-studio",),
)
