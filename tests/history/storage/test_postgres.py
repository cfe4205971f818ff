"""The PostgreSQL backend: broken connections, timeouts, and the tables."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from urllib.parse import quote

import msgspec
import pytest

from dragoman.errors import InvalidInputError, StoreError
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.postgres import PostgresStorage
from dragoman.history.storage.protocol import Entry, Filter
from dragoman.testing.conformance.stores.data import entry, seqs
from tests.history.storage.backend_postgres import URL, asked, opened

pytest.importorskip("psycopg")

ONE = SessionIdentity(agent="guide", chat="7", user="Ana")
TWO = SessionIdentity(agent="guide", chat="8", user="Bob")


# --- the URL and its settings


def test_settings_come_from_the_url_and_keywords_override_them() -> None:
    """PostgreSQL's own parameters stay in the URL."""
    url = "postgresql://u:p@h:1/d?schema=a&sslmode=require&connections=3"
    storage = PostgresStorage(url, schema="b")
    assert storage.name == "postgresql://h:1/d?schema=b"
    assert storage.shelf.settings.connections == 3
    assert storage.shelf.settings.url == "postgresql://u:p@h:1/d?sslmode=require"


def test_its_name_has_no_password() -> None:
    """Wherever it is in the URL."""
    for url in ("postgresql://u:secret@h/d", "postgresql://u@h/d?password=secret"):
        assert "secret" not in PostgresStorage(url).name


@pytest.mark.parametrize(
    "url",
    [
        "mysql://h/d",
        "postgresql:h",
        "postgresql://h/d?schema=A",
        "postgresql://h/d?schema=a;b",
        "postgresql://h/d?schema=pg_x",
        "postgresql://h/d?connections=0",
        "postgresql://h/d?connections=many",
        "postgresql://h/d?timeout=0",
        "postgresql://h/d?timeout=nan",
        "postgresql://h/d?prepared=perhaps",
    ],
)
def test_invalid_settings_are_rejected(url: str) -> None:
    """Before a connection is opened."""
    with pytest.raises(InvalidInputError):
        PostgresStorage(url)


async def test_an_invalid_url_is_rejected_without_quoting_it() -> None:
    """A % in a password is a common mistake."""
    with pytest.raises(InvalidInputError) as raised:
        await PostgresStorage("postgresql://u:se%cret@h/d").open()
    assert "cret" not in str(raised.value)
    assert raised.value.__context__ is None


async def test_an_unreachable_server_is_reported_at_once() -> None:
    """With its address and the reason, without the password."""
    storage = PostgresStorage("postgresql://u:secret@127.0.0.1:9/d")
    with pytest.raises(StoreError, match=r"127\.0\.0\.1:9/d.*can't be reached") as raised:
        await storage.open()
    assert "secret" not in str(raised.value)
    assert raised.value.__context__ is None
    with pytest.raises(StoreError, match="not open"):
        await storage.count(ONE)


