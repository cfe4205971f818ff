"""Encrypted stores and chains of November 2026 (commit 2f2ff98c) go on as before."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.errors import Corrupt
from dragoman.history import ChatHistory, SealedStorage, SQLiteStorage
from dragoman.history.storage.chain import ChainStorage
from dragoman.history.storage.protocol import MAIN
from dragoman.testing.conformance.stores.data import ONE, TWO, WINDOW, entry, fill, head, texts
from tests.history.attacker import put, taken

ROOT = Path(__file__).resolve().parents[3]
_COMMIT = "2f2ff98c"
KEYS = {"2025": b"\1" * 32, "2026": b"\2" * 32}
_WRITE = """
import asyncio, sys
from dragoman.history import SealedStorage, SQLiteStorage
from dragoman.history.storage.chain import ChainStorage
from dragoman.testing.conformance.stores.data import ONE, TWO, WINDOW, entry, fill
keys = {"2025": b"\\1" * 32, "2026": b"\\2" * 32}

async def write(storage):
    await storage.open()
    made = await fill(storage, "a", "b", "c")
    await storage.rewrite(ONE, replaced=[entry("B", id=made[1].id)])
    await storage.keep_windows(ONE, WINDOW)
    await storage.fork(ONE, parent=0, at=2)
    await storage.append(ONE, [entry("d")], branch=1)
    await storage.activate(ONE, 0)
    await fill(storage, "x", who=TWO)
    await storage.close()

folder = sys.argv[1]
asyncio.run(write(SealedStorage(SQLiteStorage(folder + "/sealed.db"), keys=keys, current="2025")))
one, two = SQLiteStorage(folder + "/one.db"), SQLiteStorage(folder + "/two.db")
asyncio.run(write(ChainStorage(one, two)))
"""


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """The folder with its stores; skips where the repository's history does not reach so far."""
    made = subprocess.run(
        ["git", "archive", _COMMIT, "src/dragoman"], cwd=ROOT, capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip(f"this clone has no commit {_COMMIT}")
    subprocess.run(["tar", "-x", "-C", tmp_path], input=made.stdout, check=True)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "src")}
    subprocess.run([sys.executable, "-c", _WRITE, str(tmp_path)], env=environment, check=True)
    return tmp_path


async def test_an_encrypted_store_goes_on(written: Path) -> None:
    """It is read, proved, written to, rotated, and an attack on it is noticed."""
    inner = SQLiteStorage(written / "sealed.db")
    storage = SealedStorage(inner, keys=KEYS, current="2026")
    await storage.open()
    try:
        assert await storage.verify() == []
        session = await head(storage)
        assert (session.active, session.windows) == (MAIN, WINDOW)
        assert texts(await storage.rows(ONE)) == ["a", "B", "c"]
        assert texts(await storage.rows(ONE, branch=1)) == ["d"]
        since, old = await storage.checkpoint(), await taken(inner, TWO)
        await storage.append(ONE, [entry("e")], expected=session.version)
        await storage.append(TWO, [entry("y")])
        assert (await storage.rotate()).broken == 0
        assert await storage.verify(since=since) == []
        await put(inner, *old)
        with pytest.raises(Corrupt, match="earlier state"):
            await storage.session(TWO)
        only = SealedStorage(inner, keys={"2026": KEYS["2026"]}, current="2026")
        history = await ChatHistory.open(ONE, only)
        assert [each.text for each in await history.messages()] == ["a", "B", "c", "e"]
    finally:
        await storage.close()


async def test_a_chain_goes_on(written: Path) -> None:
    """Its members have equal versions and other stamps; the next commit makes them equal."""
    members = [SQLiteStorage(written / "one.db"), SQLiteStorage(written / "two.db")]
    chain = ChainStorage(*members)
    await chain.open()
    try:
        assert (await chain.repair(TWO)).problems == ()
        await fill(chain, "e")
        assert chain.reports == ()
        for who in (ONE, TWO):
            assert await taken(members[0], who) == await taken(members[1], who)
        assert texts(await members[1].rows(ONE)) == ["a", "B", "c", "e"]
        assert await chain.verify() == []
    finally:
        await chain.close()
