"""Combines several hooks on one history."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import replace
from inspect import isawaitable
from typing import Any

from dragoman.errors import InvalidInputError
from dragoman.history.config import ChatHistoryConfig, Hook

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
