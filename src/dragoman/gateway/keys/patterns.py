"""The models that a key may use: patterns in which `*` matches any text.

Some routers take several models in one name, separated by commas: unless a pattern has commas
itself, only `*` matches those.
"""

from __future__ import annotations

from functools import lru_cache

_MAX_NAME_LENGTH = 256  # longer model names never match, and are not cached


def may_use(patterns: tuple[str, ...], model: str) -> bool:
    """Whether a pattern matches the model; without patterns all models are allowed.

    >>> may_use(("gpt-5*", "echo:*"), "gpt-5-mini")
    True
    """
    return not patterns or (len(model) <= _MAX_NAME_LENGTH and _is_matched(patterns, model))


@lru_cache(4096)
def _is_matched(patterns: tuple[str, ...], model: str) -> bool:
    return any(matches(pattern, model) for pattern in patterns)


def matches(pattern: str, text: str) -> bool:
    """Whether a pattern matches a text; linear, unlike a regular expression."""
    if "," in text and "," not in pattern:
        return pattern == "*"
    first, *rest = pattern.split("*")
    if not rest:
        return text == pattern
    *middle, last = rest
    if not text.startswith(first):
        return False
    at = len(first)
    for piece in middle:
        found = text.find(piece, at)
        if found < 0:
            return False
        at = found + len(piece)
    return len(text) - at >= len(last) and text.endswith(last)
