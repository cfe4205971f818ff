"""What it may cost to fit the schemas of one request to its target."""

from __future__ import annotations

from typing import NamedTuple

from dragoman.errors import InvalidInputError
from dragoman.model.validation.budget import Budget

FREE_STEPS = 2
"""Steps for each byte of a schema that are not counted: ordinary schemas take fewer."""
MAX_STEPS = 250_000
"""Steps beyond those, for all schemas of a request together: well under a second."""


class Cost(NamedTuple):
    """Of one schema."""

    steps: int = 0
    size: int = 0
    """In bytes, of the original."""

    @property
    def excess(self) -> int:
        """The steps beyond those that are free."""
        return max(0, self.steps - FREE_STEPS * self.size)


class Costs:
    """Counts, schema by schema, what one request takes beyond what is free."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = MAX_STEPS

    def charge(self, cost: Cost, where: str) -> None:
        """Count a schema; raise where it is too much."""
        self._left -= cost.excess
        if self._left < 0:
            raise too_expensive(where)


def budget_for(size: int) -> Budget:
    """For one schema of that many bytes; what it takes of a request is counted afterwards."""
    return Budget(FREE_STEPS * size + MAX_STEPS)


def too_expensive(where: str) -> InvalidInputError:
    """The error of a schema that asks for too much work."""
    msg = (
        f"{where}: the schema grows to more than {MAX_STEPS} steps of work for this target (beyond "
        f"{FREE_STEPS} for each byte, alone or with the schemas before it); simplify it: fewer "
        "alternatives, fewer references within references, or several tools in its place"
    )
    return InvalidInputError(msg)
