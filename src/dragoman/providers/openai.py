"""OpenAI."""

from __future__ import annotations

from dragoman.providers.families import EXTENSIONS, OPENAI
from dragoman.providers.provider import Provider
from dragoman.wire.openai_chat.target import TARGET as CHAT
from dragoman.wire.openai_responses.target import TARGET as RESPONSES

# W17: what other hosts have added to the dialect, OpenAI refuses; nor does it take thinking back.
STRICT_CHAT = CHAT.replace(
    refused_fields=EXTENSIONS,
    thinking_back="never",
    media=("image", "audio", "file"),
)

PROVIDER = Provider(
    "openai",
    (STRICT_CHAT, RESPONSES),
    "https://api.openai.com/v1",
    keys=("OPENAI_API_KEY",),
    families=OPENAI,
    aliases=("chatgpt",),
)