def test_without_its_package_it_says_what_to_install() -> None:
    """Importing the backend needs no package; opening it does."""
    code = """
import asyncio, sys
sys.modules["psycopg"] = None
from dragoman.history.storage.postgres import PostgresStorage
try:
    asyncio.run(PostgresStorage("postgresql://h/d").open())
except Exception as error:
    print(type(error).__name__, error)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.startswith("ConfigError")
    assert "dragoman[postgres]" in ran.stdout


# --- the tables


async def test_a_newer_schema_is_not_changed(place: str) -> None:
    """An old program does not write to a newer schema."""
    async with opened(place):
        await asked(place, "INSERT INTO our.dragoman_migrations (number) VALUES (99)")
    with pytest.raises(StoreError, match="newer dragoman"):
        await PostgresStorage(URL, schema=place).open()


async def test_another_programs_tables_are_not_changed(place: str) -> None:
    """No table is created either."""
    await asked(place, "CREATE SCHEMA our")
    await asked(place, "CREATE TABLE our.messages (theirs text)")
    with pytest.raises(StoreError, match="another program's tables"):
        await PostgresStorage(URL, schema=place).open()
    tables = await asked(place, "SELECT tablename FROM pg_tables WHERE schemaname = %s", (place,))
    assert tables == [("messages",)]


async def test_no_column_that_an_append_changes_is_indexed(place: str) -> None:
    """Otherwise each append would write to every index of the sessions."""
    async with opened(place):
        found = await asked(
            place,
            "SELECT indexdef FROM pg_indexes WHERE schemaname = %s AND tablename = 'heads'",
            (place,),
        )
    columns = {definition.partition(" USING ")[2] for (definition,) in found}
    assert columns == {
        "btree (id)",
        "btree (digest)",
        'btree ("left"("user", 256))',
        'btree ("left"(chat, 256))',
        'btree ("left"("group", 256))',
    }


async def test_bodies_can_be_read_as_json_in_the_database(place: str) -> None:
    """Including those that contain a NUL."""
    async with opened(place) as storage:
        await storage.append(ONE, [entry("a\0b")])
    [(body,)] = await asked(place, "SELECT body FROM our.messages")
    assert "a\\u0000b" in body
    assert json.loads(body)


async def test_a_body_that_is_no_text_is_unchanged(place: str) -> None:
    """Also one that looks like the escape for it."""
    bodies = [b"\xff\0\xfe", b"base64:", b"base64:AAAA", b"a\0b", b""]
    async with opened(place) as storage:
        await storage.append(ONE, [Entry(str(n), body, 0.0) for n, body in enumerate(bodies)])
        assert [row.body for row in await storage.rows(ONE)] == bodies


async def test_server_settings_that_lose_messages_are_reported(place: str) -> None:
    """Durability depends on the server's settings."""
    url = f"{URL}?options=-c%20synchronous_commit%3Doff"
    async with opened(place, url) as storage:
        [problem] = await storage.verify()
        assert "synchronous_commit" in problem


async def test_a_message_without_its_session_is_reported(place: str) -> None:
    """As when somebody deletes rows by hand."""
    async with opened(place) as storage:
        await storage.append(ONE, [entry()])
        await asked(place, "DELETE FROM our.heads")
        [problem] = await storage.verify()
        assert "belong to no session" in problem


async def test_a_replica_can_be_read(place: str) -> None:
    """Opening and reading write nothing; writes say why they fail."""
    async with opened(place) as storage:
        await storage.append(ONE, [entry("a word")])
        await storage.search("word")
    async with opened(place, f"{URL}?options=-c%20default_transaction_read_only%3Don") as replica:
        assert await seqs(replica) == [1]
        assert len(await replica.search("word")) == 1
        with pytest.raises(StoreError, match=r"read-only.*nothing was written"):
            await replica.append(ONE, [entry()])


@pytest.mark.parametrize("level", ["serializable", "repeatable\\ read"])
async def test_a_database_with_another_isolation_level(place: str, level: str) -> None:
    """Writers wait for each other there as well."""
    level = quote(f"-c default_transaction_isolation={level}")
    async with opened(place, f"{URL}?options={level}") as storage:
        await storage.append(ONE, [entry()])
        await asyncio.gather(*(storage.append(ONE, [entry()]) for _ in range(40)))
        assert await seqs(storage) == list(range(1, 42))


async def test_prepared_statements_can_be_turned_off(place: str) -> None:
    """For poolers that assign connections per transaction."""
    async with opened(place, f"{URL}?prepared=no&connections=1") as storage:
        for _ in range(8):
            await storage.append(ONE, [entry()])
        assert await storage.rewrite(ONE, removed=[(await storage.rows(ONE))[0].id]) == 9


# --- writers in many processes

WRITER = """
import asyncio, sys
from time import time
from dragoman import Message
from dragoman.history.identity import SessionIdentity
from dragoman.history.records import body_of
from dragoman.history.storage.postgres import PostgresStorage
from dragoman.history.storage.protocol import Entry

async def main(url, schema, count):
    storage = PostgresStorage(url, schema=schema, connections=2)
    await storage.open()
    for _ in range(int(count)):
        message = Message.user("x")
        new = Entry(message.id, body_of(message), time())
        await storage.append(SessionIdentity(chat="1"), [new])
        print(message.id, flush=True)
    await storage.close()

asyncio.run(main(*sys.argv[1:]))
"""


