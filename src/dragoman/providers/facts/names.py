"""Whether a maker lists a model of that name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import translate
from functools import lru_cache
from typing import Any

_SNAPSHOT = re.compile(
    r"[-@](\d{8}|\d{4}-\d\d-\d\d|\d{4}|\d{3}|\d\d-\d\d(-\d{4})?|latest|preview|exp)\Z"
)
"""What may stand behind a model's name, and is a release of the same model."""
_LONGEST = 128  # no maker's names are longer
_TUNED = "ft:"

# What may stay of the facts about models of a similar name: nothing that is written is left out.
_SAFE = frozenset(
    {"sampling.token_limit_fields", "thinking.signs_calls", "thinking.is_on_by_default"}
)
_FORMS_OF_CLAUDE = frozenset({"adaptive", "budget"})


def base_of(model: str) -> str:
    """The model that was fine-tuned under a name of OpenAI's; any other name as it is.

    >>> base_of("ft:gpt-4o-mini:acme::a1b2"), base_of("gpt-5")
    ('gpt-4o-mini', 'gpt-5')
    """
    return (model[len(_TUNED) :].partition(":")[0] or model) if model.startswith(_TUNED) else model


@lru_cache(maxsize=1024)
def is_listed(names: tuple[str, ...], model: str) -> bool:
    """Whether a name is one of these, or a release or a fine-tuned one of them.

    >>> is_listed(("gpt-5", "gpt-7*"), "gpt-5-2025-08-07"), is_listed(("gpt-5",), "gpt-5-typo")
    (True, False)
    """
    if len(model) > _LONGEST:
        return False
    if model.startswith(_TUNED):
        return True
    name = model.lower()
    known = _without_releases(names)
    while name not in known:
        shorter = _SNAPSHOT.sub("", name)
        if shorter == name:
            return any(_compiled(each).match(model.lower()) for each in names if "*" in each)
        name = shorter
    return True


def pattern_of(name: str) -> str:
    """A regular expression for the whole of a name in which `*` alone stands for anything.

    It takes no more than a walk through the name, however many stars there are.
    """
    return translate(name.replace("[", "[[]").replace("?", "[?]"))


@lru_cache(maxsize=256)
def _compiled(name: str) -> re.Pattern[str]:
    return re.compile(pattern_of(name))


@lru_cache(maxsize=16)
def _without_releases(names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(each for name in names for each in (name, _SNAPSHOT.sub("", name)))


def without_guesses(changes: Mapping[str, Any]) -> dict[str, Any]:
    """What may be said of a model that nobody lists, by the facts about those of a similar name."""
    kept = {name: value for name, value in changes.items() if name in _SAFE}
    if changes.get("thinking.form") in _FORMS_OF_CLAUDE:
        kept["thinking.form"] = "either"  # as it was said
    return kept
