"""Encryption: no plain text, no unnoticed change, key rotation."""

from __future__ import annotations

import asyncio
import copy
import logging
import pickle
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman.errors import ConfigError, Corrupt, InvalidInputError, StoreError
from dragoman.history.identity import SessionIdentity
from dragoman.history.records import is_sealed, message_in, message_of
from dragoman.history.storage.chain import ChainStorage
from dragoman.history.storage.memory import MemoryStorage
from dragoman.history.storage.protocol import MAIN, Row, Session
from dragoman.history.storage.sealed import SealedStorage, rotation
from dragoman.history.storage.sealed.records import new_state
from dragoman.history.storage.sqlite import SQLiteStorage
from dragoman.testing.conformance.stores.data import ONE, TWO, entry, fill, head, texts
from tests.history.attacker import alter_row

OLD, NEW = bytes(range(32)), bytes(range(32, 64))
KEYS = {"2025": OLD, "2026": NEW}
SENTINEL = "zanzibar-sentinel"
WINDOW = b'{"dragoman":1,"kind":"Window","value":{"summary":"zanzibar-sentinel"}}'


def sealed(inner: Any, current: str = "2026", **options: Any) -> SealedStorage:
    """A storage with both keys around another."""
    return SealedStorage(inner, keys=KEYS, current=current, **options)


def holding(directory: Path, text: str) -> list[str]:
    """The files that contain a text."""
    return [path.name for path in directory.iterdir() if text.encode() in path.read_bytes()]


async def alter(inner: MemoryStorage, id: str, body: bytes) -> None:
    """Replace a body, as somebody with access to the store can."""
    await alter_row(inner, ONE, id, body=body)


# --- nothing in plain text


async def test_the_files_contain_no_plain_text(tmp_path: Path) -> None:
    """Neither messages nor windows nor an index, while open and after closing."""
    storage = sealed(SQLiteStorage(tmp_path / "a.db"))
    await storage.open()
    made = await fill(storage, SENTINEL, f"{SENTINEL} again", "short")
    await storage.rewrite(ONE, replaced=[entry(f"new {SENTINEL}", id=made[0].id)])
    await storage.keep_windows(ONE, WINDOW)
    await storage.set_aside(ONE, [2], "for the test")
    with pytest.raises(StoreError):
        await storage.search("zanzibar")
    other = SQLiteStorage(tmp_path / "a.db")  # somebody without the keys searches
    await other.open()
    assert await other.search("zanzibar") == []
    assert holding(tmp_path, SENTINEL[:8]) == []
    await other.close()
    await storage.close()
    assert holding(tmp_path, SENTINEL[:8]) == []


async def test_every_body_is_sealed_with_a_new_nonce() -> None:
    """Equal messages look different."""
    inner = MemoryStorage()
    storage = sealed(inner)
    await storage.append(ONE, [entry("same", id="a"), entry("same", id="b")])
    await storage.append(TWO, [entry("same", id="a")])
    raw = [*await inner.rows(ONE), *await inner.rows(TWO)]
    assert all(is_sealed(row.body) for row in raw)
    nonces = {msgspec.json.decode(row.body)["value"]["nonce"] for row in raw}
    assert len(nonces) == len({row.body for row in raw}) == 3


async def test_the_stored_form_is_frozen() -> None:
    """It names its key, and is valid in lines of JSON like other bodies."""
    inner = MemoryStorage()
    await fill(sealed(inner), "a")
    (row,) = await inner.rows(ONE)
    read = msgspec.json.decode(row.body)
    assert (read["dragoman"], read["kind"]) == (2, "SealedMessage")
    assert list(read["value"]) == ["key", "check", "nonce", "data", "place"]
    assert read["value"]["key"] == "2026"
    assert read["value"]["place"].endswith(".0.1")
    seal = (await head(inner)).seal
    assert seal is not None
    assert msgspec.json.decode(seal)["kind"] == "SealedHead"


async def test_search_is_rejected_with_the_reason() -> None:
    """Totals work: token counts are not content."""
    storage = sealed(MemoryStorage())
    await fill(storage, "word")
    with pytest.raises(StoreError, match="nothing is indexed in plain text"):
        await storage.search("word")
    assert await storage.totals("session") == []


