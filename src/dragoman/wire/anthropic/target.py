"""Anthropic's own deployment."""

from __future__ import annotations

from dragoman.wire.anthropic.context import NAME
from dragoman.wire.target import Target

TARGET = Target(
    dialect=NAME,
    provider="anthropic",
    needs_model=True,
    tool_id=r"[a-zA-Z0-9_-]+",  # W44
    tool_name=r"[a-zA-Z0-9_-]{1,128}",
    tool_name_length=128,
    has_unique_tool_ids=True,  # W43
    groups_results=True,  # W40, W41
    merges_turns=True,  # W47; recordings show calls in two messages answered together
    refuses_empty_text=True,  # W46
    refuses_blank_text=True,
    verifies_thinking=True,  # W54
    thinking_begins_turns=True,  # W51
    forces_tools_thinking=False,  # W58
    prefill="trimmed",  # W48
    refuses_prefilled_thinking=True,  # W53
    needs_token_limit=True,  # W50
    cache_markers=4,  # W60
    media_in_results=True,  # W64
    needs_message=True,  # W47
    refuses_empty=True,  # W47
    state_fields=("thread",),
    nowhere=(
        "Image.signature",
        "Image.name",
        "Image.mime",
        "File.signature",
        "File.detail",
        "File.mime",
        "Thinking.cache",
        "ToolResult.signature",
        "ToolResult.tool_name",
        "ServerToolCall.signature",
        "ServerToolResult.signature",
        "Opaque.signature",
        "Opaque.cache",
    ),
)
