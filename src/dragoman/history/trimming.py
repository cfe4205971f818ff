"""Cutting what a history sends, when it is sent and when it is saved."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from dragoman.errors import Conflict, ContextTooSmall, NotFound
from dragoman.history import windows
from dragoman.history.calling import Calls
from dragoman.history.config import ChatHistoryConfig
from dragoman.history.keeping import Keeper
from dragoman.history.pending import Pending
from dragoman.history.reported_tokens import usage_of
from dragoman.history.state import State
from dragoman.history.storage.protocol import Fork, Session
from dragoman.history.truncation import NOTHING_CUT, Callback, Cut, FitWindow, Strategy, truncate
from dragoman.history.truncation.enduring import enduring
from dragoman.model.collection import Messages
from dragoman.model.content import AnyPart
from dragoman.model.messages import Message
from dragoman.model.requests import AnyTool


class Trimmer:
    """What of a history is left out of its window."""

    def __init__(
        self, keeper: Keeper, config: ChatHistoryConfig, calls: Calls, state: State
    ) -> None:
        self._keeper = keeper
        self._config = config
        self._calls = calls
        self._state = state

    def forget(self, cut: Cut | None = None) -> None:
        """Begin anew: with what is stored, or with another cut."""
        self._state.cut = cut

    async def window(
        self, pending: Pending, size: int, tools: tuple[AnyTool, ...], system: tuple[AnyPart, ...]
    ) -> Messages:
        """The messages that fit into so many tokens."""
        messages, cut = await self._uncut(pending)
        limit = max(size - self._config.reserved_for_completion, 0)
        new = await self._truncated(messages, cut, limit, tools=tools, system=system)
        if new != cut:
            await self._calls.hook(self._config.before_truncate, cut.apply(messages))
            await self._keep(new, pending)
            await self._calls.hook(self._config.after_truncate, new.apply(messages))
        return new.apply(messages)

    async def pinned(self, pending: Pending) -> None:
        """Take into the window what has been pinned of what was left out of it."""
        _, cut = await self._found(pending)
        if not cut.first:
            return
        messages = pending.over(await self._keeper.stored(await self._keeper.session()))
        new = windows.with_pinned(cut, messages)
        if new is not cut:
            await self._keep(new, pending)

    async def saved(self) -> None:
        """Store the cut that was made before the messages were."""
        if self._state.cut is not None:
            await self._keep(self._state.cut, Pending())

    async def at_save(self, pending: Pending) -> None:
        """Cut the window; with `delete_truncated`, remove what was left out of the store."""
        if await self._fits_surely():
            return
        messages, cut = await self._uncut(pending)
        if not messages:
            return
        try:
            new = await self._truncated(messages, cut, self._config.limit)
        except ContextTooSmall:
            # Between turns nothing has to be sent yet. Seed 001 makes room all the same.
            if self._config.delete_truncated:
                await self._make_room(messages, cut)
            return
        if new == cut:
            return
        await self._calls.hook(self._config.before_truncate, cut.apply(messages))
        if self._config.delete_truncated:
            await self._remove_all_but(new.rest_of(messages).messages, messages)
        await self._keep(new, pending)
        await self._calls.hook(self._config.after_truncate, new.apply(messages))

    # --- cutting

    async def _truncated(self, messages: Messages, cut: Cut, limit: int, **sent: Any) -> Cut:
        config = self._config
        running = truncate(
            messages,
            limit=limit,
            strategy=self._strategy,
            cut=cut,
            counter=config.token_counter,
            config=config,
            **sent,
        )
        theirs = (config.strategy, config.truncation_callback, config.token_counter)
        if any(each is not None for each in theirs):
            return await self._calls.run(running)
        return await running

    @property
    def _strategy(self) -> Strategy:
        if self._config.truncation_callback is not None:
            return Callback(self._config.truncation_callback)
        return self._config.strategy or FitWindow()

    async def _found(self, pending: Pending) -> tuple[Session | None, Cut]:
        session = await self._keeper.session()
        if not pending:
            self._state.cut = None
        stored = windows.read(session, self._keeper.branch)
        return session, stored if self._state.cut is None else self._state.cut

    async def _uncut(self, pending: Pending) -> tuple[Messages, Cut]:
        session, cut = await self._found(pending)
        return await windows.uncut(self._keeper, session, pending, cut), cut

    async def _keep(self, cut: Cut, pending: Pending) -> None:
        if pending:
            self._state.cut = cut
            return
        self._state.cut = None
        window = windows.written(self._keeper.branch, cut) if cut != NOTHING_CUT else None
        with suppress(NotFound):  # somebody deleted the session: there is nothing to cut
            await self._keeper.storage.keep_window(self._keeper.identity, window)

    async def _fits_surely(self) -> bool:
        """Whether the latest usage says so: a long history need not be loaded to be sure."""
        if self._config.token_counter is not None:
            return False
        latest = await self._keeper.tail(1)
        used = usage_of(latest[0]) if latest else None
        return used is not None and 0 < used.total <= self._config.limit

    # --- removing

    async def _make_room(self, messages: Messages, cut: Cut) -> None:
        kept = enduring(messages)
        if len(kept) == len(messages):
            return
        await self._calls.hook(self._config.before_truncate, cut.apply(messages))
        await self._remove_all_but(kept, messages)
        await self._calls.hook(self._config.after_truncate, Messages.wrapping(kept))

    async def _remove_all_but(self, kept: Iterable[Message], messages: Messages) -> None:
        ids = {message.id for message in kept}
        surplus = [message.id for message in messages if message.id not in ids]
        if not (await self._removable(surplus))[0]:
            return
        await self._calls.hook(self._config.on_before_save)
        removed, version = await self._removable(surplus)
        with suppress(Conflict):  # a branch may have been made of them: the next save will see
            await self._keeper.rewrite({}, removed, version)
        await self._calls.hook(self._config.on_after_save)

    async def _removable(self, ids: list[str]) -> tuple[list[str], int]:
        """Those of the messages that no other branch goes through, at a version."""
        session = await self._keeper.session()
        if session is None or not session.forks:
            return ids if session is not None else [], self._keeper.version
        unshared = await self._unshared(session.forks)
        return [id for id in ids if id in unshared], session.version

    async def _unshared(self, forks: Iterable[Fork]) -> set[str]:
        """The ids of the branch's messages that no other branch goes through."""
        branch = self._keeper.branch
        shared = max((fork.at for fork in forks if fork.parent == branch), default=0)
        rows = await self._keeper.storage.rows(self._keeper.identity, branch=branch, after=shared)
        return {row.id for row in rows}
