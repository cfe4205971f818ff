"""What the head of a session proves: order, freshness and completeness."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from pathlib import Path
from time import sleep
from typing import Any

import msgspec
import pytest

from dragoman import ChatHistory, Usage
from dragoman.errors import ConfigError, Conflict, Corrupt, InvalidInputError
from dragoman.history.records import message_in
from dragoman.history.storage.memory import MemoryStorage
from dragoman.history.storage.protocol import MAIN, Fork
from dragoman.history.storage.sealed import SealedStorage
from dragoman.history.storage.sqlite import SQLiteStorage
from dragoman.testing.conformance.stores.data import NOON, ONE, TWO, entry, fill, head, texts
from tests.history.attacker import alter_row, alter_session, put, taken

KEYS = {"2025": b"\1" * 32, "2026": b"\2" * 32}
ROOT = Path(__file__).parents[3]


def sealed(inner: Any, current: str = "2026", **options: Any) -> SealedStorage:
    """The store as its owner opens it, with a new object."""
    return SealedStorage(inner, keys=KEYS, current=current, **options)


async def is_told(inner: MemoryStorage, words: str = "") -> None:
    """Assert that `verify` reports a problem, and a history only opens if it may be damaged."""
    problems = await sealed(inner).verify()
    assert any(words in problem for problem in problems), problems
    with pytest.raises(Corrupt, match=r"history verify.*history export.*accept_damaged"):
        await ChatHistory.open(ONE, sealed(inner))
    history = await ChatHistory.open(ONE, sealed(inner), {"accept_damaged": True})
    await history.messages()
    assert history.damaged


# --- single messages


@pytest.mark.parametrize(
    "changes",
    [
        {"at": NOON}, {"model": "m-2"}, {"usage": Usage(input=1)}, {"id": "another"},
        {"seq": 9}, {"branch": 1},
    ],
)  # fmt: skip
async def test_no_field_beside_a_message_can_be_altered(changes: dict[str, Any]) -> None:
    """Plain-text fields of a backend are bound to the sealed body."""
    inner = MemoryStorage()
    made = await fill(sealed(inner), "a", "b", "c")
    await alter_row(inner, ONE, made[1].id, **changes)
    assert await sealed(inner).verify() != []
    for row in await sealed(inner).rows(ONE, after=1):
        if row.seq != 3:
            with pytest.raises(Corrupt):
                message_in(row)


@pytest.mark.parametrize("field", ["key", "check"])
async def test_an_altered_only_message_is_corrupt(field: str) -> None:
    """It is neither an empty conversation nor a missing key, whatever key it names."""
    inner = MemoryStorage()
    (made,) = await fill(sealed(inner), "a")
    (row,) = await inner.rows(ONE)
    document = msgspec.json.decode(row.body)
    for value in ({field: "00000000"}, {"data": "AAAA"}):
        body = msgspec.json.encode({**document, "value": {**document["value"], **value}})
        await alter_row(inner, ONE, made.id, body=body)
        history = await ChatHistory.open(ONE, sealed(inner), {"accept_damaged": True})
        assert len(await history.messages()) == 0
        assert 1 in {each.seq for each in history.damaged}
        (read,) = await sealed(inner).rows(ONE)
        with pytest.raises(Corrupt):
            message_in(read)


async def test_a_forged_plain_message_is_rejected_before_and_after_rotation() -> None:
    """It isn't shown, and no rotation makes it authentic."""
    inner = MemoryStorage()
    await fill(sealed(inner, "2025"), "a", "b")
    session, rows = await taken(inner, ONE)
    forged = entry("forged")
    row = msgspec.structs.replace(rows[0], id=forged.id, body=forged.body, seq=3)
    await put(inner, msgspec.structs.replace(session, last_seq=3), [*rows, row])
    for _ in range(2):
        found = await sealed(inner).rows(ONE)
        assert b"forged" not in found[2].body
        with pytest.raises(Corrupt):
            message_in(found[2])
        await is_told(inner)
        await sealed(inner).rotate()
        await sealed(inner, accept_plain=True).rotate()


