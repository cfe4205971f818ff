"""What the client of a gateway is told of an error, whichever it was (G6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from dragoman.errors import (
    ContextTooLong,
    ContextTooSmall,
    DragomanError,
    InvalidInputError,
    InvalidRequest,
    LossError,
    OrderError,
    ProviderError,
    ServerError,
    TimeoutError,  # noqa: A004 - ours
    TransportError,
    WireError,
)

T = TypeVar("T")
_OURS = "the server failed"
_BAD_GATEWAY = 502
_GATEWAY_TIMEOUT = 504
# Statuses that mean another class than InvalidRequest or ServerError.
_TAKEN = frozenset({401, 402, 403, 408, 413, 429, 498, 503, 529})


def reported(error: DragomanError) -> ProviderError:
    """The error as one that a provider could have answered with.

    What the client can mend keeps its text. What happened inside (a store, a tool, a missing key)
    is the operator's business and is not told.
    """
    if isinstance(error, ProviderError):
        return error
    if isinstance(error, (InvalidInputError, OrderError, WireError, LossError)):
        return InvalidRequest(str(error), status=400)
    if isinstance(error, ContextTooSmall):
        return ContextTooLong(str(error), status=400)
    if isinstance(error, TimeoutError):
        return ServerError("the provider took too long", status=_GATEWAY_TIMEOUT)
    if isinstance(error, TransportError):
        return ServerError("the provider could not be reached", status=_BAD_GATEWAY)
    return ServerError(_OURS, status=500, retryable=False)


def form_of(error: ProviderError, forms: Mapping[type[ProviderError], T]) -> T:
    """How a dialect writes errors of this class, or of the nearest one that it knows."""
    known = (forms[kind] for kind in type(error).__mro__ if kind in forms)
    return next(known, forms[ServerError])


def status_of(error: ProviderError, usual: int) -> int:
    """The status to answer with: the provider's own where it fits the class, else the usual one."""
    status = error.status
    if isinstance(error, (InvalidRequest, ServerError)) and status is not None:
        same_family = status // 100 == usual // 100
        return status if same_family and status not in _TAKEN else usual
    return usual
