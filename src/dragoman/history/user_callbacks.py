"""Calling what users wrote: hooks, strategies, counters."""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine
from inspect import isawaitable
from typing import Any, Literal, TypeVar

from dragoman.history.config import Hook
from dragoman.model import portal

T = TypeVar("T")
Way = Literal["awaited", "inline", "on the loop"]


class Calls:
    """How a history calls the code of its users.

    An async history awaits it. A blocking one runs either inline, in the caller's thread, where
    nothing can be awaited, or on a loop in the background, which must not wait for code that may
    call the history again: what can't be called where it is runs aside.
    """

    def __init__(self, shown: Any) -> None:
        self.shown = shown
        """The history as its user knows it: async, or the blocking twin."""
        self.way: Way = "awaited"

    async def hook(self, hook: Hook | None, *arguments: Any) -> None:
        """Call a hook, sync or async."""
        if hook is None:
            return
        if self.way == "on the loop":
            await portal.call_aside(_finished, hook, *arguments, self.shown)
            return
        result = hook(*arguments, self.shown)
        if isawaitable(result):
            await (result if self.way == "awaited" else self.run(_awaited(result)))

    async def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """The result of a coroutine that calls, or is, code of the user's."""
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
