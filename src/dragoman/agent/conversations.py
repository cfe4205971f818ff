"""Adapters through which a run reads and extends the caller's conversation.

Each run has its own adapter. A history of the caller is extended message by message; a list or
sequence of messages is never changed: the adapter keeps its own view.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from dragoman.errors import Conflict, NotFound
from dragoman.history.blocking import BlockingChatHistory
from dragoman.history.chat import ChatHistory
from dragoman.history.config import ChatHistoryConfig
from dragoman.history.hooks import check as check_hooks
from dragoman.history.model_lookups import window_of
from dragoman.history.stored_session import BEGUN
from dragoman.interop.reader import read_history
from dragoman.model import portal
from dragoman.model.collection import Messages
from dragoman.model.content import parts_from
from dragoman.model.conversation import ConversationHistory
from dragoman.model.frozen import EMPTY, freeze_mapping
from dragoman.model.messages import Message
from dragoman.model.requests import AnyTool
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall
from dragoman.model.value import expect

T = TypeVar("T")

_ATTEMPTS = 20
_TAIL_LENGTH = 8  # messages; most rounds are shorter
_TAKEN_OVER = (
    "another run is using this conversation and has taken over its pending tool calls; none of"
    " them was run here: read the history again when that run has ended"
)
_NO_MESSAGE = "there is no message with that id in the history"
_DEFAULT_WINDOW = ChatHistoryConfig().context_window


@runtime_checkable
class Conversation(Protocol):
    """A conversation as a run needs it."""

    @property
    def keeps_rounds(self) -> bool:
        """Whether a round is recorded before its tools run, and as they end."""
        ...

    async def window(self, model: str | None, tools: Iterable[Any], system: Any) -> Messages:
        """The messages to send to a model along with these tools and system prompt."""
        ...

    async def add(self, message: Message) -> Message:
        """Add a message, durably if the history is durable; returns it as stored."""
        ...

    async def replace(self, message: Message) -> Message:
        """Replace the message with the same id; raises `NotFound`."""
        ...


@runtime_checkable
class HasTail(Protocol):
    """A conversation whose last messages can be read without the rest."""

    async def tail(self, count: int) -> Messages:
        """The last messages."""
        ...


def conversation_of(history: Any, hooks: Mapping[str, Any] = EMPTY) -> Conversation:
    """The adapter for whatever the caller passes; None is an empty conversation.

    Accepts messages, anything with `to_messages()`, dicts in any dialect, a request body, a
    canonical document, a `ConversationHistory`, a `ChatHistory` or its blocking variant. `hooks`
    are called for the latter two, after their own (`ChatHistory.with_hooks`); the others ignore
    them.
    """
    if hooks:
        expect(hooks, Mapping, "the hooks of a history")
        check_hooks(hooks)
    if history is None or isinstance(history, Messages):
        return SentConversation(Messages() if history is None else history)
    if isinstance(history, (ChatHistory, BlockingChatHistory)):
        return _stored(history.with_hooks(**hooks) if hooks else history)
    if isinstance(history, ConversationHistory):
        return GrowingConversation(history)
    if isinstance(history, Conversation) and not isinstance(history, type):
        return history
    return SentConversation(read_history(history))


def _stored(history: ChatHistory | BlockingChatHistory) -> Conversation:
    if isinstance(history, ChatHistory):
        return KeptConversation(history)
    return BlockingConversation(history)


class SentConversation:
    """Messages that were passed in, and those added by this run."""

    __slots__ = ("_messages",)

    keeps_rounds = False

    def __init__(self, messages: Messages) -> None:
        self._messages = messages

    async def window(self, model: str | None, tools: Iterable[Any], system: Any) -> Messages:  # noqa: ARG002 - all of them
        """All messages."""
        return self._messages

    async def tail(self, count: int) -> Messages:
        """The last messages."""
        return self._messages[-count:]

    async def add(self, message: Message) -> Message:
        """Add a message to the run's own view."""
        self._messages = self._messages.append(message)
        return message

    async def replace(self, message: Message) -> Message:
        """Replace the message with the same id in the run's own view."""
        self._messages = _replaced(self._messages, message)
        return message


