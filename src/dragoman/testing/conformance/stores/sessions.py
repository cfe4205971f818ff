"""The behaviour of every backend for one session: each sentence of `storage/protocol.py`.

The rest is in `test_conformance_*.py`.
"""

from __future__ import annotations

import asyncio

import pytest

from dragoman.errors import Conflict, NotFound
from dragoman.history.storage.protocol import (
    MAIN,
    DuplicateIds,
    Row,
    Session,
)
from dragoman.model.usage import Usage
from dragoman.testing.conformance.loops import in_loop
from dragoman.testing.conformance.stores.backends import Backend
from dragoman.testing.conformance.stores.data import (
    NOON,
    ONE,
    TWO,
    WINDOW,
    bare,
    entry,
    fill,
    head,
    texts,
    unchanged,
)

# --- opening


@in_loop
async def test_appended_messages_are_there_after_reopening(backend: Backend) -> None:
    """In order, numbered from one."""
    async with backend.opened() as storage:
        for text in ("a", "b", "c"):
            await storage.append(ONE, [entry(text)])
    async with backend.opened() as storage:
        rows = await storage.rows(ONE)
        assert texts(rows) == ["a", "b", "c"]
        assert [row.seq for row in rows] == [1, 2, 3]


@in_loop
async def test_opening_and_closing_twice_does_nothing(backend: Backend) -> None:
    """A storage that was closed can be opened again."""
    storage = backend.new()
    await storage.open()
    await storage.open()
    await fill(storage, "a")
    await storage.close()
    await storage.close()
    await storage.open()
    assert texts(await storage.rows(ONE)) == ["a"]
    await storage.close()


@in_loop
async def test_concurrent_first_openings(new_backend: Backend) -> None:
    """The schema is made once, and all of them can write."""
    storages = [new_backend.new() for _ in range(6)]
    await asyncio.gather(*(storage.open() for storage in storages))
    for storage in storages:
        await storage.append(ONE, [entry("a")])
    assert [row.seq for row in await storages[0].rows(ONE)] == [1, 2, 3, 4, 5, 6]
    for storage in storages:
        await storage.close()


@in_loop
async def test_storages_at_one_location_see_each_others_writes(backend: Backend) -> None:
    """One reads what the other has written, and continues its numbers."""
    async with backend.opened() as left, backend.opened() as right:
        await fill(left, "a")
        await fill(right, "b")
        assert texts(await left.rows(ONE)) == texts(await right.rows(ONE)) == ["a", "b"]
        assert await left.session(ONE) == await right.session(ONE)
        await right.clear(ONE, at=NOON)
        assert await left.count(ONE) == 0
        await right.delete(ONE)
        assert await left.session(ONE) is None


@in_loop
async def test_a_storage_has_a_name(backend: Backend) -> None:
    """Even before it is opened."""
    assert backend.new().name


# --- append


@in_loop
async def test_an_append_returns_the_version_and_the_last_number(backend: Backend) -> None:
    """Each write raises the version by one, however many messages it adds."""
    async with backend.opened() as storage:
        first = await storage.append(ONE, [entry("a"), entry("b"), entry("c")])
        assert (first.version, first.last_seq) == (1, 3)
        second = await storage.append(ONE, [entry("d")])
        assert (second.version, second.last_seq) == (2, 4)
        assert texts(await storage.rows(ONE)) == ["a", "b", "c", "d"]


@in_loop
async def test_a_row_has_all_of_its_entry(backend: Backend) -> None:
    """Id, body, time, model and usage are unchanged."""
    usage = Usage(input=3, output=5, cache_read=7, cache_write=11, thinking=13, reported_total=40)
    full = entry("full", at=NOON + 0.123456, model="some/model:1", usage=usage)
    plain = entry("plain", at=NOON, usage=Usage())
    least = entry("least", at=NOON)
    async with backend.opened() as storage:
        await storage.append(ONE, [full, plain, least])
        assert [bare(row) for row in await storage.rows(ONE)] == [
            Row(e.id, e.body, e.at, e.model, e.usage, seq=seq)
            for seq, e in enumerate([full, plain, least], 1)
        ]
        assert [row.usage for row in await storage.rows(ONE)] == [usage, Usage(), None]


