"""OpenAI."""

from __future__ import annotations

from dragoman.providers.facts.openai import EXTENSIONS, FAMILIES, NAMES
from dragoman.providers.provider import Provider
from dragoman.wire.openai_chat.dialect import TARGET as CHAT
from dragoman.wire.openai_responses.dialect import TARGET as RESPONSES

# W17: OpenAI refuses other hosts' extensions of the dialect, and thinking in messages.
STRICT_CHAT = CHAT.with_flags(
    {
        "fields.refused": EXTENSIONS,
        "thinking.sent_back": "never",
        "media.kinds": ("image", "audio", "file"),
    }
)

PROVIDER = Provider(
    "openai",
    (STRICT_CHAT, RESPONSES),
    "https://api.openai.com/v1",
    keys=("OPENAI_API_KEY",),
    families=FAMILIES,
    names=NAMES,
    aliases=("chatgpt",),
)
