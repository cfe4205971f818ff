"""Programs that end, or whose event loop ends, while a PostgreSQL store is open."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.environment import PATIENCE
from tests.history.storage.backend_postgres import URL, schema

_BEGIN = """
import asyncio, sys, threading
from dragoman import ChatHistory, Message, SessionIdentity
from dragoman.history.storage.postgres import PostgresStorage

ONE = SessionIdentity(chat="1")
url = sys.argv[1]

async def opened(turns=0):
    storage = PostgresStorage(url)
    await storage.open()
    for _ in range(turns):  # what is under way in the background is at another point each time
        await asyncio.sleep(0)
    return storage

async def used(turns=0):
    storage = await opened(turns)
    assert await storage.count(ONE) == 0
    return storage

def blocking():
    history = ChatHistory.open_sync(ONE, storage=url)
    history.add(Message.user("x"))
    return history
"""
_ENDS = {
    "async": "asyncio.run(used())",
    "kept": "kept = asyncio.run(used())",
    "blocking": "kept = blocking()",
    "blocking in a thread": """
thread = threading.Thread(target=blocking)
thread.start()
thread.join()""",
    "in a thread": """
thread = threading.Thread(target=lambda: asyncio.run(used()))
thread.start()
thread.join()""",
    "in a thread that goes on": """
ready = threading.Event()
async def wait():
    storage = await used()
    ready.set()
    await asyncio.sleep(1000)
threading.Thread(target=lambda: asyncio.run(wait()), daemon=True).start()
ready.wait()""",
    "a loop left open": """
loop = asyncio.new_event_loop()
kept = loop.run_until_complete(used())""",
    "a loop closed": """
loop = asyncio.new_event_loop()
kept = loop.run_until_complete(used())
loop.close()""",
    "closed on another loop": "asyncio.run(asyncio.run(used()).close())",
    "used on another loop": "print(asyncio.run(asyncio.run(used()).count(ONE)))",
    "an exception": """
async def fail():
    await used()
    raise SystemExit(3)
asyncio.run(fail())""",
    "an exception, blocking": "kept = blocking(); raise SystemExit(3)",
    "many at once": """
async def many():
    storage = await used()
    await asyncio.gather(*(storage.count(ONE) for _ in range(9)))
asyncio.run(many())""",
    "tasks in mid-query": """
async def busy():
    storage = await used()
    asks = [asyncio.create_task(storage.count(ONE)) for _ in range(9)]
    await asyncio.sleep(0)
asyncio.run(busy())""",
    **{f"after {turns} turns": f"asyncio.run(opened({turns}))" for turns in (0, 3)},
}


@pytest.mark.parametrize("end", _ENDS.values(), ids=_ENDS)
def test_a_store_left_open_does_not_block_the_exit(end: str) -> None:
    """The program ends by itself, with its own status, and without a warning."""
    with schema() as name:
        ended = subprocess.run(
            [sys.executable, "-c", _BEGIN + end, f"{URL}?schema={name}&connections=4"],
            capture_output=True, text=True, timeout=PATIENCE, check=False,
        )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (3 if "SystemExit" in end else 0, "")