@in_loop
async def test_a_new_session_has_its_identity_and_times(backend: Backend) -> None:
    """It was created with its first message, and last written with its latest."""
    async with backend.opened() as storage:
        await storage.append(ONE, [entry("a", at=NOON)])
        await storage.append(ONE, [entry("b", at=NOON + 5.5)])
        assert bare(await head(storage)) == Session(ONE, 2, 2, NOON, NOON + 5.5)


@in_loop
async def test_an_append_of_several_has_the_time_of_the_last(backend: Backend) -> None:
    """The session was created with the first of them."""
    async with backend.opened() as storage:
        await storage.append(ONE, [entry("a", at=NOON), entry("b", at=NOON + 1)])
        session = await head(storage)
        assert (session.created_at, session.updated_at) == (NOON, NOON + 1)
        await storage.append(ONE, [entry("c", at=NOON + 2), entry("d", at=NOON + 3)])
        session = await head(storage)
        assert (session.created_at, session.updated_at) == (NOON, NOON + 3)


@in_loop
async def test_an_unexpected_version_is_a_conflict_and_writes_nothing(backend: Backend) -> None:
    """The error has both versions."""
    async with backend.opened() as storage:
        await storage.append(ONE, [entry("a")], expected=0)
        with pytest.raises(Conflict) as raised:
            await storage.append(ONE, [entry("b")], expected=0)
        assert (raised.value.expected, raised.value.actual) == (0, 1)
        assert await storage.count(ONE) == 1


@in_loop
async def test_a_version_of_an_absent_session_is_a_conflict(backend: Backend) -> None:
    """The session is not created."""
    async with backend.opened() as storage:
        with pytest.raises(Conflict) as raised:
            await storage.append(ONE, [entry("a")], expected=3)
        assert (raised.value.expected, raised.value.actual) == (3, 0)
        assert await storage.session(ONE) is None


@in_loop
async def test_the_expected_version_allows_a_write(backend: Backend) -> None:
    """For every kind of write."""
    async with backend.opened() as storage:
        one = entry("a")
        await storage.append(ONE, [one], expected=0)
        await storage.append(ONE, [entry("b")], expected=1)
        assert await storage.rewrite(ONE, removed=[one.id], expected=2) == 3
        assert await storage.fork(ONE, parent=MAIN, at=2, expected=3) == 1
        assert await storage.clear(ONE, at=NOON, expected=4) == 5


@pytest.mark.parametrize("place", [0, 1, 2])
@in_loop
async def test_an_existing_id_is_rejected_and_nothing_is_written(
    backend: Backend, place: int
) -> None:
    """Wherever among the new ones it is; the error names it."""
    async with backend.opened() as storage:
        (known,) = await fill(storage, "a")
        before = await head(storage)
        new = [entry("b"), entry("c")]
        new.insert(place, entry("again", id=known.id))
        with pytest.raises(DuplicateIds) as raised:
            await storage.append(ONE, new)
        assert raised.value.ids == (known.id,)
        await unchanged(storage, before, "a")


@in_loop
async def test_a_repeated_id_in_one_append_is_rejected(backend: Backend) -> None:
    """The session is not created."""
    async with backend.opened() as storage:
        with pytest.raises(DuplicateIds):
            await storage.append(ONE, [entry("a", id="x"), entry("b"), entry("c", id="x")])
        assert await storage.session(ONE) is None
        assert await storage.rows(ONE) == []


@in_loop
async def test_an_id_of_another_branch_is_rejected(backend: Backend) -> None:
    """Ids are unique in a session, not in a branch."""
    async with backend.opened() as storage:
        (known,) = await fill(storage, "a")
        await storage.fork(ONE, parent=MAIN, at=0)
        with pytest.raises(DuplicateIds):
            await storage.append(ONE, [entry("b", id=known.id)], branch=1)
        assert await storage.count(ONE, 1) == 0


@in_loop
async def test_two_sessions_may_have_the_same_id(backend: Backend) -> None:
    """A copy of a conversation keeps its ids."""
    async with backend.opened() as storage:
        await storage.append(ONE, [entry("a", id="x")])
        await storage.append(TWO, [entry("b", id="x")])
        assert texts(await storage.rows(ONE)) == ["a"]
        assert texts(await storage.rows(TWO)) == ["b"]


