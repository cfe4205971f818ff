"""Every backend writes what reveals damage: checksums, positions, and a tally per session."""

from __future__ import annotations

from zlib import crc32

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import Corrupt
from dragoman.history.records import message_in
from dragoman.history.remembered_cuts import Key, written
from dragoman.history.storage.integrity import checksum_of, damage_to, tally_of
from dragoman.history.storage.protocol import MAIN, Entry, Row, Session, Storage, placed
from dragoman.history.truncation import Cut
from dragoman.model.usage import Usage
from dragoman.testing.conformance.stores.backends import Backend
from dragoman.testing.conformance.stores.data import DAY, NOON, ONE, copy_of, entry, fill, head


async def is_sound(storage: Storage) -> None:
    """Assert that rows, tally and `verify` report no problem."""
    session = await head(storage)
    tally = tally_of(session)
    assert tally is not None
    assert tally.rows == await storage.count(ONE)
    for branch in (MAIN, *(fork.number for fork in session.forks)):
        for row in await storage.rows(ONE, branch=branch):
            assert damage_to(row) is None
            message_in(row)
    assert await storage.verify() == []


async def test_every_write_leaves_an_intact_session(backend: Backend) -> None:
    """The tally matches after every kind of write, also after reopening."""
    async with backend.opened() as storage:
        kept = await fill(storage, "a", "b", "c")
        await is_sound(storage)
        await storage.append(ONE, [entry("d"), entry("e")])
        await is_sound(storage)
        await storage.rewrite(ONE, replaced=[entry("B", id=kept[1].id)], removed=[kept[0].id])
        await is_sound(storage)
        await storage.fork(ONE, parent=MAIN, at=3)
        await storage.append(ONE, [entry("f")], branch=1)
        await storage.activate(ONE, MAIN)
        await is_sound(storage)
        assert await storage.set_aside(ONE, [2], "it was broken") == 1
        await is_sound(storage)
    async with backend.opened() as storage:
        await is_sound(storage)
        await storage.clear(ONE, at=NOON)
        await is_sound(storage)
        await fill(storage, "g")
        await is_sound(storage)


async def test_a_copy_without_checksums_gets_them(backend: Backend) -> None:
    """Data from before checksums existed is protected where it is copied to."""
    session, rows = copy_of(9, 2, 3, 5, 8)
    async with backend.opened() as storage:
        assert await storage.restore(session, rows) is True
        await is_sound(storage)
        await storage.append(ONE, [entry("new")], branch=1)
        await is_sound(storage)


async def test_setting_nothing_aside_recounts(backend: Backend) -> None:
    """A session whose tally is too high becomes intact again."""
    session, rows = copy_of(9, 2, 3, 5, 8)
    short = msgspec.structs.replace(session, chain=f"n1-9.20.{len(rows) + 2}.1")
    async with backend.opened() as storage:
        await storage.restore(short, rows)
        assert [problem for problem in await storage.verify() if "2 of its 6" in problem]
        assert await storage.set_aside(ONE, [], "two are missing") == 0
        await is_sound(storage)


_SEALED = b'{"dragoman":2,"kind":"SealedHead","value":null}'
_RECORDS: dict[str, tuple[str, dict[str, object]]] = {
    "in the future": ("times", {"updated_at": NOON * 2}),
    "created in the future": ("times", {"created_at": NOON * 2}),
    "before its messages": ("times", {"updated_at": NOON - 3 * DAY}),
    "before all clocks": ("times", {"created_at": -1.0}),
    "unreadable": ("windows", {"windows": b'{"w":1}'}),
    "of an earlier release, unreadable": ("windows", {"window": b'{"w":1}'}),
    "another document": ("windows", {"windows": _SEALED}),
    "a seal on plain messages": ("seal", {"seal": _SEALED}),
}


@pytest.mark.parametrize("case", _RECORDS)
async def test_a_damaged_record_is_reported_and_repaired(bare_backend: Backend, case: str) -> None:
    """Also what no other field of it repeats; the messages are untouched."""
    what, changes = _RECORDS[case]
    session, rows = copy_of(9, 2, 4)
    async with bare_backend.opened() as storage:
        assert await storage.restore(session, rows)
        assert await storage.verify() == []
        await storage.delete(ONE)
        await storage.restore(msgspec.structs.replace(session, **changes), rows)
        problems = await storage.verify()
        assert problems
        assert all(what in problem for problem in problems)
        assert await storage.set_aside(ONE, [], "its record was damaged") == 0
        assert await storage.verify() == []
        assert len(await storage.rows(ONE)) == len(rows)
        repaired = await head(storage)
        assert repaired.created_at <= repaired.updated_at
        assert (repaired.windows, repaired.seal) == (None, None)


@pytest.mark.parametrize("past", [0.5 * DAY, 0.0])
async def test_clocks_may_differ(bare_backend: Backend, past: float) -> None:
    """A session changed by a machine whose clock is behind is not damaged."""
    session, rows = copy_of(9, 2, 4)
    late = msgspec.structs.replace(session, updated_at=NOON - past, created_at=NOON + past)
    async with bare_backend.opened() as storage:
        assert await storage.restore(late, rows)
        assert await storage.verify() == []