async def test_swapped_messages_stay_invalid_after_rotation() -> None:
    """Between sessions, or within one."""
    inner = MemoryStorage()
    made = await fill(sealed(inner, "2025"), "a", "b")
    await sealed(inner, "2025").append(TWO, [entry("other", id=made[0].id)])
    (other,) = await inner.rows(TWO)
    await alter_row(inner, ONE, made[0].id, body=other.body)
    done = await sealed(inner).rotate()
    assert done.broken == 1
    first, second = await sealed(inner).rows(ONE)
    with pytest.raises(Corrupt):
        message_in(first)
    assert texts([second]) == ["b"]
    await is_told(inner)


# --- the session as a whole


async def test_missing_added_and_older_messages_are_reported() -> None:
    """Each of them is authentic, but together they are not the stored state."""
    inner = MemoryStorage()
    storage = sealed(inner)
    made = await fill(storage, "a", "b", "c")
    await storage.rewrite(ONE, removed=[made[2].id])
    early_session, early = await taken(inner, ONE)
    await storage.rewrite(ONE, replaced=[entry("B", id=made[1].id)])
    session, rows = await taken(inner, ONE)
    await put(inner, session, rows[:1])
    await is_told(inner, "1 of its 2 messages are missing")
    await put(inner, session, [rows[0], early[1]])
    await is_told(inner, "reverted to an earlier state")
    await put(inner, session, [*rows, msgspec.structs.replace(early[1], id="x", seq=3)])
    await is_told(inner)
    await put(inner, msgspec.structs.replace(session, seal=early_session.seal), rows)
    await is_told(inner, "earlier version")
    await put(inner, session, rows)
    assert await sealed(inner).verify() == []


@pytest.mark.parametrize(
    "changes",
    [
        {"seal": None}, {"version": 9}, {"version": 1}, {"last_seq": 9}, {"created_at": NOON},
        {"forks": ()}, {"forks": (Fork(1, 0, 1),)}, {"active": 0},
    ],
)  # fmt: skip
async def test_altered_numbers_and_branches_are_reported(changes: dict[str, Any]) -> None:
    """Nothing can be written to such a session: that would create a matching head."""
    inner = MemoryStorage()
    await fill(sealed(inner), "a", "b")
    await sealed(inner).fork(ONE, parent=MAIN, at=2)
    await alter_session(inner, ONE, **changes)
    assert await sealed(inner).verify() != []
    with pytest.raises(Corrupt, match="history repair"):
        await sealed(inner).append(ONE, [entry("more")])
    await is_told(inner)
    storage = sealed(inner)
    await storage.set_aside(ONE, [], "as it is now")
    assert await sealed(inner).verify() == []
    await storage.append(ONE, [entry("more")])
    assert texts(await sealed(inner).rows(ONE))[:2] == ["a", "b"]


async def test_cleared_and_deleted_messages_can_not_be_restored() -> None:
    """Each generation of a session has its own positions."""
    inner = MemoryStorage()
    storage = sealed(inner)
    await fill(storage, "a")
    old_session, old = await taken(inner, ONE)
    await storage.clear(ONE, at=NOON)
    await fill(storage, "b")
    session, rows = await taken(inner, ONE)
    await put(inner, session, [*old, *rows])
    with pytest.raises(Corrupt):
        message_in((await sealed(inner).rows(ONE))[0])
    await storage.delete(ONE)
    await put(inner, session, rows)
    with pytest.raises(Corrupt, match="earlier state"):
        await storage.session(ONE)
    await put(inner, old_session, old)
    with pytest.raises(Corrupt, match="earlier state"):
        await storage.append(ONE, [entry("c")])