class GrowingConversation:
    """A `ConversationHistory`, whose policy decides what may be added."""

    __slots__ = ("_history",)

    keeps_rounds = False

    def __init__(self, history: ConversationHistory) -> None:
        self._history = history

    async def window(self, model: str | None, tools: Iterable[Any], system: Any) -> Messages:  # noqa: ARG002 - all of them
        """All messages."""
        return self._history.messages

    async def tail(self, count: int) -> Messages:
        """The last messages."""
        return self._history.messages[-count:]

    async def add(self, message: Message) -> Message:
        """Add a message; raises `OrderError` if the policy forbids it."""
        self._history.waive_system()  # the agent's system prompt is sent with each request
        self._history.add(message)
        return message

    async def replace(self, message: Message) -> Message:
        """Replace the message with the same id, if the policy allows it."""
        self._history.replace(message.id, message)
        return message


class SharedConversation(ABC):
    """A conversation in a store that other runs and programs may use at the same time.

    A call is recorded before its tool runs, and no call is run twice: whoever records it second
    gets a `Conflict`, and runs nothing.
    """

    __slots__ = ("_seen",)

    keeps_rounds = True

    def __init__(self) -> None:
        self._seen: int | None = None
        """The version that this run has read completely; None if others have written since."""

    async def add(self, message: Message) -> Message:
        """Add a message; durable on return, unless the history saves later.

        Raises `Conflict` if another run has recorded a result for one of its calls.
        """
        before = self._version
        claims = message.tool_results or begun_in(message)
        added = await (self._claimed(message) if claims else self._added(message))
        self._note(before + 1 if self._version > before else before)  # the same if saved later
        return added

    async def _claimed(self, message: Message) -> Message:
        """Add results or start calls, unless somebody else has; the store decides."""
        version = self._seen
        for _ in range(_ATTEMPTS):
            if version is not None:
                with suppress(Conflict):
                    return await self._added(message, version)
            version = self._version  # before reading: later writes are conflicts
            _expect_first(message, await self._messages())
        return await self._added(message, version)

    def _note(self, version: int) -> None:
        self._seen = version if self._version == version else None

    # --- the history

    @property
    @abstractmethod
    def _version(self) -> int: ...

    @abstractmethod
    async def _messages(self) -> Messages: ...

    @abstractmethod
    async def _added(self, message: Message, version: int | None = None) -> Message: ...


class KeptConversation(SharedConversation):
    """A `ChatHistory`: truncated to the model's window when sent, each message stored."""

    __slots__ = ("_history",)

    def __init__(self, history: ChatHistory) -> None:
        super().__init__()
        self._history = history

    @property
    def session(self) -> str:
        """The session's digest."""
        return self._history.identity.digest

    async def window(self, model: str | None, tools: Iterable[Any], system: Any) -> Messages:
        """The messages that fit the window."""
        before, room = self._version, _room(model, self._history.config)
        declared, told = _declared(tools), parts_from(system)
        window = await self._history.window(room, tools=declared, system=told)
        self._note(before)
        return window

    async def tail(self, count: int) -> Messages:
        """The last messages."""
        before, found = self._version, await self._history.tail(count)
        self._note(before)
        return found

    async def replace(self, message: Message) -> Message:
        """Replace the message with the same id."""
        return await self._history.replace(message.id, message)

    @property
    def _version(self) -> int:
        return self._history.version

    async def _messages(self) -> Messages:
        return await self._history.messages()

    async def _added(self, message: Message, version: int | None = None) -> Message:
        return await self._history.add(message, expected_version=version)


class BlockingConversation(SharedConversation):
    """A `BlockingChatHistory`. Its calls run on other threads: they may block, or run loops.

    A cancelled run waits for the current call to finish. If that was a write, it has then happened,
    and adding the same message again doesn't write it twice.
    """

    __slots__ = ("_cut_off", "_history")

    def __init__(self, history: BlockingChatHistory) -> None:
        super().__init__()
        self._history = history
        self._cut_off: dict[str, asyncio.Future[Message]] = {}

    @property
    def session(self) -> str:
        """The session's digest."""
        return self._history.identity.digest

    async def window(self, model: str | None, tools: Iterable[Any], system: Any) -> Messages:
        """The messages that fit the window."""
        before, room = self._version, _room(model, self._history.config)
        window = partial(self._history.window, tools=_declared(tools), system=parts_from(system))
        found = await _ended(_aside(window, room))
        self._note(before)
        return found

    async def tail(self, count: int) -> Messages:
        """The last messages."""
        before, found = self._version, await _ended(_aside(self._history.tail, count))
        self._note(before)
        return found

    async def replace(self, message: Message) -> Message:
        """Replace the message with the same id."""
        return await _ended(_aside(self._history.replace, message.id, message))

    @property
    def _version(self) -> int:
        return self._history.version

    async def _messages(self) -> Messages:
        return await _ended(_aside(self._history.messages))

    async def _added(self, message: Message, version: int | None = None) -> Message:
        earlier = self._cut_off.pop(message.id, None)
        if earlier is not None and await _succeeded(earlier):
            return earlier.result()
        running = _aside(partial(self._history.add, expected_version=version), message)
        try:
            return await _ended(running)
        except asyncio.CancelledError:
            self._cut_off[message.id] = running
            raise


