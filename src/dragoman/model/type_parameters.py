"""Type parameters with defaults (PEP 696), which `typing` supports only from Python 3.13 on.

Type checkers see `TypeVar` and `TypeForm` of `typing_extensions`, which they bundle; it is never
imported at run time.
"""

from __future__ import annotations

import typing
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import TypeForm, TypeVar
else:

    def TypeVar(name: str, *, default: Any, **options: Any) -> Any:  # noqa: ARG001, N802 - a class elsewhere; `filled` knows the default
        """Like `typing.TypeVar`; the default is for type checkers only."""
        return typing.TypeVar(name, **options)

    TypeForm = type

__all__ = ["TypeForm", "TypeVar", "filled"]


def filled(parameters: tuple[Any, ...], arguments: Any, *defaults: Any) -> tuple[Any, ...]:
    """Completes the type arguments of, say, `Agent[Database]` with the trailing defaults."""
    given = arguments if isinstance(arguments, tuple) else (arguments,)
    missing = max(0, min(len(parameters) - len(given), len(defaults)))
    return (*given, *defaults[len(defaults) - missing :])