@in_loop
async def test_an_id_can_be_reused_once_its_message_is_removed(backend: Backend) -> None:
    """It gets a new number."""
    async with backend.opened() as storage:
        await storage.append(ONE, [entry("a", id="x")])
        await storage.rewrite(ONE, removed=["x"])
        await storage.append(ONE, [entry("b", id="x")])
        assert [(row.seq, row.id) for row in await storage.rows(ONE)] == [(2, "x")]


@in_loop
async def test_an_unknown_branch_is_not_found(backend: Backend) -> None:
    """Nothing is written, whether or not the session exists."""
    async with backend.opened() as storage:
        with pytest.raises(NotFound):
            await storage.append(ONE, [entry("a")], branch=1)
        assert await storage.session(ONE) is None
        await fill(storage, "a")
        before = await head(storage)
        with pytest.raises(NotFound):
            await storage.append(ONE, [entry("b")], branch=1)
        await unchanged(storage, before, "a")


# --- reading


@in_loop
async def test_a_range_of_rows(backend: Backend) -> None:
    """Above `after`, up to `upto`; with a limit the oldest or the newest of them, in order."""
    async with backend.opened() as storage:
        await fill(storage, *"abcdefgh")

        async def asked(**how: int | None) -> str:
            return "".join(texts(await storage.rows(ONE, **how)))  # type: ignore[arg-type]  # mypy sees bool

        assert await asked() == "abcdefgh"
        assert await asked(after=3) == "defgh"
        assert await asked(upto=3) == "abc"
        assert await asked(upto=0) == ""
        assert await asked(after=3, upto=6) == "def"
        assert await asked(after=6, upto=3) == ""
        assert await asked(after=100) == ""
        assert await asked(limit=2) == "ab"
        assert await asked(limit=0) == ""
        assert await asked(limit=100) == "abcdefgh"
        assert await asked(limit=2, newest=True) == "gh"
        assert await asked(limit=0, newest=True) == ""
        assert await asked(limit=100, newest=True) == "abcdefgh"
        assert await asked(newest=True) == "abcdefgh"
        assert await asked(after=3, limit=2) == "de"
        assert await asked(after=3, limit=2, newest=True) == "gh"
        assert await asked(after=3, limit=9, newest=True) == "defgh"
        assert await asked(upto=6, limit=2, newest=True) == "ef"
        assert await asked(after=3, upto=6, limit=2) == "de"
        assert await asked(upto=3, limit=100) == "abc"
        assert await asked(upto=3, limit=100, newest=True) == "abc"
        assert await asked(after=1, upto=3, limit=100) == "bc"
        assert await asked(branch=1) == ""


@in_loop
async def test_rows_with_gaps_are_counted_by_number(backend: Backend) -> None:
    """Removed messages don't count towards a limit, and their numbers stay unused."""
    async with backend.opened() as storage:
        kept = await fill(storage, *"abcdef")
        await storage.rewrite(ONE, removed=[kept[1].id, kept[4].id])
        assert [row.seq for row in await storage.rows(ONE)] == [1, 3, 4, 6]
        assert texts(await storage.rows(ONE, after=1, limit=2)) == ["c", "d"]
        assert texts(await storage.rows(ONE, limit=2, newest=True)) == ["d", "f"]
        assert texts(await storage.rows(ONE, after=2, upto=5)) == ["c", "d"]


@in_loop
async def test_one_row_by_its_id(backend: Backend) -> None:
    """On any branch; None if there is none."""
    async with backend.opened() as storage:
        (first,) = await fill(storage, "a")
        await storage.fork(ONE, parent=MAIN, at=0)
        second = entry("b")
        await storage.append(ONE, [second], branch=1)
        found = [await storage.row(ONE, each.id) for each in (first, second)]
        assert [(row.seq, row.branch) for row in found if row] == [(1, 0), (2, 1)]
        assert await storage.row(ONE, "another") is None
        assert await storage.row(TWO, first.id) is None


@in_loop
async def test_reading_an_absent_session_gives_nothing(backend: Backend) -> None:
    """No session, no rows, a count of 0; and nothing is created."""
    async with backend.opened() as storage:
        assert await storage.session(ONE) is None
        assert await storage.rows(ONE) == []
        assert await storage.row(ONE, "x") is None
        assert await storage.count(ONE) == 0
        assert await storage.count(ONE, 3) == 0
        assert await storage.delete(ONE) is False
        assert await storage.sessions() == []
        assert await storage.totals("session") == []


