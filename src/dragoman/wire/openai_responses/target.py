"""OpenAI's own deployment."""

from __future__ import annotations

from dragoman.wire.openai_responses.forms import NAME
from dragoman.wire.target import Target

TARGET = Target(dialect=NAME, provider="openai", tool_id_length=64, keeps_state=True)  # W22
