"""MariaDB: cut connections, and errors that tell no secrets."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from dragoman.errors import InvalidInputError, StoreError
from dragoman.history import SessionIdentity
from dragoman.history.storage.integrity import missing_rows
from dragoman.history.storage.mariadb import MariaDBStorage
from dragoman.history.storage.protocol import Entry
from tests.history.storage.backend_mariadb import database, end_connections

ME = SessionIdentity(chat="1")


@pytest.fixture
def url() -> Iterator[str]:
    """A new database."""
    with database() as made:
        yield made


async def test_cut_connections_lose_and_double_nothing(url: str) -> None:
    """Four writers, whose connections are ended again and again."""
    storage = MariaDBStorage(f"{url}?connections=4")
    await storage.open()
    await storage.append(ME, [Entry("first", b"{}", 1.0)])
    acknowledged: list[str] = []
    unknown: list[str] = []

    async def write(writer: int) -> None:
        for number in range(40):
            id = f"{writer}.{number}"
            try:
                await storage.append(ME, [Entry(id, b"{}", 1.0)])
            except StoreError:
                unknown.append(id)
            else:
                acknowledged.append(id)

    async def cutting() -> None:
        while len(acknowledged) + len(unknown) < 150:
            await asyncio.sleep(0.02)
            await asyncio.to_thread(end_connections, url.rpartition("/")[2])

    await asyncio.gather(cutting(), *(write(writer) for writer in range(4)))
    ids = [row.id for row in await storage.rows(ME)]
    assert len({*ids}) == len(ids)
    assert {*acknowledged} <= {*ids}
    assert {*ids} <= {*acknowledged, *unknown, "first"}
    session = await storage.session(ME)
    assert session is not None
    assert missing_rows(session, len(ids)) is None
    await storage.close()


async def test_a_late_reply_is_looked_for(url: str) -> None:
    """A lock that another connection holds longer than the timeout: nothing is written."""
    storage = MariaDBStorage(f"{url}?timeout=0.5")
    other = MariaDBStorage(url)
    await storage.open()
    await other.open()
    await storage.append(ME, [Entry("1", b"{}", 1.0)])
    started = asyncio.Event()

    async def holding(ask: object) -> None:
        await ask("UPDATE our.heads SET at = at + 0 WHERE digest = ?", (ME.digest,))  # type: ignore[operator]
        await ask("SELECT id FROM our.heads FOR UPDATE", ())  # type: ignore[operator]
        started.set()
        await asyncio.sleep(1.2)

    held = asyncio.create_task(other.shelf._run(holding, "change"))  # type: ignore[attr-defined]
    await started.wait()
    with pytest.raises(StoreError, match=r"within 0\.5 seconds"):
        await storage.append(ME, [Entry("2", b"{}", 1.0)])
    await held
    await storage.append(ME, [Entry("3", b"{}", 1.0)])
    assert [row.id for row in await storage.rows(ME)] == ["1", "3"]
    await storage.close()
    await other.close()


@pytest.mark.parametrize(
    "url",
    ["mariadb://a:secret-word@h", "mariadb://a:secret-word@h/d?x=1", "mysql://h:nine/d",
     "mariadb://h/d?connections=0", "mariadb://h/d?timeout=nan", "mariadb://h/d?tls=maybe"],
)  # fmt: skip
def test_invalid_urls_are_refused(url: str) -> None:
    """Without the password."""
    with pytest.raises(InvalidInputError, match="must be mariadb") as told:
        MariaDBStorage(url)
    assert "secret-word" not in str(told.value)


@pytest.mark.parametrize("place", ["127.0.0.1:1/x", "127.0.0.1:3306/missing_database"])
async def test_an_unreachable_server_is_reported_without_the_password(place: str) -> None:
    """Errors end up in logs."""
    pytest.importorskip("asyncmy", reason="asyncmy is not installed")
    storage = MariaDBStorage(f"mariadb://root:secret-word@{place}")
    with pytest.raises(StoreError, match="can't be reached") as told:
        await storage.open()
    assert "secret-word" not in f"{told.value!r} {storage.name}"
    assert told.value.__context__ is None
