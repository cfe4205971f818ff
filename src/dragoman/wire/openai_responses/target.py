"""OpenAI's own deployment."""

from __future__ import annotations

from dragoman.wire.openai_responses.forms import NAME
from dragoman.wire.target import Target

TARGET = Target(
    dialect=NAME,
    provider="openai",
    needs_model=True,
    tool_id_length=64,  # W22
    verifies_items=True,  # W21, W23, W24, W25, W28
    media=("image", "file"),
    nowhere=(
        "Text.signature",
        "Refusal.signature",
        "Image.signature",
        "Image.name",
        "Image.mime",
        "File.signature",
        "File.mime",
        "Audio.signature",
        "Audio.cache",
        "Audio.name",
        "Audio.detail",
        "Audio.transcript",
        "Thinking.cache",
        "ToolCall.signature",
        "ToolResult.signature",
        "ToolResult.tool_name",
        "ServerToolCall.signature",
        "ServerToolCall.cache",
        "ServerToolResult.signature",
        "ServerToolResult.cache",
        "Opaque.signature",
        "Opaque.cache",
    ),
    least_output_tokens=16,
    limits_argument_names=True,  # W39
    state_fields=("previous_response_id", "conversation", "prompt", "store"),
    resumes_answers=True,
)
