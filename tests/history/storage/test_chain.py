"""Chains: members that fail, lag behind, are ahead, or come back."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import msgspec
import pytest

from dragoman.errors import ConfigError, Conflict, Corrupt, InvalidInputError, StoreError
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.chain import ChainStorage
from dragoman.history.storage.heads import without_checksum
from dragoman.history.storage.memory import MemoryStorage
from dragoman.history.storage.protocol import MAIN, DuplicateIds, Entry, Session, Storage
from dragoman.history.storage.sealed import SealedStorage
from dragoman.history.storage.sqlite import SQLiteStorage
from dragoman.testing.conformance.stores.data import (
    NOON,
    ONE,
    TWO,
    WINDOW,
    entry,
    fill,
    head,
    texts,
)
from tests.history.storage.faults import Fragile

SECRET = "what nobody but the store may know"


def chained(*members: Fragile, retry_after: float = 0) -> ChainStorage:
    """A chain of these."""
    return ChainStorage(*members, retry_after=retry_after)


class Trio:
    """A chain of three fragile members, and the storages in them."""

    def __init__(self) -> None:
        self.members = [Fragile(f"member{number}") for number in range(3)]
        self.primary, self.second, self.third = self.members
        self.chain = chained(*self.members)

    async def alike(self, who: SessionIdentity = ONE) -> None:
        """Assert that all members have the same content."""
        first = await everything_of(self.primary.inner, who)
        assert await everything_of(self.second.inner, who) == first
        assert await everything_of(self.third.inner, who) == first


async def everything_of(storage: Storage, who: SessionIdentity = ONE) -> Any:
    """Everything that must be equal in all members."""
    session = await storage.session(who)
    if session is None:
        return None
    branches = (MAIN, *(fork.number for fork in session.forks))
    rows = [await storage.rows(who, branch=branch) for branch in branches]
    return session, rows


@pytest.fixture
def trio() -> Trio:
    """Three members, all up."""
    return Trio()


# --- reading


async def test_reads_fall_through_a_member_without_the_session(trio: Trio) -> None:
    """If it is absent, the next member is used."""
    await fill(trio.third.inner, "a", "b")
    assert await trio.chain.session(ONE) == await trio.third.inner.session(ONE)
    rows = await trio.chain.rows(ONE)
    assert texts(rows) == ["a", "b"]
    assert await trio.chain.row(ONE, rows[0].id) == rows[0]
    assert await trio.chain.count(ONE) == 2
    assert trio.chain.reports == ()


async def test_a_cleared_session_is_an_answer(trio: Trio) -> None:
    """Messages of an older copy don't come back."""
    await fill(trio.second.inner, "old")
    await trio.primary.inner.clear(ONE, at=NOON)
    assert await trio.chain.rows(ONE) == []
    assert await trio.chain.count(ONE) == 0
    assert (await head(trio.chain)).last_seq == 0


async def test_reads_fall_through_a_failing_member_and_report_it(
    trio: Trio, caplog: pytest.LogCaptureFixture
) -> None:
    """In the log and in the reports, without content."""
    await fill(trio.chain, SECRET)
    trio.primary.down = trio.second.down = True
    with caplog.at_level(logging.WARNING, "dragoman.history"):
        assert texts(await trio.chain.rows(ONE)) == [SECRET]
    assert [report.member for report in trio.chain.reports] == ["member0", "member1"]
    assert {report.problem for report in trio.chain.reports} == {"it is down"}
    assert "member0" in caplog.text
    assert SECRET not in caplog.text


async def test_if_all_members_fail_that_is_an_error(trio: Trio) -> None:
    """Never an empty history."""
    await fill(trio.chain, "a")
    for member in trio.members:
        member.down = True
    for read in (
        trio.chain.session(ONE),
        trio.chain.rows(ONE),
        trio.chain.row(ONE, "x"),
        trio.chain.count(ONE),
        trio.chain.sessions(),
        trio.chain.totals("day"),
        trio.chain.search("a"),
    ):
        with pytest.raises(StoreError, match="member2: it is down"):
            await read


async def test_only_the_primary_decides_that_a_session_is_absent(trio: Trio) -> None:
    """A copy without the session proves nothing while the primary is down."""
    trio.second.down = True
    assert await trio.chain.session(ONE) is None
    trio.second.down, trio.primary.down = False, True
    with pytest.raises(StoreError, match="member0"):
        await trio.chain.session(ONE)


