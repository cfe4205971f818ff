"""Calls user code: hooks, strategies and token counters."""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine
from inspect import isawaitable
from typing import Any, Literal, TypeVar

from dragoman.history.config import Hook
from dragoman.model import portal

T = TypeVar("T")
Way = Literal["awaited", "inline", "on the loop"]


class Calls:
    """How a history calls user code.

    An async history awaits it. A blocking history runs either inline, in the caller's thread, where
    nothing can be awaited, or on a background loop, which must not wait for code that may call the
    history again. In those cases, the code runs aside (see `portal`).
    """

    def __init__(self, shown: Any) -> None:
        self.shown = shown
        """The history that hooks receive: the async or the blocking one."""
        self.way: Way = "awaited"  # pragma: no mutate - the other two are compared

    async def hook(self, hook: Hook | None, *arguments: Any) -> None:
        """Calls a hook, sync or async."""
        if hook is None:
            return
        if self.way == "on the loop":
            await portal.call_aside(_finished, hook, *arguments, self.shown)
            return
        result = hook(*arguments, self.shown)
        if isawaitable(result):
            await self.run(_awaited(result))

    async def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine that calls user code."""
        if self.way == "inline":
            return portal.run_aside(coroutine)
        if self.way == "on the loop":
            return await portal.await_aside(coroutine)
        return await coroutine


def _finished(hook: Hook, *arguments: Any) -> None:
    result = hook(*arguments)
    if isawaitable(result):
        portal.run_aside(_awaited(result))


async def _awaited(result: Awaitable[T]) -> T:
    return await result
