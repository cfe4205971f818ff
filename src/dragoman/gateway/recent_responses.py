"""The responses of a worker without a history store: in memory, for a limited time, within limits.

What was not used for the longest time goes first: continuing a conversation uses all responses that
it is made of, so a conversation in progress stays whole. A key has at most a quarter of the memory,
and of the number.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any, Final

from dragoman.gateway.config.settings import ServerSettings
from dragoman.gateway.histories import Histories
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.memory import MemoryStorage
from dragoman.history.storage.protocol import MAIN, Appended, Entry, Row, Session, Storage

MAX_IDLE: Final = 3600.0
"""Seconds after its last use for which a response is kept, at most."""
MAX_RESPONSES: Final = 4000
_SHARE = 4
_OVERHEAD = 4096
"""Bytes that a session takes besides its rows' bodies, roughly."""
_FOREVER: Final = float("inf")


class _Use:
    """Sessions in the order of their last use, and their sizes."""

    def __init__(self) -> None:
        self.sizes: OrderedDict[SessionIdentity, int] = OrderedDict()
        self.size = 0

    def put(self, identity: SessionIdentity, size: int) -> None:
        self.drop(identity)
        self.sizes[identity] = size
        self.size += size

    def drop(self, identity: SessionIdentity) -> None:
        self.size -= self.sizes.pop(identity, 0)


class RecentStorage(MemoryStorage):
    """Sessions in memory: limited in number, in bytes, by key, and in the time since their use."""

    def __init__(
        self, max_bytes: int, max_idle: float, *, max_number: int = MAX_RESPONSES,
        clock: Callable[[], float] = monotonic,
    ) -> None:  # fmt: skip
        super().__init__()
        self.max_bytes, self.max_idle, self.max_number = max_bytes, max_idle, max_number
        self._clock = clock
        self._all = _Use()
        self._keys: dict[str | None, _Use] = {}
        self._used_at: dict[SessionIdentity, float] = {}

    @property
    def size(self) -> int:
        """Bytes of memory in use, roughly."""
        return self._all.size

    def share_of(self, key: str | None) -> tuple[int, int]:
        """How many sessions and bytes a key may use: all, if there are no keys."""
        parts = 1 if key is None else _SHARE
        return self.max_number // parts, self.max_bytes // parts

    async def remove_expired(self) -> None:
        """Remove what was not used for too long."""
        oldest = self._clock() - self.max_idle
        while self._all.sizes:
            identity = next(iter(self._all.sizes))
            if self._used_at[identity] > oldest:
                return
            await self.delete(identity)

    # --- what `ResponseStore` does with a storage

    async def session(self, identity: SessionIdentity) -> Session | None:
        """See `Storage.session`."""
        await self.remove_expired()
        return await super().session(identity)

    async def rows(self, identity: SessionIdentity, **which: Any) -> list[Row]:
        """See `Storage.rows`; reading a session uses it."""
        await self.remove_expired()
        if identity in self._used_at:
            self._use(identity, self._all.sizes[identity])
        return await super().rows(identity, **which)

    async def append(
        self, identity: SessionIdentity, entries: Sequence[Entry], **how: Any
    ) -> Appended:
        """See `Storage.append`; removes other sessions if there is too much."""
        made = await super().append(identity, entries, **how)
        await self._measure(identity)
        return made

    async def rewrite(self, identity: SessionIdentity, **how: Any) -> int:
        """See `Storage.rewrite`; removes other sessions if there is too much."""
        version = await super().rewrite(identity, **how)
        await self._measure(identity)
        return version

    async def delete(self, identity: SessionIdentity) -> bool:
        """See `Storage.delete`."""
        self._used_at.pop(identity, None)
        self._all.drop(identity)
        own = self._keys.get(identity.user)
        if own is not None:
            own.drop(identity)
            if not own.sizes:
                del self._keys[identity.user]
        return await super().delete(identity)

    # --- what is in use

    def _use(self, identity: SessionIdentity, size: int) -> None:
        self._used_at[identity] = self._clock()
        self._all.put(identity, size)
        self._keys.setdefault(identity.user, _Use()).put(identity, size)

    async def _measure(self, identity: SessionIdentity) -> None:
        rows = await super().rows(identity, branch=MAIN)
        self._use(identity, _OVERHEAD + sum(len(row.body) for row in rows))
        await self.trim(identity.user)

    async def trim(self, *keys: str | None) -> None:
        """Remove what has expired, and what these keys and all together have too much of."""
        await self.remove_expired()
        for key in keys:
            own = self._keys.get(key)
            if own is not None:
                await self._remove_surplus(own, *self.share_of(key))
        await self._remove_surplus(self._all, self.max_number, self.max_bytes)

    async def _remove_surplus(self, use: _Use, number: int, size: int) -> None:
        while use.sizes and (len(use.sizes) > number or use.size > size):
            await self.delete(next(iter(use.sizes)))

    async def apply(self, max_bytes: int, max_idle: float) -> None:
        """Change the limits."""
        if (max_bytes, max_idle) != (self.max_bytes, self.max_idle):
            self.max_bytes, self.max_idle = max_bytes, max_idle
            await self.trim(*self._keys)


class RecentResponses(Histories):
    """The responses that a worker keeps in memory. Created once; `apply` configures it."""

    retention = (
        "This gateway keeps responses in memory only: for a limited time, up to a limited number,"
        " and until it restarts."
    )

    def __init__(self) -> None:
        super().__init__("memory:", response_ttl=_FOREVER)  # what counts is the last use
        self.max_bytes, self.max_idle = 0, MAX_IDLE
        self._kept = RecentStorage(self.max_bytes, self.max_idle)

    def apply(self, server: ServerSettings, *, is_only_worker: bool) -> None:
        """Apply a configuration: with a history store, or other workers, nothing is kept here."""
        is_on = server.history is None and is_only_worker
        self.max_bytes = server.response_memory if is_on else 0
        self.max_idle = min(server.response_ttl, MAX_IDLE)

    @property
    def is_on(self) -> bool:
        """Whether responses are kept here."""
        return self.max_bytes > 0

    @property
    def most_input(self) -> int:
        """Bytes of a request up to which its response is kept: there is room for it, and more."""
        return self.max_bytes // _SHARE // 2

    async def storage(self) -> Storage:
        """Return the store, with the limits of the current configuration."""
        await self._kept.apply(self.max_bytes, self.max_idle)
        return await super().storage()

    async def _opened(self) -> Storage:
        return self._kept

    @property
    def _lifetime(self) -> float:
        return self.max_idle

    async def _remove_expired(self) -> None:
        await self._kept.apply(self.max_bytes, self.max_idle)
        await self._kept.remove_expired()
