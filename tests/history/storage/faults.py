"""Shelves that fail, or on which somebody else acts between two calls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import iscoroutinefunction
from typing import Any, cast

from dragoman.errors import StoreError
from dragoman.history.storage.ledger import Ledger
from dragoman.history.storage.memory import MemoryStorage
from dragoman.history.storage.shelf import LostReply, Shelf


class _Called:
    """A shelf whose calls pass through `call`."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf

    def __getattr__(self, name: str) -> Any:
        if name == "run_as_a_whole":  # others act between two calls, on the loop
            raise AttributeError(name)
        found = getattr(self.shelf, name)
        if not iscoroutinefunction(found):
            return found

        async def call(*arguments: Any) -> Any:
            return await self.call(name, found, *arguments)

        return call

    async def call(self, name: str, work: Callable[..., Awaitable[Any]], *arguments: Any) -> Any:
        """Makes a call."""
        raise NotImplementedError


class Interfered(_Called):
    """A shelf on which another writer acts before the nth call."""

    def __init__(self, shelf: Shelf, step: int, other: Callable[[], Awaitable[object]]) -> None:
        super().__init__(shelf)
        self._left = step
        self._other = other

    @property
    def was_late(self) -> bool:
        """Whether there was no such call."""
        return self._left > 0

    async def call(self, name: str, work: Callable[..., Awaitable[Any]], *arguments: Any) -> Any:
        """Makes a call."""
        del name
        self._left -= 1
        if self._left == 0:
            await self._other()
        return await work(*arguments)


class _FragileShelf(_Called):
    def __init__(self, of: Fragile) -> None:
        super().__init__(of.inner.shelf)
        self.name = of.own_name
        self.of = of

    async def call(self, name: str, work: Callable[..., Awaitable[Any]], *arguments: Any) -> Any:
        of = self.of
        of.calls.append(name)
        failing = name in of.down if isinstance(of.down, frozenset) else of.down
        if failing and of.is_late:
            await work(*arguments)
        if failing:
            raise of.error
        answer = await work(*arguments)
        if happens := of.meanwhile.pop(name, None):
            await happens()
        return answer


class Fragile(Ledger):
    """Fails while it is `down`, for some calls or all, before or after the work."""

    def __init__(self, name: str = "fragile") -> None:
        self.inner = MemoryStorage()
        self.own_name = name
        self.down: frozenset[str] | bool = False
        self.error: Exception = StoreError("it is down")
        self.is_late = False  # whether it fails after the work was done
        self.calls: list[str] = []
        self.meanwhile: dict[str, Callable[[], Awaitable[object]]] = {}  # once, after a call
        super().__init__(cast("Shelf", _FragileShelf(self)))


def over(shelf: Any) -> Ledger:
    """A storage on a shelf of these."""
    return Ledger(cast("Shelf", shelf))


class Lossy(_Called):
    """A shelf whose next writes are done, or not, and then raise that the reply is lost."""

    def __init__(self, shelf: Shelf) -> None:
        super().__init__(shelf)
        self.losses: list[bool] = []
        """For each of the next writes, whether it is done; others are as always."""
        self.meanwhile: Callable[[], Awaitable[object]] | None = None  # once, after a loss

    async def call(self, name: str, work: Callable[..., Awaitable[Any]], *arguments: Any) -> Any:
        """Makes a call."""
        if name not in {"commit", "remove"} or not self.losses:
            return await work(*arguments)
        if self.losses.pop(0):
            await work(*arguments)
        happens, self.meanwhile = self.meanwhile, None
        if happens is not None:
            await happens()
        message = "the reply was lost"
        raise LostReply(message)
