"""Target flags that differ for some models of a provider."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from msgspec.structs import force_setattr

from dragoman.errors import InvalidInputError
from dragoman.model.frozen import FrozenDict
from dragoman.model.value import Value, expect, expect_fields
from dragoman.wire.target import is_flag


def own_map(value: Value, name: str, kind: type) -> None:
    """Check and freeze a field that maps names to values of a type."""
    given = getattr(value, name)
    what = f"{type(value).__name__}.{name}"
    expect(given, Mapping, what)
    for key, item in given.items():
        expect(key, str, f"a key of {what}")
        expect(item, kind, f"a value of {what}")
    force_setattr(value, name, FrozenDict(given))


class Family(Value, frozen=True):
    """Target flags that differ for some models, selected by a pattern of their names.

    >>> Family("o[1-9]", {"thinking.form": "effort"}).covers("o3-mini")
    True
    """

    pattern: str
    """A regular expression that matches the start of the model name."""
    changes: Mapping[str, Any]
    dialect: str | None = None
    """The dialect it applies to; None for all."""
    source: str = ""
    """The source of the data."""
    date: str = ""
    """The date of the source."""

    def __post_init__(self) -> None:
        expect(self.pattern, str, "Family.pattern")
        expect_fields(self, dialect=str, source=str, date=str)
        own_map(self, "changes", object)
        if not all(map(is_flag, self.changes)):
            msg = "Family.changes contains an unknown flag of Target"
            raise InvalidInputError(msg)
        try:
            compiled(self.pattern)
        except re.error:
            msg = "Family.pattern is not a valid regular expression"
            raise InvalidInputError(msg) from None

    def covers(self, model: str) -> bool:
        """Whether the pattern matches a model."""
        return compiled(self.pattern).match(model) is not None


@lru_cache(maxsize=256)
def compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern, with a cache."""
    return re.compile(pattern, re.IGNORECASE)
