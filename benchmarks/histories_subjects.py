"""Histories of two lengths each, ours and the peers': what is appended to and read from."""

from __future__ import annotations

import json
import warnings
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from time import time
from typing import Any, NamedTuple

from benchmarks.histories_places import POSTGRES, REDIS, prefix, schema
from benchmarks.histories_turns import Batch, each, each_blocking
from dragoman import ChatHistory, Message, SessionIdentity
from dragoman.history import Session, Storage
from dragoman.history.records import body_of
from dragoman.history.storage.protocol import Row

LONG, SHORT, TAIL = 100_000, 1_000, 50
APPENDS = 250  # often enough for what is done only now and then to be in every batch
READINGS = 5
_FEW = 10
_numbers = count()


class Subject(NamedTuple):
    """What is done to one library's histories on one backend."""

    append_to_empty: Batch
    append_to_long: Batch
    read_short: Batch
    read_long: Batch


Opening = Callable[[], AbstractAsyncContextManager[Subject]]


def text(number: int) -> str:
    """What a message says; about as much as people do."""
    return f"This is message number {number}, and it asks whether to take an umbrella today."


def messages(number: int = APPENDS) -> list[Message]:
    """New messages of ours."""
    return [Message.user(text(n)) for n in range(number)]


def new_session() -> SessionIdentity:
    """One that nobody has seen."""
    return SessionIdentity(agent="benchmark", chat=str(next(_numbers)))


async def filled(storage: Storage, length: int) -> SessionIdentity:
    """A session of so many messages."""
    session = new_session()
    rows = [
        Row(message.id, body_of(message), time(), seq=seq)
        for seq, message in enumerate(messages(length), 1)
    ]
    await storage.restore(Session(session, length, length, time(), time()), rows)
    return session


async def ours(storage: Storage, other: Storage) -> Subject:
    """Ours: the long history in one open store, the short and the empty ones in another."""
    long, short = await filled(storage, LONG), await filled(other, SHORT)

    async def append_to_empty() -> float:
        history = await ChatHistory.open(new_session(), other)
        await history.add("The first one makes the session.")
        return await each(history.add, messages)()

    history = await ChatHistory.open(long, storage)
    return Subject(
        append_to_empty,
        each(history.add, messages),
        each(partial(_read, other), lambda: [short] * READINGS),
        each(partial(_read, storage), lambda: [long] * READINGS),
    )


async def _read(storage: Storage, session: SessionIdentity) -> None:
    history = await ChatHistory.open(session, storage)
    assert len(await history.tail(TAIL)) == TAIL


# --- LangChain


def _langchain(new: Callable[[str], Any], fill: Callable[[Any, list[Any]], object]) -> Subject:
    """Its histories: made with an id, they have `add_message` and `messages`."""
    from langchain_core.messages import HumanMessage

    for length in (SHORT, LONG):
        fill(new(str(length)), [HumanMessage(text(n)) for n in range(length)])

    def read(length: int) -> None:
        assert len(new(str(length)).messages[-TAIL:]) == TAIL

    def humans() -> list[Any]:
        return [HumanMessage(text(n)) for n in range(_FEW)]

    async def append_to_empty() -> float:
        history = new(f"empty {next(_numbers)}")
        history.add_message(HumanMessage("The first one."))
        return await each_blocking(history.add_message, humans)()

    return Subject(
        append_to_empty,
        each_blocking(new(str(LONG)).add_message, humans),
        each_blocking(read, lambda: [SHORT] * READINGS),
        each_blocking(read, lambda: [LONG]),
    )


@asynccontextmanager
async def langchain_sqlite() -> AsyncGenerator[Subject]:
    """SQLChatMessageHistory on a file."""
    with TemporaryDirectory() as folder:
        yield _langchain_sql(f"sqlite:///{folder}/histories.db")


@asynccontextmanager
async def langchain_postgres() -> AsyncGenerator[Subject]:
    """SQLChatMessageHistory on PostgreSQL."""
    from psycopg import AsyncConnection

    async with schema() as name:
        async with await AsyncConnection.connect(POSTGRES, autocommit=True) as connection:
            await connection.execute(f'CREATE SCHEMA "{name}"'.encode())
        url = POSTGRES.replace("postgresql://", "postgresql+psycopg://", 1)
        joint = "&" if "?" in url else "?"
        yield _langchain_sql(f"{url}{joint}options=-csearch_path%3D{name}")


def _langchain_sql(url: str) -> Subject:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says that it is no longer maintained
        from langchain_community.chat_message_histories import SQLChatMessageHistory
    from sqlalchemy import create_engine

    engine = create_engine(url)
    return _langchain(
        lambda id: SQLChatMessageHistory(id, connection=engine), SQLChatMessageHistory.add_messages
    )


@asynccontextmanager
async def langchain_redis() -> AsyncGenerator[Subject]:
    """RedisChatMessageHistory."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # as above
        from langchain_community.chat_message_histories import RedisChatMessageHistory

    async with prefix() as name:
        yield _langchain(
            lambda id: RedisChatMessageHistory(id, url=REDIS, key_prefix=f"{name}:"), _pushed
        )


def _pushed(history: Any, messages: list[Any]) -> None:
    """As its `add_messages` does, which asks the server anew for each message, but at once."""
    from langchain_core.messages import message_to_dict

    values = [json.dumps(message_to_dict(message)) for message in messages]
    history.redis_client.lpush(history.key, *values)


# --- pydantic-ai


@asynccontextmanager
async def pydantic_ai() -> AsyncGenerator[Subject]:
    """All messages dumped and saved with every new one, as its documentation shows; to a file."""
    from pydantic_ai.messages import ModelMessagesTypeAdapter as Adapter
    from pydantic_ai.messages import ModelRequest, UserPromptPart

    def requests(number: int) -> list[Any]:
        return [ModelRequest(parts=[UserPromptPart(text(n))]) for n in range(number)]

    with TemporaryDirectory() as folder:
        long, short, empty = (Path(folder) / name for name in ("long", "short", "empty"))
        for path, length in ((long, LONG), (short, SHORT)):
            path.write_bytes(Adapter.dump_json(requests(length)))

        def read(path: Path) -> None:
            assert len(Adapter.validate_json(path.read_bytes())[-TAIL:]) == TAIL

        def adding(path: Path, kept: list[Any]) -> Callable[[Any], None]:
            def add(message: Any) -> None:
                kept.append(message)
                path.write_bytes(Adapter.dump_json(kept))

            return add

        async def append_to_empty() -> float:
            return await each_blocking(adding(empty, requests(1)), lambda: requests(_FEW))()

        yield Subject(
            append_to_empty,
            each_blocking(adding(long, requests(LONG)), lambda: requests(1)),
            each_blocking(read, lambda: [short] * READINGS),
            each_blocking(read, lambda: [long]),
        )


PEERS: dict[str, Opening] = {
    "LangChain, SQL on sqlite": langchain_sqlite,
    "LangChain, SQL on postgres": langchain_postgres,
    "LangChain, redis": langchain_redis,
    "pydantic-ai, dump all and save all": pydantic_ai,
}
