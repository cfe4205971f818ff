"""What the agent's values show of themselves: kinds and sizes, never content."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


class Shown:
    """A value whose `repr` says what `_sizes` says."""

    __slots__ = ()

    def _sizes(self) -> Iterator[str]:
        return iter(())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self._sizes())})"

    def __rich_repr__(self) -> Iterator[Any]:
        return iter(self._sizes())