async def test_an_open_store_rejects_an_older_state() -> None:
    """Even a consistent one; so does `verify` with a checkpoint, in another process."""
    inner = MemoryStorage()
    storage = sealed(inner)
    await fill(storage, "a")
    await fill(storage, "two", who=TWO)
    old = await taken(inner, ONE)
    await fill(storage, "b")
    since = await storage.checkpoint()
    assert await sealed(inner).verify(since=since) == []
    await put(inner, *old)
    with pytest.raises(Corrupt, match="earlier state"):
        await storage.session(ONE)
    assert any("earlier state" in problem for problem in await storage.verify())
    assert await sealed(inner).verify() == []  # its only fault is that it is old
    assert any("older" in problem for problem in await sealed(inner).verify(since=since))
    await inner.delete(TWO)
    assert any("deleted" in problem for problem in await sealed(inner).verify(since=since))


@pytest.mark.parametrize("given", [b"", b"{}", "text", None])
async def test_only_a_checkpoint_is_accepted(given: Any) -> None:
    """Other values are rejected, and so is an altered one."""
    storage = sealed(MemoryStorage())
    await fill(storage, "a")
    made = await storage.checkpoint()
    assert b"version" not in made
    altered = made.replace(made[-20:-8], b"A" * 12)
    for each in (given, altered):
        if each is not None:
            with pytest.raises(InvalidInputError):
                await storage.verify(since=each)


async def test_repeated_problems_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """With the session's digest, and without content."""
    inner = MemoryStorage()
    await fill(sealed(inner), "a secret")
    await alter_session(inner, ONE, last_seq=7)
    storage = sealed(inner)
    with caplog.at_level(logging.WARNING, "dragoman.history"):
        for _ in range(3):
            await storage.session(ONE)
    assert caplog.text.count(ONE.digest) == 1
    assert "secret" not in caplog.text


# --- from before encryption


async def test_plain_sessions_get_a_head_with_the_first_write() -> None:
    """A rotation encrypts their content, and then other plain text is rejected."""
    inner = MemoryStorage()
    await fill(inner, "a", "b")
    _, old = await taken(inner, ONE)
    before = sealed(inner, accept_plain=True)
    await before.append(ONE, [entry("c")])
    _, later = await taken(inner, ONE)
    assert texts(await before.rows(ONE)) == ["a", "b", "c"]
    await put(inner, await head(inner), later[1:])
    assert any("missing" in each for each in await sealed(inner, accept_plain=True).verify())
    await put(inner, await head(inner), later)
    assert (await sealed(inner, accept_plain=True).rotate()).sealed == 2
    bound, now = await taken(inner, ONE)
    for storage in (sealed(inner), sealed(inner, accept_plain=True)):
        await put(inner, bound, now)
        assert texts(await storage.rows(ONE)) == ["a", "b", "c"]
        await put(inner, bound, [old[0], *now[1:]])
        with pytest.raises(Corrupt):
            message_in((await storage.rows(ONE))[0])


# --- several at once


async def test_many_writers_all_succeed(tmp_path: Path) -> None:
    """Several storages on one file, each with several tasks; nothing is out of order."""
    storages = [sealed(SQLiteStorage(tmp_path / "a.db")) for _ in range(4)]
    for storage in storages:
        await storage.open()

    async def write(storage: SealedStorage, label: str) -> None:
        for number in range(10):
            await storage.append(ONE, [entry(f"{label}.{number}")])

    await asyncio.gather(
        *(write(storage, f"{n}.{task}") for n, storage in enumerate(storages) for task in range(3))
    )
    assert len({*texts(await storages[0].rows(ONE))}) == 120
    assert await storages[0].verify() == []
    with pytest.raises(Conflict):
        await storages[1].append(ONE, [entry("x")], expected=3)
    for storage in storages:
        await storage.close()


async def test_activating_a_branch_is_not_undone_by_a_writer_that_did_not_see_it() -> None:
    """It isn't mistaken for an attack either."""
    inner = MemoryStorage()
    one, two = sealed(inner), sealed(inner)
    await fill(one, "a")
    await one.fork(ONE, parent=MAIN, at=1)
    await two.append(ONE, [entry("b")])
    await one.activate(ONE, MAIN)
    await two.append(ONE, [entry("c")])
    assert (await head(sealed(inner))).active == (await head(inner)).active == MAIN
    assert await sealed(inner).verify() == []


