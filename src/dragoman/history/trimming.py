"""`Trimmer`: truncates the windows of a history, when they are sent and when it is saved."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from dragoman.errors import Conflict, ContextTooSmall, NotFound, StoreError
from dragoman.history import remembered_cuts
from dragoman.history.config import ChatHistoryConfig
from dragoman.history.hooks import Calls
from dragoman.history.live_windows import Live, State, Window, shown
from dragoman.history.remembered_cuts import Key
from dragoman.history.reported_tokens import usage_of
from dragoman.history.storage.protocol import Fork, Session
from dragoman.history.stored_session import Keeper
from dragoman.history.truncation import NOTHING_CUT, Callback, Cut, FitWindow, Strategy
from dragoman.history.truncation.cut import Room, enduring
from dragoman.history.truncation.truncating import acts_when_exceeded, truncate_into
from dragoman.history.unsaved_changes import Pending
from dragoman.model.collection import Messages
from dragoman.model.content import AnyPart
from dragoman.model.messages import Message
from dragoman.model.requests import AnyTool

_log = logging.getLogger("dragoman.history")


class Trimmer:
    """Decides which messages are omitted from the windows of a history."""

    def __init__(
        self, keeper: Keeper, config: ChatHistoryConfig, calls: Calls, state: State
    ) -> None:
        self._keeper = keeper
        self._config = config
        self._calls = calls
        self._state = state

    def forget(self) -> None:
        """Drops unsaved cuts and cached windows."""
        self._state.cuts.clear()
        self._state.live.clear()

    async def window(
        self,
        pending: Pending,
        model: Any,
        size: int,
        tools: tuple[AnyTool, ...],
        system: tuple[AnyPart, ...],
    ) -> Window:
        """The messages that fit into `size` tokens, for a model."""
        session = await self._keeper.session()
        limit = max(size - self._config.reserved_for_completion, 0)
        key = Key.of(self._keeper.branch, model, limit)
        room = self._room(key, limit, tools, system)
        live = self._cached_window(session, pending, key)
        window = live.fitting(room) if live is not None and self._is_predictable else None
        if window is not None:
            return window
        if live is not None:
            messages, start = live.rest, live.cut
        else:
            messages, start = await self._uncut(session, pending, key)
        new = await self._cut(messages, start, room)
        if new != start:
            await self._calls.hook(self._config.before_truncate, start.apply(messages))
            await self._try_to_keep(pending, {key: new})
            await self._calls.hook(self._config.after_truncate, new.apply(messages))
        found, at = new.apply(messages), new.rest_of(messages).at
        if session is not None and not pending:
            live = Live(new, found, at, session, self._keeper.life, self._state.sizes)
            self._remember(key, live, moved=new != start)
        return shown(found, new, at)

    async def pinned(self, pending: Pending) -> None:
        """Adds pinned messages to windows that omit them."""
        session = await self._keeper.session()
        remembered = self._cuts(session, pending)
        own = {k: cut for k, cut in remembered.items() if k.branch == self._keeper.branch}
        if not own:
            return
        messages = pending.over(await self._keeper.stored(session))
        new = {key: remembered_cuts.with_pinned(cut, messages) for key, cut in own.items()}
        changed = {key: cut for key, cut in new.items() if cut is not own[key]}
        if changed:
            await self._keep(pending, changed)

    async def hiding(self, pending: Pending, id: str) -> dict[Key, Cut]:
        """The cuts that omit a message, as they are once it has been removed."""
        session = await self._keeper.session()
        found = self._cuts(session, pending)
        return {
            key: remembered_cuts.without_one(cut)
            for key, cut in found.items()
            if await remembered_cuts.hides(self._keeper, session, pending, key, cut, id)
        }

    async def removed(self, pending: Pending, changed: dict[Key, Cut]) -> None:
        """Keeps the number of omitted messages right after one of them was removed."""
        if changed:
            await self._try_to_keep(pending, changed)

    async def saved(self) -> None:
        """Stores the cuts that were made before the messages were stored, or while that failed."""
        made = dict(self._state.cuts)
        if made and await self._try_to_keep(Pending(), made):
            for key, cut in made.items():
                if self._state.cuts.get(key) is cut:
                    del self._state.cuts[key]

    async def at_save(self, pending: Pending) -> None:
        """With `delete_truncated`, deletes the messages that the config's window omits.

        A `truncation_callback` is called here too. Otherwise, windows are cut when they are sent.
        """
        deletes = self._config.delete_truncated
        if not deletes and self._config.truncation_callback is None:
            return
        if await self._fits_by_usage():
            return
        session = await self._keeper.session()
        key = Key.of(self._keeper.branch, None, self._config.limit)
        messages, start = await self._uncut(session, pending, key)
        if not messages:
            return
        try:
            new = await self._cut(messages, start, self._room(key, self._config.limit))
        except ContextTooSmall:
            # Between turns nothing has to be sent yet. Surplus messages are deleted all the same.
            if deletes:
                await self._make_room(session, pending, start)
            return
        # A window may omit messages that are still stored: delete them now.
        kept = new.rest_of(messages).messages
        surplus = await self._surplus(session, pending, kept) if deletes else []
        if new == start and not surplus:
            return
        await self._calls.hook(self._config.before_truncate, start.apply(messages))
        # The notes are all that is left of deleted messages: stored first, and for every window.
        made = {key: new, Key(key.branch): new} if deletes else {key: new}
        await self._keep(pending, made)
        await self._remove(surplus)
        await self._calls.hook(self._config.after_truncate, new.apply(messages))

    # --- remembered cuts

    def _cuts(self, session: Session | None, pending: Pending) -> dict[Key, Cut]:
        """The stored cuts, and those that will be stored."""
        stored = {} if pending.cleared else self._state.remembered(session)
        return {**stored, **self._state.cuts}

    def _cached_window(self, session: Session | None, pending: Pending, key: Key) -> Live | None:
        """The cached window with the changes since, if they are known.

        The cost depends on the changes, not on the length of the history.
        """
        live = self._state.live.get(key)
        if live is None or session is None or pending:
            return None
        if not self._is_up_to_date(live, session, key) or not live.follow(self._keeper, session):
            self._state.live.pop(key, None)
            return None
        return live

    def _is_up_to_date(self, live: Live, session: Session, key: Key) -> bool:
        """Whether the cut has not been changed by another writer."""
        if live.windows == session.windows:
            return True
        remembered = self._state.remembered(session)
        if remembered.get(key, NOTHING_CUT) != live.cut or Key(key.branch) in remembered:
            return False
        live.windows = session.windows
        return True

    @property
    def _is_predictable(self) -> bool:
        """Whether a window that fits according to reports and estimates is sent unchanged."""
        return self._config.token_counter is None and acts_when_exceeded(self._strategy)

    def _remember(self, key: Key, live: Live, *, moved: bool) -> None:
        if moved:
            live.windows = self._state.written
        self._state.live.pop(key, None)
        self._state.live[key] = live
        if len(self._state.live) > remembered_cuts.MAX_CUTS:
            del self._state.live[next(iter(self._state.live))]

    async def _uncut(
        self, session: Session | None, pending: Pending, key: Key
    ) -> tuple[Messages, Cut]:
        """The messages that a window is made from, and the cut previously made from them."""
        remembered = self._cuts(session, pending)
        own = remembered.get(key)
        if own is not None:
            messages = await remembered_cuts.uncut(self._keeper, session, pending, own)
            if own.place_in(messages) is not None:
                return Messages.wrapping(own.rest_of(messages).messages), own
        messages = pending.over(await self._keeper.stored(session))
        left = remembered_cuts.of_deleted(remembered, session, key.branch)
        return messages, NOTHING_CUT if left is None else remembered_cuts.uncovered(left, messages)

    async def _try_to_keep(self, pending: Pending, made: dict[Key, Cut]) -> bool:
        """Like `_keep`. If the store fails, the window is sent all the same, and kept here."""
        try:
            await self._keep(pending, made)
        except StoreError as error:
            _log.warning("the cut of a window was not stored, and may be computed again: %s", error)
            self._state.cuts.update(made)
            return False
        return True

    async def _keep(self, pending: Pending, made: dict[Key, Cut]) -> None:
        """Stores cuts; with concurrent writers, the last one wins."""
        if pending:
            self._state.cuts.update(made)
            return
        with suppress(NotFound):  # the session was deleted: there is nothing to cut
            remembered = self._state.remembered(await self._keeper.session())
            for key, cut in made.items():
                remembered = remembered_cuts.with_cut(remembered, key, cut)
            self._state.written = remembered_cuts.written(remembered)
            await self._keeper.storage.keep_windows(self._keeper.identity, self._state.written)

    # --- truncation

    def _room(
        self,
        key: Key,
        limit: int,
        tools: tuple[AnyTool, ...] = (),
        system: tuple[AnyPart, ...] = (),
    ) -> Room:
        config = self._config
        sizes = self._state.sizes
        return Room(limit, tools, system, config.token_counter, config, key.model, sizes)

    async def _cut(self, messages: Messages, start: Cut, room: Room) -> Cut:
        running = truncate_into(room, messages, self._strategy, start)
        config = self._config
        theirs = (config.strategy, config.truncation_callback, config.token_counter)
        if any(each is not None for each in theirs):
            return await self._calls.run(running)
        return await running

    @property
    def _strategy(self) -> Strategy:
        if self._config.truncation_callback is not None:
            return Callback(self._config.truncation_callback)
        return self._config.strategy or FitWindow()

    async def _fits_by_usage(self) -> bool:
        """Whether the latest usage proves that it fits, without loading a long history."""
        if self._config.token_counter is not None:
            return False
        latest = await self._keeper.tail(1)
        used = usage_of(latest[0]) if latest else None
        return used is not None and 0 < used.total <= self._config.limit

    # --- deletion

    async def _make_room(self, session: Session | None, pending: Pending, cut: Cut) -> None:
        messages = pending.over(await self._keeper.stored(session))
        kept = enduring(messages)
        surplus = await self._surplus(session, pending, kept)
        if len(kept) == len(messages):
            return
        await self._calls.hook(self._config.before_truncate, cut.apply(messages))
        await self._remove(surplus)
        await self._calls.hook(self._config.after_truncate, Messages.wrapping(kept))

    async def _surplus(
        self, session: Session | None, pending: Pending, kept: Iterable[Message]
    ) -> list[str]:
        """The ids of deletable messages that are not among the kept ones."""
        ids = {message.id for message in kept}
        messages = pending.over(await self._keeper.stored(session))
        found = [message.id for message in messages if message.id not in ids]
        return (await self._removable(found))[0]

    async def _remove(self, surplus: list[str]) -> None:
        if not surplus:
            return
        await self._calls.hook(self._config.on_before_save)
        removed, version = await self._removable(surplus)
        with suppress(Conflict):  # a branch may have been created from them: the next save will see
            await self._keeper.rewrite({}, removed, version)
        await self._calls.hook(self._config.on_after_save)

    async def _removable(self, ids: list[str]) -> tuple[list[str], int]:
        """Those messages that no other branch contains, and the version this applies to."""
        session = await self._keeper.session()
        if session is None or not session.forks:
            return ids if session is not None else [], self._keeper.version
        unshared = await self._unshared(session.forks)
        return [id for id in ids if id in unshared], session.version

    async def _unshared(self, forks: Iterable[Fork]) -> set[str]:
        """The ids of the branch's messages that no other branch contains."""
        branch = self._keeper.branch
        shared = max((fork.at for fork in forks if fork.parent == branch), default=0)
        rows = await self._keeper.storage.rows(self._keeper.identity, branch=branch, after=shared)
        return {row.id for row in rows}
