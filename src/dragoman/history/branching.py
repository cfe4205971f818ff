"""Branches of a history: continue from an earlier message, and keep what came after it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from typing import Any

from dragoman.errors import NotFound, StoreError
from dragoman.history import arguments
from dragoman.history.branches import Branch, branches_of, read_path, stretches
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.protocol import NO_MESSAGE
from dragoman.history.stored_session import Keeper
from dragoman.history.trimming import Trimmer
from dragoman.history.unsaved_changes import Pending
from dragoman.model.collection import Messages
from dragoman.model.messages import Message


class Branching(ABC):
    """A history that can be forked; `ChatHistory` implements the abstract methods."""

    _keeper: Keeper
    _trimmer: Trimmer

    @property
    @abstractmethod
    def _pending(self) -> Pending: ...

    @property
    @abstractmethod
    def identity(self) -> SessionIdentity:
        """The identity of the session."""

    @property
    @abstractmethod
    def branch(self) -> int:
        """The number of the current branch."""

    @abstractmethod
    async def messages(self) -> Messages:
        """All messages of the branch."""

    @abstractmethod
    async def save(self) -> None:
        """Writes unsaved changes."""

    @abstractmethod
    async def _before_add(self, messages: Sequence[Message]) -> None: ...

    @abstractmethod
    async def _before_adding(self) -> None: ...

    @abstractmethod
    def _kept(
        self, messages: Sequence[Message], expected: int | None
    ) -> Awaitable[list[Message]]: ...

    @abstractmethod
    async def _after_adding(self, added: Sequence[Message]) -> None: ...

    @abstractmethod
    async def _after_add(self, added: Sequence[Message]) -> None: ...

    async def fork(self, at_message: str) -> Branch:
        """Starts a new branch after an earlier message; the messages after it are kept.

        This history moves to the new branch, and histories opened later start on it.
        """
        arguments.id_of(at_message)
        await self.save()
        row = await self._keeper.row(at_message)
        before = self.branch
        try:
            number = await self._forked(row.branch, row.seq)
        except GeneratorExit:
            raise
        except BaseException:  # also when cancelled: the branch may have been created
            await self._back_to(before)
            raise
        return Branch(number, at_message, at_message, is_active=True)

    async def edit(self, id: str, message: Any) -> Message:
        """Replaces a message on a new branch that starts there; the original is kept."""
        arguments.id_of(id)
        new = Message.from_any(message)
        new = new if new.id != id else new.with_id("")
        await self.save()
        row = await self._keeper.row(id)
        await self._before_add([new])  # before forking: a veto leaves no branch behind
        await self._before_adding()
        before = self.branch
        try:
            await self._forked(row.branch, row.seq - 1)
            added = await self._kept([new], None)
        except GeneratorExit:
            raise
        except BaseException:
            await self._back_to(before)
            raise
        await self._after_adding(added)
        await self._after_add(added)
        return added[0]

    async def _forked(self, parent: int, at: int) -> int:
        number = await self._keeper.storage.fork(self.identity, parent=parent, at=at)
        self._move(number)
        await self._keeper.session()  # forking increments the version
        return number

    async def _back_to(self, branch: int) -> None:
        """Returns to a branch after a failure; the new branch stays, empty."""
        self._move(branch)
        with suppress(StoreError):
            await self._keeper.storage.activate(self.identity, branch)

    async def branches(self) -> list[Branch]:
        """All branches, the main branch first."""
        session = await self._keeper.session()
        return (
            []
            if session is None
            else await branches_of(self._keeper.storage, self.identity, session)
        )

    async def path(self, leaf: str) -> Messages:
        """The messages from the first one to this one, on any branch."""
        arguments.id_of(leaf)
        pending = self._pending
        if leaf in pending.added:
            messages = await self.messages()
            place = next(i for i, message in enumerate(messages) if message.id == leaf)
            return messages[: place + 1]
        if leaf in pending.removed or pending.cleared:
            raise NotFound(NO_MESSAGE)
        row = await self._keeper.row(leaf)
        path = stretches(await self._keeper.session(), row.branch, row.seq)
        rows = await read_path(self._keeper.storage, self.identity, path)
        return Messages.wrapping(pending.of_stored(self._keeper.decoded(rows)))

    async def switch(self, branch: int | Branch) -> None:
        """Moves to another branch; histories opened later start on it."""
        number = arguments.branch_of(branch)
        await self.save()
        await self._keeper.storage.activate(self.identity, number)
        self._move(number)
        await self._keeper.session()  # with encryption, switching increments the version

    def _move(self, branch: int) -> None:
        self._keeper.move(branch)
        self._trimmer.forget()