@in_loop
async def test_messages_are_counted_by_session_and_branch(backend: Backend) -> None:
    """A branch's count has only its own messages."""
    async with backend.opened() as storage:
        await fill(storage, "a", "b")
        await storage.fork(ONE, parent=MAIN, at=1)
        await storage.append(ONE, [entry("c")], branch=1)
        counted = [await storage.count(ONE, branch) for branch in (None, 0, 1, 2)]
        assert counted == [3, 2, 1, 0]


# --- rewrite


@in_loop
async def test_a_replaced_message_keeps_its_position(backend: Backend) -> None:
    """Number, branch and neighbours stay; everything else is new."""
    async with backend.opened() as storage:
        kept = await fill(storage, "a", "b", "c")
        usage = Usage(input=1, output=2)
        new = entry("B", id=kept[1].id, at=NOON, model="m", usage=usage)
        assert await storage.rewrite(ONE, replaced=[new]) == 4
        rows = await storage.rows(ONE)
        assert texts(rows) == ["a", "B", "c"]
        assert bare(rows[1]) == Row(new.id, new.body, NOON, "m", usage, seq=2)
        assert await storage.row(ONE, new.id) == rows[1]
        assert (await head(storage)).last_seq == 3


@in_loop
async def test_a_replacement_without_usage_removes_the_old_usage(backend: Backend) -> None:
    """Model and usage are replaced with the rest."""
    async with backend.opened() as storage:
        await storage.append(ONE, [entry("a", id="x", model="m", usage=Usage(input=1))])
        await storage.rewrite(ONE, replaced=[entry("b", id="x")])
        found = await storage.row(ONE, "x")
        assert found is not None
        assert (found.model, found.usage) == (None, None)
        assert await storage.totals("model") == []


@in_loop
async def test_a_message_of_a_branch_is_replaced_there(backend: Backend) -> None:
    """Ids are found on any branch."""
    async with backend.opened() as storage:
        await fill(storage, "a")
        await storage.fork(ONE, parent=MAIN, at=0)
        await storage.append(ONE, [entry("b", id="x")], branch=1)
        await storage.rewrite(ONE, replaced=[entry("B", id="x")])
        assert texts(await storage.rows(ONE)) == ["a"]
        assert texts(await storage.rows(ONE, branch=1)) == ["B"]


@in_loop
async def test_removed_numbers_are_not_reused(backend: Backend) -> None:
    """Not even the last one."""
    async with backend.opened() as storage:
        kept = await fill(storage, "a", "b")
        assert await storage.rewrite(ONE, removed=[kept[1].id]) == 3
        await fill(storage, "c")
        assert [row.seq for row in await storage.rows(ONE)] == [1, 3]


@in_loop
async def test_removing_every_message_leaves_an_empty_session(backend: Backend) -> None:
    """It still exists."""
    async with backend.opened() as storage:
        kept = await fill(storage, "a", "b")
        await storage.rewrite(ONE, removed=[each.id for each in kept])
        await unchanged(storage, await head(storage))


@in_loop
async def test_replacing_and_removing_in_one_rewrite(backend: Backend) -> None:
    """One write, one version."""
    async with backend.opened() as storage:
        kept = await fill(storage, "a", "b", "c")
        version = await storage.rewrite(
            ONE, replaced=[entry("A", id=kept[0].id)], removed=[kept[1].id, kept[2].id]
        )
        assert version == 4
        await unchanged(storage, await head(storage), "A")


@in_loop
async def test_a_rewrite_of_a_missing_message_changes_nothing(backend: Backend) -> None:
    """All changes are made, or none."""
    async with backend.opened() as storage:
        kept = await fill(storage, "a", "b")
        before = await head(storage)
        with pytest.raises(NotFound):
            await storage.rewrite(ONE, replaced=[entry("A", id=kept[0].id)], removed=["x"])
        with pytest.raises(NotFound):
            await storage.rewrite(ONE, replaced=[entry("A", id=kept[0].id), entry("new")])
        with pytest.raises(NotFound):
            await storage.rewrite(ONE, removed=[kept[0].id, "x"])
        await unchanged(storage, before, "a", "b")


