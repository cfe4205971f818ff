"""A worker process that reserves and settles against one budget until it is used up.

`python -m tests.gateway.keys.spending URL SECRET LOG SEED`: each settlement is a line in LOG,
written when the store has acknowledged it; each admission is checked against what the store says.
"""

from __future__ import annotations

import asyncio
import random
import sys
from decimal import Decimal
from pathlib import Path

from dragoman.errors import QuotaExceeded, RateLimited
from dragoman.gateway.keys import KeyRecord, Keys, Spent

AT_ONCE = 4
LARGEST = 1_000_000  # nano-dollars that a request may cost
_NANO = Decimal("1e-9")


async def work(url: str, secret: str, log: Path, seed: int) -> None:
    """Spend until nothing is left."""
    keys = await Keys.open(url)
    key = await keys.authenticate(secret)
    with log.open("a", buffering=1) as lines:  # a line at a time: killed, it has all before
        await asyncio.gather(
            *(spend(keys, key, lines.write, random.Random(seed * AT_ONCE + n))
              for n in range(AT_ONCE))
        )  # fmt: skip
    await keys.close()


async def spend(keys: Keys, key: KeyRecord, write: object, draw: random.Random) -> None:
    """One client, which sends one request after the other."""
    assert callable(write)
    while True:
        estimate = draw.randrange(1, LARGEST)
        try:
            held = await keys.reserve(key, "m", 7, estimate * _NANO)
        except RateLimited:
            await asyncio.sleep(0.001)  # others hold the rest: it is decided when they settle
            continue
        except QuotaExceeded:
            if estimate < LARGEST // 50:  # even a small one does not fit
                return
            continue
        await expect_within(keys, key)
        if draw.random() < 0.1:
            await keys.release(held)
            continue
        took = draw.randrange(estimate + 1)
        cost = None if draw.random() < 0.1 else took * _NANO
        await keys.settle(held, Spent(tokens_in=3, tokens_out=4, cost=cost, model="m", route="r"))
        write(f"{estimate if cost is None else took}\n")


async def expect_within(keys: Keys, key: KeyRecord) -> None:
    """Fail where more is spent and reserved than the budget: no estimate is exceeded here."""
    spent, held = await keys.standing(key)
    total = spent.get("total", (0, 0))[1] + sum(each.nanos for each in held)
    assert total <= key.budgets[0].units, "more was admitted than the budget allows"


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4])))
