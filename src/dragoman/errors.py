"""Every exception Dragoman raises. The class tells the caller what to do about it.

```
DragomanError
├ InvalidInputError (also ValueError)   an invalid argument: role, message, tool, schema, limits
├ OrderError (also ValueError)          a conversation rule was broken (Policy.STRICT)
├ WireError                             a peer's bytes violate its dialect (.dialect, .path)
├ LossError                             strict translation would lose something (.losses)
├ ConfigError                           missing key, unknown provider or model string
│   └ NotRecorded                       a replayed session has no matching request (.paths)
├ TransportError                        the network failed (.sent .provider .host .model)
│   ├ ConnectError                      .retryable
│   ├ TimeoutError (also builtins.TimeoutError)
│   └ StreamInterrupted                 .partial holds the response received so far
│       ├ ResponseTooLarge              it exceeded the limit in bytes
│       └ StreamSilent                  it stayed open, and brought only comments
├ ProviderError                         .provider .host .model .status .code .param .request_id
│                                       .retryable .retry_after .partial .detail
│   ├ AuthenticationError
│   ├ PermissionDenied
│   ├ RateLimited
│   ├ QuotaExceeded
│   ├ Overloaded
│   ├ ContextTooLong
│   ├ Refused
│   ├ InvalidRequest
│   ├ ModelNotFound
│   └ ServerError
├ AllFailed                             every fallback model failed (.causes)
├ ToolError                             a tool failed
│   ├ ToolRetry                         the model should try again, with this advice
│   ├ ToolTimeout
│   └ LimitExceeded                     .partial holds the result so far
└ StoreError                            a history could not be read or written
    ├ Conflict                          .expected .actual
    ├ NotFound
    ├ Corrupt
    └ ContextTooSmall
```

The base classes end in `Error`. Their subclasses say what happened (`RateLimited`, `NotFound`) and
end in `Error` only where the word alone would not name a failure (`ServerError`).

No message quotes content, arguments or keys, and no exception is chained to one that does, so
`__cause__` and `__context__` are as safe to log as the message. The provider's own error text is
in `ProviderError.detail`; it is part of the message only under `dragoman.reveal()`, and gateways
send it to the client whose request was refused.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterable, Sequence
from typing import Any, Self

from dragoman._reveal import is_revealed

__all__ = [
    "AllFailed",
    "AuthenticationError",
    "ConfigError",
    "Conflict",
    "ConnectError",
    "ContextTooLong",
    "ContextTooSmall",
    "Corrupt",
    "DragomanError",
    "InvalidInputError",
    "InvalidRequest",
    "LimitExceeded",
    "LossError",
    "ModelNotFound",
    "NotFound",
    "NotRecorded",
    "OrderError",
    "Overloaded",
    "PermissionDenied",
    "ProviderError",
    "QuotaExceeded",
    "RateLimited",
    "Refused",
    "ResponseTooLarge",
    "ServerError",
    "StoreError",
    "StreamInterrupted",
    "StreamSilent",
    "TimeoutError",
    "ToolError",
    "ToolRetry",
    "ToolTimeout",
    "TransportError",
    "WireError",
]


# Names that are safe to show: hosts, providers and models match, sentences don't.
_NAME = re.compile(r"[A-Za-z0-9_.:/@\[\]+-]{1,128}", re.ASCII)


def _rebuild(cls: type[DragomanError], args: tuple[Any, ...], state: dict[str, Any]) -> Any:
    error = cls.__new__(cls, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class DragomanError(Exception):
    """Base class of every exception that this library raises on purpose."""

    def __reduce__(self) -> tuple[Any, ...]:
        # The default calls cls(*args), which would drop (or require) our keyword arguments.
        return _rebuild, (type(self), self.args, self.__dict__)


class InvalidInputError(DragomanError, ValueError):
    """An argument or value is invalid; the message says which one, where, and what to do."""


class OrderError(DragomanError, ValueError):
    """A message is not allowed at this position in the conversation (`Policy.STRICT`)."""


class WireError(DragomanError):
    """Bytes received from a peer violate the rules of their dialect."""

    def __init__(
        self, message: str, *, dialect: str | None = None, path: str | None = None
    ) -> None:
        super().__init__(message)
        self.dialect = dialect
        self.path = path


class LossError(DragomanError):
    """A strict translation would lose something; `losses` lists what."""

    def __init__(self, message: str, *, losses: Sequence[Any] = ()) -> None:
        super().__init__(message)
        self.losses = tuple(losses)


class ConfigError(DragomanError):
    """A key, provider or model string is missing or unknown."""


class NotRecorded(ConfigError):
    """No recording matches the request; `paths` lists where it differs from the closest one."""

    def __init__(self, message: str, *, paths: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.paths = tuple(paths)


class _Hidden:
    """Text that is masked when an error's attributes are printed, as error trackers do."""

    __slots__ = ("text",)

    def __init__(self, text: str | None) -> None:
        self.text = text

    def __repr__(self) -> str:
        return repr(self.text) if self.text is None or is_revealed() else "'…'"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Hidden) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)


