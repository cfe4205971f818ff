"""Names as people write them: what counts as the same name, and what a misspelled one meant."""

from __future__ import annotations

import re
from collections.abc import Iterable

_PUNCTUATION = re.compile(r"[^a-z0-9]+")
_LONGEST = 100  # comparing longer ones takes long, and they are no names


def normalised(name: str) -> str:
    """A name without case, spaces and punctuation: `LM Studio` and `lm-studio` are `lmstudio`."""
    return _PUNCTUATION.sub("", name.lower())


def closest(name: object, names: Iterable[str]) -> str | None:
    """The one of the names that is nearest to what was written; None where none is near.

    >>> closest("antropic", ["openai", "anthropic"])
    'anthropic'
    """
    if not isinstance(name, str) or not name:
        return None
    from difflib import get_close_matches  # only where something is wrong already

    known = {each.lower(): each for each in names}
    found = get_close_matches(name[:_LONGEST].lower(), list(known), n=1)
    return known[found[0]] if found else None


def did_you_mean(name: object, names: Iterable[str]) -> str:
    """` (did you mean x?)`, to be put behind a complaint; nothing where no name is near."""
    near = closest(name, names)
    return "" if near is None else f" (did you mean {near}?)"
