"""Calls middleware functions, and contains their errors and timeouts."""

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
"""Tasks in progress, referenced here because asyncio only holds weak references."""


class Stopped(Exception):  # noqa: N818 - it carries the error
    """Middleware ended the exchange. Not a `DragomanError`, so that it causes no fallback."""

    def __init__(self, error: DragomanError) -> None:
        super().__init__()
        self.error = error


def hook_failure(name: str, hook: str, what: str) -> Stopped:
    """Log a middleware's failure, without quoting content, and return the exception to raise."""
    LOG.error("the middleware %s failed in %s: %s", name, hook, what)
    return Stopped(ServerError(_FAILED, status=500))


def call_hook(name: str, hook: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a synchronous function and return its result."""
    try:
        return function(*arguments)
    except DragomanError as error:
        raised = Stopped(error)
    except BaseException as error:  # noqa: BLE001 - not even `sys.exit()` may stop the server
        raised = hook_failure(name, hook, _described(error))
    raise raised


async def await_hook(
    name: str, hook: str, function: Callable[..., Any], seconds: float, *arguments: Any
) -> Any:
    """Call a function that may be async, with a timeout, and return its result.

    It runs in a separate task, which is abandoned if it ignores its cancellation.
    """
    task = asyncio.ensure_future(_outcome(name, hook, function, *arguments))
    _abandoned.add(task)
    task.add_done_callback(_abandoned.discard)
    try:
        done, _ = await asyncio.wait({task}, timeout=seconds)
    except asyncio.CancelledError:
        task.cancel()
        raise
    if not done:
        task.cancel()
        LOG.error("the middleware %s failed in %s: timeout after %g s", name, hook, seconds)
        raise Stopped(ServerError(_LATE, status=500))
    value, stopped = task.result()
    if stopped is not None:
        raise stopped
    return value


async def _outcome(
    name: str, hook: str, function: Callable[..., Any], *arguments: Any
) -> tuple[Any, Stopped | None]:
    """The result or the error. Never raises: SystemExit in a task would stop the event loop."""
    try:
        value = function(*arguments)
        return (await value if isawaitable(value) else value), None
    except DragomanError as error:
        return None, Stopped(error)
    except BaseException as error:  # noqa: BLE001 - as in `call_hook`
        return None, hook_failure(name, hook, _described(error))


def _described(error: BaseException) -> str:
    """An error's type and location, without its message, which may quote client content."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    where = "" if last is None else f" at {last.tb_frame.f_code.co_filename}:{last.tb_lineno}"
    return f"{type(error).__name__}{where}"
