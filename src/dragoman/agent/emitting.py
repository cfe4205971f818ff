"""Events that a coroutine emits, for somebody who goes through them.

A run is one coroutine that says `await emitted(event)`, at whatever depth. Whoever goes through
`events_of` it runs it in their own task, with their own context variables, up to the next event;
there it stands still until they ask for another one, as an async generator does at `yield`.
"""

from __future__ import annotations

import asyncio
import types
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextlib import suppress
from typing import Any, Self


class Emittable:
    """What can be emitted."""

    __slots__ = ()


class _Left(asyncio.CancelledError):
    """Who went through the events has left; raised where the coroutine stands.

    Not `GeneratorExit`: what that is thrown into may not wait for anything any more.
    """


@types.coroutine
def emitted(event: Emittable) -> Generator[Any, Any, None]:
    """Hand an event out; who awaits this goes on when the next one is asked for."""
    yield event  # past all that awaits the coroutine, to `events_of`


async def events_of(play: Callable[[], Coroutine[Any, Any, Any]]) -> AsyncGenerator[Any]:
    """What a coroutine emits. Leaving early cancels it where it stands, and waits for its end."""
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
    """Awaited, takes a coroutine on to its next event, and gives that; None: it has ended.

    What the coroutine waits for, and what is thrown into it, passes through untouched.
    """

    __slots__ = ("_coroutine", "_first")

    def __init__(self, coroutine: Coroutine[Any, Any, Any], first: Any) -> None:
        self._coroutine = coroutine
        self._first: Any = first  # what it waits for already

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
        """Go on."""
        return self._passed(self._coroutine.send(value))

    def throw(self, *error: Any) -> Any:
        """Go on with an exception: the task is cancelled, for one."""
        return self._passed(self._coroutine.throw(*error))

    def close(self) -> None:
        """End at once, without waiting for anything."""
        self._coroutine.close()

    def _passed(self, waited: Any) -> Any:
        if isinstance(waited, Emittable):
            raise StopIteration(waited)
        return waited


class _Leaving(_Waiting):
    """Awaited, cancels a coroutine, and runs it to its end; nobody hears what it emits."""

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
