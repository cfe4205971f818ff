"""OpenAI's own deployment."""

from __future__ import annotations

from dragoman.wire.openai_chat.spelling import NAME
from dragoman.wire.target import Target

_BESIDE = ("signature", "cache")

TARGET = Target(
    dialect=NAME,
    provider="openai",
    tool_id_length=40,  # W5, W6: longer ids and other names are refused
    nowhere={
        "Text": ("signature",),
        "Image": ("signature", "name", "mime"),
        "Audio": ("signature", "name", "mime", "detail", "transcript"),
        "Video": ("signature", "name", "mime", "detail"),
        "File": ("signature", "mime", "detail"),
        "Thinking": ("cache",),
        "Refusal": _BESIDE,
        "ToolCall": ("cache",),
        "ToolResult": _BESIDE,
        "ServerToolCall": (*_BESIDE, "server"),
        "ServerToolResult": _BESIDE,
        "Opaque": _BESIDE,
    },
)