async def test_lists_come_from_the_first_that_answers(trio: Trio) -> None:
    """Sessions, search and totals; an invalid argument is not a failure."""
    await fill(trio.chain, "word")
    trio.primary.down = True
    assert len(await trio.chain.sessions()) == 1
    assert len(await trio.chain.search("word")) == 1
    assert await trio.chain.totals("user") == []
    with pytest.raises(InvalidInputError):
        await trio.chain.search("?")


# --- writing


async def every_write(chain: Storage) -> None:
    """One of each."""
    first = entry("a")
    await chain.append(ONE, [first, entry("b")])
    await chain.append(ONE, [entry("c")], expected=1)
    await chain.rewrite(ONE, replaced=[entry("A", id=first.id)])
    await chain.fork(ONE, parent=MAIN, at=1)
    await chain.fork(ONE, parent=MAIN, at=2, expected=4)
    await chain.append(ONE, [entry("d")], branch=1)
    await chain.activate(ONE, 1)
    await chain.keep_windows(ONE, WINDOW)
    await chain.set_aside(ONE, [2], "broken")


async def test_every_write_goes_to_all_members(trio: Trio) -> None:
    """They are equal after each, including numbers, and nothing had to be copied."""
    await every_write(trio.chain)
    await trio.alike()
    assert "rows" not in trio.primary.calls
    await trio.chain.clear(ONE, at=NOON)
    await trio.alike()
    await trio.chain.restore(Session(ONE, 99, 7, NOON, NOON), [])
    await trio.alike()
    assert await trio.chain.delete(ONE) is True
    assert [await member.inner.session(ONE) for member in trio.members] == [None] * 3
    assert trio.chain.reports == ()


async def test_a_failure_of_the_primary_changes_no_member(trio: Trio) -> None:
    """The write has failed, and can be retried."""
    await fill(trio.chain, "a")
    trio.primary.down = True
    with pytest.raises(StoreError, match="it is down"):
        await trio.chain.append(ONE, [entry("b")])
    assert await trio.second.inner.count(ONE) == 1
    trio.primary.down = False
    with pytest.raises(Conflict):
        await trio.chain.append(ONE, [entry("b")], expected=7)
    (row,) = await trio.chain.rows(ONE)
    with pytest.raises(DuplicateIds):
        await trio.chain.append(ONE, [row])
    assert await trio.second.inner.count(ONE) == 1
    await trio.alike()


@pytest.mark.parametrize("is_late", [False, True])
async def test_a_failing_secondary_fails_no_write_and_is_repaired_at_the_next(
    trio: Trio, is_late: bool
) -> None:
    """Whether or not it had done the work when it failed."""
    await fill(trio.chain, "a")
    trio.second.down, trio.second.is_late = True, is_late
    await every_write_after(trio.chain)
    assert {report.member for report in trio.chain.reports} == {"member1"}
    trio.second.down = False
    await fill(trio.chain, "later")
    await trio.alike()


async def every_write_after(chain: Storage) -> None:
    """Writes to an existing session."""
    await fill(chain, "b")
    await chain.fork(ONE, parent=MAIN, at=1)
    await chain.keep_windows(ONE, WINDOW)
    await chain.activate(ONE, MAIN)
    await chain.set_aside(ONE, [1], "broken")
    await chain.clear(ONE, at=NOON)
    await fill(chain, "c")


async def test_writes_without_a_version_are_repaired_as_well(trio: Trio) -> None:
    """By a repair that finds the same version on both sides."""
    await fill(trio.chain, "a")
    await trio.chain.fork(ONE, parent=MAIN, at=1)
    trio.third.down = frozenset({"commit"})
    await trio.chain.keep_windows(ONE, WINDOW)
    await trio.chain.activate(ONE, MAIN)
    trio.third.down = False
    assert (await trio.chain.repair()).mended == 1
    await trio.alike()


async def test_a_secondary_of_an_earlier_process_is_repaired(trio: Trio) -> None:
    """Only the versions show that it lags behind."""
    await fill(trio.primary.inner, "a", "b")
    (first, _) = await trio.primary.inner.rows(ONE)
    await trio.second.inner.append(ONE, [first])
    await fill(trio.chain, "c")
    await trio.alike()
    assert trio.chain.reports == ()