async def test_without_keys_a_message_is_reported_as_encrypted() -> None:
    """Even when the inner store is read directly."""
    inner = MemoryStorage()
    await fill(sealed(inner), "a")
    (row,) = await inner.rows(ONE)
    with pytest.raises(Corrupt, match="encrypted"):
        message_of(row.body)


# --- nothing altered unnoticed


async def test_an_altered_record_is_corrupt_and_the_others_are_read() -> None:
    """Wherever it was altered."""
    inner = MemoryStorage()
    storage = sealed(inner)
    made = await fill(storage, "a", "b", "c")
    (good,) = await inner.rows(ONE, after=1, limit=1)
    document = msgspec.json.decode(good.body)
    for field, value in (
        ("data", document["value"]["data"][:-8] + "AAAAAAA="),
        ("data", ""),
        ("data", "no base64!"),
        ("nonce", "AAAAAAAAAAAAAAAA"),
        ("nonce", ""),
        ("more", 1),
    ):
        changed = {**document, "value": {**document["value"], field: value}}
        await alter(inner, made[1].id, msgspec.json.encode(changed))
        rows = await storage.rows(ONE)
        assert texts([rows[0], rows[2]]) == ["a", "c"]
        with pytest.raises(Corrupt):
            message_of(rows[1].body)
        row = await storage.row(ONE, made[1].id)
        assert row == rows[1]
    await alter(inner, made[1].id, good.body[:-20])
    with pytest.raises(Corrupt):
        message_of((await storage.rows(ONE))[1].body)


async def test_swapped_records_are_corrupt() -> None:
    """A record is bound to its id and its session."""
    inner = MemoryStorage()
    storage = sealed(inner)
    made = await fill(storage, "a", "b")
    await storage.append(TWO, [entry("other", id=made[0].id)])
    rows = await inner.rows(ONE)
    await alter(inner, made[0].id, rows[1].body)
    await alter(inner, made[1].id, (await inner.rows(TWO))[0].body)
    for row in await storage.rows(ONE):
        with pytest.raises(Corrupt):
            message_of(row.body)


async def test_a_swapped_window_is_ignored(caplog: pytest.LogCaptureFixture) -> None:
    """It can be created again; a warning is logged."""
    inner = MemoryStorage()
    storage = sealed(inner)
    await fill(storage, "a")
    await fill(storage, "b", who=TWO)
    await storage.keep_windows(ONE, WINDOW)
    await inner.keep_windows(TWO, (await head(inner)).windows)
    with caplog.at_level(logging.WARNING, "dragoman.history"):
        assert (await head(storage, TWO)).windows is None
    assert "can't be decrypted" in caplog.text
    assert (await head(storage)).windows == WINDOW


async def test_earlier_plain_text_is_read_only_if_accepted() -> None:
    """Once everything is sealed, plain text can't be injected."""
    inner = MemoryStorage()
    await fill(inner, "from before")
    await inner.keep_windows(ONE, WINDOW)
    storage = sealed(inner, accept_plain=True)
    await fill(storage, "from now on")
    assert texts(await storage.rows(ONE)) == ["from before", "from now on"]
    assert (await head(storage)).windows == WINDOW
    for strict in (sealed(inner), sealed(inner)):
        rows = await strict.rows(ONE)
        with pytest.raises(Corrupt):
            message_in(rows[0])
        with pytest.raises(Corrupt):
            message_of(rows[0].body)
        assert texts(rows[1:]) == ["from now on"]
        assert (await head(strict)).windows == WINDOW  # encrypted with the first write
        assert (await strict.rotate()).plain == 1
    done = await storage.rotate()
    assert (done.sealed, done.broken) == (1, 0)
    strict = sealed(inner)
    assert texts(await strict.rows(ONE)) == ["from before", "from now on"]
    assert await strict.verify() == []


