"""Parameters that are filled in by the caller, not by the model."""

from __future__ import annotations

from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

_WRAPPERS = (Annotated, Union, UnionType)


class Injected:
    """Base class of types whose parameters are hidden from the model."""

    __slots__ = ()


def is_injected(hint: Any) -> bool:
    """Whether parameters of this type are injected: the type itself, `X[...]` or `X | None`."""
    origin = get_origin(hint)
    kind = hint if origin is None else origin
    if isinstance(kind, type) and issubclass(kind, Injected):
        return True
    return origin in _WRAPPERS and any(map(is_injected, get_args(hint)))
