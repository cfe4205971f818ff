"""What a provider's refusal, or a network's, comes to on the command line."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from dragoman.cli.endings import BROKEN, PROVIDER, USAGE, Ending

if TYPE_CHECKING:
    from dragoman.errors import DragomanError

T = TypeVar("T")


def explained(error: DragomanError, address: str | None = None) -> str:
    """What went wrong, with what the provider's support would ask for, or where nobody was."""
    from dragoman.errors import ConnectError, ProviderError

    if isinstance(error, ConnectError) and address is not None:
        return f"{error} ({address})"
    if not isinstance(error, ProviderError):
        return str(error)
    details = [
        f"request {error.request_id}" if error.request_id else "",
        f"try again in {error.retry_after:g} seconds" if error.retry_after else "",
    ]
    return "; ".join(filter(None, (str(error), *details)))


def ending_of(error: DragomanError, name: str, address: str | None = None) -> Ending:
    """How a command ends that talked to `name`."""
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
            return Ending(BROKEN, str(error))


def run(work: Coroutine[Any, Any, T], name: str, address: str | None = None) -> T:
    """What the work returns; what goes wrong between us and `name` ends the command."""
    import asyncio

    from dragoman.errors import DragomanError

    try:
        return asyncio.run(work)
    except DragomanError as error:
        ending = ending_of(error, name, address)
    raise ending
