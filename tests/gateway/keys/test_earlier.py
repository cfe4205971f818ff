"""Key stores that the program of November 2026 (2a87e9ab) wrote are taken over."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dragoman.gateway.keys import BatchSpent, Keys, Spent
from dragoman.gateway.keys.urls import store_at
from tests.gateway.keys.conftest import NOON, Place
from tests.gateway.keys.earlier_stores import CENT, Clock, decided, told

ROOT = Path(__file__).resolve().parents[3]
_COMMIT = "2a87e9ab"


@pytest.fixture(scope="session")
def earlier_code(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The code of that commit; skips where the repository's history does not reach back so far."""
    made = subprocess.run(
        ["git", "archive", _COMMIT, "src/dragoman"], cwd=ROOT, capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip(f"this clone has no commit {_COMMIT}")
    folder = tmp_path_factory.mktemp("earlier")
    subprocess.run(["tar", "-x", "-C", folder], input=made.stdout, check=True)
    return folder / "src"


def running(code: Path, *arguments: str) -> subprocess.Popen[bytes]:
    """A process that writes a store, or tells what is in it."""
    script = Path(__file__).with_name("earlier_stores.py")
    environment = {**os.environ, "PYTHONPATH": str(code)}
    return subprocess.Popen(
        [sys.executable, str(script), *arguments], env=environment, stdout=subprocess.PIPE
    )


def output(process: subprocess.Popen[bytes]) -> Any:
    """What it tells: the time, the secrets, and everything else."""
    told, _ = process.communicate()
    assert process.returncode == 0
    return json.loads(told)


def test_an_earlier_store_tells_the_same(place: Place, earlier_code: Path) -> None:
    """Four processes may take it over at once; nothing is lost or counted twice."""
    if place.url.startswith("mariadb"):
        pytest.skip("that program had no stores in MariaDB")
    now, secrets, expected = output(running(earlier_code, place.url, str(NOON)))
    known = json.dumps(secrets)
    readers = [running(ROOT / "src", place.url, str(now), known) for _ in range(4)]
    assert [output(reader)[2] for reader in readers] == [expected] * 4
    _, _, decisions = output(running(earlier_code, "memory:", str(NOON)))
    assert asyncio.run(_decisions(place, now, secrets)) == decisions
    asyncio.run(_continues(place, now, secrets))


async def _decisions(place: Place, now: float, secrets: dict[str, str]) -> list[str]:
    async with Keys(store_at(place.url), clock=Clock(now)) as keys:
        return await decided(keys, secrets)


async def _continues(place: Place, now: float, secrets: dict[str, str]) -> None:
    async with Keys(store_at(place.url), clock=Clock(now)) as keys:
        key = await keys.authenticate(secrets["limited"])
        before = await keys.standing(key)
        taken = await keys.reserve(key, "m1", 10, CENT)
        await keys.settle(taken, Spent(tokens_in=4, cost=CENT, model="new", route="r"))
        after = await keys.standing(key)
        assert after.held == before.held
        assert after.spent["total"][0] == before.spent["total"][0] + 4
        batch = BatchSpent(model="b", route="openai")
        batch.add(Spent(tokens_in=5, cost=CENT))
        usage = await keys.usage()
        await keys.charge_batch(key, "openai/file-1", [batch])  # was charged before
        assert await keys.usage() == usage


def test_a_crash_in_between_leaves_a_file_as_it_was(tmp_path: Path, earlier_code: Path) -> None:
    """The next one takes it over."""
    file = tmp_path / "keys.db"
    now, secrets, expected = output(running(earlier_code, f"sqlite:///{file}", str(NOON)))
    with closing(sqlite3.connect(file)) as db:
        before = list(db.iterdump())
        # A table in the way makes the last steps fail.
        db.execute("CREATE TABLE heads (x)")
        db.commit()

    async def opened() -> Any:
        async with Keys(store_at(f"sqlite:///{file}"), clock=Clock(now)) as keys:
            return await told(keys, secrets)

    with pytest.raises(Exception, match="could not be migrated"):
        asyncio.run(opened())
    with closing(sqlite3.connect(file)) as db:
        db.execute("DROP TABLE heads")
        db.commit()
        assert list(db.iterdump()) == before
    assert asyncio.run(opened()) == expected
