"""Test data for backends, and functions to inspect what is stored."""

from __future__ import annotations

from collections.abc import Sequence
from time import time
from typing import TypeVar

import msgspec

from dragoman.history.identity import SessionIdentity
from dragoman.history.records import body_of, message_of
from dragoman.history.remembered_cuts import Key, written
from dragoman.history.storage.protocol import (
    MAIN,
    Entry,
    Fork,
    Hit,
    Row,
    Session,
    Storage,
)
from dragoman.history.truncation import Cut
from dragoman.model.messages import Message
from dragoman.model.usage import Usage

Value = TypeVar("Value", Row, Session)
ONE = SessionIdentity(agent="guide", chat="7", user="Ana")
TWO = SessionIdentity(agent="guide", chat="8", user="Ben")
NOON = 1_763_294_400.0  # 2025-11-16 12:00 UTC
DAY = 86_400.0
WINDOW = written({Key(MAIN, "m", 800): Cut(first="x", left_out=1)})


def entry(
    text: str = "hello",
    *,
    id: str | None = None,
    at: float | None = None,
    model: str | None = None,
    usage: Usage | None = None,
) -> Entry:
    """A user message with this text."""
    message = Message.user(text) if id is None else Message.user(text).with_id(id)
    return Entry(message.id, body_of(message), time() if at is None else at, model, usage)


def texts(found: Sequence[Row]) -> list[str]:
    """The texts of these messages."""
    return [message_of(row.body).text for row in found]


async def seqs(storage: Storage) -> list[int]:
    """The numbers of the first session's messages."""
    return [row.seq for row in await storage.rows(ONE)]


async def stored(storage: Storage) -> list[str]:
    """The texts of the first session's messages."""
    return texts(await storage.rows(ONE))


def bare(found: Value) -> Value:
    """A row or a session without its checksums."""
    if isinstance(found, Row):
        return msgspec.structs.replace(found, checksum=None, chain=None)
    return msgspec.structs.replace(found, chain=None, seal=None)


def said(hits: Sequence[Hit]) -> list[str]:
    """The texts of the messages that were found."""
    return texts([hit.row for hit in hits])


async def fill(storage: Storage, *words: str, who: SessionIdentity = ONE) -> list[Entry]:
    """One append per text; returns the entries, for their ids."""
    entries = [entry(text) for text in words]
    for each in entries:
        await storage.append(who, [each])
    return entries


async def head(storage: Storage, who: SessionIdentity = ONE) -> Session:
    """The session, which must exist."""
    found = await storage.session(who)
    assert found is not None
    return found


async def unchanged(storage: Storage, before: Session, *words: str) -> None:
    """Assert that the session has not changed."""
    assert await storage.session(before.identity) == before
    assert texts(await storage.rows(before.identity)) == list(words)
    assert await storage.count(before.identity) == len(words)


def copy_of(version: int, *numbers: int, who: SessionIdentity = ONE) -> tuple[Session, list[Row]]:
    """A session with a branch whose messages have these numbers, alternating between branches."""
    session = Session(who, version, 20, NOON, NOON + 1, 1, (Fork(1, MAIN, 1),), WINDOW)
    entries = [entry(str(number), at=NOON, usage=Usage(input=number)) for number in numbers]
    rows = [
        Row(e.id, e.body, e.at, e.model, e.usage, seq=number, branch=number % 2)
        for e, number in zip(entries, numbers, strict=True)
    ]
    return session, rows


HOSTILE = [
    SessionIdentity(agent="a", chat="b"),
    SessionIdentity(agent="a&chat=b"),
    SessionIdentity(agent="a", chat="b&user=c"),
    SessionIdentity(agent="a", chat="b", user="c"),
    SessionIdentity(agent="a:b"),
    SessionIdentity(agent="a", user="b"),
    SessionIdentity(agent="a/b"),
    SessionIdentity(agent="a\\b"),
    SessionIdentity(agent="a%2Fb"),
    SessionIdentity(agent="a%2fb"),
    SessionIdentity(agent="a%b"),
    SessionIdentity(agent="../../etc/passwd"),
    SessionIdentity(agent=".."),
    SessionIdentity(agent="."),
    SessionIdentity(agent="/"),
    SessionIdentity(agent="~"),
    SessionIdentity(agent="CON"),
    SessionIdentity(agent="con"),
    SessionIdentity(agent="nul."),
    SessionIdentity(agent="nul "),
    SessionIdentity(agent="nul"),
    SessionIdentity(agent="\0"),
    SessionIdentity(agent="a\0b"),
    SessionIdentity(agent="a\0"),
    SessionIdentity(agent="a"),
    SessionIdentity(agent="A"),
    SessionIdentity(agent=" a"),
    SessionIdentity(agent="a\n"),
    SessionIdentity(agent="a\r\nSET x y"),
    SessionIdentity(agent="\u00e9"),
    SessionIdentity(agent="e\u0301"),
    SessionIdentity(agent="\u212b"),  # the sign for angstrom, which NFC makes an Å
    SessionIdentity(agent="\u00c5"),
    SessionIdentity(agent="\u0430"),  # a Cyrillic a
    SessionIdentity(agent="\uff46ull"),
    SessionIdentity(agent="full"),
    SessionIdentity(agent="ß"),
    SessionIdentity(agent="ss"),
    SessionIdentity(agent="SS"),
    SessionIdentity(agent="\u0131"),
    SessionIdentity(agent="🙂"),
    SessionIdentity(agent="👩\u200d🚀"),
    SessionIdentity(agent="a\u200b"),
    SessionIdentity(agent="\u202eb\u202ca"),
    SessionIdentity(agent="\uffff"),
    SessionIdentity(agent="\ufeffa"),
    SessionIdentity(agent=""),
    SessionIdentity(chat=""),
    SessionIdentity(agent="", chat=""),
    SessionIdentity(agent="None"),
    SessionIdentity(agent="null"),
    SessionIdentity(agent="*"),
    SessionIdentity(agent="?"),
    SessionIdentity(agent="[a]"),
    SessionIdentity(agent="%"),
    SessionIdentity(agent="_"),
    SessionIdentity(agent="';--"),
    SessionIdentity(agent='"'),
    SessionIdentity(agent="{a}"),
    SessionIdentity(agent="a" * 10_240),
    SessionIdentity(agent="a" * 10_239 + "b"),
    SessionIdentity(agent="a" * 10_241),
    SessionIdentity(agent="é" * 5_120),
]
