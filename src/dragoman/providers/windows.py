"""How many tokens a model takes, question and answer together, as its maker says; as data."""

from __future__ import annotations

import re

_K = 1024
_WINDOWS: tuple[tuple[str, int], ...] = (
    (r"gpt-4\.1", 1_047_576),
    (r"gpt-4o|gpt-4-turbo|chatgpt-4o|gpt-4-(1106|0125)|gpt-4\.5", 128_000),
    (r"gpt-4-32k", 32_768),
    (r"gpt-4", 8_192),
    (r"gpt-3\.5|gpt-35", 16_385),
    (r"o1-mini|o1-preview", 128_000),
    (r"o\d", 200_000),
    (r"gpt-5.*chat", 128_000),
    (r"gpt-5|codex", 400_000),
    (r"gpt-oss", 128 * _K),
    (r"claude-(2\.0|instant)", 100_000),
    (r"claude", 200_000),
    (r"gemini-1\.5-pro|gemini-exp", 2 * _K * _K),
    (r"gemini-1\.0|gemini-pro$", 32 * _K),
    (r"gemini", _K * _K),
    (r"grok-4.*fast", 2_000_000),
    (r"grok-4|grok-code", 256_000),
    (r"grok", 128 * _K),
    (r"deepseek", 128_000),
    (r"llama-?3\.[123]|llama-?4", 128 * _K),
    (r"llama-?3", 8 * _K),
    (r"mixtral-8x7b", 32 * _K),
    (r"(mistral|magistral|codestral|devstral|ministral|pixtral)", 128 * _K),
    (r"sonar-pro", 200_000),
    (r"sonar", 128_000),
    (r"smollm2", 8 * _K),
)
_COMPILED = tuple((re.compile(pattern), window) for pattern, window in _WINDOWS)


def context_window(model: str) -> int | None:
    """The tokens that a model takes, by its name or `provider:model`; None where not known.

    >>> context_window("anthropic:claude-sonnet-4-5")
    200000
    """
    name = model.partition(":")[2] or model
    name = name.rpartition("/")[2].lower()  # OpenRouter and Vertex put the maker in front
    for pattern, window in _COMPILED:
        if pattern.match(name):
            return window
    return None
