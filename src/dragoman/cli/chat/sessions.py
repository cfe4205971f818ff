"""Where a chat is kept: a session of the default store, or nowhere but in memory."""

from __future__ import annotations

from datetime import datetime
from secrets import token_hex

from dragoman.cli.endings import USAGE, Ending
from dragoman.cli.history.stores import sessions_of
from dragoman.errors import NotFound
from dragoman.history.chat import ChatHistory
from dragoman.history.identity import SessionIdentity
from dragoman.history.places import storage_at
from dragoman.history.storage.protocol import NO_MESSAGE, Filter
from dragoman.model.collection import Messages
from dragoman.model.messages import Message
from dragoman.model.parts import Origin
from dragoman.model.roles import Role

AGENT = "chat"


async def opened_history(
    store: str | None, name: str | None, *, is_continued: bool, is_kept: bool
) -> ChatHistory:
    """The session of that name, the latest one, or a new one."""
    if not is_kept:
        return await ChatHistory.open(_named(name or _new_name()), "memory:")
    if is_continued:
        return await ChatHistory.open(await _latest(store), store)
    return await ChatHistory.open(_named(name or _new_name()), store)


def _named(name: str) -> SessionIdentity:
    return SessionIdentity(agent=AGENT, chat=name)


def _new_name() -> str:
    # The time is for people; the digits keep two chats of one second apart.
    return f"{datetime.now():%Y-%m-%d-%H%M%S}-{token_hex(2)}"  # noqa: DTZ005 - theirs


async def _latest(store: str | None) -> SessionIdentity:
    storage, _ = storage_at(store)
    await storage.open()
    try:
        found = await sessions_of(storage, Filter(agent=AGENT))
    finally:
        await storage.close()
    if not found:
        raise Ending(USAGE, "there is no chat yet to go on with: leave out --continue")
    return found[0].identity


# --- going back


async def go_back_before(history: ChatHistory, id: str) -> None:
    """Go on from before a message, on a branch of its own; the other way is kept.

    `ChatHistory.fork` goes on after a message; before the first one there is none.
    """
    row = await history.storage.row(history.identity, id)
    if row is None:
        raise NotFound(NO_MESSAGE)
    number = await history.storage.fork(history.identity, parent=row.branch, at=row.seq - 1)
    await history.switch(number)


def prompts(messages: Messages) -> list[Message]:
    """What the user said, in order."""
    return [message for message in messages if message.role is Role.USER]


def last_exchange(messages: Messages) -> tuple[Message | None, Message | None]:
    """What the user said last, and the last that was answered to it."""
    asked = answered = None
    for message in messages:
        if message.role is Role.USER:
            asked, answered = message, None
        elif message.role is Role.ASSISTANT and message.text:
            answered = message
    return asked, answered


def last_model(messages: Messages) -> str | None:
    """The model that spoke last, as `provider:model`, as far as its answer tells."""
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
