"""Google's own deployment."""

from __future__ import annotations

from dragoman.wire.gemini.trace import NAME
from dragoman.wire.target import Target

TARGET = Target(
    dialect=NAME,
    provider="google",
    tool_name=r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}",  # W89
    tool_name_length=128,
    groups_results=True,  # W78
    merges_turns=True,
    cache_markers=0,  # what is cached has a name there, and no place among the parts
    needs_message=True,  # W75
    state_fields=("cached_content", "continuation_token"),
    nowhere=(
        "Text.cache",
        "Text.citations",
        "Thinking.cache",
        "Refusal.cache",
        "Image.cache",
        "ToolCall.cache",
        "Video.cache",
        "Video.detail",
        "File.cache",
        "File.detail",
        "Audio.cache",
        "Audio.detail",
        "Audio.transcript",
        "ToolResult.cache",
        "ServerToolCall.cache",
        "ServerToolCall.server",
        "ServerToolResult.cache",
        "Opaque.cache",
        "Opaque.signature",
    ),
    refuses_empty=True,  # W76
    prefill="uncertain",  # W79: the newest models refuse it; without one named, the safe side
    refuses_call_first=True,  # W77; blank texts are taken, as recordings show (against W76)
)
