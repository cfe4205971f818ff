"""How much of strict schemas one request may hold: there are limits for all of them together."""

from __future__ import annotations

from dragoman.wire.schemas import ANTHROPIC_STRICT, Projection, Weight

MAX_STRICT_TOOLS = 20
MAX_OPTIONAL = ANTHROPIC_STRICT.most_optional or 0
MAX_UNIONS = ANTHROPIC_STRICT.most_unions or 0


class Allowance:
    """What is left of it."""

    __slots__ = ("_optional", "_tools", "_unions")

    def __init__(self) -> None:
        self._tools = MAX_STRICT_TOOLS
        self._optional = MAX_OPTIONAL
        self._unions = MAX_UNIONS

    def spend(self, weight: Weight, *, tools: int = 0) -> None:
        """Count a schema that is going to be sent."""
        self._tools -= tools
        self._optional -= weight.optional
        self._unions -= weight.unions

    def refusal(self, made: Projection) -> str | None:
        """Why one more strict tool is too much; where it is not, it is counted."""
        weight = made.weight
        if self._tools < 1:
            return f"there are more strict tools than the {MAX_STRICT_TOOLS} that are taken"
        if weight.optional > self._optional:
            return f"all strict schemas may have {MAX_OPTIONAL} optional properties together"
        if weight.unions > self._unions:
            return f"all strict schemas may have {MAX_UNIONS} unions together"
        self.spend(weight, tools=1)
        return None
