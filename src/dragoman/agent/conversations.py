"""What an agent's run reads and grows, whatever the caller keeps conversations in.

A run has an adapter of its own. Where the caller's history can grow, it does, message by message;
a list or a sequence of messages is never changed: the adapter has its own view.
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
from dragoman.wire.inputs.reader import read_history

T = TypeVar("T")

_ATTEMPTS = 20
_SOME = 8  # messages: most rounds are shorter
_TAKEN = (
    "another run is at this conversation and has taken over calls that waited for their results;"
    " none of them was run here: read the history again when that run has ended"
)
_NO_MESSAGE = "there is no message with that id in the history"
_USUAL_WINDOW = ChatHistoryConfig().context_window


@runtime_checkable
class Conversation(Protocol):
    """A conversation, as far as a run needs one."""

    @property
    def keeps_rounds(self) -> bool:
        """Whether a round is written down before its tools run, and as they end."""
        ...

    async def window(self, model: str | None, tools: Iterable[Any], system: Any) -> Messages:
        """The messages to send to a model, beside these tools and instructions."""
        ...

    async def add(self, message: Message) -> Message:
        """Add a message, durably where the history is durable; returns it as it is kept."""
        ...

    async def replace(self, message: Message) -> Message:
        """Put a message in the place of the one with its id; raises `NotFound`."""
        ...


@runtime_checkable
class HasTail(Protocol):
    """A conversation whose end can be read alone."""

    async def tail(self, count: int) -> Messages:
        """The last messages."""
        ...


def conversation_of(history: Any, hooks: Mapping[str, Any] = EMPTY) -> Conversation:
    """The conversation in whatever the caller has; None is an empty one.

    Messages, anything with `to_messages()`, dicts in any dialect, a request body, a document of
    ours, a `ConversationHistory`, a `ChatHistory` or its blocking twin. `hooks` are called by the
    latter two, after their own (`ChatHistory.with_hooks`); the others have none.
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
    """Messages that were handed in, and what this run has added to them."""

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
        """Put a message in the place of the one with its id, in the run's own view."""
        self._messages = _replaced(self._messages, message)
        return message


class GrowingConversation:
    """A `ConversationHistory`, whose policy says what may be added."""

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
        """Add a message; raises `OrderError` where the policy does not allow it."""
        self._history.waive_system()  # the agent's instructions go with each request
        self._history.add(message)
        return message

    async def replace(self, message: Message) -> Message:
        """Put a message in the place of the one with its id, if the policy allows it there."""
        self._history.replace(message.id, message)
        return message


class SharedConversation(ABC):
    """A conversation in a store, where other runs, and other programs, may be at it as well.

    That a call begins is written down before its tool runs, and no call is anybody's twice: who
    comes second with a result for it is told so, and nothing is run.
    """

    __slots__ = ("_seen",)

    keeps_rounds = True

    def __init__(self) -> None:
        self._seen: int | None = None
        """The version that this run knows all of; None: somebody else has written as well."""

    async def add(self, message: Message) -> Message:
        """Add a message; durable when this returns, unless the history saves later.

        Raises `Conflict` where another run has written down a result for one of its calls.
        """
        before = self._version
        claims = message.tool_results or begun_in(message)
        added = await (self._claimed(message) if claims else self._added(message))
        self._note(before + 1 if self._version > before else before)  # as before: it is saved later
        return added

    async def _claimed(self, message: Message) -> Message:
        """Add results, or begin calls, unless somebody else has; decided by the store."""
        version = self._seen
        for _ in range(_ATTEMPTS):
            if version is not None:
                with suppress(Conflict):
                    return await self._added(message, version)
            version = self._version  # before reading: whatever is written later is a conflict
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
    """A `ChatHistory`: cut to what the model takes when it is sent, each message stored."""

    __slots__ = ("_history",)

    def __init__(self, history: ChatHistory) -> None:
        super().__init__()
        self._history = history

    @property
    def session(self) -> str:
        """Which session it is."""
        return self._history.identity.digest

    async def window(self, model: str | None, tools: Iterable[Any], system: Any) -> Messages:
        """The messages that fit."""
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
        """Put a message in the place of the one with its id."""
        return await self._history.replace(message.id, message)

    @property
    def _version(self) -> int:
        return self._history.version

    async def _messages(self) -> Messages:
        return await self._history.messages()

    async def _added(self, message: Message, version: int | None = None) -> Message:
        return await self._history.add(message, expected_version=version)


