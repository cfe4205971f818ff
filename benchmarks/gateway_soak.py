"""Memory of the gateway over 100,000 streamed requests.

`python -m benchmarks.gateway_soak [REQUESTS]`, in the environment of `make bench`. Half of the
requests pass through, half are translated. After the first fifth, which fills caches, memory may
grow by at most 1 % per 10,000 requests.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from benchmarks.gateway import CASES, Load, started
from benchmarks.gateway_subjects import SUBJECTS, Running

BATCHES = 20
PIECES = 5
_LIMIT = 0.01
"""Growth that is allowed per 10,000 requests, as a share."""


def main(requests: int = 100_000) -> int:
    """Print the memory as it goes; the exit code says whether it stayed flat."""
    load, server = Load(pieces=PIECES), started("benchmarks.transport_server")
    assert server.stdout is not None
    base = f"http://127.0.0.1:{int(server.stdout.readline())}/{PIECES}/0/v1"
    sizes: list[int] = []
    with tempfile.TemporaryDirectory() as folder:
        gateway = Running(SUBJECTS[1], base, Path(folder) / "ours")
        try:
            if not gateway.wait():
                print("the gateway did not start")
                return 1
            for number in range(BATCHES):
                case = (CASES[2], CASES[6])[number % 2]
                found = load.ask(case, gateway, requests // BATCHES)
                if found["wrong"]:
                    print(f"{found['wrong']} answers were wrong")
                    return 1
                sizes.append(gateway.memory())
                done = (number + 1) * requests // BATCHES
                print(f"{done:>8,} requests: {sizes[-1] / 2**20:7.1f} MiB", flush=True)
        finally:
            gateway.stop()
            server.kill()
            load.stop()
    growth = slope(sizes[BATCHES // 5 :]) / sizes[BATCHES // 5] * 10_000 / (requests / BATCHES)
    print(f"growth per 10,000 requests: {growth:.2%} (at most {_LIMIT:.0%})")
    return int(growth > _LIMIT)


def slope(values: list[int]) -> float:
    """The least-squares slope per step.

    >>> slope([1, 3, 5])
    2.0
    """
    middle = (len(values) - 1) / 2
    mean = sum(values) / len(values)
    above = sum((at - middle) * (value - mean) for at, value in enumerate(values))
    return above / sum((at - middle) ** 2 for at in range(len(values)))


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
