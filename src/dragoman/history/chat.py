"""A conversation that lasts: kept in a store, cut to what a model takes when it is sent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Iterable
from inspect import isawaitable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from dragoman.errors import ContextTooSmall, NotFound
from dragoman.history import outside, windows
from dragoman.history.branches import Branch, branches_of
from dragoman.history.config import ChatHistoryConfig, Hook
from dragoman.history.identity import SessionIdentity
from dragoman.history.keeping import PINNED, Damaged, Keeper, reported_usage
from dragoman.history.paths import read_path, stretches
from dragoman.history.pending import Pending
from dragoman.history.places import StoragePlace, storage_at
from dragoman.history.storage.protocol import NO_MESSAGE, Filter, Storage
from dragoman.history.truncation import (
    NOTHING_CUT,
    Callback,
    Cut,
    FitWindow,
    Strategy,
    truncate,
)
from dragoman.history.truncation.enduring import enduring
from dragoman.model.collection import Messages
from dragoman.model.content import AnyPart
from dragoman.model.messages import Message
from dragoman.model.requests import AnyTool, Request, Sampling
from dragoman.model.usage import Usage
from dragoman.model.value import expect

if TYPE_CHECKING:
    from dragoman.history.blocking import BlockingChatHistory


class ChatHistory:
    """The messages of one session, in order, on one of its branches.

    ```python
    history = await ChatHistory.open(SessionIdentity(chat="7"), storage="sqlite:///chats.db")
    async with history:
        await history.add(Message.user("Where is the Old Bridge?"))
        request = await history.to_wire("anthropic", model="claude-sonnet-4-5")
    ```

    With `autosave` (the default) every change is durable when its call returns; without, `save`
    writes them. Any number of histories may be open on one session, in any number of processes:
    reading sees what the others wrote.
    """

    def __init__(
        self,
        identity: SessionIdentity,
        storage: Storage,
        config: ChatHistoryConfig | None = None,
        *,
        owns_storage: bool = False,
    ) -> None:
        expect(identity, SessionIdentity, "the identity of a session")
        expect(config, (ChatHistoryConfig, type(None)), "the config of a chat history")
        self._config = config or ChatHistoryConfig()
        self._keeper = Keeper(identity, storage, store_meta=self._config.store_meta)
        self._owns_storage = owns_storage
        self._pending = Pending()
        self._cut: Cut | None = None
        self._grown = False
        self._shown_as: ChatHistory | BlockingChatHistory = self

    @classmethod
    async def open(
        cls,
        identity: SessionIdentity,
        storage: StoragePlace = None,
        config: ChatHistoryConfig | None = None,
    ) -> Self:
        """The history of a session, new or not; nothing is loaded until it is needed.

        `storage` is a URL, a backend, or a list of either (a chain); by default a SQLite file in
        the user's data directory. What is opened here is closed with the history; a backend that
        was handed in stays open.
        """
        place, owned = storage_at(storage)
        history = cls(identity, place, config, owns_storage=owned)
        await place.open()
        try:
            session = await history._keeper.session()
        except BaseException:
            await history.close()
            raise
        if session is not None:
            history._keeper.branch = session.active
        return history

    @classmethod
    def open_sync(
        cls,
        identity: SessionIdentity,
        storage: StoragePlace = None,
        config: ChatHistoryConfig | None = None,
    ) -> BlockingChatHistory:
        """As `open`, for programs without an event loop."""
        from dragoman.history.blocking import BlockingChatHistory

        return BlockingChatHistory.open(identity, storage, config)

    async def close(self) -> None:
        """Let go of the store. What was not saved (`autosave=False`) is gone."""
        if self._owns_storage:
            await self._keeper.storage.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:  # fmt: skip
        try:
            if kind is None:
                await self.save()
        finally:
            await self.close()

    # --- what it is

    @property
    def identity(self) -> SessionIdentity:
        """Which session it is."""
        return self._keeper.identity

    @property
    def config(self) -> ChatHistoryConfig:
        """How it behaves."""
        return self._config

    @property
    def storage(self) -> Storage:
        """Where it is kept."""
        return self._keeper.storage

    @property
    def branch(self) -> int:
        """The number of the branch it is on."""
        return self._keeper.branch

    @property
    def version(self) -> int:
        """The session's version as last seen; as `expected_version`, writes fail if it is not."""
        return self._keeper.version

    @property
    def is_dirty(self) -> bool:
        """Whether something has not been saved."""
        return bool(self._pending)

    @property
    def damaged(self) -> tuple[Damaged, ...]:
        """The stored messages that could not be read so far; everything else was loaded."""
        return tuple(self._keeper.damaged.values())

    @property
    def context_window(self) -> int:
        """Tokens that the model takes."""
        return self._config.context_window

    def exceeds_context_window(self, tokens: int) -> bool:
        """Whether that many tokens leave too little room for the answer."""
        return self._config.exceeds_context_window(tokens)

    def __repr__(self) -> str:
        return f"ChatHistory({self.identity!r}, {self.storage.name}, version {self.version})"

    # --- reading

    async def messages(self) -> Messages:
        """All messages of the branch."""
        session = await self._keeper.session()
        if session is None or self._keeper.is_current(session):
            return self._pending.over(await self._keeper.stored(session))
        await self._call(self._config.on_before_load)
        stored = await self._keeper.stored(session)
        await self._call(self._config.on_after_load)
        return self._pending.over(stored)

    async def tail(self, count: int) -> Messages:
        """The last messages; costs the same whatever the length of the history."""
        if self._pending:
            messages = await self.messages()
            return messages[max(len(messages) - count, 0) :]
        return Messages.wrapping(await self._keeper.tail(count)) if count > 0 else Messages()

    async def last(self) -> Message | None:
        """The last message; None where there is none."""
        return (await self.tail(1)).last

    async def message(self, id: str) -> Message:
        """One message by its id, on any branch; raises `NotFound`."""
        for found in (self._pending.added.get(id), self._pending.replaced.get(id)):
            if found is not None:
                return found
        if self._pending.cleared or id in self._pending.removed:
            raise NotFound(NO_MESSAGE)
        from dragoman.history.records import message_of

        return message_of((await self._keeper.row(id)).body)

    def __getitem__(self, id: str) -> Awaitable[Message]:
        """`await history[id]`: as `message`."""
        return self.message(id)

    async def __aiter__(self) -> AsyncIterator[Message]:
        for message in await self.messages():
            yield message

    async def count(self) -> int:
        """How many messages the branch holds."""
        if self._pending or self.branch:
            return len(await self.messages())
        return await self.storage.count(self.identity, self.branch)

    async def usage(self) -> Usage:
        """The usage of all messages of the session, summed up."""
        names = {field: getattr(self.identity, field) for field in self.identity.__struct_fields__}
        totals = await self.storage.totals("session", Filter(**names))
        return totals[0].usage if totals else Usage()

    # --- writing

    async def add(self, message: Any, *, expected_version: int | None = None) -> Message:
        """Add a message at the end; durable when this returns (`autosave`).

        Takes whatever `Message.from_any` takes, and returns the message as it is stored: under a
        new id where the session holds one with its id already. Raises `Conflict` where somebody
        else wrote since the expected version.
        """
        return (await self.extend([message], expected_version=expected_version))[0]

    async def extend(self, messages: Any, *, expected_version: int | None = None) -> Messages:
        """Add several messages; all or none."""
        given = [Message.from_any(message) for message in messages]
        if not given:
            return Messages()
        config = self._config
        if config.on_before_add is not None:
            for message in given:
                await self._call(config.on_before_add, message)
        added = await self._added(given, expected_version)
        self._grown = True
        if config.on_after_add is not None:
            try:
                for message in added:
                    await self._call(config.on_after_add, message)
            except BaseException:
                self._keeper.doubt(added)  # who is told of a failure will add them again
                raise
        return Messages.wrapping(added)

    async def _added(self, messages: list[Message], expected: int | None) -> list[Message]:
        if not self._config.autosave:
            self._pending.added.update((message.id, message) for message in messages)
            return messages
        await self._call(self._config.on_before_save)
        added = await self._keeper.append(messages, expected)
        await self._after_write(added)
        return added

    async def _after_write(self, added: Iterable[Message] = ()) -> None:
        try:
            await self._call(self._config.on_after_save)
        except BaseException:
            self._keeper.doubt(added)
            raise

    async def replace(
        self, id: str, message: Any, *, expected_version: int | None = None
    ) -> Message:
        """Put another message in the place of one; to keep the old one as well, `edit`."""
        new = Message.from_any(message).with_id(id)
        self._pending.replace(new)
        await self._autosave(expected_version)
        return new

    async def remove(self, id: str, *, expected_version: int | None = None) -> None:
        """Remove one message."""
        self._pending.remove(id)
        await self._autosave(expected_version)

    async def clear(self, *, expected_version: int | None = None) -> None:
        """Remove all messages and branches. A cleared session is empty, not absent."""
        self._pending.clear()
        self._cut = NOTHING_CUT
        await self._autosave(expected_version)

    async def delete(self) -> bool:
        """Remove the session itself; whether there was one."""
        self._pending, self._cut, self._keeper.branch = Pending(), None, 0
        return await self.storage.delete(self.identity)

    async def pin(self, id: str) -> Message:
        """Keep a message, and the turn it belongs to, in every window."""
        return await self.replace(id, (await self.message(id)).with_metadata(PINNED, value=True))

    async def unpin(self, id: str) -> Message:
        """Let a message go with its time again."""
        return await self.replace(id, (await self.message(id)).without_metadata(PINNED))

    async def save(self, *, expected_version: int | None = None) -> None:
        """Write what has not been written, and cut what no longer fits; clean, it does nothing."""
        if self._pending:
            await self._write(expected_version)
        if self._grown:
            await self._truncate_at_save()
            self._grown = False

    async def _autosave(self, expected: int | None) -> None:
        if not self._config.autosave:
            return
        try:
            await self._write(expected)
        finally:
            self._pending = Pending()  # a change that failed was told to have failed

    async def _write(self, expected: int | None) -> None:
        pending = self._pending
        await self._call(self._config.on_before_save)
        if pending.cleared:
            await self._keeper.clear(expected)
            expected = None if expected is None else self.version
            pending.cleared = False
        if pending.replaced or pending.removed:
            await self._keeper.rewrite(pending.replaced.values(), pending.removed, expected)
            expected = None if expected is None else self.version
            pending.replaced, pending.removed = {}, set()
        if pending.added:
            await self._keeper.append(list(pending.added.values()), expected)
        self._pending = Pending()
        await self._after_write()

    # --- branches

    async def fork(self, at_message: str) -> Branch:
        """Go on from an earlier message on a branch of its own; what came after it is kept.

        This history moves to the new branch, and so do those opened from now on.
        """
        await self.save()
        row = await self._keeper.row(at_message)
        return await self._forked(row.branch, row.seq)

    async def edit(self, id: str, message: Any) -> Message:
        """Say something else in the place of a message, on a new branch that goes on from there."""
        await self.save()
        row = await self._keeper.row(id)
        new = Message.from_any(message)
        await self._forked(row.branch, row.seq - 1)
        return await self.add(new if new.id != id else new.with_id(""))

    async def _forked(self, parent: int, at: int) -> Branch:
        number = await self.storage.fork(self.identity, parent=parent, at=at)
        self._move(number)
        return next(branch for branch in await self.branches() if branch.number == number)

    async def branches(self) -> list[Branch]:
        """All branches, the first first."""
        session = await self._keeper.session()
        return [] if session is None else await branches_of(self.storage, self.identity, session)

    async def path(self, leaf: str) -> Messages:
        """The messages from the first to this one, whichever branch it is on."""
        row = await self._keeper.row(leaf)
        path = stretches(await self._keeper.session(), row.branch, row.seq)
        return Messages.wrapping(
            self._keeper.decoded(await read_path(self.storage, self.identity, path))
        )

    async def switch(self, branch: int | Branch) -> None:
        """Go to another branch; histories opened from now on open there."""
        await self.save()
        number = branch.number if isinstance(branch, Branch) else branch
        await self.storage.activate(self.identity, number)
        self._move(number)

    def _move(self, branch: int) -> None:
        self._keeper.branch = branch
        self._cut = NOTHING_CUT

    # --- what to send

    async def window(
        self,
        model: str | int | outside.HasContextWindow | None = None,
        *,
        tools: Iterable[AnyTool] = (),
        system: Iterable[AnyPart] = (),
    ) -> Messages:
        """The messages to send: all that fit, whole turns, from the latest back.

        `model` says how many tokens fit: its name, a number, or anything with a
        `context_window`; the config's otherwise. Tools and system instructions that are sent
        beside the messages take their share. Raises `ContextTooSmall` where not even the last
        turn fits.
        """
        size = outside.window_of(model) or self._config.context_window
        limit = max(size - self._config.reserved_for_completion, 0)
        messages, cut = await self._uncut()
        new = await truncate(
            messages,
            limit=limit,
            strategy=self._strategy,
            cut=cut,
            tools=tuple(tools),
            system=tuple(system),
            counter=self._config.token_counter,
            config=self._config,
        )
        if new != cut:
            await self._call(self._config.before_truncate, cut.apply(messages))
            await self._keep(new)
            await self._call(self._config.after_truncate, new.apply(messages))
        return new.apply(messages)

    async def to_wire(
        self,
        dialect: str | outside.EncodesRequests,
        *,
        model: str | None = None,
        tools: Iterable[AnyTool] = (),
        system: Iterable[AnyPart] = (),
        **settings: Any,
    ) -> Any:
        """The window as a request in a dialect: an `Encoded`, with its losses.

        `settings` are further fields of `Request`, or of its `Sampling`: `max_tokens=500`.
        """
        encoder = outside.dialect_of(dialect)
        request = _request(settings).replace(model=model, tools=tuple(tools), system=tuple(system))
        messages = await self.window(model, tools=request.tools, system=request.system)
        return encoder.encode_request(request.replace(messages=tuple(messages)))

    @property
    def _strategy(self) -> Strategy:
        if self._config.truncation_callback is not None:
            return Callback(self._config.truncation_callback)
        return self._config.strategy or FitWindow()

    async def _uncut(self) -> tuple[Messages, Cut]:
        session = await self._keeper.session()
        cut = self._cut
        if cut is None or not self._pending:
            cut = windows.read(session, self.branch)
        return await windows.uncut(self._keeper, session, self._pending, cut), cut

    async def _keep(self, cut: Cut) -> None:
        self._cut = cut
        if not self._pending and self._keeper.version:
            window = windows.written(self.branch, cut)
            await self.storage.keep_window(self.identity, window)

    async def _truncate_at_save(self) -> None:
        """Cut the window; with `delete_truncated`, remove what was left out of the store."""
        if await self._fits_surely():
            return
        messages, cut = await self._uncut()
        if not messages:
            return
        try:
            new = await truncate(
                messages,
                limit=self._config.limit,
                strategy=self._strategy,
                cut=cut,
                counter=self._config.token_counter,
                config=self._config,
            )
        except ContextTooSmall:
            # Between turns nothing has to be sent yet. Seed 001 makes room all the same.
            if self._config.delete_truncated:
                await self._remove_all_but(enduring(messages), messages)
            return
        if new == cut:
            return
        await self._call(self._config.before_truncate, cut.apply(messages))
        if self._config.delete_truncated:
            await self._remove_all_but(new.rest_of(messages).messages, messages)
        await self._keep(new)
        await self._call(self._config.after_truncate, new.apply(messages))

    async def _fits_surely(self) -> bool:
        """Whether the latest usage says so: a long history need not be loaded to be sure."""
        if self._config.token_counter is not None:
            return False
        latest = await self.last()
        used = None if latest is None else latest.usage or reported_usage(latest)
        return used is not None and 0 < used.total <= self._config.limit

    async def _remove_all_but(self, kept: Iterable[Message], messages: Messages) -> None:
        ids = {message.id for message in kept}
        removed = await self._unshared(message.id for message in messages if message.id not in ids)
        if removed:
            await self._call(self._config.on_before_save)
            await self._keeper.rewrite((), removed, None)
            await self._after_write()

    async def _unshared(self, ids: Iterable[str]) -> list[str]:
        """Those of the messages that no other branch goes through."""
        session = await self._keeper.session()
        if session is None or not session.forks:
            return list(ids)
        rows = [await self._keeper.row(id) for id in ids]
        forked = [fork.at for fork in session.forks if fork.parent == self.branch]
        return [r.id for r in rows if r.branch == self.branch and r.seq > max(forked, default=0)]

    async def _call(self, hook: Hook | None, *arguments: Any) -> None:
        if hook is None:
            return
        result = hook(*arguments, self._shown_as)
        if isawaitable(result):
            if self._shown_as is not self and self.storage.is_blocking:
                from dragoman.model import portal

                portal.run(_awaited(result))
            else:
                await result


def _request(settings: dict[str, Any]) -> Request:
    drawn = {key: settings[key] for key in settings if key in Sampling.__struct_fields__}
    others = {key: settings[key] for key in settings if key not in drawn}
    request = Request().replace(**others)
    return request.replace(sampling=request.sampling.replace(**drawn)) if drawn else request


async def _awaited(result: Awaitable[Any]) -> Any:
    return await result