class BlockingConversation(SharedConversation):
    """A `BlockingChatHistory`. Its calls run aside: they may block, and call what waits for them.

    A cancelled run waits for the call it is in. What was being written is written then, and adding
    it again, which the caller can't know, does not write it twice.
    """

    __slots__ = ("_cut_off", "_history")

    def __init__(self, history: BlockingChatHistory) -> None:
        super().__init__()
        self._history = history
        self._cut_off: dict[str, asyncio.Future[Message]] = {}

    @property
    def session(self) -> str:
        """Which session it is."""
        return self._history.identity.digest

    async def window(self, model: str | None, tools: Iterable[Any], system: Any) -> Messages:
        """The messages that fit."""
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
        """Put a message in the place of the one with its id."""
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
    """The last messages, as far back as tells which calls wait: whatever the conversation's length.

    Nothing is cut, and no hook is called. A conversation of one's own may have no `tail`.
    """
    if not isinstance(conversation, HasTail):
        return await conversation.window(model, (), ())
    count = _SOME
    while True:
        found = await conversation.tail(count)
        if len(found) < count or _waiting(found) is not None:
            return found
        count *= 4


def unanswered(messages: Sequence[Message]) -> tuple[ToolCall, ...]:
    """The calls of the last round that have no result, in order.

    None where somebody has spoken since: then the conversation has gone on without them, and a
    result would stand in the wrong place.
    """
    return _waiting(messages) or ()


def _waiting(messages: Sequence[Message]) -> tuple[ToolCall, ...] | None:
    """As `unanswered`; None where that depends on what is before these messages."""
    answered: set[str] = set()
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if message.role is Role.ASSISTANT:
            if calls := message.tool_calls:
                return tuple(call for call in calls if call.id not in answered)
            if place and messages[place - 1].role is not Role.ASSISTANT:  # else: one answer in two
                return ()
        elif not message.tool_results and not begun_in(message):
            return ()
        answered.update(result.call_id for result in message.tool_results)
    return None


# --- calls that were begun


def begun_in(message: Message) -> tuple[str, ...]:
    """The ids of the calls that a tool message says were begun when it was written."""
    if message.role is not Role.TOOL or not message.metadata:
        return ()
    found = message.metadata.get(BEGUN, ())
    ids = found if isinstance(found, (list, tuple)) else ()  # anybody may write such a thing
    return tuple(id for id in ids if isinstance(id, str))


def with_begun(message: Message, ids: Sequence[str]) -> Message:
    """A tool message that says of these calls that they begin now."""
    return message.replace_unchecked(metadata=freeze_mapping({**message.metadata, BEGUN: ids}))


# --- what the adapters have in common


def _expect_first(new: Message, messages: Sequence[Message]) -> None:
    """Raise where a result is for a call that has one, or a call begins that has begun.

    Some models use an id again: as many results as calls have it, then all of them are answered.
    """
    asked = Counter(call.id for message in messages for call in message.tool_calls)
    answered = Counter(result.call_id for message in messages for result in message.tool_results)
    begun = Counter(id for message in messages for id in begun_in(message))
    taken = [answered[result.call_id] >= max(asked[result.call_id], 1)
             for result in new.tool_results]  # fmt: skip
    taken += [max(answered[id], begun[id]) >= max(asked[id], 1) for id in begun_in(new)]
    if any(taken):
        raise Conflict(_TAKEN)


def _replaced(messages: Messages, message: Message) -> Messages:
    for place in range(len(messages) - 1, -1, -1):  # it is one of the last
        if messages[place].id == message.id:
            later = messages[place + 1 :]
            return messages[:place].append(message).extend(later)
    raise NotFound(_NO_MESSAGE)


class _Reader(NamedTuple):
    """A model, and how many tokens it is sent at most; None: as many as the history says."""

    name: str | None
    context_window: int | None


def _room(model: str | None, config: ChatHistoryConfig) -> _Reader:
    """Tokens that the model takes; a limit that somebody has set holds for larger models too."""
    known = window_of(model or None)
    if known is None or config.context_window == _USUAL_WINDOW:
        return _Reader(model, known)
    return _Reader(model, min(known, config.context_window))


def _declared(tools: Iterable[Any]) -> list[AnyTool]:
    """The definitions of tools, which is what is sent of them."""
    given = tools.values() if isinstance(tools, Mapping) else tools
    return [getattr(tool, "definition", tool) for tool in given]


# --- blocking calls


def _aside(function: Callable[..., T], *arguments: Any) -> asyncio.Future[T]:
    return asyncio.wrap_future(portal.start_aside(function, *arguments))


async def _ended(running: asyncio.Future[T]) -> T:
    """What comes of a call; cancelled, only when it has ended. Cancelled again, at once."""
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await _succeeded(running)
        raise


async def _succeeded(running: asyncio.Future[Any]) -> bool:
    await asyncio.wait({running})
    return not running.cancelled() and running.exception() is None
