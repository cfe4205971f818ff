"""The vendor of each dialect, and how its official SDK sends a body: for code snippets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Sdk(NamedTuple):
    """An official SDK: its module, client class, and the method that sends a request."""

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
"""The vendor's provider name by dialect."""
SDKS: Mapping[str, Sdk] = {
    "openai-chat": Sdk("openai", "OpenAI", "chat.completions.create"),
    "openai-responses": Sdk("openai", "OpenAI", "responses.create"),
    "anthropic": Sdk("anthropic", "Anthropic", "messages.create"),
}
"""The SDKs that accept the fields of a body as they are, by dialect."""
