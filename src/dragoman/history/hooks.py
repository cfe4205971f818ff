"""Hooks on a history: combines several, and calls them and other user code."""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine, Mapping
from dataclasses import replace
from inspect import isawaitable
from typing import Any, Literal, TypeVar

from dragoman.errors import InvalidInputError
from dragoman.history.config import ChatHistoryConfig, Hook
from dragoman.model import portal

NOTIFICATIONS = (
    "on_before_add",
    "on_after_add",
    "on_before_save",
    "on_after_save",
    "on_before_load",
    "on_after_load",
    "before_truncate",
    "after_truncate",
)
"""The hooks that only notify, and can therefore be combined."""


def with_hooks(config: ChatHistoryConfig, hooks: Mapping[str, Hook | None]) -> ChatHistoryConfig:
    """Returns a config with these hooks called after the existing ones."""
    check(hooks)
    both: dict[str, Any] = {
        name: _in_turn(getattr(config, name), hook)
        for name, hook in hooks.items()
        if hook is not None
    }
    return replace(config, **both)


def check(hooks: Mapping[str, Any]) -> None:
    """Raises unless all of these are notification hooks."""
    unknown = sum(1 for name in hooks if name not in NOTIFICATIONS)
    if unknown:
        msg = f"{unknown} unknown hooks; known hooks are {', '.join(NOTIFICATIONS)}"
        raise InvalidInputError(msg)
    for name, hook in hooks.items():
        if hook is not None and not callable(hook):
            msg = f"the hook {name} must be callable, not {type(hook).__name__}"
            raise InvalidInputError(msg)


def _in_turn(first: Hook | None, then: Hook) -> Hook:
    """Calls both hooks in order; the second is skipped if the first raises."""
    if first is None:
        return then

    def call_both(*arguments: Any) -> Any:
        result = first(*arguments)
        if isawaitable(result):
            return _continued(result, then, arguments)
        return then(*arguments)

    return call_both


async def _continued(first: Awaitable[Any], then: Hook, arguments: tuple[Any, ...]) -> None:
    await first
    result = then(*arguments)
    if isawaitable(result):
        await result


# --- calls of user code


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
