"""Every exception Dragoman raises. The class tells what the caller can do about it.

```
DragomanError
├ InvalidInputError (also ValueError)   a value people made: role, message, tool, schema, limits
├ OrderError (also ValueError)          a conversation rule was broken (Policy.STRICT)
├ WireError                             a peer's bytes broke its dialect (.dialect, .path)
├ LossError                             strict translation would lose something (.losses)
├ ConfigError                           missing key, unknown provider or model string
│   └ NotRecorded                       a replayed session has no such request (.paths)
├ TransportError                        the network failed (.sent .provider .host .model)
│   ├ ConnectError                      .retryable
│   ├ TimeoutError (also builtins.TimeoutError)
│   └ StreamInterrupted                 .partial holds what had arrived
├ ProviderError                         .provider .host .model .status .code .param .request_id
│                                       .retryable .retry_after .partial .provider_message
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
├ AllFailed                             none of several models answered (.causes)
├ ToolError                             a tool could not do its work
│   ├ ToolRetry                         the model should try again, with this advice
│   ├ ToolTimeout
│   └ LimitExceeded                     .partial holds the result so far
└ StoreError                            a history could not be read or written
    ├ Conflict                          .expected .actual
    ├ NotFound
    ├ Corrupt
    └ ContextTooSmall
```

Families, the classes that others derive from or that stand at the first level, end in `Error`. A
case of a family says what happened (`RateLimited`, `NotFound`), and ends in `Error` only where the
word alone would name no failure (`ServerError`).

No message quotes content, arguments or keys, and none is raised while another exception that
does is being handled: `__cause__` and `__context__` are as safe to log as the text. What a provider
said in its own words is `ProviderError.provider_message`; only under `dragoman.reveal()` is it in
the text as well.
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
    "ServerError",
    "StoreError",
    "StreamInterrupted",
    "TimeoutError",
    "ToolError",
    "ToolRetry",
    "ToolTimeout",
    "TransportError",
    "WireError",
]


# What may be shown of a name: hosts, providers and models are, sentences are not.
_NAME = re.compile(r"[A-Za-z0-9_.:/@\[\]+-]{1,128}", re.ASCII)


def _rebuild(cls: type[DragomanError], args: tuple[Any, ...], state: dict[str, Any]) -> Any:
    error = cls.__new__(cls, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class DragomanError(Exception):
    """The root: `except DragomanError` catches everything this library raises on purpose."""

    def __reduce__(self) -> tuple[Any, ...]:
        # The default calls cls(*args) and would lose (or demand) our keyword arguments.
        return _rebuild, (type(self), self.args, self.__dict__)


class InvalidInputError(DragomanError, ValueError):
    """A value that people made is not acceptable; the text says which, where and what to do."""


class OrderError(DragomanError, ValueError):
    """A message may not stand where it was put (`Policy.STRICT`)."""


class WireError(DragomanError):
    """A peer's bytes are not what its dialect allows."""

    def __init__(
        self, message: str, *, dialect: str | None = None, path: str | None = None
    ) -> None:
        super().__init__(message)
        self.dialect = dialect
        self.path = path


class LossError(DragomanError):
    """Something would be lost, and the caller asked for nothing to be."""

    def __init__(self, message: str, *, losses: Sequence[Any] = ()) -> None:
        super().__init__(message)
        self.losses = tuple(losses)


class ConfigError(DragomanError):
    """A key, provider or model string is missing or unknown."""


