"""Reprs of the agent's values: types and sizes, never content."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import FrozenInstanceError, fields, is_dataclass
from typing import Any, TypeVar

from dragoman._reveal import is_revealed
from dragoman.model.value import clipped

T = TypeVar("T")


def made_by_alias(kind: type[T]) -> type[T]:
    """Let `Hooks[Database](…)` create an instance.

    `typing` then tries to set an attribute, and ignores an `AttributeError`; but frozen dataclasses
    with slots raise a `TypeError` (Python 3.11 to 3.13).
    """
    kind.__setattr__ = _refuse  # type: ignore[method-assign]  # pyright: ignore[reportAttributeAccessIssue]
    return kind


def _refuse(_value: object, name: str, _given: object) -> None:
    msg = f"cannot assign to field {name!r}"
    raise FrozenInstanceError(msg)


class Shown:
    """A value whose `repr` consists of `_sizes`."""

    __slots__ = ()

    def _sizes(self) -> Iterator[str]:
        return iter(())

    def _shown(self) -> Iterator[str]:
        if is_revealed():
            kind: Any = type(self)
            names = [each.name for each in fields(kind)] if is_dataclass(kind) else []
            return (f"{name}={clipped(self._value(name))}" for name in names)
        return self._sizes()

    def _value(self, name: str) -> Any:
        return getattr(self, name)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self._shown())})"

    def __rich_repr__(self) -> Iterator[Any]:
        return self._shown()
