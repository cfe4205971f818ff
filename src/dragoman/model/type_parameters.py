"""Type parameters with defaults (PEP 696), which `typing` has from Python 3.13 on only.

To type checkers `TypeVar` and `TypeForm` are those of `typing_extensions`, which they bring along
themselves; nothing of it is imported when the program runs.
"""

from __future__ import annotations

import typing
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import TypeForm, TypeVar
else:

    def TypeVar(name: str, *, default: Any, **options: Any) -> Any:  # noqa: ARG001, N802 - a class elsewhere; `filled` knows the default
        """As `typing.TypeVar`; the default is for type checkers."""
        return typing.TypeVar(name, **options)

    TypeForm = type

__all__ = ["TypeForm", "TypeVar", "filled"]


def filled(parameters: tuple[Any, ...], arguments: Any, *defaults: Any) -> tuple[Any, ...]:
    """What stands between the brackets of `Agent[Database]`, completed with the last defaults."""
    given = arguments if isinstance(arguments, tuple) else (arguments,)
    missing = max(0, min(len(parameters) - len(given), len(defaults)))
    return (*given, *defaults[len(defaults) - missing :])