async def test_foreign_errors_of_a_secondary_are_reported_without_their_text(trio: Trio) -> None:
    """A bug in one backend neither affects the others nor quotes stored content."""
    trio.second.error, trio.second.down = ValueError(SECRET), True
    await fill(trio.chain, "a")
    assert {report.problem for report in trio.chain.reports} == {"it failed with ValueError"}


@pytest.mark.parametrize("error", [ConfigError("no key"), InvalidInputError("odd")])
async def test_no_error_of_a_secondary_fails_a_write(trio: Trio, error: Exception) -> None:
    """Not even one that would be the caller's fault: the primary accepted it."""
    trio.second.error, trio.second.down = error, True
    await fill(trio.chain, "a", "b")
    assert {report.problem for report in trio.chain.reports} == {str(error)}
    assert await trio.third.inner.count(ONE) == 2


async def test_tasks_write_in_turn(trio: Trio) -> None:
    """So that secondaries get the writes in the primary's order."""
    chain = chained(trio.primary, trio.second)
    await asyncio.gather(*(chain.append(ONE, [entry(str(number))]) for number in range(50)))
    assert "rows" not in trio.primary.calls
    assert await everything_of(trio.second.inner) == await everything_of(trio.primary.inner)


async def test_two_chains_on_the_same_members_keep_them_equal(tmp_path: Any) -> None:
    """As two processes do: the second finds it repaired."""
    primary = MemoryStorage()
    chains = [ChainStorage(primary, SQLiteStorage(tmp_path / "copy.db")) for _ in range(2)]
    for chain in chains:
        await chain.open()

    async def write(chain: Storage, writer: int) -> None:
        for number in range(30):
            await chain.append(ONE, [entry(f"{writer} {number}")])

    await asyncio.gather(*(write(chain, number) for number, chain in enumerate(chains)))
    await chains[0].repair()
    for chain in chains:
        await chain.close()
    copy = SQLiteStorage(tmp_path / "copy.db")
    await copy.open()
    assert await everything_of(copy) == await everything_of(primary)
    assert await copy.count(ONE) == 60
    await copy.close()


async def test_a_cancelled_write_is_repaired_at_the_next(tmp_path: Any) -> None:
    """At whichever moment it was cancelled."""
    primary, copy = MemoryStorage(), SQLiteStorage(tmp_path / "copy.db")
    chain = ChainStorage(primary, copy)
    await chain.open()
    for turns in range(10):
        task = asyncio.create_task(chain.append(ONE, [entry("a")]))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    await fill(chain, "end")
    assert await everything_of(copy) == await everything_of(primary)
    await chain.close()


# --- members that differ


async def test_a_session_that_only_a_secondary_has_can_be_continued(trio: Trio) -> None:
    """It is copied to the primary before it is written to, and that is reported."""
    await fill(trio.third.inner, "a", "b")
    session = await head(trio.chain)
    await trio.chain.append(ONE, [entry("c")], expected=session.version)
    assert texts(await trio.primary.inner.rows(ONE)) == ["a", "b", "c"]
    await trio.alike()
    assert [report.member for report in trio.chain.reports] == ["member2"]


async def test_a_session_that_the_primary_lost_meanwhile_can_be_continued(trio: Trio) -> None:
    """A copy of it is brought to the primary, and written to."""
    await fill(trio.chain, "a", "b")
    await trio.primary.inner.delete(ONE)
    await trio.chain.append(ONE, [entry("c")], expected=2)
    await trio.alike()
    assert await trio.chain.count(ONE) == 3


async def test_a_copy_that_is_ahead_is_reported_and_kept(trio: Trio) -> None:
    """It may be the only one that has those messages."""
    await fill(trio.chain, "a")
    await fill(trio.second.inner, "b", "c", "d")
    await fill(trio.chain, "e")
    assert texts(await trio.second.inner.rows(ONE)) == ["a", "b", "c", "d"]
    assert "ahead" in trio.chain.reports[-1].problem
    assert "ahead" in (await trio.chain.repair(ONE)).problems[0].problem
    assert await trio.second.inner.count(ONE) == 4


async def test_another_session_of_the_same_names_is_reported_and_kept(trio: Trio) -> None:
    """However many versions the primary's has."""
    await trio.second.inner.append(ONE, [entry("precious", at=NOON)])
    trio.second.down = True
    await fill(trio.chain, "a")
    trio.second.down = False
    await fill(trio.chain, "b", "c")
    assert texts(await trio.second.inner.rows(ONE)) == ["precious"]
    assert "another session" in trio.chain.reports[-1].problem


