"""Damage to PostgreSQL's tables is reported: counters, names, text, missing rows."""

# ruff: noqa: S608 - names of tables and columns, and values that these tests have chosen

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from dragoman.errors import Corrupt
from dragoman.history.storage.integrity import damage_to, is_damaged
from dragoman.history.storage.postgres import PostgresStorage
from dragoman.history.storage.protocol import MAIN
from dragoman.model.usage import Usage
from dragoman.testing.conformance.stores.data import NOON, ONE, TWO, entry, said, texts
from tests.history.storage.backend_postgres import asked, opened, schema

pytest.importorskip("psycopg")
_OF_ONE = f"WHERE digest = '{ONE.digest}'"


@asynccontextmanager
async def made() -> AsyncGenerator[tuple[PostgresStorage, str]]:
    """Two sessions, the first with a branch; all indexed."""
    with schema() as place:
        async with opened(place, connections=2) as storage:
            for each in ("a", "b", "c"):
                await storage.append(
                    ONE, [entry(each, id=each, at=NOON, model="m", usage=Usage(input=1))]
                )
            await storage.fork(ONE, parent=MAIN, at=2)
            await storage.append(ONE, [entry("d", id="d", at=NOON)], branch=1)
            await storage.append(TWO, [entry("other", id="o", at=NOON)])
            await storage.search("a")
            yield storage, place


HEADS = [
    *(f"stamp = {value}" for value in (-1, 0, 7, 2**62)),
    *(f"at = '{value}'" for value in ("NaN", "-inf", "1")),
    *(f"document = '{value}'" for value in ("", "\\x00", "\\x0000000090")),
    "document = document || '\\x00'",
    "document = substr(document, 1, length(document) - 1)",
    "document = set_byte(document, 20, 255 - get_byte(document, 20))",
    "chat = '%FF'",
    "chat = 'another'",
    "chat = NULL",
    'agent = NULL, chat = NULL, "user" = NULL',
]


@pytest.mark.parametrize("change", HEADS)
async def test_a_damaged_head_is_corrupt_and_can_be_repaired(change: str) -> None:
    """Rewrites reject it, a listing shows it, `verify` reports it; then it is intact again."""
    async with made() as (storage, place):
        await asked(place, f"UPDATE our.heads SET {change} {_OF_ONE}")
        storage._seen.clear()  # what it knows of its own last write would hide the damage
        with pytest.raises(Corrupt, match="history repair"):
            await storage.session(ONE)
        listed = await storage.sessions()
        assert [each.identity for each in listed if not is_damaged(each)] == [TWO]
        assert {each.identity for each in listed} <= {ONE, TWO}
        assert [problem for problem in await storage.verify() if ONE.digest in problem]
        for write in (
            lambda: storage.rewrite(ONE, removed=["a"]),
            lambda: storage.clear(ONE, at=NOON),
            lambda: storage.fork(ONE, parent=MAIN, at=1),
            lambda: storage.activate(ONE, MAIN),
        ):
            with pytest.raises(Corrupt):
                await write()
        await storage.search("a")
        await storage.totals("user")
        with pytest.raises(Corrupt, match="nothing was changed"):
            await storage.append(ONE, [entry("new")])
        assert await storage.set_aside(ONE, [], "its counters") == 0
        assert texts(await storage.rows(ONE)) == ["a", "b", "c"]
        assert texts(await storage.rows(ONE, branch=1)) == ["d"]
        assert await storage.verify() == []
        assert said(await storage.search("d")) == ["d"]
        assert (await storage.append(ONE, [entry("new")])).last_seq >= 5


ROWS = [
    *(f"body = '{value}'" for value in ("", "{}", "base64:", "base64:é", "base64:A", "no JSON")),
    *(f"at = '{value}'" for value in ("NaN", "inf", "-inf", "1e300", "0")),
    "input = NULL, output = 7",
    *(f"{name} = {v}" for name in ("input", "output", "thinking") for v in ("-1", "NULL", "5")),
    "reported_total = -1",
    "id = 'other'",
    "id = '\\0'",
    "model = NULL",
    "model = 'n'",
    "checksum = 'c1-'",
    "chain = 'p1-0.9'",
]


@pytest.mark.parametrize("change", ROWS)
async def test_a_damaged_row_is_detected(change: str) -> None:
    """The others are read as before; it can be set aside."""
    async with made() as (storage, place):
        await asked(place, f"UPDATE our.messages SET {change} WHERE id = 'b'")
        first, second, third = await storage.rows(ONE)
        assert damage_to(second) is not None
        assert [damage_to(first), damage_to(third)] == [None, None]
        assert [problem for problem in await storage.verify() if "message 2" in problem]
        await storage.row(ONE, "b")
        assert said(await storage.search("a")) == ["a"]
        for group in ("session", "user", "model", "day"):
            await storage.totals(group)
        await storage.append(ONE, [entry("new")])
        assert await storage.set_aside(ONE, [2], "broken") == 1
        assert await storage.verify() == []
        assert texts(await storage.rows(ONE)) == ["a", "c", "new"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("DELETE FROM our.messages WHERE id = 'b'", "1 of its 4 messages are missing"),
        ("UPDATE our.messages SET branch = 7 WHERE id = 'b'", "lost their position"),
        ("UPDATE our.messages SET branch = 1 WHERE id = 'b'", "was moved"),
        ("UPDATE our.messages SET seq = -2 WHERE id = 'b'", "lost their position"),
        ("UPDATE our.messages SET seq = 99 WHERE id = 'b'", "beyond their last number"),
        ("UPDATE our.messages SET session = 2, seq = 9 WHERE id = 'b'", "messages are missing"),
        ("UPDATE our.messages SET session = 77 WHERE id = 'b'", "belong to no session"),
        ("UPDATE our.heads SET indexed = 99", "indexed beyond their last number"),
        ("DELETE FROM our.texts WHERE seq = 2", "a search may miss them (1"),
        ("UPDATE our.texts SET words = '{x}' WHERE seq = 2", "a search may miss them (1"),
        ("UPDATE our.texts SET words = '{{b},{b}}' WHERE seq = 2", "a search may miss them (1"),
        ("UPDATE our.texts SET at = 1 WHERE seq = 2", "a search may miss them (1"),
        ("UPDATE our.texts SET seq = 50 WHERE seq = 2", "the search index has messages"),
        (f"UPDATE our.heads SET digest = 'x' {_OF_ONE}", "don't match its key"),
    ],
)
async def test_missing_and_moved_rows_are_reported(change: str, told: str) -> None:
    """By `verify`; counts include readable rows only."""
    async with made() as (storage, place):
        await asked(place, change)
        assert told in " ".join(await storage.verify())
        listed = [*await storage.rows(ONE), *await storage.rows(ONE, branch=1)]
        assert await storage.count(ONE) == len(listed)


async def test_a_page_of_damaged_sessions_does_not_end_a_listing() -> None:
    """Later sessions are still listed; one with unreadable names is not."""
    with schema() as place:
        async with opened(place) as storage:
            people = sorted((ONE, TWO), key=lambda who: who.digest)
            for who in people:
                await storage.append(who, [entry("a")])
            digest = people[0].digest
            await asked(place, f"UPDATE our.heads SET chat = '%FF' WHERE digest = '{digest}'")
            assert [each.identity for each in await storage.sessions(limit=1)] == people[1:]