async def test_a_plain_text_history_says_how_to_encrypt_it() -> None:
    """It is neither empty nor damaged; nothing is read or written unless it is accepted."""
    inner = MemoryStorage()
    made = await fill(inner, "from before")
    storage = sealed(inner)
    for call in (
        storage.rows(ONE),
        storage.row(ONE, made[0].id),
        storage.append(ONE, [entry("more")]),
    ):
        with pytest.raises(ConfigError, match="accept_plain=True"):
            await call
    done = await storage.rotate()
    assert (done.sealed, done.broken, done.plain) == (0, 1, 1)
    assert any("accept_plain" in problem for problem in await storage.verify())
    await sealed(inner, accept_plain=True).rotate()
    assert texts(await storage.rows(ONE)) == ["from before"]
    assert await storage.verify() == []


# --- keys


async def test_a_missing_key_is_named() -> None:
    """It is a configuration error, not a damaged history."""
    inner = MemoryStorage()
    await fill(sealed(inner, "2025"), "a")
    storage = SealedStorage(inner, keys={"2026": NEW}, current="2026")
    for call in (storage.rows(ONE), storage.row(ONE, (await inner.rows(ONE))[0].id)):
        with pytest.raises(ConfigError, match="'2025' is missing"):
            await call
    with pytest.raises(ConfigError):
        await storage.rotate()


async def test_a_wrong_key_is_named_and_nothing_is_treated_as_damage() -> None:
    """Otherwise a typing error would set a whole history aside."""
    inner = MemoryStorage()
    await fill(sealed(inner), "a")
    storage = SealedStorage(inner, keys={"2026": OLD}, current="2026")
    with pytest.raises(ConfigError, match="'2026' is not the one") as raised:
        await storage.rows(ONE)
    shown = f"{raised.value!r} {raised.value.__context__!r}"
    assert OLD.hex() not in shown
    assert repr(OLD) not in shown


@pytest.mark.parametrize(
    ("keys", "current"),
    [
        ({}, "a"),
        ({"a": OLD}, "b"),
        ({"a": OLD[:16]}, "a"),
        ({"a": OLD.hex()}, "a"),
        ({"": OLD}, ""),
        ({1: OLD}, 1),
        ({"a": OLD, "b": "short secret"}, "a"),
    ],
)
def test_invalid_keys_are_rejected_without_being_quoted(keys: Any, current: Any) -> None:
    """Keys are 32 bytes, ids are texts."""
    with pytest.raises(InvalidInputError) as raised:
        SealedStorage(MemoryStorage(), keys=keys, current=current)
    shown = f"{raised.value!r}"
    assert "secret" not in shown
    assert OLD.hex()[:16] not in shown