# --- repair


async def test_repair_brings_all_copies_up_to_date(trio: Trio) -> None:
    """Absent and old ones; a second repair does nothing."""
    await trio.chain.open()
    await fill(trio.chain, "a")
    await fill(trio.primary.inner, "b")
    await fill(trio.primary.inner, "x", who=TWO)
    await trio.primary.inner.fork(TWO, parent=MAIN, at=0)
    await trio.primary.inner.append(TWO, [entry("y")], branch=1)
    done = await trio.chain.repair()
    assert (done.sessions, done.mended, done.problems) == (2, 4, ())
    await trio.alike(ONE)
    await trio.alike(TWO)
    assert (await trio.chain.repair()).mended == 0


async def test_repair_of_one_session_leaves_the_others(trio: Trio) -> None:
    """Only the requested one is repaired."""
    await fill(trio.primary.inner, "a")
    await fill(trio.primary.inner, "b", who=TWO)
    assert (await trio.chain.repair(ONE)).mended == 2
    assert await trio.second.inner.session(TWO) is None


async def test_repair_reports_sessions_that_only_a_secondary_has(trio: Trio) -> None:
    """They are neither deleted nor copied to the primary."""
    await fill(trio.third.inner, "a")
    for done in (await trio.chain.repair(), await trio.chain.repair(ONE)):
        assert [problem.member for problem in done.problems] == ["member2"]
    assert await trio.third.inner.count(ONE) == 1
    assert await trio.primary.inner.session(ONE) is None


async def test_repair_continues_without_a_failing_secondary(trio: Trio) -> None:
    """It is reported; a failing primary is an error."""
    await fill(trio.primary.inner, "a")
    trio.second.down = True
    done = await trio.chain.repair()
    assert done.mended == 1
    assert {problem.member for problem in done.problems} == {"member1"}
    assert await trio.third.inner.count(ONE) == 1
    trio.primary.down = True
    with pytest.raises(StoreError):
        await trio.chain.repair()


async def test_repair_notices_missing_messages_at_the_same_version(trio: Trio) -> None:
    """Equal versions alone don't make copies equal."""
    made = await fill(trio.chain, "a", "b")
    trio.second.inner.shelf._rows[ONE.digest].drop(made[0].id)
    done = await trio.chain.repair()
    assert [each.member for each in done.healed] == ["member1"]
    await trio.alike()


async def test_a_session_written_to_while_it_is_copied_is_copied_again(trio: Trio) -> None:
    """A copy is of one moment."""
    await fill(trio.primary.inner, "a")
    trio.primary.meanwhile["rows"] = lambda: fill(trio.primary.inner, "b")
    trio.second.meanwhile["commit"] = lambda: fill(trio.primary.inner, "c")
    for _ in range(2):
        assert (await trio.chain.repair(ONE)).problems == ()
    await trio.alike()


async def test_a_session_deleted_while_it_is_copied_leaves_no_copy(trio: Trio) -> None:
    """Deletion goes from the copies to the primary, so the new copy would be missed."""
    await fill(trio.primary.inner, "a")
    trio.second.meanwhile["commit"] = lambda: trio.primary.inner.delete(ONE)
    await trio.chain.repair(ONE)
    assert await trio.second.inner.session(ONE) is None


async def test_a_copy_that_another_process_repairs_meanwhile_is_fine(trio: Trio) -> None:
    """Two processes may find the same gap."""
    await fill(trio.primary.inner, "a")
    (row,) = await trio.primary.inner.rows(ONE)
    trio.second.meanwhile["get"] = lambda: trio.second.inner.append(ONE, [row])
    done = await trio.chain.repair(ONE)
    assert done.problems == ()
    await trio.alike()


# --- delete, forget, verify


async def test_a_failed_deletion_deletes_nothing(trio: Trio) -> None:
    """It raises, the primary keeps the session, and nothing reappears."""
    await fill(trio.chain, "a")
    trio.third.down = True
    with pytest.raises(StoreError, match="member2"):
        await trio.chain.delete(ONE)
    assert await trio.primary.inner.session(ONE) is not None
    trio.third.down = False
    await trio.chain.delete(ONE)
    await fill(trio.chain, "b")
    await trio.alike()
    assert texts(await trio.chain.rows(ONE)) == ["b"]


