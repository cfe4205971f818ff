"""The page's state while the gateway runs: its store, its lists, the runs in progress."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.agent.prompt_templates import templates_folder
from dragoman.errors import DragomanError
from dragoman.gateway.guard import is_loopback
from dragoman.gateway.page.branches import Branches
from dragoman.gateway.page.listing import Listing
from dragoman.gateway.page.relay import recover, running, stop_elsewhere
from dragoman.gateway.page.traffic import prepare as prepare_charts
from dragoman.gateway.state import Gateway
from dragoman.history.storage.protocol import MAIN, Session, Storage
from dragoman.history.storage_urls import open_storage

if TYPE_CHECKING:
    from dragoman.gateway.page.runs import PageRun

_IN_MEMORY = "memory:"
_OFF = "off"


class Page:
    """The page's state in one worker, created on first use."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._lock = asyncio.Lock()
        self._opened: dict[str | None, Storage] = {}  # by URL: a configuration reload may change it
        self._stores = AsyncExitStack()
        self._listings: dict[str | None, Listing] = {}
        self._preparing: asyncio.Task[None] | None = None
        self._branches: dict[int, Branches] = {}
        self.runs: dict[str, PageRun] = {}
        """The runs in progress, by id."""

    @property
    def url(self) -> str | None:
        """The URL of the store; None is the one that `dragoman chat` uses.

        If none is configured and the gateway serves other machines, conversations are kept in
        memory, so that remote users don't write to the account owner's personal store.
        """
        server = self._gateway.config.server
        if server.history is None and not is_loopback(server.host):
            return _IN_MEMORY
        return server.history

    @property
    def is_lasting(self) -> bool:
        """Whether conversations outlive the gateway."""
        return self.url != _IN_MEMORY

    @property
    def prompts(self) -> Path | None:
        """The folder of the prompt library; None: there is none.

        If none is configured, it is that of `dragoman templates`, but only if the gateway serves
        this machine alone: the account owner's prompts are not for remote users.
        """
        server = self._gateway.config.server
        if server.prompts is None:
            return templates_folder() if is_loopback(server.host) else None
        return None if server.prompts == _OFF else Path(server.prompts)

    async def storage(self) -> Storage:
        """Returns the open store."""
        url = self.url
        found = self._opened.get(url)
        if found is not None:
            return found
        async with self._lock:
            if url not in self._opened:
                self._opened[url] = await self._stores.enter_async_context(open_storage(url))
            return self._opened[url]

    async def listing(self) -> Listing:
        """Returns the list of conversations in the store."""
        url, storage = self.url, await self.storage()
        found = self._listings.get(url)
        if found is None:
            found = self._listings[url] = Listing(storage)
        return found

    def prepare(self) -> None:
        """Starts to load what takes longest, which the page may request next."""
        if self._preparing is None:
            self._preparing = asyncio.get_running_loop().create_task(self._prepared())

    async def _prepared(self) -> None:
        with suppress(DragomanError):  # the request for the list reports it
            await (await self.listing()).total()
        if self._gateway.traffic is not None:
            with suppress(DragomanError):
                await prepare_charts(self._gateway.traffic)

    def branches(self, storage: Storage) -> Branches:
        """Returns the branch cache of a store."""
        return self._branches.setdefault(id(storage), Branches(storage))

    # --- runs in progress

    def keep(self, run: PageRun, task: asyncio.Task[None]) -> None:
        """Registers a run until its task ends; it needs no reader."""
        self.runs[run.id] = run
        task.add_done_callback(lambda _: self.runs.pop(run.id, None))

    def run_on(self, id: str, branch: int) -> PageRun | None:
        """Returns the run that streams a response on a branch of a conversation."""
        own = (each for each in self.runs.values() if each.conversation == id)
        return next((each for each in own if each.branch == branch), None)

    async def run_at(self, id: str, branch: int) -> str | None:
        """Returns the id of the run on a branch of a conversation, also of another worker."""
        run = self.run_on(id, branch)
        if run is not None:
            return run.id
        return await running(await self.storage(), id, branch) if self.has_others else None

    async def recovered(self, session: Session, branch: int) -> Session:
        """Stores what a killed process left of an answer; returns the conversation as it is now."""
        if not self.keeps_drafts or self.run_on(session.identity.digest, branch) is not None:
            return session
        return await recover(await self.storage(), session, branch)

    @property
    def keeps_drafts(self) -> bool:
        """Whether another process could find what this one leaves behind."""
        return self.is_lasting or self.has_others

    @property
    def has_others(self) -> bool:
        """Whether the gateway has other workers, whose runs are found in the store."""
        return self._gateway.config.server.workers > 1

    async def stop_runs_of(self, session: Session) -> None:
        """Stops the runs of a conversation, also those of other workers."""
        id = session.identity.digest
        for run in [each for each in self.runs.values() if each.conversation == id]:
            await run.stop()
        if self.has_others:
            storage = await self.storage()
            branches = (MAIN, *(fork.number for fork in session.forks))
            await asyncio.gather(*(stop_elsewhere(storage, id, branch) for branch in branches))

    async def close(self) -> None:
        """Stops all runs, which keep what they received, and closes the store."""
        if self._preparing is not None:
            self._preparing.cancel()
            await asyncio.wait({self._preparing})
        for run in list(self.runs.values()):
            await run.stop()
        await self._stores.aclose()


def page_of(gateway: Gateway) -> Page:
    """Returns the page's state in a gateway."""
    if gateway.page is None:
        gateway.page = Page(gateway)
    return gateway.page
