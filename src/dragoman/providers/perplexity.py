"""Perplexity: user and assistant messages alternate (W117), and streams have no end marker."""

from __future__ import annotations

from dragoman.providers.provider import Provider
from dragoman.wire.flags import HostFlags, MediaFlags, SamplingFlags, ToolFlags, TurnFlags
from dragoman.wire.target import Target

PROVIDER = Provider(
    "perplexity",
    (
        Target(
            dialect="openai-chat",
            tools=ToolFlags(takes_text=False),
            is_described=False,
            turns=TurnFlags(
                takes_developer=False,
                system_place="first",
                alternates_roles=True,
                starts_with_user=True,
            ),
            sampling=SamplingFlags(token_limit_fields=("max_tokens",)),
            media=MediaFlags(kinds=("image", "file"), url_parts=("file_url",)),  # its documentation
            host=HostFlags(ends_with_done=False),
        ),
    ),
    "https://api.perplexity.ai",
    keys=("PERPLEXITY_API_KEY",),
    model_pattern="sonar",
    aliases=("pplx",),
)
