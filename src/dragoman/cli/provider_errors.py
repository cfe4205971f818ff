"""Turns provider and network errors into messages and exit codes."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from dragoman.cli.exit_codes import BROKEN, PROVIDER, USAGE, Ending

if TYPE_CHECKING:
    from dragoman.errors import DragomanError

T = TypeVar("T")


def explained(error: DragomanError, address: str | None = None) -> str:
    """What went wrong, with the request id and retry time, or the address that didn't respond."""
    from dragoman.errors import (
        AllFailed,
        ConnectError,
        LimitExceeded,
        ProviderError,
        TransportError,
    )
    from dragoman.wire.error_reporting import bounded

    if isinstance(error, LimitExceeded):  # its limits belong to an agent, and are no options here
        return str(error).partition(" (RunLimits.")[0]
    if isinstance(error, AllFailed):
        causes = [_cause(cause) for cause in error.causes]
        return "\n  ".join((str(error.args[0]), *causes))
    if isinstance(error, ConnectError) and address is not None:
        return f"{error.reason} ({address})"
    if isinstance(error, TransportError):
        cause = error.__cause__  # what the provider reported in mid-stream
        return explained(cause) if isinstance(cause, ProviderError) else error.reason
    if not isinstance(error, ProviderError):
        return str(error)
    details = [
        f"request {error.request_id}" if error.request_id else "",
        f"retry in {error.retry_after:g} seconds" if error.retry_after else "",
        f"provider message: {bounded(error.detail)}" if error.detail else "",
    ]
    return "; ".join(filter(None, (error.reason, *details)))


def _cause(error: DragomanError) -> str:
    """The error of one of several models, with its name."""
    named = [getattr(error, "provider", None), getattr(error, "model", None)]
    return ": ".join(filter(None, (":".join(filter(None, named)), explained(error))))


def ending_of(error: DragomanError, name: str, address: str | None = None) -> Ending:
    """The ending for an error while talking to `name`."""
    from dragoman.errors import (
        AllFailed,
        ConfigError,
        InvalidInputError,
        ProviderError,
        TransportError,
        WireError,
    )

    match error:
        case ConfigError() | InvalidInputError():
            return Ending(USAGE, str(error))
        case ProviderError() | TransportError() | WireError() | AllFailed():
            return Ending(PROVIDER, f"{name}: {explained(error, address)}")
        case _:
            return Ending(BROKEN, explained(error))


def run(work: Coroutine[Any, Any, T], name: str, address: str | None = None) -> T:
    """Run the coroutine; errors while talking to `name` end the command."""
    import asyncio

    from dragoman.cli.interrupts import notice_signals
    from dragoman.errors import DragomanError

    try:
        with asyncio.Runner() as runner:
            notice_signals(runner.get_loop())
            return runner.run(work)
    except DragomanError as error:
        ending = ending_of(error, name, address)
    raise ending