async def test_forget_erases_on_every_member(trio: Trio) -> None:
    """Copies are counted once; what remains is reported by member."""
    await fill(trio.chain, "a", "b")
    await fill(trio.third.inner, "c", who=SessionIdentity(chat="only there", user="Ana"))
    erased = await trio.chain.forget("Ana")
    assert (erased.sessions, erased.messages, erased.remains) == (2, 3, ())
    assert [await member.inner.sessions() for member in trio.members] == [[], [], []]


async def test_forget_raises_if_a_member_failed(trio: Trio) -> None:
    """After trying all of them."""
    await fill(trio.chain, "a")
    trio.second.down = True
    with pytest.raises(StoreError, match="member1: it is down"):
        await trio.chain.forget("Ana")
    assert await trio.third.inner.sessions() == []
    trio.second.down = False
    assert (await trio.chain.forget("Ana")).sessions == 1


async def test_forget_reports_what_remains_in_which_member(tmp_path: Any) -> None:
    """In each member's own text."""
    chain = ChainStorage(MemoryStorage(), SQLiteStorage(tmp_path / "copy.db"))
    await chain.open()
    await fill(chain, "a")
    erased = await chain.forget("Ana")
    assert all(each.startswith("sqlite:copy.db: ") for each in erased.remains)
    assert erased.remains
    await chain.close()


async def test_verify_names_the_member(trio: Trio) -> None:
    """Including one that is unavailable."""
    assert await trio.chain.verify() == []
    trio.second.down = True
    assert await trio.chain.verify() == ["member1 could not be checked: it is down"]


# --- opening


async def test_a_chain_opens_if_one_member_does(trio: Trio) -> None:
    """The others are reported, and tried again with later calls."""
    trio.second.down = trio.primary.down = frozenset({"open"})
    await trio.chain.open()
    assert [report.member for report in trio.chain.reports] == ["member0", "member1"]
    assert "open" in trio.second.calls
    trio.primary.down = False
    await fill(trio.chain, "a")
    assert await trio.primary.inner.count(ONE) == 1
    assert await trio.second.inner.count(ONE) == 0
    trio.second.down = False
    await fill(trio.chain, "b")
    await trio.alike()
    await trio.chain.close()
    assert [member.calls[-1] for member in trio.members] == ["close"] * 3


async def test_a_member_that_did_not_open_is_not_tried_at_every_call(trio: Trio) -> None:
    """Waiting for its timeout each time would block everything."""
    chain = chained(trio.primary, trio.second, retry_after=3600)
    trio.second.down = True
    await chain.open()
    await fill(chain, "a", "b")
    assert trio.second.calls == ["open"]
    assert "another attempt follows later" in chain.reports[-1].problem


async def test_a_chain_does_not_open_if_none_does(trio: Trio) -> None:
    """The error lists all failures."""
    for member in trio.members:
        member.down = True
    with pytest.raises(StoreError, match="member0: it is down; member1: it is down; member2"):
        await trio.chain.open()
    trio.primary.error = ConfigError("install something")
    with pytest.raises(ConfigError):
        await trio.chain.open()


async def test_a_chain_closes_only_what_it_opened(tmp_path: Any) -> None:
    """A storage that others use as well stays open."""
    mine, theirs = SQLiteStorage(tmp_path / "a.db"), SQLiteStorage(tmp_path / "b.db")
    chain = ChainStorage(mine, theirs, owned=[mine])
    await chain.open()
    await chain.close()
    assert await theirs.session(ONE) is None
    with pytest.raises(StoreError, match="not open"):
        await mine.session(ONE)
    await theirs.close()


def test_a_storage_is_in_a_chain_once() -> None:
    """A repeated one is rejected."""
    storage = MemoryStorage()
    with pytest.raises(InvalidInputError):
        ChainStorage(storage, storage)


def test_a_chain_is_blocking_if_all_members_are(tmp_path: Any) -> None:
    """Its name lists them."""
    memory = MemoryStorage()
    blocking = SQLiteStorage(tmp_path / "a.db", blocking=True)
    assert ChainStorage(memory, blocking).is_blocking
    assert not ChainStorage(memory, SQLiteStorage(tmp_path / "a.db")).is_blocking
    assert ChainStorage(memory, blocking).name == "chain(memory, sqlite:a.db)"


