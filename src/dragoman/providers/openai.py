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
    # The second is of its SDK before 1.0, and of LangChain and LiteLLM.
    address_variables={"OPENAI_BASE_URL": "", "OPENAI_API_BASE": ""},
    header_variables={
        "OPENAI_ORG_ID": "OpenAI-Organization",
        "OPENAI_ORGANIZATION": "OpenAI-Organization",
        "OPENAI_PROJECT_ID": "OpenAI-Project",
    },
    unused_variables=("OPENAI_CUSTOM_HEADERS",),
    model_pattern=r"gpt-(?!oss)|chatgpt-|codex-|o[1-9](-|$)|text-embedding-(3|ada)|dall-e|whisper-",
    families=FAMILIES,
    names=NAMES,
    aliases=("chatgpt",),
)
