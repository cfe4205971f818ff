"""What the agent's values show of themselves: kinds and sizes, never content."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from dragoman._reveal import is_revealed
from dragoman.model.value import clipped


class Shown:
    """A value whose `repr` says what `_sizes` says."""

    __slots__ = ()

    def _sizes(self) -> Iterator[str]:
        return iter(())

    def _shown(self) -> Iterator[str]:
        if is_revealed():
            kind: Any = type(self)
            names = [each.name for each in fields(kind)] if is_dataclass(kind) else []
            return (f"{name}={clipped(getattr(self, name))}" for name in names)
        return self._sizes()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self._shown())})"

    def __rich_repr__(self) -> Iterator[Any]:
        return self._shown()
