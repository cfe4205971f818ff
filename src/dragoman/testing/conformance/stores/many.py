"""Operations across sessions, on every backend: listing, totals, erasure."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest

from dragoman.errors import InvalidInputError
from dragoman.history.identity import FIELDS, SessionIdentity
from dragoman.history.storage.protocol import (
    MAIN,
    Filter,
    Group,
)
from dragoman.model.usage import Usage
from dragoman.testing.conformance.loops import in_loop
from dragoman.testing.conformance.stores.backends import Backend
from dragoman.testing.conformance.stores.data import (
    DAY,
    NOON,
    ONE,
    TWO,
    WINDOW,
    copy_of,
    entry,
    fill,
)

# --- many sessions


@in_loop
async def test_sessions_come_in_the_order_of_their_digests(backend: Backend) -> None:
    """A page at a time, each exactly once."""
    everyone = [SessionIdentity(chat=str(number)) for number in range(7)]
    async with backend.opened() as storage:
        for who in everyone:
            await fill(storage, "a", who=who)
        expected = sorted(who.digest for who in everyone)
        listed = [each.identity.digest for each in await storage.sessions()]
        assert listed == expected
        paged: list[str] = []
        while page := await storage.sessions(limit=3, after=paged[-1] if paged else ""):
            assert len(page) <= 3
            paged += [each.identity.digest for each in page]
        assert paged == expected
        assert await storage.sessions(limit=0) == []


@pytest.mark.parametrize("field", FIELDS)
@in_loop
async def test_sessions_by_each_name(backend: Backend, field: str) -> None:
    """A given name, an empty one, none at all (`None`), or any (left out)."""
    other = "chat" if field != "chat" else "agent"
    made = [SessionIdentity(**{other: "same", field: name}) for name in ("a", "A", "", None)]
    async with backend.opened() as storage:
        for who in made:
            await storage.clear(who, at=NOON)

        async def asked(**names: str | None) -> set[SessionIdentity]:
            found = await storage.sessions(Filter(**names))  # type: ignore[arg-type]  # names only
            return {each.identity for each in found}

        assert await asked(**{field: "a"}) == {made[0]}
        assert await asked(**{field: "A"}) == {made[1]}
        assert await asked(**{field: ""}) == {made[2]}
        assert await asked(**{field: None}) == {made[3]}
        assert await asked(**{field: "b"}) == set()
        assert await asked() == set(made)
        assert await asked(**{other: "same"}) == set(made)
        assert await asked(**{other: "same", field: "a"}) == {made[0]}
        assert await asked(**{other: "else", field: "a"}) == set()


@in_loop
async def test_sessions_by_their_last_write(backend: Backend) -> None:
    """`since` is included, `until` is not."""
    async with backend.opened() as storage:
        for number in range(4):
            await storage.clear(SessionIdentity(chat=str(number)), at=NOON + number)

        async def asked(**times: float) -> str:
            found = await storage.sessions(Filter(**times))  # type: ignore[arg-type]  # times only
            return "".join(sorted(str(each.identity.chat) for each in found))

        assert await asked(since=NOON + 1) == "123"
        assert await asked(until=NOON + 2) == "01"
        assert await asked(since=NOON + 1, until=NOON + 2) == "1"
        assert await asked(since=NOON + 9) == ""


@in_loop
async def test_a_filter_works_with_pages(backend: Backend) -> None:
    """The limit counts the matching sessions."""
    async with backend.opened() as storage:
        for number in range(10):
            user = "even" if number % 2 == 0 else "odd"
            await storage.clear(SessionIdentity(chat=str(number), user=user), at=NOON)
        first = await storage.sessions(Filter(user="even"), limit=3)
        rest = await storage.sessions(Filter(user="even"), limit=3, after=first[-1].identity.digest)
        assert [len(first), len(rest)] == [3, 2]
        assert len({each.identity for each in [*first, *rest]}) == 5


@in_loop
async def test_totals_add_up_usage_by_session_user_model_and_day(backend: Backend) -> None:
    """Messages without usage don't count; unknown keys come first."""
    used = Usage(input=1, output=2, cache_read=3, cache_write=4, thinking=5)
    nobody = SessionIdentity(chat="9")
    async with backend.opened() as storage:
        await storage.append(ONE, [entry("a", at=NOON, model="m", usage=used), entry("b", at=NOON)])
        await storage.append(ONE, [entry("c", at=NOON + DAY, model="n", usage=used)])
        await storage.append(TWO, [entry("d", at=NOON, model="m", usage=used)])
        await storage.append(nobody, [entry("e", at=NOON, usage=used)])

        async def asked(by: Group, which: Filter | None = None) -> list[tuple[str | None, int]]:
            found = await storage.totals(by, which or Filter())
            assert all(each.usage.input * 2 == each.usage.output for each in found)
            assert all(each.usage.reported_total is None for each in found)
            assert all(each.usage.input == each.messages for each in found)
            assert all(each.usage.total == 15 * each.messages for each in found)
            return [(each.key, each.messages) for each in found]

        counts = {ONE.digest: 2, TWO.digest: 1, nobody.digest: 1}
        assert await asked("session") == sorted(counts.items())
        assert await asked("user") == [(None, 1), ("Ana", 2), ("Ben", 1)]
        assert await asked("model") == [(None, 1), ("m", 2), ("n", 1)]
        assert await asked("day") == [("2025-11-16", 3), ("2025-11-17", 1)]
        assert await asked("user", Filter(user="Ana")) == [("Ana", 2)]
        assert await asked("day", Filter(user=None)) == [("2025-11-16", 1)]
        assert await asked("model", Filter(until=NOON + 1)) == [(None, 1), ("m", 1)]