async def last_round(conversation: Conversation, model: str) -> Messages:
    """The last messages, far enough back to find pending calls, whatever the total length.

    Nothing is truncated, and no hooks are called. Custom conversations may have no `tail`.
    """
    if not isinstance(conversation, HasTail):
        return await conversation.window(model, (), ())
    count = _TAIL_LENGTH
    while True:
        found = await conversation.tail(count)
        if len(found) < count or _waiting(found) is not None:
            return found
        count *= 4


def unanswered(messages: Sequence[Message]) -> tuple[ToolCall, ...]:
    """The calls of the last round that have no result, in order.

    Empty if other messages follow: the conversation has moved on, and a result would be out of
    place.
    """
    return _waiting(messages) or ()


def _waiting(messages: Sequence[Message]) -> tuple[ToolCall, ...] | None:
    """Like `unanswered`; None if that depends on earlier messages."""
    answered: set[str] = set()
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if message.role is Role.ASSISTANT:
            if calls := message.tool_calls:
                return tuple(call for call in calls if call.id not in answered)
            if place and messages[place - 1].role is not Role.ASSISTANT:  # else: a split answer
                return ()
        elif not message.tool_results and not begun_in(message):
            return ()
        answered.update(result.call_id for result in message.tool_results)
    return None


# --- started calls


def begun_in(message: Message) -> tuple[str, ...]:
    """The ids of the calls that a tool message records as started."""
    if message.role is not Role.TOOL or not message.metadata:
        return ()
    found = message.metadata.get(BEGUN, ())
    ids = found if isinstance(found, (list, tuple)) else ()  # anybody may write such metadata
    return tuple(id for id in ids if isinstance(id, str))


def with_begun(message: Message, ids: Sequence[str]) -> Message:
    """The tool message, recording that these calls start now."""
    return message.replace_unchecked(metadata=freeze_mapping({**message.metadata, BEGUN: ids}))


# --- shared helpers


def _expect_first(new: Message, messages: Sequence[Message]) -> None:
    """Raise if a result is for a call that has one, or a call starts that has already started.

    Some models reuse ids: then there may be as many results as calls with that id.
    """
    asked = Counter(call.id for message in messages for call in message.tool_calls)
    answered = Counter(result.call_id for message in messages for result in message.tool_results)
    begun = Counter(id for message in messages for id in begun_in(message))
    taken = [answered[result.call_id] >= max(asked[result.call_id], 1)
             for result in new.tool_results]  # fmt: skip
    taken += [max(answered[id], begun[id]) >= max(asked[id], 1) for id in begun_in(new)]
    if any(taken):
        raise Conflict(_TAKEN_OVER)


def _replaced(messages: Messages, message: Message) -> Messages:
    for place in range(len(messages) - 1, -1, -1):  # it is one of the last
        if messages[place].id == message.id:
            later = messages[place + 1 :]
            return messages[:place].append(message).extend(later)
    raise NotFound(_NO_MESSAGE)


class _Reader(NamedTuple):
    """A model, and the maximum tokens to send it; None: the limit of the history."""

    name: str | None
    context_window: int | None


def _room(model: str | None, config: ChatHistoryConfig) -> _Reader:
    """The tokens that the model accepts; an explicit limit also holds for larger models."""
    known = window_of(model or None)
    if known is None or config.context_window == _DEFAULT_WINDOW:
        return _Reader(model, known)
    return _Reader(model, min(known, config.context_window))


def _declared(tools: Iterable[Any]) -> list[AnyTool]:
    """The definitions of tools, which is the part that is sent."""
    given = tools.values() if isinstance(tools, Mapping) else tools
    return [getattr(tool, "definition", tool) for tool in given]


# --- blocking calls


def _aside(function: Callable[..., T], *arguments: Any) -> asyncio.Future[T]:
    return asyncio.wrap_future(portal.start_aside(function, *arguments))


async def _ended(running: asyncio.Future[T]) -> T:
    """The result of a call; if cancelled, only after it has ended. A second cancel is immediate."""
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await _succeeded(running)
        raise


async def _succeeded(running: asyncio.Future[Any]) -> bool:
    await asyncio.wait({running})
    return not running.cancelled() and running.exception() is None