class _Remote:
    """Base of errors in a call to a provider; the message ends with provider, model and host."""

    args: tuple[Any, ...]
    provider: str | None = None
    host: str | None = None
    """The host that was called, with its port if it is not the default one."""
    model: str | None = None

    @property
    def reason(self) -> str:
        """The message without provider, model and host."""
        return str(self.args[0]) if self.args else ""

    def add_request_info(
        self, *, provider: str | None, host: str | None, model: str | None
    ) -> Self:
        """Fills in provider, host and model where they are not known yet, and returns the error."""
        for name, value in (("provider", provider), ("host", host), ("model", model)):
            if getattr(self, name) is None:
                setattr(self, name, value)
        return self

    def __str__(self) -> str:
        provider, model, host = map(_shown, (self.provider, self.model, self.host))
        asked = ":".join(filter(None, (provider, model)))
        where = " at ".join(filter(None, (asked, host)))
        return f"{self.reason} [{where}]" if where else self.reason


def _shown(name: str | None) -> str:
    return name if isinstance(name, str) and _NAME.fullmatch(name) else ""


class TransportError(_Remote, DragomanError):
    """The network failed before a complete response arrived.

    `sent` tells whether the provider may have received and processed the request; `None` means
    unknown.
    """

    def __init__(self, message: str, *, sent: bool | None = None) -> None:
        super().__init__(message)
        self.sent = sent


class ConnectError(TransportError):
    """No connection could be made; `retryable` tells whether another attempt may succeed."""

    def __init__(self, message: str, *, sent: bool | None = None, retryable: bool = True) -> None:
        super().__init__(message, sent=sent)
        self.retryable = retryable


class TimeoutError(TransportError, builtins.TimeoutError):  # noqa: A001 - the natural name; callers write dragoman.errors.TimeoutError
    """The peer did not respond within the timeout."""


class StreamInterrupted(TransportError):
    """A stream ended before it was complete; `partial` holds the response received so far."""

    def __init__(self, message: str, *, partial: Any = None, sent: bool | None = True) -> None:
        super().__init__(message, sent=sent)
        self.partial = partial


class StreamSilent(StreamInterrupted):
    """A stream stayed open, and brought only comments or blank lines for too long."""


class ResponseTooLarge(StreamInterrupted):
    """A response, streamed or not, exceeded the limit in bytes; it may never have ended."""


