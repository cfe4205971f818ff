"""`make bench`: every benchmark, side by side with the peers, in one run.

Prints figures and ratios; a bar that is missed is marked and counted, and decides nothing else.
"""

from __future__ import annotations

import platform
from importlib.metadata import version

from benchmarks import model

PEERS = ("msgspec", "pydantic-ai-slim", "langchain-core")


def main() -> None:
    """Run them all."""
    peers = ", ".join(f"{name} {version(name)}" for name in PEERS)
    print(f"Python {platform.python_version()}; {peers}")
    ratios = [
        *model.construction(),
        *model.storing(),
        *model.memory(),
        *model.importing(),
    ]
    missed = sum(not ratio.is_met for ratio in ratios)
    print(f"\n{missed} bars missed" if missed else "\nAll bars cleared")


if __name__ == "__main__":
    main()