_ROTATE = """
import asyncio, sys
from dragoman.history.storage.sealed import SealedStorage
from dragoman.history.storage.sqlite import SQLiteStorage
keys = {"2025": b"\\1" * 32, "2026": b"\\2" * 32}
async def main():
    storage = SealedStorage(SQLiteStorage(sys.argv[1]), keys=keys, current=sys.argv[2])
    await storage.open()
    print("ready", flush=True)
    await storage.rotate()
asyncio.run(main())
"""


def _killed(path: Path, current: str, after: float) -> None:
    """Rotate in another process, and kill it during that."""
    command = [sys.executable, "-c", _ROTATE, str(path), current]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as process:
        assert process.stdout is not None
        process.stdout.readline()
        sleep(after)
        process.kill()


async def test_a_killed_rotation_is_completed_by_the_next(tmp_path: Path) -> None:
    """Everything stays readable; the old key can be removed after the last one."""
    path = tmp_path / "a.db"
    storage = sealed(SQLiteStorage(path), "2025")
    await storage.open()
    await storage.append(ONE, [entry(str(number)) for number in range(700)])
    await storage.close()
    for kill, current in enumerate(("2026", "2025", "2026")):
        await asyncio.to_thread(_killed, path, current, 0.005 + 0.01 * kill)
        storage = sealed(SQLiteStorage(path))
        await storage.open()
        assert len(texts(await storage.rows(ONE))) == 700
        assert await storage.verify() == []
        await storage.close()
    storage = sealed(SQLiteStorage(path))
    await storage.open()
    await storage.rotate()
    await storage.close()
    only_new = SealedStorage(SQLiteStorage(path), keys={"2026": KEYS["2026"]}, current="2026")
    await only_new.open()
    assert len(texts(await only_new.rows(ONE))) == 700
    assert await only_new.verify() == []
    await only_new.close()


async def test_a_key_removed_too_early_loses_nothing() -> None:
    """Reading, writing and rotating name it; once it is back, everything works."""
    inner = MemoryStorage()
    made = await fill(sealed(inner, "2025"), "a")
    before = await taken(inner, ONE)
    early = SealedStorage(inner, keys={"2026": KEYS["2026"]}, current="2026")
    for call in (
        early.rows(ONE),
        early.row(ONE, made[0].id),
        early.append(ONE, [entry("b")]),
        early.rotate(),
    ):
        with pytest.raises(ConfigError, match="'2025' is missing"):
            await call
    assert any("'2025' is missing" in problem for problem in await early.verify())
    assert await taken(inner, ONE) == before
    assert texts(await sealed(inner).rows(ONE)) == ["a"]


def test_encryption_can_not_be_nested() -> None:
    """And what is encrypted has to be on a shelf."""
    with pytest.raises(InvalidInputError, match="encrypted twice"):
        sealed(sealed(MemoryStorage()))
    with pytest.raises(InvalidInputError, match="Ledger"):
        sealed("memory")


# --- copies of what is beneath


async def _copied(**changes: Any) -> tuple[MemoryStorage, bool]:
    """Copy the inner data of an encrypted store into another one; returns whether that worked."""
    inner, other = MemoryStorage(), MemoryStorage()
    await fill(sealed(inner), "a", "b")
    session = await head(inner)
    copy = msgspec.structs.replace(session, **changes)
    return other, await sealed(other).restore(copy, await inner.rows(ONE))


async def test_an_authentic_copy_is_sealed_for_its_new_version() -> None:
    """It is intact in its new store, whatever its version there."""
    other, restored = await _copied(version=9, chain=None)
    assert restored
    assert await sealed(other).verify() == []
    assert texts(await sealed(other).rows(ONE)) == ["a", "b"]
    assert (await head(sealed(other))).version == 9


@pytest.mark.parametrize("seal", [b"{}", b"", b"no seal"])
async def test_a_copy_that_is_not_authentic_stays_so(seal: bytes) -> None:
    """It is stored unchanged, and not sealed as if it were intact."""
    other, restored = await _copied(seal=seal)
    assert restored
    assert (await head(other)).seal == seal
    await is_told(other)
