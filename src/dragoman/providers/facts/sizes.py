"""`Size`: context window and output limit of some models."""

from __future__ import annotations

import re

from dragoman.errors import InvalidInputError
from dragoman.model.value import Value, expect, expect_fields


class Size(Value, frozen=True):
    """The context window and output limit of some models, selected by a pattern of their names.

    >>> Size("gpt-4o", 128_000, 16_384).context_window
    128000
    """

    pattern: str
    """A regular expression that matches the start of the model name."""
    context_window: int | None = None
    """The context window in tokens, including output."""
    max_output_tokens: int | None = None
    """The maximum output tokens, including thinking."""
    source: str = ""
    """The source of the data."""
    date: str = ""
    """The date of the source."""

    def __post_init__(self) -> None:
        expect(self.pattern, str, "Size.pattern")
        expect_fields(self, context_window=int, max_output_tokens=int)
        for count in (self.context_window, self.max_output_tokens):
            if count is not None and (isinstance(count, bool) or count < 1):
                msg = "the fields of a Size must be positive integers"
                raise InvalidInputError(msg)
        try:
            re.compile(self.pattern)
        except re.error:
            msg = "Size.pattern is not a valid regular expression"
            raise InvalidInputError(msg) from None
