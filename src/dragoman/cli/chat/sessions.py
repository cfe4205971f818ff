"""Sessions of chats: in the default store, or only in memory."""

from __future__ import annotations

from datetime import datetime
from secrets import token_hex

from dragoman.cli.exit_codes import USAGE, Ending
from dragoman.cli.history.naming import session_called
from dragoman.cli.history.stores import Place, sessions_of, storage_of
from dragoman.errors import NotFound
from dragoman.history.chat import ChatHistory
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.protocol import NO_MESSAGE, Filter, Session, Storage
from dragoman.model.collection import Messages
from dragoman.model.messages import Message
from dragoman.model.parts import Origin
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall

AGENT = "chat"


async def opened_history(
    store: Place, name: str | None, *, is_continued: bool, is_kept: bool
) -> ChatHistory:
    """The named session, the most recent, or a new one; the caller closes its store."""
    if not is_kept:
        return await ChatHistory.open(_named(name or _new_name()), "memory:")
    storage = storage_of(store)
    await storage.open()
    try:
        identity = await _latest(storage) if is_continued else await _meant(storage, name)
        return await ChatHistory.open(identity, storage)
    except BaseException:
        await storage.close()
        raise


def _named(name: str) -> SessionIdentity:
    return SessionIdentity(agent=AGENT, chat=name)


async def _meant(storage: Storage, name: str | None) -> SessionIdentity:
    """The chat with this name, else the session with it, else a new chat."""
    chat = _named(name or _new_name())
    if name is None or await storage.session(chat) is not None:
        return chat
    other = await session_called(storage, name)
    return chat if other is None else other.identity


def name_of(identity: SessionIdentity) -> str:
    """The name that `--session` takes."""
    if identity.chat is None or identity.agent is None:
        return identity.digest
    return identity.chat if identity.agent == AGENT else f"{identity.agent}/{identity.chat}"


async def opened_beside(history: ChatHistory, name: str | None) -> ChatHistory:
    """The named session, or a new one, in the same store as `history`."""
    return await ChatHistory.open(_named(name or _new_name()), history.storage)


async def latest_sessions(history: ChatHistory) -> list[Session]:
    """The chats in the same store, most recently written first."""
    return await sessions_of(history.storage, Filter(agent=AGENT))


def _new_name() -> str:
    # The time is for people; the digits distinguish two chats started in the same second.
    return f"{datetime.now():%Y-%m-%d-%H%M%S}-{token_hex(2)}"  # noqa: DTZ005 - theirs


async def _latest(storage: Storage) -> SessionIdentity:
    found = await sessions_of(storage, Filter(agent=AGENT))
    if not found:
        raise Ending(USAGE, "there is no stored chat to continue; leave out --continue")
    return found[0].identity


# --- going back


async def go_back_before(history: ChatHistory, id: str) -> None:
    """Switch to a new branch that ends before a message; the old branch is kept.

    `ChatHistory.fork` branches after a message, which is impossible before the first one.
    """
    row = await history.storage.row(history.identity, id)
    if row is None:
        raise NotFound(NO_MESSAGE)
    number = await history.storage.fork(history.identity, parent=row.branch, at=row.seq - 1)
    await history.switch(number)


def prompts(messages: Messages) -> list[Message]:
    """The user's messages, in order."""
    return [message for message in messages if message.role is Role.USER]


def last_exchange(messages: Messages) -> tuple[Message | None, Message | None]:
    """The last user message, and the last answer to it."""
    asked = answered = None
    for message in messages:
        if message.role is Role.USER:
            asked, answered = message, None
        elif message.role is Role.ASSISTANT and message.text:
            answered = message
    return asked, answered


def last_model(messages: Messages) -> str | None:
    """The model of the last answer as `provider:model`, if known."""
    for message in reversed([*messages]):
        if message.role is Role.ASSISTANT and (name := _model_of(message.origin)):
            return name
    return None


def _model_of(origin: Origin | None) -> str | None:
    if origin is None or origin.provider is None:
        return None
    if origin.provider == "echo":
        return "echo:"
    return f"{origin.provider}:{origin.model}" if origin.model else None


def waiting_calls(messages: Messages) -> tuple[ToolCall, ...]:
    """The calls of the last answer that have no result, if no message follows it."""
    answered: set[str] = set()
    for message in reversed([*messages]):
        if message.role is not Role.TOOL:
            return tuple(call for call in message.tool_calls if call.id not in answered)
        answered.update(result.call_id for result in message.tool_results)
    return ()