@in_loop
async def test_totals_prefer_reported_totals(backend: Backend) -> None:
    """As the sum of `Usage` does: reported totals, and sums if there are none."""
    async with backend.opened() as storage:
        reported, plain = Usage(input=1, reported_total=100), Usage(input=10, thinking=1)
        await storage.append(ONE, [entry("a", usage=reported), entry("b", usage=plain)])
        (total,) = await storage.totals("session")
        assert total.usage == reported + plain
        assert (total.usage.reported_total, total.messages) == (111, 2)


@in_loop
async def test_a_day_ends_at_midnight_utc(backend: Backend) -> None:
    """Not a moment earlier."""
    midnight = NOON + DAY / 2
    async with backend.opened() as storage:
        for at in (midnight - 1, midnight - 0.25, midnight, midnight + 1):
            await storage.append(ONE, [entry("a", at=at, usage=Usage(input=1))])
        found = {each.key: each.messages for each in await storage.totals("day")}
        assert found == {"2025-11-16": 2, "2025-11-17": 2}


@in_loop
async def test_totals_reflect_replaced_and_removed_messages(backend: Backend) -> None:
    """They are those of the current messages."""
    async with backend.opened() as storage:
        await storage.append(ONE, [entry("a", id="x", usage=Usage(input=1))])
        await storage.append(ONE, [entry("b", id="y", usage=Usage(input=2))])
        await storage.rewrite(
            ONE, replaced=[entry("c", id="x", usage=Usage(input=10))], removed=["y"]
        )
        assert [each.usage.input for each in await storage.totals("session")] == [10]
        await storage.clear(ONE, at=NOON)
        assert await storage.totals("session") == []


# --- forget, verify


@in_loop
async def test_forget_erases_that_user_only(backend: Backend) -> None:
    """All sessions of the user; similar names and sessions without a user stay."""
    cafe = "caf\u00e9"
    others = [
        SessionIdentity(user=unicodedata.normalize("NFD", cafe)),
        SessionIdentity(user="Caf\u00e9"),
        SessionIdentity(user="caf"),
        SessionIdentity(agent=cafe),
        SessionIdentity(user="", chat="1"),
        SessionIdentity(chat="1"),
    ]
    async with backend.opened() as storage:
        for who in [*others, SessionIdentity(user=cafe), SessionIdentity(user=cafe, chat="2")]:
            await fill(storage, "a", "b", who=who)
        erased = await storage.forget(cafe)
        assert (erased.sessions, erased.messages) == (2, 4)
        assert {each.identity for each in await storage.sessions()} == set(others)
        assert [await storage.count(who) for who in others] == [2] * len(others)
        assert await storage.session(SessionIdentity(user=cafe)) is None
        again = await storage.forget(cafe)
        assert (again.sessions, again.messages) == (0, 0)
        await storage.forget("")
        assert {each.identity for each in await storage.sessions()} == {*others} - {others[4]}


@in_loop
async def test_a_forgotten_session_starts_over(backend: Backend) -> None:
    """Its numbers and records set aside are forgotten as well."""
    async with backend.opened() as storage:
        await fill(storage, "a", "b")
        await storage.set_aside(ONE, [1], "for the test")
        await storage.forget("Ana")
        assert await storage.rows(ONE) == []
        assert (await storage.append(ONE, [entry("c")], expected=0)).last_seq == 1


@in_loop
async def test_verify_reports_nothing_for_a_store_in_use(backend: Backend) -> None:
    """After every kind of write."""
    async with backend.opened() as storage:
        kept = await fill(storage, "a", "b", "c")
        await storage.fork(ONE, parent=MAIN, at=1)
        await storage.append(ONE, [entry("d")], branch=1)
        await storage.rewrite(ONE, removed=[kept[0].id])
        await storage.set_aside(ONE, [2], "for the test")
        await storage.keep_windows(ONE, WINDOW)
        await storage.restore(*copy_of(5, 1, who=TWO))
        assert await storage.verify() == []


@in_loop
async def test_invalid_queries_are_rejected(backend: Backend) -> None:
    """With our own errors, before anything is read."""
    async with backend.opened() as storage:
        for ask in (
            lambda: storage.search(None),  # type: ignore[arg-type]  # the point
            lambda: storage.search("x", {"user": "ana"}),  # type: ignore[arg-type]  # the point
            lambda: storage.search("x", limit=-1),
            lambda: storage.totals("week"),  # type: ignore[arg-type]  # the point
            lambda: storage.totals("day", None),  # type: ignore[arg-type]  # the point
            lambda: storage.sessions({}),  # type: ignore[arg-type]  # the point
            lambda: storage.sessions(limit=-1),
            lambda: storage.forget(None),  # type: ignore[arg-type]  # the point
        ):
            with pytest.raises(InvalidInputError):
                await ask()


def test_a_filter_of_wrong_types_is_rejected() -> None:
    """When it is created."""
    wrong: list[dict[str, Any]] = [{"user": 7}, {"since": "today"}, {"until": float("nan")}]
    for names in wrong:
        with pytest.raises(InvalidInputError):
            Filter(**names)


__all__ = [name for name in globals() if name.startswith("test_")]