class ProviderError(_Remote, DragomanError):
    """The provider returned an error.

    The subclass tells the kind of error. `status`, `code`, `param`, `request_id` and `retry_after`
    (in seconds) are the provider's values, or `None`. `retryable` tells whether the same request
    may succeed later.
    """

    retryable_by_default = False

    def __init__(  # noqa: PLR0913 - everything a provider reports about an error, by keyword
        self,
        message: str,
        *,
        provider: str | None = None,
        status: int | None = None,
        code: str | None = None,
        param: str | None = None,
        request_id: str | None = None,
        retryable: bool | None = None,
        retry_after: float | None = None,
        partial: Any = None,
        detail: str | None = None,
    ) -> None:
        super().__init__(message)
        self.provider = provider
        self.status = status
        self.code = code
        self.param = param
        """The path of the invalid field, if the provider named one."""
        self.request_id = request_id
        self.retryable = self.retryable_by_default if retryable is None else retryable
        self.retry_after = retry_after
        self.partial = partial
        """The `Response` that the model gave and the provider rejected, if the provider sent it."""
        self._detail = self._said = _Hidden(detail)

    @property
    def detail(self) -> str | None:
        """The provider's error text, keys masked. It may quote the conversation: don't log it."""
        return self._detail.text

    @detail.setter
    def detail(self, text: str | None) -> None:
        self._detail = _Hidden(text)

    @property
    def said(self) -> str | None:
        """What `detail` was made from: the provider's text, before keys in it were masked."""
        return self._said.text

    @said.setter
    def said(self, text: str | None) -> None:
        self._said = _Hidden(text)

    def __str__(self) -> str:
        said = super().__str__()
        if self.detail and is_revealed():
            return f"{said}: {self.detail}"
        return said


class AuthenticationError(ProviderError):
    """The API key is missing, wrong or expired."""


class PermissionDenied(ProviderError):
    """The API key is valid but does not permit this request."""


class RateLimited(ProviderError):
    """Too many requests; `retry_after` holds the seconds to wait, if the provider sent them."""

    retryable_by_default = True


class QuotaExceeded(ProviderError):
    """The account's quota or credit is used up; retrying does not help."""


class Overloaded(ProviderError):
    """The provider is out of capacity."""

    retryable_by_default = True


class ContextTooLong(ProviderError):
    """The request exceeds the model's context window."""


class Refused(ProviderError):
    """The provider's safety rules blocked the request."""


class InvalidRequest(ProviderError):
    """The provider rejected the request as malformed or unsupported."""


class ModelNotFound(ProviderError):
    """The model does not exist, or is not available to this key."""


class ServerError(ProviderError):
    """The provider had an internal error."""

    retryable_by_default = True


class AllFailed(DragomanError):
    """Every one of several models failed; `causes` holds their errors, in the order of the models.

    The message has one line for each.
    """

    def __init__(self, message: str, *, causes: Sequence[DragomanError] = ()) -> None:
        super().__init__(message)
        self.causes = tuple(causes)

    def __str__(self) -> str:
        lines = (f"{type(cause).__name__}: {cause}" for cause in self.causes)
        return "\n  ".join((super().__str__(), *lines))

    @property
    def retry_after(self) -> float | None:
        """The shortest `retry_after` of the causes, or `None` if no provider sent one."""
        said = [getattr(cause, "retry_after", None) for cause in self.causes]
        return min((seconds for seconds in said if seconds is not None), default=None)


class ToolError(DragomanError):
    """A tool failed."""


class ToolRetry(ToolError):
    """Raised by a tool to make the model call it again; the message is sent to the model."""


class ToolTimeout(ToolError):
    """A tool exceeded its timeout."""


class LimitExceeded(ToolError):
    """A run reached a limit (rounds, calls, tokens, cost, time); `partial` is its `Result`."""

    def __init__(self, message: str, *, partial: Any = None) -> None:
        super().__init__(message)
        self.partial = partial


class StoreError(DragomanError):
    """A history could not be read or written."""


class Conflict(StoreError):
    """The session was changed by another writer; `expected` and `actual` are its versions."""

    def __init__(
        self, message: str, *, expected: int | None = None, actual: int | None = None
    ) -> None:
        super().__init__(message)
        self.expected = expected
        self.actual = actual


class NotFound(StoreError):
    """The session, message or branch does not exist."""


class Corrupt(StoreError):
    """A stored record can't be read. It has been set aside, not overwritten."""


class ContextTooSmall(StoreError):
    """The shortest valid window does not fit into the context."""
