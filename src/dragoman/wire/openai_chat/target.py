"""OpenAI's own deployment."""

from __future__ import annotations

from dragoman.wire.openai_chat.spelling import NAME
from dragoman.wire.target import Target

# W5, W6: longer ids and other names are refused.
TARGET = Target(dialect=NAME, provider="openai", tool_id_length=40)
