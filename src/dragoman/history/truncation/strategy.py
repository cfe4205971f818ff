"""`Strategy` and `Room`: the interface of truncation strategies."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import msgspec

from dragoman.history.counted_tokens import Sizes
from dragoman.history.truncation.cut import Cut
from dragoman.model.collection import Messages
from dragoman.model.content import AnyPart
from dragoman.model.requests import AnyTool

Counter = Callable[[Messages], int | Awaitable[int]]
"""Counts the tokens of messages, more precisely than our estimate."""


class Room(msgspec.Struct, frozen=True):
    """The token limit for a prompt, and what is sent besides the messages."""

    limit: int
    """Maximum tokens of the prompt, including tools and system: the context window minus what is
    reserved for the response."""
    tools: tuple[AnyTool, ...] = ()
    system: tuple[AnyPart, ...] = ()
    """Instructions outside the list of messages."""
    count: Counter | None = None
    """Counts messages without tools and system; `None` uses reported usage and estimates."""
    config: Any = None
    """The config of the history, for callbacks."""
    model: str | None = None
    """The model it is for, if known."""
    sizes: Sizes = msgspec.field(default_factory=Sizes)
    """A cache of estimated message sizes."""

    def __repr__(self) -> str:
        return f"Room({self.limit} tokens, {len(self.tools)} tools)"  # the config may hold secrets


class Strategy(Protocol):
    """Decides what is left out of the window.

    It gets the messages that the current cut keeps (or the whole history) and returns the same cut
    if nothing has to be done, otherwise one further on, never back. If the result still does not
    fit, `truncate` handles that.
    """

    async def __call__(self, messages: Messages, cut: Cut, room: Room, /) -> Cut:
        """Returns the new cut."""
        ...