def test_keys_are_never_shown_copied_or_pickled() -> None:
    """Not even by accident, in a process pool."""
    storage = sealed(MemoryStorage())
    keyring = storage._records.keyring
    shown = (
        f"{storage!r} {storage} {vars(storage)} {keyring!r} {keyring._ciphers} {keyring._checks}"
        f" {vars(storage._records)} {new_state(Session(ONE, 1, 0, 0.0, 0.0))!r}"
    )
    assert repr(OLD)[2:-1] not in shown
    assert OLD.hex() not in shown
    for secret in (storage, keyring):
        for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="can't be pickled or copied"):
                attempt(secret)


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the command to install it."""
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)
    with pytest.raises(ConfigError, match=r"dragoman\[encryption\]"):
        sealed(MemoryStorage())


# --- rotation


async def keys_of(inner: MemoryStorage | SQLiteStorage, who: SessionIdentity = ONE) -> list[str]:
    """The keys of the messages of a session, on all its branches."""
    session = await head(inner, who)
    branches = (MAIN, *(fork.number for fork in session.forks))
    rows: Sequence[Row] = [
        row for branch in branches for row in await inner.rows(who, branch=branch)
    ]
    return [msgspec.json.decode(row.body)["value"].get("key", "plain") for row in rows]


async def test_rotation_seals_everything_with_the_current_key() -> None:
    """Messages with an old key or none, all branches, windows; then the old key can be removed."""
    inner = MemoryStorage()
    await fill(inner, "plain")
    old = sealed(inner, "2025", accept_plain=True)
    await fill(old, "old")
    await old.fork(ONE, parent=MAIN, at=1)
    await old.append(ONE, [entry("branch")], branch=1)
    await old.keep_windows(ONE, WINDOW)
    await fill(old, "two", who=TWO)
    storage = sealed(inner, accept_plain=True)
    await fill(storage, "new")
    before = await storage.rows(ONE)
    done = await storage.rotate()
    assert (done.sealed, done.broken) == (4, 0)  # the last write took the windows with it
    assert await keys_of(inner) == ["2026"] * 4
    only_new = SealedStorage(inner, keys={"2026": NEW}, current="2026")
    assert await only_new.rows(ONE) == before
    assert texts(await only_new.rows(ONE, branch=1)) == ["branch"]
    assert (await head(only_new)).windows == WINDOW
    assert texts(await only_new.rows(TWO)) == ["two"]


async def test_a_second_rotation_does_nothing() -> None:
    """Not even a new version."""
    inner = MemoryStorage()
    await fill(sealed(inner, "2025"), "a")
    storage = sealed(inner)
    await storage.rotate()
    version = (await head(storage)).version
    assert (await storage.rotate()).sealed == 0
    assert (await head(storage)).version == version


async def test_rotation_skips_what_it_can_not_open() -> None:
    """It is counted, and unchanged."""
    inner = MemoryStorage()
    made = await fill(sealed(inner, "2025"), "a", "b")
    rows = await inner.rows(ONE)
    await alter(inner, made[0].id, rows[1].body)
    await inner.keep_windows(ONE, b'{"dragoman":1,"kind":"SealedWindow","value":{}}')
    done = await sealed(inner).rotate()
    assert (done.sealed, done.broken) == (1, 2)
    assert (await inner.rows(ONE))[0].body == rows[1].body


async def test_rotation_of_a_long_history_works_in_batches() -> None:
    """Each is a separate write: after an interruption, the rest can be done later."""
    inner = MemoryStorage()
    old = sealed(inner, "2025")
    await old.append(ONE, [entry(str(number)) for number in range(450)])
    storage = sealed(inner)
    commit, done = inner.shelf.commit, 0

    async def broken_off(*args: Any) -> bool:
        nonlocal done
        done += 1
        if done == 2:
            message = "the connection is lost"
            raise StoreError(message)
        return await commit(*args)

    inner.shelf.commit = broken_off  # type: ignore[method-assign,assignment]  # it breaks
    with pytest.raises(StoreError, match="lost"):
        await storage.rotate()
    keys = await keys_of(inner)
    assert 0 < keys.count("2026") < 450
    assert (await storage.rotate()).sealed == keys.count("2025")
    assert texts(await storage.rows(ONE)) == [str(number) for number in range(450)]


@asynccontextmanager
async def opened(storage: SealedStorage) -> AsyncGenerator[SealedStorage]:
    """The storage while it is open."""
    await storage.open()
    try:
        yield storage
    finally:
        await storage.close()


async def test_rotation_during_other_writes_loses_nothing(tmp_path: Path) -> None:
    """Messages are added, replaced and removed meanwhile."""
    path = tmp_path / "a.db"
    async with (
        opened(sealed(SQLiteStorage(path), "2025")) as old,
        opened(sealed(SQLiteStorage(path))) as writer,
        opened(sealed(SQLiteStorage(path))) as rotating,
    ):
        made = await fill(old, *map(str, range(60)))

        async def write() -> None:
            for number in range(20):
                await writer.append(ONE, [entry(f"new {number}")])
                await writer.rewrite(ONE, replaced=[entry(f"n{number}", id=made[number].id)])
                await writer.rewrite(ONE, removed=[made[59 - number].id])

        await asyncio.gather(write(), rotating.rotate())
        await rotating.rotate()
        kept = [f"n{number}" for number in range(20)] + [str(number) for number in range(20, 40)]
        assert texts(await writer.rows(ONE)) == kept + [f"new {number}" for number in range(20)]
    async with opened(
        SealedStorage(SQLiteStorage(path), keys={"2026": NEW}, current="2026")
    ) as new:
        assert len(texts(await new.rows(ONE))) == 60


async def test_rotation_gives_up_on_a_session_that_keeps_changing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The error says to run it again."""
    inner = MemoryStorage()
    await fill(sealed(inner, "2025"), "a")
    named, others = inner.shelf.named, sealed(MemoryStorage())
    others.shelf.inner.commit = inner.shelf.commit  # type: ignore[method-assign]
    others.shelf.inner.get = inner.shelf.get  # type: ignore[method-assign]

    async def busy(*args: Any) -> Any:
        await fill(others, "more")
        return await named(*args)

    inner.shelf.named = busy  # type: ignore[method-assign,assignment]  # somebody always writes
    monkeypatch.setattr(rotation, "_TRIES", 20)
    with pytest.raises(StoreError, match="run the rotation again"):
        await sealed(inner).rotate()


