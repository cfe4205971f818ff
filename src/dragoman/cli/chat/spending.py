"""Tokens and cost of a chat so far."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from dragoman.cli.costs import dollars, token_line
from dragoman.model.usage import Usage

if TYPE_CHECKING:
    from dragoman.agent import Result


class Spending:
    """Totals of tokens and dollars. Unknown amounts are reported as unknown, never as zero."""

    def __init__(self) -> None:
        self.answers = 0
        self._usage: Usage | None = None
        self._cost = Decimal(0)
        self._unknown = 0
        self._uncounted = 0

    def add(self, result: Result[Any], *, is_whole: bool = True) -> None:
        """Add the usage of an answer; an interrupted answer counts as not fully known."""
        if not result.steps:
            return
        self.answers += 1
        self._uncounted += not is_whole or result.usage is None
        if result.usage is not None:
            self._usage = result.usage if self._usage is None else self._usage + result.usage
        self._unknown += not is_whole or result.cost is None
        self._cost += result.cost or 0

    def lines(self) -> list[str]:
        """The totals, as lines of text."""
        if not self.answers:
            return ["no requests yet"]
        tokens = token_line(self._usage)
        if self._uncounted and self._usage is not None:
            tokens += f"; {self._uncounted} of {self.answers} answers are not included"
        return [tokens, f"cost: {self._dollars()}"]

    def _dollars(self) -> str:
        if self._unknown == self.answers:
            return "unknown"
        known = dollars(self._cost)
        if not self._unknown:
            return known
        return f"{known}, plus an unknown amount for {self._unknown} of {self.answers} answers"
