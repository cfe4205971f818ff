"""Export and import of histories."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from dragoman import Message, SessionIdentity
from dragoman.errors import Conflict, InvalidInputError, StoreError
from dragoman.history import ChatHistory, MemoryStorage, export, import_lines
from dragoman.history.records import row_line, session_line
from dragoman.history.storage.protocol import Fork, Row, Session
from dragoman.testing.conformance.stores.backends import Backend

ONE = SessionIdentity(agent="guide", chat="7")


async def branched(storage: object, identity: SessionIdentity = ONE) -> ChatHistory:
    """A session with two branches."""
    history = await ChatHistory.open(identity, storage)  # type: ignore[arg-type]  # a backend
    first, *_ = await history.extend(["a", "b", "c"])
    await history.fork(first.id)
    await history.add("B")
    return history


async def test_an_export_can_be_imported_into_any_store(backend: Backend) -> None:
    """With branches, versions and numbers; exporting it again gives the same lines."""
    async with backend.opened() as storage:
        history = await branched(storage)
        lines = [line async for line in export(storage)]
        other = MemoryStorage()
        report = await import_lines(other, lines)
        assert (report.sessions, report.messages, report.problems) == (1, 4, [])
        assert [line async for line in export(other)] == lines
        copy = await ChatHistory.open(ONE, other)
        assert [m.text for m in await copy.messages()] == ["a", "B"]
        assert copy.version == history.version
        await storage.delete(ONE)
        await import_lines(storage, lines)
        assert [line async for line in export(storage)] == lines


async def test_an_existing_session_is_not_overwritten_by_default() -> None:
    """It is a conflict, is skipped, or is replaced."""
    storage = MemoryStorage()
    history = await branched(storage)
    lines = [line async for line in export(storage)]
    await history.add("later")
    with pytest.raises(Conflict):
        await import_lines(storage, lines)
    assert (await import_lines(storage, lines, on_conflict="skip")).skipped == 1
    assert await history.count() == 3
    await import_lines(storage, lines, on_conflict="replace")
    assert await history.count() == 2


def line(number: int, branch: int = 0, id: str | None = None) -> bytes:
    """A message at a position."""
    message = Message.user("x")
    body = message.to_json()
    return row_line(Row(id or message.id, body, 1.0, seq=number, branch=branch))


async def test_messages_without_a_valid_position_are_reported() -> None:
    """A repeated number or id, an unknown branch, a cyclic branch, no session at all."""
    head = Session(ONE, 9, 9, 1.0, 1.0, forks=(Fork(1, 1, 0), Fork(2, 0, 1)))
    lines = [
        line(1),
        session_line(head),
        line(1, id="m1"),
        line(1, id="m2"),
        line(2, id="m1"),
        line(3, branch=1),
        line(4, branch=7),
        line(0),
        line(5, branch=2, id="m5"),
        b"",
        b"{}",
    ]
    storage = MemoryStorage()
    report = await import_lines(storage, lines)
    assert (report.sessions, report.messages) == (1, 2)
    assert len(report.problems) == 8
    history = await ChatHistory.open(ONE, storage)
    assert [message.id for message in await history.path("m5")] != []


async def test_messages_of_an_unreadable_session_are_not_imported() -> None:
    """They are reported; other sessions are imported, except their broken messages."""
    one, two = SessionIdentity(chat="1"), SessionIdentity(chat="2")
    lines = [
        session_line(Session(one, 9, 9, 1.0, 1.0)),
        line(1, id="m1"),
        line(2, id="m2")[:-5],
        line(3, id="m3"),
        session_line(Session(two, 9, 9, 1.0, 1.0))[:-5],
        line(4, id="secret of two"),
        session_line(Session(ONE, 9, 9, 1.0, 1.0)),
        line(1, id="m1"),
    ]
    storage = MemoryStorage()
    report = await import_lines(storage, lines)
    assert (report.sessions, report.messages) == (2, 3)
    assert len(report.problems) == 3
    assert [row.id for row in await storage.rows(one)] == ["m1", "m3"]


async def test_a_damaged_window_does_not_cost_its_session() -> None:
    """It is left out of the export; windows can be recreated."""
    storage, other = MemoryStorage(), MemoryStorage()
    await branched(storage)
    await storage.keep_windows(ONE, b"{broken")
    report = await import_lines(other, [line async for line in export(storage)])
    assert (report.sessions, report.problems) == (1, [])


async def test_replacing_a_session_is_atomic(backend: Backend) -> None:
    """If it fails, the old one stays; afterwards other readers notice the change."""
    async with backend.opened() as storage:
        history = await branched(storage)
        lines = [line async for line in export(storage)]
        await history.add("later")
        version = history.version
        await history.messages()
        await import_lines(storage, lines, on_conflict="replace")
        assert [m.text for m in await history.messages()] == ["a", "B"]
        assert history.version > version

    class Full(MemoryStorage):
        async def restore(self, session: Session, rows: Sequence[Row]) -> bool:  # noqa: ARG002 - as it must be
            msg = "the disk is full"
            raise StoreError(msg)

    full = Full()
    await branched(full)
    with pytest.raises(StoreError):
        await import_lines(full, lines, on_conflict="replace")
    assert await full.count(ONE) == 4


async def test_an_invalid_conflict_option_replaces_nothing() -> None:
    """A typing error must not overwrite a session."""
    storage = MemoryStorage()
    await branched(storage)
    lines = [line async for line in export(storage)]
    with pytest.raises(InvalidInputError):
        await import_lines(storage, lines, on_conflict="Skip")  # type: ignore[arg-type]  # the point


async def test_impossible_branches_are_left_out() -> None:
    """A repeated number, the first branch as a fork, out of range, or of one that is left out."""
    forks = (Fork(0, 0, 1), Fork(1, 0, 1), Fork(1, 0, 2), Fork(2, 0, 99), Fork(3, 2, 1))
    head = Session(ONE, -5, 9, 1.0, 1.0, forks=forks, active=3)
    storage = MemoryStorage()
    report = await import_lines(storage, [session_line(head), line(1, id="m1")])
    session = await storage.session(ONE)
    assert session is not None
    assert (session.forks, session.active, session.version) == ((Fork(1, 0, 1),), 0, 1)
    assert (report.messages, len(report.problems)) == (1, 4)
