"""`Loss` and `Repair`: what a target could not be sent, and what was changed for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from dragoman.model.value import Value


class Loss(Value, frozen=True):
    """One thing that is missing from the output, or is not sent as it was.

    `path` points into the canonical request or response (`messages[3].parts[0]`); `reason` says
    what happened to it, without quoting content.
    """

    path: str
    reason: str

    def _sizes(self) -> Iterator[str]:
        yield self.path
        yield self.reason


UNSUPPORTED_FIELD = "this host does not support this field"
NEAREST_EFFORT = "sent as the nearest supported effort"
Action = Literal["added", "dropped", "renamed", "moved", "merged", "retyped"]
"""What a repair did to the thing at its path."""


class Repair(Value, frozen=True):
    """One thing that was changed because the target would have refused it.

    `path` points into the canonical request, as a loss's does; an addition is reported at the
    thing that made it necessary. `rule` is the rule in `docs/reference/rules.md` that requires it.
    """

    path: str
    rule: str
    action: Action
    reason: str

    def _sizes(self) -> Iterator[str]:
        yield self.path
        yield self.rule
        yield self.action
        yield self.reason


Note = Loss | Repair
"""What fitting reports."""


class Losses:
    """Collects the losses and repairs of a stream, each once, however many chunks repeat it."""

    __slots__ = ("_found", "_repairs")

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], Loss] = {}
        self._repairs: dict[Repair, None] = {}

    @property
    def all(self) -> list[Loss]:
        """The losses, in order of occurrence."""
        return list(self._found.values())

    @property
    def repairs(self) -> list[Repair]:
        """The repairs, in order of occurrence."""
        return list(self._repairs)

    def repair(self, repairs: Iterable[Repair]) -> None:
        """Record repairs."""
        self._repairs.update(dict.fromkeys(repairs))

    def add(self, path: str, reason: str) -> None:
        """Record a loss."""
        self._found.setdefault((path, reason), Loss(path, reason))

    def extend(self, losses: Iterable[Loss]) -> None:
        """Record several losses."""
        for loss in losses:
            self._found.setdefault((loss.path, loss.reason), loss)
