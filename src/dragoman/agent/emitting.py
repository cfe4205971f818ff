"""Lets a coroutine emit events to the code that iterates over them.

A run is one coroutine that calls `await emitted(event)`, at any depth. Iterating over `events_of`
it runs it in the iterating task, with that task's context variables, up to the next event; there it
pauses until the next one is requested, as an async generator does at `yield`.
"""

from __future__ import annotations

import asyncio
import types
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextlib import suppress
from typing import Any, Self


class Emittable:
    """Base class of events that can be emitted."""

    __slots__ = ()


class _Left(asyncio.CancelledError):
    """Raised in the coroutine when the consumer of its events has left.

    Not `GeneratorExit`, because code that receives that may not await anything any more.
    """

    is_failure = False


@types.coroutine
def emitted(event: Emittable) -> Generator[Any, Any, None]:
    """Emit an event; resumes when the next one is requested."""
    yield event  # passes through all awaiting coroutines, up to `events_of`


async def events_of(play: Callable[[], Coroutine[Any, Any, Any]]) -> AsyncGenerator[Any]:
    """The events of a coroutine. Leaving early cancels it, and waits for its end."""
    coroutine = play()
    while True:
        try:
            found = coroutine.send(None)
        except StopIteration:
            return
        if not isinstance(found, Emittable):  # it waits for something else
            found = await _Waiting(coroutine, found)
            if not isinstance(found, Emittable):
                return
        try:
            yield found
        except GeneratorExit:
            with suppress(_Left):
                await _Leaving(coroutine)
            raise


class _Waiting:
    """Awaitable that runs a coroutine to its next event, and returns it; None at the end.

    What the coroutine awaits, and what is thrown into it, passes through unchanged.
    """

    __slots__ = ("_coroutine", "_first")

    def __init__(self, coroutine: Coroutine[Any, Any, Any], first: Any) -> None:
        self._coroutine = coroutine
        self._first: Any = first  # what it is already waiting for

    def __await__(self) -> Self:
        return self

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        if self._first is self:
            return self.send(None)
        first, self._first = self._first, self
        return first

    def send(self, value: Any) -> Any:
        """Resume."""
        return self._passed(self._coroutine.send(value))

    def throw(self, *error: Any) -> Any:
        """Resume with an exception, such as a cancellation."""
        return self._passed(self._coroutine.throw(*error))

    def close(self) -> None:
        """End at once, without awaiting anything."""
        self._coroutine.close()

    def _passed(self, waited: Any) -> Any:
        if isinstance(waited, Emittable):
            raise StopIteration(waited)
        return waited


class _Leaving(_Waiting):
    """Awaitable that cancels a coroutine and runs it to its end, discarding its events."""

    __slots__ = ()

    def __init__(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        super().__init__(coroutine, None)

    def __next__(self) -> Any:
        if self._first is self:
            return self.send(None)
        self._first = self
        return self.throw(_Left())

    def _passed(self, waited: Any) -> Any:
        while isinstance(waited, Emittable):
            waited = self._coroutine.send(None)
        return waited
