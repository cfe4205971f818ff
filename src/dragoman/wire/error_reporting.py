"""Turns any error into the `ProviderError` that a gateway client is shown (G6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from dragoman.errors import (
    AllFailed,
    AuthenticationError,
    ContextTooLong,
    ContextTooSmall,
    DragomanError,
    InvalidInputError,
    InvalidRequest,
    LossError,
    OrderError,
    Overloaded,
    PermissionDenied,
    ProviderError,
    QuotaExceeded,
    RateLimited,
    Refused,
    ResponseTooLarge,
    ServerError,
    StreamSilent,
    TimeoutError,  # noqa: A004 - ours
    TransportError,
    WireError,
)
from dragoman.wire.key_masking import without_addresses

T = TypeVar("T")
_COPIED_FIELDS = ("provider", "status", "code", "param", "request_id", "detail")
_INTERNAL_ERROR = "the server failed"
_BAD_GATEWAY = 502
_GATEWAY_TIMEOUT = 504
_MAX_SENTENCE = 500
# What the provider says about these concerns the operator's account, not what the client sent.
_ABOUT_THE_ACCOUNT = (AuthenticationError, PermissionDenied, QuotaExceeded, RateLimited)
# Statuses that mean another class than InvalidRequest or ServerError.
_STATUSES_OF_OTHERS = frozenset({401, 402, 403, 408, 429, 498, 503, 529})
_TOO_LARGE = 413
_TOO_SLOW = 408


def reported(error: DragomanError) -> ProviderError:
    """The error as a `ProviderError`, as a provider could have sent it.

    Errors that the client can fix keep their text. Internal errors (a store, a tool, a missing
    key) concern only the operator, so their details are not disclosed.
    """
    if isinstance(error, ProviderError):
        return error
    if isinstance(error, AllFailed) and error.causes:
        return _most_informative(error)
    if isinstance(error, (InvalidInputError, OrderError, WireError, LossError)):
        return InvalidRequest(str(error), status=400)
    if isinstance(error, ContextTooSmall):
        return ContextTooLong(str(error), status=400)
    if isinstance(error, TransportError):
        return _transport_failure(error)
    return ServerError(_INTERNAL_ERROR, status=500, retryable=False)


def provider_sentence(error: DragomanError, *, is_for_operator: bool = False) -> str | None:
    """What the provider said about a request, for the one who sent it: it may quote the content.

    On one line, of limited length, without keys and internal addresses. None if it said nothing,
    or if it concerns the operator's account.
    """
    told = reported(error)
    if not told.detail or (isinstance(told, _ABOUT_THE_ACCOUNT) and not is_for_operator):
        return None
    sentence = bounded(without_addresses(told.detail, told.host))
    return None if sentence.startswith("<") else sentence  # a proxy's page


def bounded(text: str) -> str:
    """A provider's text on one line, cut where it is long."""
    words = " ".join(text.split())
    return words if len(words) <= _MAX_SENTENCE else f"{words[:_MAX_SENTENCE]}…"


def client_message(error: ProviderError) -> str:
    """The text of an error for a client: what kind it is, and what the provider said."""
    sentence = provider_sentence(error)
    return error.reason if sentence is None else f"{error.reason}: {sentence}"


def _transport_failure(error: TransportError) -> ProviderError:
    if isinstance(error.__cause__, ProviderError):  # reported by the provider, in mid-stream
        return error.__cause__
    if isinstance(error, TimeoutError):
        return ServerError("the provider timed out", status=_GATEWAY_TIMEOUT)
    if isinstance(error, StreamSilent):
        msg = "the provider kept its stream open without sending anything of the response"
        return ServerError(msg, status=_GATEWAY_TIMEOUT, code="stream_silent", retryable=False)
    if isinstance(error, ResponseTooLarge):
        msg = "the provider's response exceeds the size limit"
        return ServerError(msg, status=_BAD_GATEWAY, code="response_too_large", retryable=False)
    passes = getattr(error, "retryable", True)
    return ServerError("the provider could not be reached", status=_BAD_GATEWAY, retryable=passes)


def _most_informative(error: AllFailed) -> ProviderError:
    """The most informative of several models' errors; the last one among equals."""
    causes = [reported(cause) for cause in error.causes]
    found = max(reversed(causes), key=_weight)
    if not found.retryable or error.retry_after == found.retry_after:
        return found
    fields = {name: getattr(found, name) for name in _COPIED_FIELDS}
    told = type(found)(found.reason, **fields, retryable=True, retry_after=error.retry_after)
    told.host = found.host
    return told


def _weight(error: ProviderError) -> tuple[bool, bool, bool]:
    """Rank an error: retryable first, then with a known delay, then fixable by the client."""
    return (
        error.retryable,
        isinstance(error, (RateLimited, Overloaded)),
        isinstance(error, (InvalidRequest, ContextTooLong, Refused)),
    )


Forms = Mapping[type[ProviderError], T]
"""How a dialect writes each class of error."""


def form_of(error: ProviderError, forms: Forms[T]) -> T:
    """How a dialect writes errors of this class, or of its nearest base class."""
    known = (forms[kind] for kind in type(error).__mro__ if kind in forms)
    return next(known, forms[ServerError])


def status_of(error: ProviderError, usual: int) -> int:
    """The HTTP status to send: the provider's own if it fits the class, else the usual one."""
    status = error.status
    if status == _TOO_LARGE and isinstance(error, (ContextTooLong, InvalidRequest)):
        return _TOO_LARGE
    if status == _TOO_SLOW and isinstance(error, InvalidRequest):
        return _TOO_SLOW  # the official SDKs send such a request again
    if isinstance(error, (InvalidRequest, ServerError)) and status is not None:
        same_family = status // 100 == usual // 100
        return status if same_family and status not in _STATUSES_OF_OTHERS else usual
    return usual
