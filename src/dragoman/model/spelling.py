"""Compares names leniently, and suggests corrections for misspelled ones."""

from __future__ import annotations

import re
from collections.abc import Iterable

_PUNCTUATION = re.compile(r"[^a-z0-9]+")
_MAX_LENGTH = 100  # longer strings are slow to compare, and not names


def normalised(name: str) -> str:
    """A name without case, spaces and punctuation: `LM Studio` and `lm-studio` give `lmstudio`."""
    return _PUNCTUATION.sub("", name.lower())


def closest(name: object, names: Iterable[str]) -> str | None:
    """The most similar of the names, or `None` if none is similar.

    >>> closest("antropic", ["openai", "anthropic"])
    'anthropic'
    """
    if not isinstance(name, str) or not name:
        return None
    from difflib import get_close_matches  # imported only when something is wrong

    known = {each.lower(): each for each in names}
    found = get_close_matches(name[:_MAX_LENGTH].lower(), list(known), n=1)
    return known[found[0]] if found else None


def did_you_mean(name: object, names: Iterable[str]) -> str:
    """` (did you mean x?)`, to append to an error message; empty if no name is similar."""
    near = closest(name, names)
    return "" if near is None else f" (did you mean {near}?)"
