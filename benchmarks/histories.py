"""Chat histories: what they cost as they grow, beside the peers', and beside one's own SQL."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import histories_hand as hand
from benchmarks.histories_places import BACKENDS, CONNECTIONS, POSTGRES, absent
from benchmarks.histories_places import schema as fresh_schema
from benchmarks.histories_subjects import (
    LONG,
    PEERS,
    SHORT,
    TAIL,
    Opening,
    Subject,
    messages,
    new_session,
    ours,
)
from benchmarks.histories_turns import (
    at_once,
    each,
    each_blocking,
    in_turn,
)
from benchmarks.report import Ratio, duration, show
from dragoman import ChatHistory, SessionIdentity

_EACH = 10  # appends of each of many tasks


def growing() -> list[Ratio]:
    """Appending to a long history and opening it, against an empty and a short one."""
    print(f"\nA message appended to an empty history, and to one of {LONG:,};")
    print(f"opened and the last {TAIL} read, of {SHORT:,} and of {LONG:,}")
    return asyncio.run(_growing())


async def _growing() -> list[Ratio]:
    async with AsyncExitStack() as places:
        found = {
            name: await places.enter_async_context(make())
            for name, make in _present(await absent()).items()
        }
        times = await in_turn(
            {
                f"{name}: {step}": batch
                for name, subject in found.items()
                for step, batch in subject._asdict().items()
            }
        )
    return [ratio for name in found for ratio in _shown(name, times)]


def _present(missing: set[str]) -> dict[str, Opening]:
    """All that can be measured here; says which can't."""
    for server in sorted(missing):
        print(f"  {server}: no server, left out")
    mine: dict[str, Opening] = {f"dragoman, {name}": partial(_ours, name) for name in BACKENDS}
    everyone = {**mine, **PEERS}
    return {name: make for name, make in everyone.items() if not missing & set(name.split())}


@asynccontextmanager
async def _ours(name: str) -> AsyncGenerator[Subject]:
    async with BACKENDS[name]() as storage, BACKENDS[name]() as other:
        yield await ours(storage, other)


def _shown(name: str, times: dict[str, float]) -> list[Ratio]:
    empty, long, short_read, long_read = (times[f"{name}: {step}"] for step in Subject._fields)
    append = f"appended {duration(empty)}, {duration(long)}"
    reading = f"read {duration(short_read)}, {duration(long_read)}"
    print(f"  {name:36} {append}; {reading}")
    bars = (1.2, 2.0) if name.startswith("dragoman") else (None, None)
    ratios = [
        Ratio(f"{name}: appended", long / empty, at_most=bars[0]),
        Ratio(f"{name}: opened and read", long_read / short_read, at_most=bars[1]),
    ]
    print(*ratios, sep="\n", flush=True)
    return ratios


# --- beside one's own SQL


def beside_sql() -> list[Ratio]:
    """An append beside a transaction written by hand."""
    return asyncio.run(_beside_sql())


async def _beside_sql() -> list[Ratio]:
    ratios = await _on_sqlite()
    if "postgres" in await absent():
        print("\npostgres: no server, left out")
        return ratios
    return [*ratios, *await _on_postgres()]


async def _on_sqlite() -> list[Ratio]:
    session = new_session()
    async with AsyncExitStack() as places:
        folder = Path(places.enter_context(TemporaryDirectory()))
        raw = places.enter_context(
            closing(hand.SQLite(await hand.with_tables(folder / "1.db", session), session))
        )
        through_aiosqlite = await places.enter_async_context(
            hand.AioSQLite.opened(await hand.with_tables(folder / "2.db", session), session)
        )
        blocking = places.enter_context(
            ChatHistory.open_sync(session, f"sqlite:///{folder / '3.db'}")
        )
        history = await places.enter_async_context(
            await ChatHistory.open(session, f"sqlite:///{folder / '4.db'}")
        )
        times = await in_turn(
            {
                "by hand, sqlite3": each_blocking(raw.add, hand.rows),
                "BlockingChatHistory.add": each_blocking(blocking.add, messages),
                "by hand, aiosqlite": each(through_aiosqlite.add, hand.rows),
                "ChatHistory.add": each(history.add, messages),
            }
        )
    return _rates(
        "An append on SQLite, beside a transaction written by hand; rates",
        times,
        [
            ("BlockingChatHistory.add", "by hand, sqlite3", 0.5),
            ("ChatHistory.add", "by hand, aiosqlite", 1.0),
        ],
    )


async def _on_postgres() -> list[Ratio]:
    ratios: list[Ratio] = []
    for title, sessions in (
        ("a session for each", [new_session() for _ in range(CONNECTIONS)]),
        ("all on one session", [new_session()] * CONNECTIONS),
    ):
        ratios += _rates(
            f"An append on PostgreSQL at {CONNECTIONS} connections, {title}; rates",
            await _postgres_times(sessions),
            [
                ("ChatHistory.add", "by hand, one statement", 0.7),
                ("ChatHistory.add", "by hand, a transaction", 0.7),
            ],
        )
    return ratios


async def _postgres_times(sessions: list[SessionIdentity]) -> dict[str, float]:
    """As many tasks as there are sessions, at once; seconds for one append."""
    from dragoman.history.storage.postgres import PostgresStorage

    async with AsyncExitStack() as places:
        schema = await places.enter_async_context(fresh_schema())
        storage = PostgresStorage(POSTGRES, schema=schema, connections=len(sessions))
        await storage.open()
        places.push_async_callback(storage.close)
        histories = [await ChatHistory.open(session, storage) for session in sessions]
        for history in histories:
            await history.add("The first one makes the session.")
        raw = await places.enter_async_context(hand.Postgres.opened(schema, len(sessions)))
        # Sessions of their own: what is written by hand has no checksums, and would be damage.
        theirs = {session: new_session() for session in sessions}
        for session in theirs.values():
            await (await ChatHistory.open(session, storage)).add("The first one makes the session.")
        tasks = [(n, theirs[session]) for n, session in enumerate(sessions)]
        rows, mine = partial(hand.rows, _EACH), partial(messages, _EACH)
        return await in_turn(
            {
                "by hand, one statement": at_once(
                    [partial(raw.add_at_once, n, session) for n, session in tasks], rows
                ),
                "ChatHistory.add": at_once([history.add for history in histories], mine),
                "by hand, a transaction": at_once(
                    [partial(raw.add, n, session) for n, session in tasks], rows
                ),
            }
        )


def _rates(title: str, times: dict[str, float], pairs: list[tuple[str, str, float]]) -> list[Ratio]:
    ratios = [
        Ratio(f"{mine}, against {other}", times[other] / times[mine], at_least=bar)
        for mine, other, bar in pairs
    ]
    show(title, times, ratios)
    return ratios
