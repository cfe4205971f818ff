"""`make bench`: every benchmark, side by side with the peers, in one run.

Prints figures and ratios; a bar that is missed is marked and counted, and decides nothing else.
`python -m benchmarks streams growth` runs only these.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable
from importlib.metadata import version
from time import perf_counter

from benchmarks.report import Ratio

PEERS = ("msgspec", "aiohttp", "orjson", "pydantic-ai-slim", "langchain-core",
         "langchain-anthropic", "langchain-google-genai", "litellm", "llm-rosetta", "openai",
         "anthropic", "google-genai", "ollama", "aiosqlite", "langchain-community", "SQLAlchemy",
         "psycopg", "redis", "langchain", "langgraph",
         "opentelemetry-sdk")  # fmt: skip


def main(names: list[str]) -> None:
    """Run those named, or all of them."""
    start = perf_counter()
    peers = ", ".join(f"{name} {version(name)}" for name in PEERS)
    print(f"Python {platform.python_version()}; {peers}", flush=True)
    ratios = [ratio for name in names or BENCHMARKS for ratio in BENCHMARKS[name]()]
    missed = sum(not ratio.is_met for ratio in ratios)
    print(f"\n{missed} bars missed" if missed else "\nAll bars cleared", end="")
    print(f" in {perf_counter() - start:.0f} s")


def _model() -> list[Ratio]:
    from benchmarks import model

    return [*model.construction(), *model.storing(), *model.memory(), *model.importing()]


def _translation() -> list[Ratio]:
    from benchmarks import lane, plain, translation

    return [*translation.translation(), *plain.plain(), *lane.lane()]


def _streams() -> list[Ratio]:
    from benchmarks import stream_translation, streams

    translating = stream_translation.translating()
    return [*translating, *streams.decoding(), *streams.encoding()]


def _growth() -> list[Ratio]:
    from benchmarks import growth

    return [*growth.of_messages(), *growth.of_parts(), *growth.of_deltas()]


def _convert() -> list[Ratio]:
    from benchmarks import converting

    return converting.converting(converting.size())


def _histories() -> list[Ratio]:
    from benchmarks import histories, windows

    return [*histories.growing(), *histories.beside_sql(), *windows.windows()]


def _transport() -> list[Ratio]:
    from benchmarks import transport

    return transport.transport()


def _agent() -> list[Ratio]:
    from benchmarks import agent

    return agent.agent()


def _tracing() -> list[Ratio]:
    from benchmarks import tracing

    return tracing.tracing()


# Memory and imports first: in a process that has loaded nothing else yet.
BENCHMARKS: dict[str, Callable[[], list[Ratio]]] = {
    "model": _model,
    "translation": _translation,
    "streams": _streams,
    "growth": _growth,
    "convert": _convert,
    "histories": _histories,
    "transport": _transport,
    "agent": _agent,
    "tracing": _tracing,
}


if __name__ == "__main__":
    main(sys.argv[1:])
