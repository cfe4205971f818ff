"""Writes a key store, and tells what is in it: `python earlier_stores.py URL NOW [SECRETS]`.

The code of 2a87e9ab writes and tells, today's only tells. In memory, it is what the store decides.
"""

from __future__ import annotations

import asyncio
import json
import sys
from decimal import Decimal
from typing import Any

from dragoman.errors import DragomanError
from dragoman.gateway.keys import BatchSpent, Budget, KeyRecord, Keys, Spent
from dragoman.gateway.keys.store import Found

CENT = Decimal("0.01")


class Clock:
    """A clock that only moves when told to."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        """The time."""
        return self.now


async def write(keys: Keys, clock: Clock) -> dict[str, str]:
    """Keys with budgets, limits, usage, reservations and batches; their secrets."""
    secrets = {}
    budgets = [Budget("cost", Decimal(1), "day"), Budget("tokens", Decimal(10_000), "month")]
    limited, secrets["limited"] = await keys.create(
        name="lim", budgets=budgets, requests_per_minute=50, tokens_per_minute=900,
        max_concurrent=3, models=["m*"],
    )  # fmt: skip
    free, secrets["free"] = await keys.create(name="free")
    gone, secrets["gone"] = await keys.create(name="gone", max_concurrent=1)
    for day in range(3):
        for model in ("m1", "m2", 'm"3 \\'):
            held = await keys.reserve(limited, model, 20, CENT)
            cost = None if model == "m2" else CENT
            took = Spent(
                tokens_in=9, tokens_out=3, tokens_cached=2, cost=cost, model=model, route="r"
            )
            await keys.settle(held, took)
            await keys.settle(await keys.reserve(free, model, 5, None), took)
        clock.now += 86_400 if day < 2 else 0
    await keys.reserve(limited, "m1", 100, 3 * CENT)
    batch = BatchSpent(model="b", route="openai")
    batch.add(Spent(tokens_in=5, cost=CENT))
    await keys.charge_batch(free, "openai/file-1", [batch])
    signing = KeyRecord(id="envelope-1", created_at=clock.now)
    await keys._store.add(Found(signing, bytes(range(32))))
    clock.now += 5
    await keys.revoke(gone.id)
    await keys._write_pending()
    return secrets


async def told(keys: Keys, secrets: dict[str, str]) -> Any:
    """Everything that a store tells."""
    signing = await keys._store.find("envelope-1")
    made: dict[str, Any] = {"envelope-1": None if signing is None else signing.digest.hex()}
    for name, secret in secrets.items():
        try:
            key = await keys.authenticate(secret)
        except DragomanError as error:
            made[name] = str(error)
            continue
        spent, held = await keys.standing(key)
        made[name] = [repr(key.budgets), repr(key), sorted(spent.items()), held]
    made["usage"] = [repr(row) for row in await keys.usage()]
    made["list"] = [repr(each) for each in await keys.list() if each.name]
    return json.loads(json.dumps(made))


async def decided(keys: Keys, secrets: dict[str, str]) -> list[str]:
    """What becomes of some requests."""
    made: list[str] = []
    for tokens, cost in ((1, CENT), (9_000, CENT), (700, CENT), (1, Decimal("0.9"))):
        key = await keys.authenticate(secrets["limited"])
        try:
            await keys.release(await keys.reserve(key, "m1", tokens, cost))
            made.append("admitted")
        except DragomanError as error:
            made.append(str(error))
    return made


async def main(url: str, now: float, known: str = "") -> None:
    """Write a store, unless its secrets are known, and print what is told."""
    clock = Clock(now)
    keys = await Keys.open(url, clock=clock)
    secrets = json.loads(known) if known else await write(keys, clock)
    last = await (decided if url == "memory:" else told)(keys, secrets)
    sys.stdout.write(json.dumps([clock.now, secrets, last]))
    await keys.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], float(sys.argv[2]), *sys.argv[3:]))