async def test_a_session_deleted_during_rotation_is_fine() -> None:
    """There is nothing left to seal."""
    inner = MemoryStorage()
    await fill(sealed(inner, "2025"), "a")
    rows = inner.shelf.rows

    async def deleted(*args: Any, **kwargs: Any) -> Any:
        found = await rows(*args, **kwargs)
        await inner.delete(ONE)
        return found

    inner.shelf.rows = deleted  # type: ignore[method-assign]  # somebody deletes in between
    assert (await sealed(inner).rotate()).sealed == 0


# --- together with other storages


async def test_a_chain_of_sealed_members_keeps_them_equal() -> None:
    """Each with its own keys; repaired copies are sealed again."""
    left, right = MemoryStorage(), MemoryStorage()
    chain = ChainStorage(
        sealed(left, accept_plain=True), SealedStorage(right, keys={"x": OLD}, current="x")
    )
    await fill(left, "from before")
    await fill(chain, "a")
    await chain.keep_windows(ONE, WINDOW)
    assert await keys_of(right) == ["x", "x"]
    assert texts(await chain.rows(ONE)) == ["from before", "a"]
    copy_of_window = (await head(right)).windows
    assert copy_of_window is not None
    assert SENTINEL.encode() not in copy_of_window


@pytest.mark.parametrize("encrypted", [(0,), (1,), (0, 1)])
async def test_a_chain_may_have_members_in_plain_text(encrypted: tuple[int, ...]) -> None:
    """All of them do the same commits."""
    inners = [MemoryStorage(), MemoryStorage()]
    members = [sealed(inner) if n in encrypted else inner for n, inner in enumerate(inners)]
    chain = ChainStorage(*members)
    await fill(chain, "a")
    await chain.fork(ONE, parent=MAIN, at=1)
    await chain.activate(ONE, MAIN)
    await fill(chain, "b")
    assert chain.reports == ()
    first, second = [await head(member) for member in members]
    assert (first.version, first.active, first.last_seq) == (second.version, MAIN, 2)
    assert texts(await members[0].rows(ONE)) == texts(await members[1].rows(ONE)) == ["a", "b"]
    assert await chain.verify() == []


async def test_a_copy_of_a_sealed_session_can_be_restored_unchanged() -> None:
    """Sealed bodies are not sealed twice."""
    inner, other = MemoryStorage(), MemoryStorage()
    storage = sealed(inner)
    await fill(storage, "a")
    await storage.keep_windows(ONE, WINDOW)
    await sealed(other).restore(await head(inner), await inner.rows(ONE))
    assert texts(await sealed(other).rows(ONE)) == ["a"]
    assert (await head(sealed(other))).windows == WINDOW
    assert [each.windows for each in await sealed(other).sessions()] == [WINDOW]


def test_it_has_the_name_and_blocking_flag_of_the_inner_storage(tmp_path: Path) -> None:
    """The name also says that it is encrypted."""
    assert sealed(SQLiteStorage(tmp_path / "a.db")).name == "sqlite:a.db, encrypted"
    assert sealed(MemoryStorage()).is_blocking
    assert not sealed(SQLiteStorage(tmp_path / "a.db")).is_blocking
