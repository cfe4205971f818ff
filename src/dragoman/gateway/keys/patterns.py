"""Which models a key may ask for: names, with `*` for any text."""

from __future__ import annotations

from functools import lru_cache

_MAX_NAME_LENGTH = 256  # a model's name; longer ones are remembered nowhere


def may_use(patterns: tuple[str, ...], model: str) -> bool:
    """Whether one of the patterns matches; without patterns every model may be used.

    >>> may_use(("gpt-5*", "echo:*"), "gpt-5-mini")
    True
    """
    return not patterns or (len(model) <= _MAX_NAME_LENGTH and _is_matched(patterns, model))


@lru_cache(4096)
def _is_matched(patterns: tuple[str, ...], model: str) -> bool:
    return any(matches(pattern, model) for pattern in patterns)


def matches(pattern: str, text: str) -> bool:
    """Whether the text is as the pattern says, in one pass: no regular expression to blow up."""
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
