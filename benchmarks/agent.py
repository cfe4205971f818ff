"""The agent's own cost, a turn and a tool call, beside pydantic-ai's and LangChain's agents.

Models answer at once and there is no network: what is left is the loop. All take turns in one
process; what counts is the median of many rounds, of CPU time (threads included) and of wall time.
"""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Mapping
from functools import partial
from statistics import median
from time import perf_counter, process_time
from typing import Any, NamedTuple

from benchmarks import agent_ours, agent_peers
from benchmarks import agent_script as script
from benchmarks.clock import seconds
from benchmarks.report import Ratio, duration, show

OURS = "dragoman"
_TIMES_LESS = 5.0
_KEPT = 200


class Cost(NamedTuple):
    """What one call of an agent takes, in seconds."""

    cpu: float
    wall: float


def agent() -> list[Ratio]:
    """All of it."""
    subjects = {OURS: agent_ours.jobs(), **agent_peers.all_jobs()}
    return [*importing(), *calling(subjects), *memory()]


# --- calls


def calling(
    subjects: Mapping[str, script.Jobs], *, rounds: int = 25, per_round: float = 0.03
) -> list[Ratio]:
    """Each thing that is measured, by all of them in turn."""
    ratios: list[Ratio] = []
    cpu: dict[str, dict[str, float]] = {}
    for what in script.EXPECTED:
        jobs = {name: each[what] for name, each in subjects.items()}
        costs = asyncio.run(_measured(jobs, rounds, per_round))
        cpu[what] = {name: cost.cpu for name, cost in costs.items()}
        found = _ratios(cpu[what])
        show(f"{what}; CPU time, median of {rounds}", cpu[what], found)
        walls = ", ".join(f"{name} {duration(cost.wall)}" for name, cost in costs.items())
        print(f"  wall: {walls}", flush=True)
        ratios += found
    _show_tool_calls(cpu)
    return ratios


async def _measured(
    jobs: Mapping[str, script.Job], rounds: int, per_round: float
) -> dict[str, Cost]:
    repeats = {name: await _repeats(job, per_round) for name, job in jobs.items()}
    found: dict[str, list[Cost]] = {name: [] for name in jobs}
    gc.collect()
    gc.freeze()  # what imports have left behind is no part of anyone's work
    try:
        for _ in range(rounds):
            for name, job in jobs.items():
                found[name].append(await _once(job, repeats[name]))
    finally:
        gc.unfreeze()
    return {name: _median(costs) for name, costs in found.items()}


async def _repeats(job: script.Job, per_round: float) -> int:
    for _ in range(3):  # the first runs pay for imports and caches
        await job()
    return max(1, int(per_round / max((await _once(job, 1)).cpu, 1e-6)))


async def _once(job: script.Job, repeats: int) -> Cost:
    wall, cpu = perf_counter(), process_time()
    for _ in range(repeats):
        await job()
    return Cost((process_time() - cpu) / repeats, (perf_counter() - wall) / repeats)


def _median(costs: list[Cost]) -> Cost:
    return Cost(median(cost.cpu for cost in costs), median(cost.wall for cost in costs))


def _ratios(times: Mapping[str, float], at_least: float | None = _TIMES_LESS) -> list[Ratio]:
    """How many times less we take than each of the others; the bar is for the best of them."""
    others = {name: value for name, value in times.items() if name != OURS}
    best = min(others.values(), default=0.0)
    return [
        Ratio(f"times less than {name}", value / times[OURS],
              at_least=at_least if value == best else None)
        for name, value in others.items()
    ]  # fmt: skip


def _show_tool_calls(cpu: Mapping[str, Mapping[str, float]]) -> None:
    """What each call adds that is not alone: a turn of ten against a turn of one."""
    one, ten = cpu[script.ASYNC], cpu[script.PARALLEL]
    more = {name: max(0.0, (ten[name] - one[name]) / (script.CALLS - 1)) for name in one}
    show("one more tool call in the same turn; CPU time", more, [])


# --- what an import takes


def importing(rounds: int = 5) -> list[Ratio]:
    """What it takes to have an agent to import, in fresh interpreters."""
    jobs = {code: partial(_fresh, code) for code in ("pass", *_IMPORTS.values())}
    times = seconds(jobs, rounds=rounds, per_round=0)
    took = {name: times[code] - times["pass"] for name, code in _IMPORTS.items()}
    ratios = _ratios(took, at_least=None)
    show("importing the agent, the interpreter's own start taken off", took, ratios)
    return ratios


_IMPORTS = {
    OURS: "from dragoman import Agent",
    agent_peers.PYDANTIC_AI: "from pydantic_ai import Agent",
    agent_peers.LANGCHAIN: "from langchain.agents import create_agent",
}


def _fresh(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True)


# --- memory


def memory() -> list[Ratio]:
    """Agents that do nothing, each with a tool, on one model."""
    tools = [script.weather]
    ours, pydantic = agent_ours.QuickModel(), agent_peers.pydantic_model()
    chain = agent_peers.langchain_model()
    sizes = {
        OURS: idle_size(lambda: agent_ours.idle(ours)),
        agent_peers.PYDANTIC_AI: idle_size(
            lambda: agent_peers.pydantic_agent(pydantic, tools=tools)
        ),
        agent_peers.LANGCHAIN: idle_size(lambda: agent_peers.langchain_agent(chain, tools=tools)),
    }
    ratios = _ratios(sizes, at_least=None)
    print(f"\nMemory of {_KEPT} idle agents with a tool")
    for name, size in sizes.items():
        print(f"  {name + ', KB an agent':58} {size / 1024:10.1f}")
    print(*ratios, sep="\n", flush=True)
    return ratios


def idle_size(make: Callable[[], Any], count: int = _KEPT) -> float:
    """Bytes that one agent of many takes."""
    make()  # the first one pays for caches
    gc.collect()
    tracemalloc.start()
    try:
        kept = [make() for _ in range(count)]
        gc.collect()
        return tracemalloc.get_traced_memory()[0] / len(kept)
    finally:
        tracemalloc.stop()
