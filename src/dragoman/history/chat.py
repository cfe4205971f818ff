"""`ChatHistory`: a stored conversation, truncated to a model's context window when sent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from dragoman.errors import NotFound, StoreError
from dragoman.history import arguments
from dragoman.history.branching import Branching
from dragoman.history.config import ChatHistoryConfig, Hook
from dragoman.history.hooks import Calls
from dragoman.history.hooks import with_hooks as joined_hooks
from dragoman.history.identity import SessionIdentity
from dragoman.history.live_windows import State
from dragoman.history.records import message_in
from dragoman.history.sending import Sending
from dragoman.history.storage.protocol import NO_MESSAGE, Filter, Storage, conflict
from dragoman.history.storage_urls import StoragePlace, storage_at
from dragoman.history.stored_session import PINNED, DamagedMessage, Keeper
from dragoman.history.trimming import Trimmer
from dragoman.history.unsaved_changes import Pending, SaveLock
from dragoman.model.collection import Messages
from dragoman.model.ids import new_id
from dragoman.model.messages import Message
from dragoman.model.usage import Usage
from dragoman.model.value import expect

if TYPE_CHECKING:
    from dragoman.history.blocking import BlockingChatHistory

_NOT_REPLACED = (
    "a message to be replaced has been removed by another writer; all other changes were saved"
)


class ChatHistory(Branching, Sending):
    """The messages of a session, in order, on one of its branches.

    ```python
    async with ChatHistory(SessionIdentity(chat="7"), "sqlite:///chats.db") as history:
        await history.add(Message.user("Where is the Old Bridge?"))
        request = await history.to_wire("anthropic", model="claude-sonnet-4-5")
    ```

    With `autosave` (the default), every change is durable when its call returns; otherwise `save`
    writes the changes. Any number of histories may be open on one session, in any number of
    processes; reads include what the others wrote.

    `storage` is a URL, a backend, or a list of either (a chain). The default is a SQLite file in
    the user's data directory. `async with` opens the history, and saves and closes it at the end;
    `await ChatHistory.open(...)` opens it without. A backend that you pass in stays open. Messages
    are loaded lazily. `ChatHistory.open_sync(...)` returns the same history without `await`.
    """

    def __init__(
        self,
        identity: SessionIdentity,
        storage: StoragePlace = None,
        config: ChatHistoryConfig | Mapping[str, Any] | None = None,
        *,
        owns_storage: bool | None = None,
    ) -> None:
        expect(identity, SessionIdentity, "the identity of a session")
        self._config = ChatHistoryConfig.of(config)
        self._storage, is_made_here = storage_at(storage)
        owned = is_made_here if owns_storage is None else owns_storage
        self._state = State(owns_storage=owned)
        self._keeper = Keeper(
            identity, self._storage, store_meta=self._config.store_meta,
            accepts_damaged=self._config.accept_damaged,
        )  # fmt: skip
        self._calls = Calls(self)
        self._save_lock = SaveLock()
        self._trimmer = Trimmer(self._keeper, self._config, self._calls, self._state)

    @classmethod
    async def open(
        cls,
        identity: SessionIdentity,
        storage: StoragePlace = None,
        config: ChatHistoryConfig | Mapping[str, Any] | None = None,
    ) -> Self:
        """Opens the history of a session without `async with`; call `close` when done.

        Raises `Corrupt` if the session is encrypted, and messages in it were altered or removed
        without its keys: `accept_damaged` in the config opens what is intact.
        """
        history = cls(identity, storage, config)
        await history._begin()
        return history

    def _show_as(self, twin: BlockingChatHistory) -> None:
        """Makes hooks receive the blocking history that wraps this one."""
        is_inline = self.storage.is_blocking
        self._calls.shown, self._calls.way = twin, "inline" if is_inline else "on the loop"
        self._save_lock.inline = is_inline

    async def _begin(self) -> None:
        try:
            await self._storage.open()
            session = await self._keeper.session()
            await self._keeper.expect_untouched()
        except GeneratorExit:
            raise
        except BaseException:
            with suppress(StoreError):  # the first error is the one to report
                await self.close()
            raise
        self._state.is_open = True
        if session is not None:
            self._keeper.branch = session.active

    @classmethod
    def open_sync(
        cls,
        identity: SessionIdentity,
        storage: StoragePlace = None,
        config: ChatHistoryConfig | Mapping[str, Any] | None = None,
    ) -> BlockingChatHistory:
        """Like `open`, for programs without an event loop."""
        from dragoman.history.blocking import BlockingChatHistory

        return BlockingChatHistory.open(identity, storage, config)

    async def close(self) -> None:
        """Closes the storage. Unsaved changes (`autosave=False`) are lost."""
        self._keeper.is_closed = True
        if not self._state.owns_storage or not self._keeper.is_in_own_process:
            return
        self._state.owns_storage = False  # shared with histories made by `with_hooks`
        try:
            await self._storage.close()
        except BaseException:
            self._state.owns_storage = True
            raise

    async def __aenter__(self) -> Self:
        if not self._state.is_open:
            await self._begin()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:  # fmt: skip
        try:
            if kind is None and not self._keeper.is_closed:
                await self.save()
        finally:
            await self.close()

    def with_hooks(self, **hooks: Hook | None) -> Self:
        """Returns the same history with additional hooks, called after the existing ones.

        ```python
        watched = history.with_hooks(on_after_add=lambda message, history: log(message.id))
        ```

        Messages, unsaved changes, branch and storage are shared: closing one history closes both.
        Any notification hook of `ChatHistoryConfig` can be added. It is called for operations on
        the returned history only.
        """
        twin = copy(self)
        twin._config = joined_hooks(self._config, hooks)
        twin._calls = Calls(twin)
        twin._trimmer = Trimmer(self._keeper, twin._config, twin._calls, self._state)
        return twin

    # --- properties

    @property
    def _pending(self) -> Pending:
        return self._state.pending

    @property
    def identity(self) -> SessionIdentity:
        """The identity of the session."""
        return self._keeper.identity

    @property
    def config(self) -> ChatHistoryConfig:
        """The settings of the history."""
        return self._config

    @property
    def storage(self) -> Storage:
        """The storage backend."""
        return self._storage

    @property
    def branch(self) -> int:
        """The number of the current branch."""
        return self._keeper.branch

    @property
    def version(self) -> int:
        """The session's version, as last read; pass it as `expected_version` to avoid conflicts."""
        return self._keeper.version

    @property
    def is_dirty(self) -> bool:
        """Whether there are unsaved changes."""
        return bool(self._pending)

    @property
    def damaged(self) -> tuple[DamagedMessage, ...]:
        """The stored messages that could not be read so far; all others were loaded.

        In an encrypted session they raise `Corrupt`, unless the config says `accept_damaged`.
        """
        return tuple(self._keeper.damaged.values())

    @property
    def context_window(self) -> int:
        """The size of the context window, in tokens."""
        return self._config.context_window

    def exceeds_context_window(self, tokens: int) -> bool:
        """Whether this many tokens leave too little room for the response."""
        return self._config.exceeds_context_window(tokens)

    def __repr__(self) -> str:
        return f"ChatHistory({self.identity!r}, {self.storage.name}, version {self.version})"

    # --- reading

    async def messages(self) -> Messages:
        """All messages of the branch."""
        session = await self._keeper.session()
        if session is None or self._keeper.is_current(session):
            return self._pending.over(await self._keeper.stored(session))
        await self._calls.hook(self._config.on_before_load)
        stored = await self._keeper.stored(session)
        await self._calls.hook(self._config.on_after_load)
        return self._pending.over(stored)

    async def tail(self, count: int) -> Messages:
        """The last messages; the cost does not depend on the length of the history."""
        number = arguments.number_of(count, "the number of messages")
        if not number:
            return Messages()
        stored = await self._keeper.tail(number + len(self._pending.removed))
        found = self._pending.over(stored)
        return found[max(len(found) - number, 0) :]

    async def last(self) -> Message | None:
        """The last message, or `None`."""
        return (await self.tail(1)).last

    async def message(self, id: str) -> Message:
        """A message by its id, on any branch; raises `NotFound`."""
        arguments.id_of(id)
        for found in (self._pending.added.get(id), self._pending.replaced.get(id)):
            if found is not None:
                return found
        if self._pending.knows(id):
            raise NotFound(NO_MESSAGE)
        return message_in(await self._keeper.row(id))

    def __getitem__(self, id: str) -> Awaitable[Message]:
        """Same as `message`: `await history[id]`."""
        return self.message(id)

    # Because of `history[id]`, Python would otherwise treat the history as a sequence, and
    # `list(history)` would never end.
    __iter__ = None
    __contains__ = None

    async def __aiter__(self) -> AsyncIterator[Message]:
        for message in await self.messages():
            yield message

    async def count(self) -> int:
        """The number of messages on the branch."""
        if self._pending or self.branch:
            return len(await self.messages())
        return await self._keeper.storage.count(self.identity, self.branch)

    async def usage(self) -> Usage:
        """The total usage of all messages of the session."""
        names = {field: getattr(self.identity, field) for field in self.identity.__struct_fields__}
        totals = await self._keeper.storage.totals("session", Filter(**names))
        return totals[0].usage if totals else Usage()

    # --- writing

    async def add(self, message: Any, *, expected_version: int | None = None) -> Message:
        """Adds a message at the end; durable when this returns (`autosave`).

        Accepts what `Message.from_any` accepts, and returns the message as stored: with a new id if
        its id is already in use. Raises `Conflict` if the session has changed since the expected
        version.
        """
        given = [Message.from_any(message)]
        return (await self._extended(given, arguments.version_of(expected_version)))[0]

    async def extend(self, messages: Any, *, expected_version: int | None = None) -> Messages:
        """Adds several messages, or none of them if that fails.

        Accepts what `Messages.from_any` accepts; a single text or dict is one message.
        """
        given = list(Messages.from_any(messages))
        expected = arguments.version_of(expected_version)
        return Messages.wrapping(await self._extended(given, expected) if given else ())

    async def _extended(self, given: list[Message], expected: int | None) -> list[Message]:
        await self._before_add(given)
        await self._before_adding()
        added = await self._kept(given, expected)
        await self._after_adding(added)
        await self._after_add(added)
        return added

    async def _before_add(self, messages: Sequence[Message]) -> None:
        if self._config.on_before_add is not None:
            for message in messages:
                await self._calls.hook(self._config.on_before_add, message)

    def _kept(self, messages: Sequence[Message], expected: int | None) -> Awaitable[list[Message]]:
        if self._config.autosave:
            return self._keeper.append(messages, expected)
        return self._put_by(messages, expected)

    async def _before_adding(self) -> None:
        if self._config.autosave:
            await self._calls.hook(self._config.on_before_save)

    async def _after_adding(self, added: Sequence[Message]) -> None:
        self._state.has_grown = True
        if self._config.autosave:
            await self._after_write(added)

    async def _expect(self, version: int | None) -> None:
        """Raises if the history is unusable, or the session is not at this version."""
        self._keeper.expect_usable()
        if version is not None:
            await self._keeper.session()
            if self.version != version:
                raise conflict(version, self.version)

    async def _put_by(self, messages: Sequence[Message], expected: int | None) -> list[Message]:
        """Keeps messages until `save`, with the ids that they will have there."""
        await self._expect(expected)
        given = [self._keeper.as_stored(message) for message in messages]
        taken = {message.id for message in given if await self._is_stored(message.id)}
        added: dict[str, Message] = {}
        for message in given:
            is_again = self._keeper.doubts(message.id)  # a retry after a reported failure
            is_pending = message.id in self._pending.added and not is_again
            if is_pending or message.id in added or message.id in taken:
                message = message.with_id(new_id())  # noqa: PLW2901 - the same message again
            added[message.id] = message
        self._pending.added.update(added)
        return list(added.values())

    async def _is_stored(self, id: str) -> bool:
        pending = self._pending
        if pending.cleared or id in pending.removed or self._keeper.doubts(id):
            return False
        return await self._keeper.storage.row(self.identity, id) is not None

    async def _after_write(self, added: Iterable[Message] = ()) -> None:
        try:
            await self._calls.hook(self._config.on_after_save)
        except BaseException:
            self._keeper.doubt(added)  # the caller sees a failure and may add them again
            raise

    async def _after_add(self, added: Sequence[Message]) -> None:
        if self._config.on_after_add is None:
            return
        try:
            for message in added:
                await self._calls.hook(self._config.on_after_add, message)
        except BaseException:
            self._keeper.doubt(added)
            raise

    async def replace(
        self, id: str, message: Any, *, expected_version: int | None = None
    ) -> Message:
        """Replaces a message in place; use `edit` to keep the old one."""
        arguments.id_of(id)
        new = self._keeper.as_stored(Message.from_any(message).with_id(id))
        expected = arguments.version_of(expected_version)
        changes = await self._to_change(id, expected)
        changes.replace(new)
        await self._autosaved(changes, expected)
        return new

    async def remove(self, id: str, *, expected_version: int | None = None) -> None:
        """Removes a message."""
        arguments.id_of(id)
        expected = arguments.version_of(expected_version)
        changes = await self._to_change(id, expected)
        hiding = await self._trimmer.hiding(self._pending, id)
        changes.remove(id)
        await self._autosaved(changes, expected)
        await self._trimmer.removed(self._pending, hiding)

    async def _to_change(self, id: str, expected: int | None) -> Pending:
        """Where to record a change: in changes that are saved at once, or in those until `save`."""
        if self._config.autosave:
            return Pending()
        await self._expect(expected)
        if not self._pending.knows(id):
            await self._keeper.row(id)  # raises if there is none
        return self._pending

    async def clear(self, *, expected_version: int | None = None) -> None:
        """Removes all messages and branches. The session still exists, but is empty."""
        expected = arguments.version_of(expected_version)
        if not self._config.autosave:
            await self._expect(expected)
        changes = Pending() if self._config.autosave else self._pending
        changes.clear()
        self._trimmer.forget()
        await self._autosaved(changes, expected)

    async def delete(self) -> bool:
        """Deletes the session; returns whether it existed."""
        was_there = await self._keeper.delete()
        self._state.pending = Pending()
        self._trimmer.forget()
        return was_there

    async def pin(self, id: str) -> Message:
        """Keeps a message, and the turn it belongs to, in every window."""
        found = await self.message(id)
        pinned = await self.replace(id, found.with_metadata(PINNED, value=True))
        await self._trimmer.pinned(self._pending)
        return pinned

    async def unpin(self, id: str) -> Message:
        """Makes a message subject to truncation again."""
        return await self.replace(id, (await self.message(id)).without_metadata(PINNED))

    async def save(self, *, expected_version: int | None = None) -> None:
        """Writes unsaved changes; with `delete_truncated`, deletes what no longer fits.

        Raises `NotFound`, after saving everything else, if a message to be replaced has been
        removed by another writer.
        """
        expected = arguments.version_of(expected_version)
        self._keeper.expect_usable()
        async with self._save_lock.held():
            if self._pending:
                await self._write(self._pending, expected)
            await self._trimmer.saved()
            if self._state.has_grown:
                await self._trim()

    async def _trim(self) -> None:
        self._state.has_grown = False
        try:
            await self._trimmer.at_save(self._pending)
        except BaseException:
            self._state.has_grown = True
            raise

    async def _autosaved(self, changes: Pending, expected: int | None) -> None:
        if self._config.autosave:
            await self._write(changes, expected, strict=True)

    async def _write(self, pending: Pending, expected: int | None, *, strict: bool = False) -> None:
        """Writes changes, and drops each once written; `strict` raises if a message is missing."""
        await self._calls.hook(self._config.on_before_save)
        if pending.cleared:
            cleared = pending.cleared
            await self._keeper.clear(expected)
            pending.did_clear(cleared)
            expected = None if expected is None else self.version
        lost = False
        if pending.replaced or pending.removed:
            replaced, removed = dict(pending.replaced), set(pending.removed)
            gone = await self._keeper.rewrite(replaced, removed, expected)
            pending.did_rewrite(replaced, removed)
            expected = None if expected is None else self.version
            if strict and gone:
                raise NotFound(NO_MESSAGE)
            lost = not gone.isdisjoint(replaced)
        if pending.added:
            added = dict(pending.added)
            await self._keeper.append(added.values(), expected)
            pending.did_append(added)
        await self._after_write()
        if lost:
            raise NotFound(_NOT_REPLACED)
