"""OpenAI's own deployment."""

from __future__ import annotations

from dragoman.wire.openai_chat.spelling import NAME
from dragoman.wire.target import Target

TARGET = Target(
    dialect=NAME,
    provider="openai",
    needs_model=True,
    tool_id_length=40,  # W5, W6: longer ids and other names are refused
    nowhere=(
        "Text.signature",
        "Image.signature",
        "Image.name",
        "Image.mime",
        "Audio.signature",
        "Audio.name",
        "Audio.mime",
        "Audio.detail",
        "Audio.transcript",
        "Video.signature",
        "Video.name",
        "Video.mime",
        "Video.detail",
        "File.signature",
        "File.mime",
        "File.detail",
        "Thinking.cache",
        "Refusal.signature",
        "Refusal.cache",
        "ToolCall.cache",
        "ToolResult.signature",
        "ToolResult.cache",
        "ServerToolCall.signature",
        "ServerToolCall.cache",
        "ServerToolCall.server",
        "ServerToolResult.signature",
        "ServerToolResult.cache",
        "Opaque.signature",
        "Opaque.cache",
    ),
)