def test_blocking_code_can_run_a_blocking_chain() -> None:
    """No call waits for an event loop."""
    chain = ChainStorage(MemoryStorage(), MemoryStorage())
    for call in (
        chain.open(),
        chain.append(ONE, [Entry("x", entry("a").body, NOON)]),
        chain.fork(ONE, parent=MAIN, at=1),
        chain.repair(),
        chain.delete(ONE),
        chain.close(),
    ):
        with pytest.raises(StopIteration):
            call.send(None)


# --- damage


def damage(storage: MemoryStorage, id: str) -> None:
    """Alter a stored message, as a bad disk does."""
    kept = storage.shelf._rows[ONE.digest]
    row = kept.drop(id)
    kept.put(msgspec.structs.replace(row, body=row.body[:-9] + b"?" + row.body[-8:]))


@pytest.mark.parametrize("number", [0, 1, 2])
async def test_a_damaged_message_is_replaced_from_an_intact_copy(trio: Trio, number: int) -> None:
    """On any member; it is reported, and all members are equal and intact afterwards."""
    made = await fill(trio.chain, "a", "b", "c")
    await trio.chain.fork(ONE, parent=MAIN, at=2)
    damage(trio.members[number].inner, made[1].id)
    assert any("checksum" in problem for problem in await trio.chain.verify())
    done = await trio.chain.repair()
    assert done.problems == ()
    assert [(each.member, "damaged copy" in each.problem) for each in done.healed] == [
        (f"member{number}", True)
    ]
    assert trio.chain.reports[-1:] == done.healed
    assert await trio.chain.verify() == []
    assert texts(await trio.primary.inner.rows(ONE)) == ["a", "b", "c"]
    await trio.alike()
    assert (await trio.chain.repair()).healed == ()


@pytest.mark.parametrize("number", [0, 1])
async def test_a_missing_message_is_restored_from_an_intact_copy(trio: Trio, number: int) -> None:
    """The tally of the member shows that it is missing."""
    made = await fill(trio.chain, "a", "b", "c")
    kept = trio.members[number].inner.shelf._rows[ONE.digest]
    kept.drop(made[2].id)
    assert len((await trio.chain.repair(ONE)).healed) == 1
    assert await trio.chain.verify() == []
    assert texts(await trio.chain.rows(ONE)) == ["a", "b", "c"]
    await trio.alike()


async def test_damaged_numbers_are_replaced_from_an_intact_copy(trio: Trio) -> None:
    """Even if the primary's version can't be read."""
    await fill(trio.chain, "a", "b")
    heads = trio.primary.inner.shelf._heads
    heads[ONE.digest] = without_checksum(heads[ONE.digest])
    with pytest.raises(Corrupt):
        await trio.primary.inner.session(ONE)
    assert len((await trio.chain.repair(ONE)).healed) == 1
    assert await trio.chain.verify() == []
    await trio.alike()


async def test_without_an_intact_copy_of_the_same_state_nothing_is_replaced(trio: Trio) -> None:
    """Damaged copies stay; they are reported."""
    made = await fill(trio.chain, "a", "b")
    for member in trio.members:
        damage(member.inner, made[0].id)
    before = [await everything_of(member.inner) for member in trio.members]
    done = await trio.chain.repair()
    assert done.healed == ()
    assert ["no member has an intact one" in each.problem for each in done.problems] == [True] * 3
    assert [await everything_of(member.inner) for member in trio.members] == before


async def test_a_sealed_chain_is_repaired_without_its_keys(trio: Trio) -> None:
    """Seals are part of each write, and stay valid when a copy is replaced."""
    sealed = SealedStorage(trio.chain, keys={"k": bytes(32)}, current="k")
    made = await fill(sealed, "a", "b", "c")
    await sealed.rewrite(ONE, replaced=[entry("B", id=made[1].id)])
    await sealed.fork(ONE, parent=MAIN, at=2)
    await sealed.activate(ONE, MAIN)
    await trio.alike()
    for member in trio.members:
        damage(member.inner, made[1].id)
        assert len((await trio.chain.repair()).healed) == 1
        assert await sealed.verify() == []
        assert texts(await sealed.rows(ONE)) == ["a", "B", "c"]
        await trio.alike()
    trio.third.down = True
    await fill(sealed, "d")
    trio.third.down = False
    await fill(sealed, "e")
    await trio.alike()
    await sealed.set_aside(ONE, [1], "for the test")
    await sealed.clear(ONE, at=NOON)
    await trio.alike()
    assert await sealed.verify() == []