@in_loop
async def test_a_rewrite_of_an_unexpected_version_changes_nothing(backend: Backend) -> None:
    """The error has both versions."""
    async with backend.opened() as storage:
        kept = await fill(storage, "a", "b")
        before = await head(storage)
        with pytest.raises(Conflict) as raised:
            await storage.rewrite(ONE, removed=[kept[0].id], expected=1)
        assert (raised.value.expected, raised.value.actual) == (1, 2)
        await unchanged(storage, before, "a", "b")


@in_loop
async def test_writes_that_need_a_session_find_none(backend: Backend) -> None:
    """They don't create one."""
    async with backend.opened() as storage:
        with pytest.raises(NotFound):
            await storage.rewrite(ONE, removed=["x"])
        with pytest.raises(NotFound):
            await storage.fork(ONE, parent=MAIN, at=0)
        with pytest.raises(NotFound):
            await storage.activate(ONE, MAIN)
        with pytest.raises(NotFound):
            await storage.keep_windows(ONE, WINDOW)
        with pytest.raises(NotFound):
            await storage.set_aside(ONE, [1], "no reason")
        assert await storage.session(ONE) is None


# --- clear, delete


@in_loop
async def test_a_cleared_session_is_empty_and_not_absent(backend: Backend) -> None:
    """Its numbers and its version continue."""
    async with backend.opened() as storage:
        await storage.append(ONE, [entry("a", at=NOON), entry("b", at=NOON)])
        assert await storage.clear(ONE, at=NOON + 1) == 2
        assert bare(await head(storage)) == Session(ONE, 2, 2, NOON, NOON + 1)
        assert await storage.rows(ONE) == []
        assert (await storage.append(ONE, [entry("c")])).last_seq == 3
        assert texts(await storage.rows(ONE)) == ["c"]


@in_loop
async def test_clearing_creates_the_session_if_needed(backend: Backend) -> None:
    """So that "nothing" differs from "not yet"."""
    async with backend.opened() as storage:
        assert await storage.clear(ONE, at=NOON, expected=0) == 1
        assert bare(await head(storage)) == Session(ONE, 1, 0, NOON, NOON)


@in_loop
async def test_clearing_removes_branches_and_window(backend: Backend) -> None:
    """They were about messages that are gone."""
    async with backend.opened() as storage:
        await fill(storage, "a")
        await storage.fork(ONE, parent=MAIN, at=0)
        await storage.append(ONE, [entry("b")], branch=1)
        await storage.keep_windows(ONE, b'{"x":1}')
        await storage.clear(ONE, at=NOON)
        session = await head(storage)
        assert (session.active, session.forks, session.windows) == (MAIN, (), None)
        assert await storage.count(ONE) == 0
        with pytest.raises(NotFound):
            await storage.append(ONE, [entry("c")], branch=1)


@in_loop
async def test_clearing_an_unexpected_version_changes_nothing(backend: Backend) -> None:
    """An absent session is at version 0."""
    async with backend.opened() as storage:
        with pytest.raises(Conflict):
            await storage.clear(ONE, at=NOON, expected=1)
        assert await storage.session(ONE) is None
        await fill(storage, "a")
        before = await head(storage)
        with pytest.raises(Conflict):
            await storage.clear(ONE, at=NOON, expected=0)
        await unchanged(storage, before, "a")


@in_loop
async def test_a_deleted_session_is_absent_and_starts_over(backend: Backend) -> None:
    """Nothing of it is left, not even its numbers; others stay."""
    async with backend.opened() as storage:
        kept = await fill(storage, "a", "b")
        await storage.fork(ONE, parent=MAIN, at=0)
        await fill(storage, "other", who=TWO)
        assert await storage.delete(ONE) is True
        assert await storage.session(ONE) is None
        assert await storage.rows(ONE) == []
        assert await storage.row(ONE, kept[0].id) is None
        assert await storage.delete(ONE) is False
        assert texts(await storage.rows(TWO)) == ["other"]
        appended = await storage.append(ONE, [kept[0]], expected=0)
        assert (appended.version, appended.last_seq) == (1, 1)
        assert (await head(storage)).forks == ()


__all__ = [name for name in globals() if name.startswith("test_")]
