"""Retention of histories."""

from __future__ import annotations

from time import time

import msgspec
import pytest

from dragoman import Message, SessionIdentity
from dragoman.errors import InvalidInputError
from dragoman.history import ChatHistory, MemoryStorage, Retention, Storage, sweep
from dragoman.history.storage.protocol import Session
from dragoman.testing.conformance.stores.backends import Backend
from dragoman.testing.conformance.stores.data import DAY, copy_of


async def filled(storage: Storage, chat: str, scope: str | None, turns: int) -> ChatHistory:
    """A session with that many turns."""
    history = await ChatHistory.open(SessionIdentity(chat=chat, scope=scope), storage)
    await history.add(Message.system("Be brief."))
    for number in range(turns):
        await history.extend([Message.user(f"q{number}"), Message.assistant(f"a{number}")])
    return history


async def test_old_sessions_of_a_scope_are_deleted(backend: Backend) -> None:
    """By their last write; other scopes are not touched."""
    async with backend.opened() as storage:
        await filled(storage, "1", "support", 1)
        await filled(storage, "2", None, 1)
        rules = {"support": Retention(max_age=60)}
        assert (await sweep(storage, rules)).sessions == 0
        swept = await sweep(storage, rules, now=time() + 61)
        assert (swept.sessions, swept.messages) == (1, 3)
        assert [s.identity.chat for s in await storage.sessions()] == ["2"]
        assert (await sweep(storage, {None: Retention(max_age=60)}, now=time() + 61)).sessions == 1


@pytest.mark.parametrize("branch", [0, 1, None])
async def test_a_damaged_time_deletes_nothing(bare_backend: Backend, branch: int | None) -> None:
    """A session is as young as the last message of one of its branches, whatever its own time."""
    session, rows = copy_of(9, 2, 3)  # a year old
    rows = [
        msgspec.structs.replace(row, at=time()) if row.branch == branch else row for row in rows
    ]
    async with bare_backend.opened() as storage:
        await storage.restore(session, rows)
        swept = await sweep(storage, {None: Retention(max_age=DAY)})
        assert swept.sessions == (branch is None)
        assert len(await storage.sessions()) == 1 - swept.sessions


async def test_long_sessions_lose_their_oldest_turns(backend: Backend) -> None:
    """Complete turns; instructions, pinned turns and the last turn stay."""
    async with backend.opened() as storage:
        history = await filled(storage, "1", None, 5)
        pinned = (await history.messages())[1]
        await history.pin(pinned.id)
        swept = await sweep(storage, {None: Retention(max_messages=6)})
        assert swept.messages == 6
        assert [message.text for message in await history.messages()] == [
            "Be brief.", "q0", "a0", "q4", "a4",
        ]  # fmt: skip
        assert (await sweep(storage, {None: Retention(max_messages=6)})).messages == 0


async def test_windows_no_longer_count_what_is_gone(backend: Backend) -> None:
    """Removed messages are not omitted ones, also in windows that were cut before."""
    async with backend.opened() as storage:
        history = await filled(storage, "1", None, 40)
        omitted = (await history.window(1_400)).omitted
        assert omitted > 20
        swept = await sweep(storage, {None: Retention(max_messages=71)})
        assert swept.messages == 10
        assert (await history.window(1_400)).omitted == omitted - 10


async def test_a_branched_session_is_not_shortened() -> None:
    """Other branches may include its oldest turns."""
    storage = MemoryStorage()
    history = await filled(storage, "1", None, 5)
    await history.fork((await history.messages())[3].id)
    assert (await sweep(storage, {None: Retention(max_messages=2)})).messages == 0


def test_a_retention_without_limits_is_rejected() -> None:
    """It would delete everything."""
    for number in (0, -1):
        with pytest.raises(InvalidInputError):
            Retention(max_messages=number)
        with pytest.raises(InvalidInputError):
            Retention(max_age=number)


async def test_a_session_written_to_in_time_is_kept() -> None:
    """Even if it was listed before."""

    class Late(MemoryStorage):
        async def session(self, identity: SessionIdentity) -> Session | None:
            found = await super().session(identity)
            return None if found is None else msgspec.structs.replace(found, updated_at=time() + 99)

    storage = Late()
    await filled(storage, "1", None, 1)
    swept = await sweep(storage, {None: Retention(max_age=60)}, now=time() + 61)
    assert (swept.sessions, swept.messages) == (0, 0)