async def test_a_repair_keeps_windows_and_seals_that_are_sound(bare_backend: Backend) -> None:
    """Only what can't be used is removed."""
    windows = written({Key(MAIN, "m", 800): Cut(first="x", left_out=2)})
    body = b'{"dragoman":2,"kind":"SealedMessage","value":null}'
    session, rows = copy_of(9, 2, 4)
    session = msgspec.structs.replace(session, windows=windows, seal=_SEALED)
    hidden = [msgspec.structs.replace(row, body=body) for row in rows]
    async with bare_backend.opened() as storage:
        assert await storage.restore(session, hidden)
        assert await storage.verify() == []
        assert await storage.set_aside(ONE, [4], "broken") == 1
        kept = await head(storage)
        assert (kept.windows, kept.seal, kept.created_at) == (windows, _SEALED, NOON)
        assert await storage.set_aside(ONE, [2], "broken") == 1
        assert (await head(storage)).seal == _SEALED


def test_a_checksum_covers_all_that_is_stored() -> None:
    """Each field of an entry changes it, and nothing can move from one field to the next."""
    first = entry("a", id="x", at=NOON, model="m")
    variants = {
        "id": "y", "body": first.body + b" ", "at": NOON + 1e-6, "model": "n",
    }  # fmt: skip
    sums = {checksum_of(msgspec.structs.replace(first, **{k: v})) for k, v in variants.items()}
    assert len(sums | {checksum_of(first)}) == len(variants) + 1
    assert checksum_of(entry("a", id="x", at=NOON, model=None)) != checksum_of(first)


_COUNTS = st.integers(0, 2**53)


@given(
    id=st.text(),
    at=st.floats(allow_nan=False, allow_infinity=False) | st.integers(0, 2**40),
    model=st.none() | st.text(),
    usage=st.none() | st.builds(Usage, *[_COUNTS] * 5, st.none() | _COUNTS),
    body=st.binary(),
)
def test_the_checksum_algorithm_is_frozen(
    id: str, at: float, model: str | None, usage: Usage | None, body: bytes
) -> None:
    """With another one, stored messages would count as damaged."""
    counts = () if usage is None else (
        usage.input, usage.output, usage.cache_read, usage.cache_write, usage.thinking,
        usage.reported_total,
    )  # fmt: skip
    text = ascii((id, float(at), model, counts)).encode()
    written = Entry(id, body, at, model, usage)
    assert checksum_of(written) == f"c1-{crc32(text + body):08x}"
    assert damage_to(placed(written, 3, 1)) is None


@pytest.mark.parametrize("change", [{"seq": 2}, {"branch": 1}, {"body": b"{}"}, {"at": NOON}])
def test_a_changed_row_is_damaged(change: dict[str, object]) -> None:
    """Whether it was moved or changed; without a checksum nothing can be detected."""
    first = entry("a")
    row = Row(first.id, first.body, first.at, seq=1, checksum=checksum_of(first), chain="p1-0.1")
    assert damage_to(row) is None
    changed = msgspec.structs.replace(row, **change)
    assert damage_to(changed) is not None
    with pytest.raises(Corrupt):
        message_in(changed)
    assert damage_to(msgspec.structs.replace(changed, checksum=None, chain=None)) is None


@pytest.mark.parametrize(
    "chain", ["", "1", "1.2.3", "1.1.1.0.0", "x.1.1.0", "2.1.1.0", "1.2.1.0", "1.1.1.1"]
)
def test_numbers_that_disagree_are_corrupt(chain: str) -> None:
    """A tally that can't be read, or differs from the session's own numbers."""
    session = Session(ONE, 1, 1, NOON, NOON, chain=f"n1-{chain}")
    with pytest.raises(Corrupt, match="history repair"):
        tally_of(session)


async def test_a_later_form_is_not_checked(backend: Backend) -> None:
    """It is no damage; the next write recounts, and protects what it writes."""
    session, rows = copy_of(9, 2, 4)
    session = msgspec.structs.replace(session, chain="x9-1")
    strange = [msgspec.structs.replace(row, checksum="x9-a", chain="x9-b") for row in rows]
    async with backend.opened() as storage:
        await storage.restore(session, strange)
        assert await storage.verify() == []
        await storage.append(ONE, [entry("new")])
        await is_sound(storage)


async def test_a_seal_stays_until_the_session_is_cleared(bare_backend: Backend) -> None:
    """A write without the keys doesn't renew it: that shows."""
    async with bare_backend.opened() as storage:
        await storage.restore(Session(ONE, 1, 0, NOON, NOON, seal=b'{"s":1}'), [])
        await storage.append(ONE, [entry("a"), entry("b")])
        await storage.fork(ONE, parent=MAIN, at=1)
        await storage.activate(ONE, MAIN, expected=3)
        row = (await storage.rows(ONE))[0]
        await storage.rewrite(ONE, replaced=[row])
        assert (await head(storage)).seal == b'{"s":1}'
        await storage.clear(ONE, at=NOON)
        assert (await head(storage)).seal is None
