"""What a target could not be told."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dragoman.model.value import Value


class Loss(Value, frozen=True):
    """One thing that did not make it into the output, or not as it was.

    `path` points into the canonical request or response (`messages[3].parts[0]`); `reason` says
    what happened to it, without quoting it.
    """

    path: str
    reason: str

    def _sizes(self) -> Iterator[str]:
        yield self.path
        yield self.reason


class Losses:
    """What a stream could not say: each thing once, however many pieces it came in."""

    __slots__ = ("_found",)

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], Loss] = {}

    @property
    def all(self) -> list[Loss]:
        """In the order in which they came."""
        return list(self._found.values())

    def add(self, path: str, reason: str) -> None:
        """Note a loss."""
        self._found.setdefault((path, reason), Loss(path, reason))

    def extend(self, losses: Iterable[Loss]) -> None:
        """Note several."""
        for loss in losses:
            self._found.setdefault((loss.path, loss.reason), loss)
