"""What a strategy is, and the room that it has to fit a history into."""

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
"""How many tokens messages take, by someone who knows better than our estimate."""


class Room(msgspec.Struct, frozen=True):
    """The room that there is for a prompt, and what of it is taken already."""

    limit: int
    """The most tokens that the prompt may take, tools and system included: the model's context
    window without what is reserved for the answer."""
    tools: tuple[AnyTool, ...] = ()
    system: tuple[AnyPart, ...] = ()
    """Instructions outside of the messages."""
    count: Counter | None = None
    """Counts messages alone, without tools and system; None: what was reported, and estimates."""
    config: Any = None
    """The settings of the history, for callbacks."""
    is_shared: bool = False
    """Whether other windows of the same history are sent as well, such as to smaller models."""
    model: str | None = None
    """Which model it is for, where that is known."""
    sizes: Sizes = msgspec.field(default_factory=Sizes)
    """What messages were estimated at already."""

    def __repr__(self) -> str:
        return f"Room({self.limit} tokens, {len(self.tools)} tools)"  # settings may be secret


class Strategy(Protocol):
    """Decides what is left out of the window.

    It is given what the present cut leaves (the whole history is fine as well), and returns the
    same cut where nothing has to be done, otherwise one that is further on, never back. A window
    that still does not fit is not its problem: `truncate` sees to that.
    """

    async def __call__(self, messages: Messages, cut: Cut, room: Room, /) -> Cut:
        """Where to cut."""
        ...
