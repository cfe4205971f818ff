"""What the page holds while the gateway runs: its store, its lists, the runs in progress."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from dragoman.errors import DragomanError
from dragoman.gateway.guard import is_loopback
from dragoman.gateway.page.branches import Branches
from dragoman.gateway.page.listing import Listing
from dragoman.gateway.state import Gateway
from dragoman.history.storage.protocol import Storage
from dragoman.history.storage_urls import storage_at

if TYPE_CHECKING:
    from dragoman.gateway.page.runs import PageRun

_NOWHERE = "memory:"


class Page:
    """One per worker, made when somebody first uses the page."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._lock = asyncio.Lock()
        self._opened: dict[str | None, Storage] = {}  # by URL: a reload may name another
        self._listings: dict[str | None, Listing] = {}
        self._preparing: asyncio.Task[None] | None = None
        self._branches: dict[int, Branches] = {}
        self.runs: dict[str, PageRun] = {}
        """The answers that are coming in, by the run's id."""

    @property
    def url(self) -> str | None:
        """The URL of the store; None is the one that `dragoman chat` uses.

        Without one, and served to more than this machine, conversations are kept in memory: what
        strangers to this account say is nothing to its owner's own store.
        """
        server = self._gateway.config.server
        if server.history is None and not is_loopback(server.host):
            return _NOWHERE
        return server.history

    @property
    def is_lasting(self) -> bool:
        """Whether conversations outlive the gateway."""
        return self.url != _NOWHERE

    async def storage(self) -> Storage:
        """The store, open."""
        url = self.url
        found = self._opened.get(url)
        if found is not None:
            return found
        async with self._lock:
            if url not in self._opened:
                storage, _ = storage_at(url)
                await storage.open()
                self._opened[url] = storage
            return self._opened[url]

    async def listing(self) -> Listing:
        """What is known of the conversations in the store."""
        url, storage = self.url, await self.storage()
        found = self._listings.get(url)
        if found is None:
            found = self._listings[url] = Listing(storage)
        return found

    def prepare(self) -> None:
        """Begin to read the list of conversations: whoever opens the page looks at it next."""
        if self._preparing is None:
            self._preparing = asyncio.get_running_loop().create_task(self._prepared())

    async def _prepared(self) -> None:
        with suppress(DragomanError):  # who asks for the list is told
            await (await self.listing()).total()

    def branches(self, storage: Storage) -> Branches:
        """What is known of the branches of its conversations."""
        return self._branches.setdefault(id(storage), Branches(storage))

    # --- answers that are coming in

    @contextmanager
    def running(self, run: PageRun) -> Generator[None]:
        """Know a run by its id while the block lasts."""
        self.runs[run.id] = run
        try:
            yield
        finally:
            del self.runs[run.id]

    def is_busy(self, id: str, branch: int) -> bool:
        """Whether an answer is coming in on a branch of a conversation."""
        return any(run.conversation == id and run.branch == branch for run in self.runs.values())

    async def stop_runs_of(self, id: str) -> None:
        """Stop the answers of a conversation."""
        for run in [each for each in self.runs.values() if each.conversation == id]:
            await run.stop()

    async def close(self) -> None:
        """Stop the runs, each keeping what it has heard, and let go of the store."""
        if self._preparing is not None:
            self._preparing.cancel()
            await asyncio.wait({self._preparing})
        for run in list(self.runs.values()):
            await run.stop()
        for storage in self._opened.values():
            await storage.close()


def page_of(gateway: Gateway) -> Page:
    """The page's state in a gateway."""
    if gateway.page is None:
        gateway.page = Page(gateway)
    return gateway.page
