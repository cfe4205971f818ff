"""A row about how many tokens models take and write."""

from __future__ import annotations

import re

from dragoman.errors import InvalidInputError
from dragoman.model.value import Value, expect, expect_fields


class Size(Value, frozen=True):
    """How many tokens some models take and write, by a pattern of their names.

    >>> Size("gpt-4o", 128_000, 16_384).context_window
    128000
    """

    pattern: str
    """A regular expression for the beginning of the name."""
    context_window: int | None = None
    """The tokens that it takes, question and answer together."""
    max_output_tokens: int | None = None
    """The tokens that an answer may have, thinking included."""
    source: str = ""
    """Where this is known from."""
    date: str = ""
    """When that was looked up."""

    def __post_init__(self) -> None:
        expect(self.pattern, str, "Size.pattern")
        expect_fields(self, context_window=int, max_output_tokens=int)
        for count in (self.context_window, self.max_output_tokens):
            if count is not None and (isinstance(count, bool) or count < 1):
                msg = "a Size counts tokens: whole numbers above zero"
                raise InvalidInputError(msg)
        try:
            re.compile(self.pattern)
        except re.error:
            msg = "Size.pattern is no regular expression"
            raise InvalidInputError(msg) from None