class NotRecorded(ConfigError):
    """A request that no recording answers; `paths` are where it differs from the nearest one."""

    def __init__(self, message: str, *, paths: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.paths = tuple(paths)


class _Hidden:
    """A text that does not show when an error's fields are printed, as error trackers do."""

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
    """What happened between us and a provider: the text ends with whom it was about."""

    args: tuple[Any, ...]
    provider: str | None = None
    host: str | None = None
    """The host that was asked, with its port if it is not the usual one."""
    model: str | None = None

    @property
    def reason(self) -> str:
        """The text without the provider, model and host."""
        return str(self.args[0]) if self.args else ""

    def asking(self, *, provider: str | None, host: str | None, model: str | None) -> Self:
        """The same error, which now says who was asked; what it says already stays."""
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
    """The network failed before the provider could answer.

    `sent` tells whether the request may have arrived, and be acted upon; None: not known.
    """

    def __init__(self, message: str, *, sent: bool | None = None) -> None:
        super().__init__(message)
        self.sent = sent


class ConnectError(TransportError):
    """No connection was made; `retryable` tells whether another attempt may make one."""

    def __init__(self, message: str, *, sent: bool | None = None, retryable: bool = True) -> None:
        super().__init__(message, sent=sent)
        self.retryable = retryable


class TimeoutError(TransportError, builtins.TimeoutError):  # noqa: A001 - the natural name; callers write dragoman.errors.TimeoutError
    """The peer took longer than allowed."""


class StreamInterrupted(TransportError):
    """A stream ended before it was complete; `partial` holds the response so far."""

    def __init__(self, message: str, *, partial: Any = None, sent: bool | None = True) -> None:
        super().__init__(message, sent=sent)
        self.partial = partial


class ProviderError(_Remote, DragomanError):
    """The provider answered with an error."""

    retryable_by_default = False

    def __init__(  # noqa: PLR0913 - what a provider may say of an error, all by keyword
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
        provider_message: str | None = None,
    ) -> None:
        super().__init__(message)
        self.provider = provider
        self.status = status
        self.code = code
        self.param = param
        """The path of the field that was at fault, if the provider named one."""
        self.request_id = request_id
        self.retryable = self.retryable_by_default if retryable is None else retryable
        self.retry_after = retry_after
        self.partial = partial
        """The `Response` that the model gave and the provider could not use, if it shows it."""
        self._provider_message = _Hidden(provider_message)

    @property
    def provider_message(self) -> str | None:
        """What the provider said, keys masked. It may quote the conversation: not for logs."""
        return self._provider_message.text

    @provider_message.setter
    def provider_message(self, text: str | None) -> None:
        self._provider_message = _Hidden(text)

    def __str__(self) -> str:
        said = super().__str__()
        if self.provider_message and is_revealed():
            return f"{said}: {self.provider_message}"
        return said


class AuthenticationError(ProviderError):
    """The key is missing, wrong or expired."""


class PermissionDenied(ProviderError):
    """The key is valid but may not do this."""


class RateLimited(ProviderError):
    """Too many requests; `retry_after` says when to come back, if the provider did."""

    retryable_by_default = True


class QuotaExceeded(ProviderError):
    """The account has no credit left; waiting does not help."""


class Overloaded(ProviderError):
    """The provider is out of capacity."""

    retryable_by_default = True


class ContextTooLong(ProviderError):
    """The request has more tokens than the model takes."""


class Refused(ProviderError):
    """The provider's safety rules refused the request."""


class InvalidRequest(ProviderError):
    """The provider did not accept the request's shape or values."""


class ModelNotFound(ProviderError):
    """The provider has no such model, or not for this key."""


class ServerError(ProviderError):
    """The provider failed on its side."""

    retryable_by_default = True


class AllFailed(DragomanError):
    """None of several models answered; `causes` are their failures, in the order of the models.

    The text has a line for each of them.
    """

    def __init__(self, message: str, *, causes: Sequence[DragomanError] = ()) -> None:
        super().__init__(message)
        self.causes = tuple(causes)

    def __str__(self) -> str:
        lines = (f"{type(cause).__name__}: {cause}" for cause in self.causes)
        return "\n  ".join((super().__str__(), *lines))

    @property
    def retry_after(self) -> float | None:
        """When the first of them may answer again, as far as providers said."""
        said = [getattr(cause, "retry_after", None) for cause in self.causes]
        return min((seconds for seconds in said if seconds is not None), default=None)


class ToolError(DragomanError):
    """A tool could not do its work."""


class ToolRetry(ToolError):
    """Raised by a tool: the model should call it again, with this advice."""


class ToolTimeout(ToolError):
    """A tool took longer than allowed."""


class LimitExceeded(ToolError):
    """A run used up its rounds, calls, tokens, money or time; `partial` is its `Result` so far."""

    def __init__(self, message: str, *, partial: Any = None) -> None:
        super().__init__(message)
        self.partial = partial


class StoreError(DragomanError):
    """A history could not be read or written."""


class Conflict(StoreError):
    """Somebody else wrote first."""

    def __init__(
        self, message: str, *, expected: int | None = None, actual: int | None = None
    ) -> None:
        super().__init__(message)
        self.expected = expected
        self.actual = actual


class NotFound(StoreError):
    """There is no such session, message or branch."""


class Corrupt(StoreError):
    """A stored record can't be read; it has been set aside, not overwritten."""


class ContextTooSmall(StoreError):
    """Not even the shortest valid window fits the context."""
