"""A member of a chain: reopened after failures, which are reported."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable
from time import monotonic, time
from typing import TypeVar

import msgspec

from dragoman.errors import ConfigError, DragomanError, InvalidInputError, StoreError
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.protocol import Storage

T = TypeVar("T")
_LOG = logging.getLogger("dragoman.history")
_KEPT = 1000


class Report(msgspec.Struct, frozen=True):
    """A problem with a member, without content, names or ids."""

    at: float
    member: str
    doing: str
    problem: str


class Reports:
    """The latest reports; each is also logged as a warning."""

    def __init__(self) -> None:
        self._latest: deque[Report] = deque(maxlen=_KEPT)

    def add(self, member: Member, doing: str, problem: DragomanError | str) -> Report:
        """Adds a report."""
        report = Report(time(), member.name, doing, str(problem))
        self._latest.append(report)
        _LOG.warning("history store %s, %s: %s", report.member, doing, report.problem)
        return report

    def all(self) -> tuple[Report, ...]:
        """The reports, oldest first."""
        return tuple(self._latest)


class Member:
    """One of the storages of a chain."""

    def __init__(self, storage: Storage, retry_after: float) -> None:
        self.storage = storage
        self.behind: set[str] = set()
        """The digests of sessions of which it may not have the latest state."""
        self._retry_after = retry_after
        self._wanted = False
        self._is_open = False
        self._next_try = 0.0

    @property
    def name(self) -> str:
        """The kind of backend and its location."""
        return self.storage.name

    async def open(self) -> None:
        """Opens it; if that fails, later calls try again after a while."""
        self._wanted = True
        self._next_try = monotonic() + self._retry_after
        await _explained(self.storage.open)
        self._is_open = True

    async def close(self) -> None:
        """Closes it, if it is open."""
        self._wanted = False
        if self._is_open:
            self._is_open = False
            await _explained(self.storage.close)

    async def run(self, ask: Callable[[Storage], Awaitable[T]]) -> T:
        """Makes a call; any failure raises `StoreError`."""
        if self._wanted and not self._is_open:
            if monotonic() < self._next_try:
                msg = "it could not be opened; another attempt follows later"
                raise StoreError(msg)
            await self.open()
        return await _explained(lambda: ask(self.storage))

    async def has(self, identity: SessionIdentity) -> bool:
        """Whether it has the session."""
        return await self.run(lambda storage: storage.session(identity)) is not None


async def _explained(call: Callable[[], Awaitable[T]]) -> T:
    try:
        return await call()
    except (StoreError, InvalidInputError, ConfigError):
        raise
    except Exception as error:  # noqa: BLE001 - a member must not affect the others
        problem = type(error).__name__  # the message may quote stored content
    msg = f"it failed with {problem}"
    raise StoreError(msg)
