"""Whose dialects they are, and how their makers' own SDKs send a body: for snippets to paste."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Sdk(NamedTuple):
    """A maker's SDK: the module, the class of its client, and the method that sends a request."""

    module: str
    client: str
    method: str


VENDORS: Mapping[str, str] = {
    "openai-chat": "openai",
    "openai-responses": "openai",
    "anthropic": "anthropic",
    "gemini": "google",
    "ollama": "ollama",
}
"""By dialect: the provider who made it."""
SDKS: Mapping[str, Sdk] = {
    "openai-chat": Sdk("openai", "OpenAI", "chat.completions.create"),
    "openai-responses": Sdk("openai", "OpenAI", "responses.create"),
    "anthropic": Sdk("anthropic", "Anthropic", "messages.create"),
}
"""By dialect: the SDKs that take a body's fields as they are."""
