"""`BlockingChatHistory`: the blocking version of `ChatHistory`."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar

from dragoman.history import model_lookups
from dragoman.history.branches import Branch
from dragoman.history.chat import ChatHistory
from dragoman.history.config import ChatHistoryConfig, Hook
from dragoman.history.identity import SessionIdentity
from dragoman.history.live_windows import Window
from dragoman.history.storage.protocol import Storage
from dragoman.history.storage_urls import StoragePlace, storage_at
from dragoman.history.stored_session import DamagedMessage
from dragoman.model import portal
from dragoman.model.collection import Messages
from dragoman.model.content import AnyPart
from dragoman.model.messages import Message
from dragoman.model.requests import AnyTool
from dragoman.model.usage import Usage

T = TypeVar("T")


class BlockingChatHistory:
    """A `ChatHistory` without `await`, for scripts, notebooks and threads.

    >>> with ChatHistory.open_sync(SessionIdentity(chat="7"), storage="memory:") as history:
    ...     _ = history.add(Message.user("Where is the Old Bridge?"))
    ...     len(history)
    1

    With SQLite, files and memory it runs in the calling thread; with PostgreSQL and Redis, on a
    background event loop. Each method works like the one of `ChatHistory`.
    """

    def __init__(self, history: ChatHistory) -> None:
        self._history = history
        # The calls of a blocking store never suspend: an event loop would only add overhead.
        self._run_inline = history.storage.is_blocking
        history._show_as(self)  # pyright: ignore[reportPrivateUsage] # same package

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        if not self._run_inline:
            return portal.run(coroutine)
        try:
            return portal.run_inline(coroutine)
        except RecursionError:
            coroutine.close()  # the call itself may have failed: then nothing awaited it
            raise

    @classmethod
    def open(
        cls,
        identity: SessionIdentity,
        storage: StoragePlace = None,
        config: ChatHistoryConfig | Mapping[str, Any] | None = None,
    ) -> Self:
        """See `ChatHistory.open`."""
        place, owned = storage_at(storage, blocking=True)
        twin = cls(ChatHistory(identity, place, config, owns_storage=owned))
        twin._run(twin._history._begin())  # pyright: ignore[reportPrivateUsage] # as above
        return twin

    def close(self) -> None:
        """See `ChatHistory.close`."""
        self._run(self._history.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self._run(self._history.__aexit__(kind, error, trace))

    def with_hooks(self, **hooks: Hook | None) -> Self:
        """See `ChatHistory.with_hooks`."""
        return type(self)(self._history.with_hooks(**hooks))

    @property
    def identity(self) -> SessionIdentity:
        """The identity of the session."""
        return self._history.identity

    @property
    def config(self) -> ChatHistoryConfig:
        """The settings of the history."""
        return self._history.config

    @property
    def storage(self) -> Storage:
        """The storage backend."""
        return self._history.storage

    @property
    def branch(self) -> int:
        """The number of the current branch."""
        return self._history.branch

    @property
    def version(self) -> int:
        """The session's version, as last read."""
        return self._history.version

    @property
    def is_dirty(self) -> bool:
        """Whether there are unsaved changes."""
        return self._history.is_dirty

    @property
    def damaged(self) -> tuple[DamagedMessage, ...]:
        """The stored messages that could not be read so far."""
        return self._history.damaged

    @property
    def context_window(self) -> int:
        """The size of the context window, in tokens."""
        return self._history.context_window

    def exceeds_context_window(self, tokens: int) -> bool:
        """See `ChatHistory.exceeds_context_window`."""
        return self._history.exceeds_context_window(tokens)

    def __repr__(self) -> str:
        return f"Blocking{self._history!r}"

    def messages(self) -> Messages:
        """See `ChatHistory.messages`."""
        return self._run(self._history.messages())

    def tail(self, count: int) -> Messages:
        """See `ChatHistory.tail`."""
        return self._run(self._history.tail(count))

    @property
    def last(self) -> Message | None:
        """The last message, or `None`."""
        return self._run(self._history.last())

    def message(self, id: str) -> Message:
        """See `ChatHistory.message`."""
        return self._run(self._history.message(id))

    def __getitem__(self, id: str) -> Message:
        return self.message(id)

    def __iter__(self) -> Iterator[Message]:
        return iter(self.messages())

    def __len__(self) -> int:
        return self.count()

    def __bool__(self) -> bool:
        return True  # an empty history is still truthy

    def count(self) -> int:
        """See `ChatHistory.count`."""
        return self._run(self._history.count())

    def usage(self) -> Usage:
        """See `ChatHistory.usage`."""
        return self._run(self._history.usage())

    def add(self, message: Any, *, expected_version: int | None = None) -> Message:
        """See `ChatHistory.add`."""
        return self._run(self._history.add(message, expected_version=expected_version))

    def extend(self, messages: Any, *, expected_version: int | None = None) -> Messages:
        """See `ChatHistory.extend`."""
        return self._run(self._history.extend(messages, expected_version=expected_version))

    def replace(self, id: str, message: Any, *, expected_version: int | None = None) -> Message:
        """See `ChatHistory.replace`."""
        return self._run(self._history.replace(id, message, expected_version=expected_version))

    def remove(self, id: str, *, expected_version: int | None = None) -> None:
        """See `ChatHistory.remove`."""
        self._run(self._history.remove(id, expected_version=expected_version))

    def clear(self, *, expected_version: int | None = None) -> None:
        """See `ChatHistory.clear`."""
        self._run(self._history.clear(expected_version=expected_version))

    def delete(self) -> bool:
        """See `ChatHistory.delete`."""
        return self._run(self._history.delete())

    def pin(self, id: str) -> Message:
        """See `ChatHistory.pin`."""
        return self._run(self._history.pin(id))

    def unpin(self, id: str) -> Message:
        """See `ChatHistory.unpin`."""
        return self._run(self._history.unpin(id))

    def save(self, *, expected_version: int | None = None) -> None:
        """See `ChatHistory.save`."""
        self._run(self._history.save(expected_version=expected_version))

    def fork(self, at_message: str) -> Branch:
        """See `ChatHistory.fork`."""
        return self._run(self._history.fork(at_message))

    def edit(self, id: str, message: Any) -> Message:
        """See `ChatHistory.edit`."""
        return self._run(self._history.edit(id, message))

    def branches(self) -> list[Branch]:
        """See `ChatHistory.branches`."""
        return self._run(self._history.branches())

    def path(self, leaf: str) -> Messages:
        """See `ChatHistory.path`."""
        return self._run(self._history.path(leaf))

    def switch(self, branch: int | Branch) -> None:
        """See `ChatHistory.switch`."""
        self._run(self._history.switch(branch))

    def window(
        self,
        model: str | int | model_lookups.HasContextWindow | None = None,
        *,
        tools: Iterable[AnyTool] = (),
        system: Iterable[AnyPart] = (),
    ) -> Window:
        """See `ChatHistory.window`."""
        return self._run(self._history.window(model, tools=tools, system=system))

    def to_wire(
        self,
        dialect: str | model_lookups.EncodesRequests,
        *,
        model: str | None = None,
        **settings: Any,
    ) -> Any:
        """See `ChatHistory.to_wire`."""
        return self._run(self._history.to_wire(dialect, model=model, **settings))
