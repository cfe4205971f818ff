"""Calls of a middleware's functions: whatever they do, the gateway goes on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from inspect import isawaitable
from typing import Any

from dragoman.errors import DragomanError, ServerError

LOG = logging.getLogger("dragoman.gateway")
_FAILED = "a middleware of the gateway failed"
_LATE = "a middleware of the gateway took too long"
_abandoned: set[asyncio.Task[Any]] = set()
"""Calls that nobody waits for any more; a task that nobody holds may vanish."""


class Stopped(Exception):  # noqa: N818 - it carries the error
    """Middleware ends the exchange. No `DragomanError`: no other place is asked because of it."""

    def __init__(self, error: DragomanError) -> None:
        super().__init__()
        self.error = error


def broken(name: str, hook: str, what: str) -> Stopped:
    """The end of an exchange whose middleware does not do as it should; quotes nothing."""
    LOG.error("the middleware %s failed in %s: %s", name, hook, what)
    return Stopped(ServerError(_FAILED, status=500))


def called(name: str, hook: str, function: Callable[..., Any], *given: Any) -> Any:
    """The result of a plain function."""
    try:
        return function(*given)
    except DragomanError as error:
        raised = Stopped(error)
    except BaseException as error:  # noqa: BLE001 - not even `sys.exit()` ends the server
        raised = broken(name, hook, _described(error))
    raise raised


async def awaited(
    name: str, hook: str, function: Callable[..., Any], seconds: float, *given: Any
) -> Any:
    """The result of a function that may be async, if it comes in time.

    It runs in a task of its own: one that goes on when it is cancelled is left to itself.
    """
    task = asyncio.ensure_future(_outcome(name, hook, function, *given))
    _abandoned.add(task)
    task.add_done_callback(_abandoned.discard)
    try:
        done, _ = await asyncio.wait({task}, timeout=seconds)
    except asyncio.CancelledError:
        task.cancel()
        raise
    if not done:
        task.cancel()
        LOG.error("the middleware %s failed in %s: it took over %g s", name, hook, seconds)
        raise Stopped(ServerError(_LATE, status=500))
    value, stopped = task.result()
    if stopped is not None:
        raise stopped
    return value


async def _outcome(
    name: str, hook: str, function: Callable[..., Any], *given: Any
) -> tuple[Any, Stopped | None]:
    """What the function returns, or why not. Raises nothing: a task's SystemExit ends the loop."""
    try:
        value = function(*given)
        return (await value if isawaitable(value) else value), None
    except DragomanError as error:
        return None, Stopped(error)
    except BaseException as error:  # noqa: BLE001 - as in `called`
        return None, broken(name, hook, _described(error))


def _described(error: BaseException) -> str:
    """The kind of an error and where it was raised; its text may quote what the client sent."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    where = "" if last is None else f" at {last.tb_frame.f_code.co_filename}:{last.tb_lineno}"
    return f"{type(error).__name__}{where}"