def run_together(command: list[str], count: int) -> list[str]:
    """The output of that many processes, started at the same time."""
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(count)]
    return [word for each in started for word in each.communicate(timeout=120)[0].split()]


async def test_many_processes_start_and_write_at_once(place: str) -> None:
    """Each message is stored once, numbered without gaps; the tables are created once."""
    told = run_together([sys.executable, "-c", WRITER, URL, place, "60"], 4)
    async with opened(place) as storage:
        rows = await storage.rows(SessionIdentity(chat="1"))
    assert [row.seq for row in rows] == list(range(1, 241))
    assert sorted(row.id for row in rows) == sorted(told)


# --- search and erasure


async def test_the_index_is_filled_in_batches_over_sessions_and_branches(place: str) -> None:
    """More messages than a batch holds, in one session and in many."""
    async with opened(place) as storage:
        await storage.append(ONE, [entry(f"alpha w{n}") for n in range(2500)])
        await storage.fork(ONE, parent=0, at=3)
        await storage.append(ONE, [entry("alpha branched")], branch=1)
        for n in range(120):
            await storage.append(SessionIdentity(chat=f"c{n}"), [entry(f"alpha c{n}")])
        assert len(await storage.search("alpha", limit=5000)) == 2621
        for words in ("w0", "w2499", "branched", "c0", "c119"):
            assert len(await storage.search(words)) == 1
        assert len(await storage.search("alpha", Filter(chat="7"), limit=5000)) == 2501


async def test_words_of_any_length_and_number_are_found(place: str) -> None:
    """Beyond the size of an index entry, and of PostgreSQL's own text vectors."""
    long = "x" * 10_000
    async with opened(place) as storage:
        many = " ".join(f"word{n}" for n in range(150_000))
        await storage.append(ONE, [entry(f"{long}a end"), entry(many), entry(f"{long}b")])
        assert [hit.row.seq for hit in await storage.search(f"{long}A")] == [1]
        assert [hit.row.seq for hit in await storage.search("word0 word149999")] == [2]


async def test_a_change_is_reindexed_without_the_rest(place: str) -> None:
    """Only messages that had been indexed are; the others wait for the next search."""
    async with opened(place) as storage:
        first, second = entry("alpha"), entry("alpha")
        await storage.append(ONE, [first])
        await storage.search("alpha")
        await storage.append(ONE, [second])
        changed = [
            msgspec.structs.replace(old, body=entry("beta").body, at=old.at + 9)
            for old in (first, second)
        ]
        await storage.rewrite(ONE, replaced=changed)
        indexed = await asked(place, "SELECT seq, words FROM our.texts")
        assert indexed == [(1, ["beta"])]
        assert await storage.search("alpha") == []
        assert [hit.row.seq for hit in await storage.search("beta")] == [2, 1]


async def test_records_set_aside_leave_the_index(place: str) -> None:
    """They are kept in a separate table until their user is forgotten."""
    async with opened(place) as storage:
        await storage.append(ONE, [entry("alpha")])
        await storage.search("alpha")
        assert await storage.set_aside(ONE, [1], "broken\0") == 1
        assert await asked(place, "SELECT count(*) FROM our.texts") == [(0,)]
        assert await asked(place, "SELECT seq, reason FROM our.aside") == [(1, "broken\\0")]
        await storage.forget("Ana")
        assert await asked(place, "SELECT count(*) FROM our.aside") == [(0,)]


async def test_forget_leaves_no_row_and_reports_what_it_can_not_reach(place: str) -> None:
    """The log, free space in files, replicas and backups belong to the server."""
    async with opened(place) as storage:
        await storage.append(ONE, [entry("alpha"), entry("beta")])
        await storage.append(TWO, [entry("alpha")])
        await storage.search("alpha")
        erased = await storage.forget("Ana")
        assert (erased.sessions, erased.messages) == (1, 2)
        told = " ".join(erased.remains)
        for place_left in ("free space", "write-ahead log", "replicas", "backups"):
            assert place_left in told
        assert await asked(place, "SELECT chat FROM our.heads") == [("8",)]
        assert await asked(place, "SELECT count(*) FROM our.messages") == [(1,)]
        assert await asked(place, "SELECT count(*) FROM our.texts") == [(1,)]
