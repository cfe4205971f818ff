"""Whether a vendor lists a model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from dragoman.model.name_cache import cached_by_name

_SNAPSHOT = re.compile(
    r"[-@](\d{8}|\d{4}-\d\d-\d\d|\d{4}|\d{3}|\d\d-\d\d(-\d{4})?|latest|preview|exp)\Z"
)
"""Suffixes of a model name that denote a release of the same model."""
_MAX_NAME_LENGTH = 128  # no vendor's names are longer
_TUNED = "ft:"

# Flags that may be assumed for unlisted models of a similar name: none leaves something out.
_SAFE = frozenset(
    {"sampling.token_limit_fields", "thinking.signs_calls", "thinking.is_on_by_default"}
)
_FORMS_OF_CLAUDE = frozenset({"adaptive", "budget"})


def base_of(model: str) -> str:
    """The base model of OpenAI's name of a fine-tuned model; any other name unchanged.

    >>> base_of("ft:gpt-4o-mini:acme::a1b2"), base_of("gpt-5")
    ('gpt-4o-mini', 'gpt-5')
    """
    return (model[len(_TUNED) :].partition(":")[0] or model) if model.startswith(_TUNED) else model


@cached_by_name(1024)
def is_listed(names: tuple[str, ...], model: str) -> bool:
    """Whether a model is one of these names, or a release or fine-tuned version of one.

    >>> is_listed(("gpt-5", "gpt-7*"), "gpt-5-2025-08-07"), is_listed(("gpt-5",), "gpt-5-typo")
    (True, False)
    """
    if len(model) > _MAX_NAME_LENGTH:
        return False
    if model.startswith(_TUNED):
        return True
    name = model.lower()
    known = _without_releases(names)
    while name not in known:
        shorter = _SNAPSHOT.sub("", name)
        if shorter == name:
            return any(is_like(each, model.lower()) for each in names if "*" in each)
        name = shorter
    return True


def is_like(pattern: str, name: str) -> bool:
    """Whether a name is of this form, in which `*` stands for any text.

    >>> is_like("gpt-*-mini", "gpt-5-mini"), is_like("gpt-?", "gpt-5")
    (True, False)
    """
    return _compiled(pattern).fullmatch(name) is not None


def pattern_of(name: str) -> str:
    """A regular expression for a name with `*` as the only wildcard.

    Matching takes linear time, however many wildcards there are: the first place of a part is as
    good as any later one, so that a lookahead finds it, and nothing goes back into that. (`fnmatch`
    does it with atomic groups, which are broken before Python 3.11.5.)
    """
    first, *others = map(re.escape, name.split("*"))
    if not others:
        return first
    *inner, last = others
    found = "".join(f"(?=(?P<g{n}>.*?{part}))(?P=g{n})" for n, part in enumerate(inner) if part)
    return f"(?s:{first}{found}.*{last})"


@lru_cache(maxsize=256)
def _compiled(name: str) -> re.Pattern[str]:
    return re.compile(pattern_of(name))


@lru_cache(maxsize=16)
def _without_releases(names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(each for name in names for each in (name, _SNAPSHOT.sub("", name)))


def without_guesses(changes: Mapping[str, Any]) -> dict[str, Any]:
    """The flags that may be assumed for an unlisted model of a similar name."""
    kept = {name: value for name, value in changes.items() if name in _SAFE}
    if changes.get("thinking.form") in _FORMS_OF_CLAUDE:
        kept["thinking.form"] = "either"  # accepts both
    return kept
