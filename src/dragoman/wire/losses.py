"""What a target could not be told."""

from __future__ import annotations

from collections.abc import Iterator

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
