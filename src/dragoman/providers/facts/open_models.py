"""Models of other vendors, and open models."""

from __future__ import annotations

from dragoman.providers.facts.sizes import Size
from dragoman.providers.family import Family

_CHAT = "openai-chat"
_K = 1024
_SOURCE = ("wire rules W117, W118, C1, C3", "2026-11")
_DOCS = ("the maker's documentation; wire rules", "2026-11")
_PRICES = ("genai-prices 0.2.1", "2026-11")

# W117, W118: requirements of the chat templates of open models, on any server.
TEMPLATES = (
    Family(
        r"(.*/)?(open-)?(mistral|mixtral|ministral|magistral|devstral|codestral)",
        {
            "ids.pattern": r"[A-Za-z0-9]{9}",
            "ids.max_length": 9,
            "turns.answers_results": True,
            "turns.alternates_roles": True,
            "turns.system_place": "first",
            "turns.starts_with_user": True,
        },
        _CHAT, *_SOURCE,
    ),
    Family(
        r"(.*/)?gemma-?[12]?(-|:|$)",
        {
            "turns.system_place": "nowhere",
            "turns.alternates_roles": True,
            "turns.starts_with_user": True,
        },
        _CHAT, *_SOURCE,
    ),
    Family(r"(.*/)?qwen-?3", {"turns.system_place": "first"}, _CHAT, *_SOURCE),
    Family(r"(.*/)?qwen", {"tools.parses_arguments": True}, _CHAT, *_SOURCE),  # C3
)  # fmt: skip

SIZES = (
    Size(r"grok-4.*fast", 2_000_000, None, *_DOCS),
    Size(r"grok-4\.(20|3)", 1_000_000, None, *_PRICES),
    Size(r"grok-4\.[567]", 500_000, None, *_PRICES),
    Size(r"grok-4|grok-code|grok-build", 256_000, None, *_DOCS),
    Size(r"grok", 128 * _K, None, *_DOCS),
    Size(r"deepseek-(v4|flash)", 1_000_000, None, *_PRICES),
    Size(r"deepseek", 128_000, None, *_DOCS),
    Size(r"llama-?3\.[123]|llama-?4", 128 * _K, None, *_DOCS),
    Size(r"llama-?3", 8 * _K, None, *_DOCS),
    Size(r"mixtral-8x7b", 32 * _K, None, *_DOCS),
    Size(r"mistral-large-4", _K * _K, None, *_PRICES),
    Size(
        r"mistral-(large-2512|medium-3-5|small-2603)|ministral-(8|14)b-2512|devstral-2512",
        256 * _K, None, *_PRICES,
    ),
    Size(r"codestral", 256_000, None, *_PRICES),
    Size(r"(mistral|magistral|devstral|ministral|pixtral)", 128 * _K, None, *_DOCS),
    Size(r"sonar-pro", 200_000, None, *_DOCS),
    Size(r"sonar", 128_000, None, *_DOCS),
    Size(r"smollm2", 8 * _K, None, *_DOCS),
)  # fmt: skip
