"""Requests and streams over a connection: beside raw aiohttp, the official SDKs and their like.

Each client is a process of its own and so is the server. They take turns, one order each; what
counts is the CPU time of the client's process, in its best round.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import linear_regression, median
from typing import Any

from benchmarks.report import Ratio, duration, show
from benchmarks.transport_asking import ANTHROPIC, CHAT, LONG, SHORT
from benchmarks.transport_subjects import BY_HAND, OURS, RAW, SUBJECTS

_PIECES = 200
_ROUNDS = 6
_CROWD, _CROWD_ROUNDS = 1000, 10
_TIMES_LESS = 3.0
_MILLISECOND = 1e-3

# What is measured, the order for it, and how many events share its time (None: it is a request).
_ORDERS: dict[str, tuple[list[Any], int | None]] = {
    "a request of one message": (["send", SHORT, 40], None),
    f"a request of {LONG} messages": (["send", LONG, 20], None),
    "a streamed event, all of them sent at once": (["stream", _PIECES, 0, 1, 10], _PIECES),
    "a streamed event, one sent every 4 ms": (["stream", _PIECES, 4000, 10, 1], _PIECES),
}


class Child:
    """A client at work in a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, order: list[Any]) -> Any:
        """What it found."""
        assert self._process.stdin is not None  # for the type
        assert self._process.stdout is not None  # for the type
        print(json.dumps(order), file=self._process.stdin, flush=True)
        return json.loads(self._process.stdout.readline())

    @property
    def memory(self) -> int:
        """Bytes that it has in memory."""
        command = ["ps", "-o", "rss=", "-p", str(self._process.pid)]
        return int(subprocess.check_output(command)) * 1024


def transport() -> list[Ratio]:
    """All of it, on one server."""
    with running("benchmarks.transport_server") as server:
        assert server.stdout is not None  # for the type
        address = f"http://127.0.0.1:{server.stdout.readline().strip()}"
        ratios = [ratio for dialect in (CHAT, ANTHROPIC) for ratio in _beside(dialect, address)]
        return [*ratios, *_crowd(address)]


def _beside(dialect: str, address: str) -> list[Ratio]:
    with _children(dialect, address, SUBJECTS[dialect]) as children:
        ratios = [
            ratio
            for what, (order, events) in _ORDERS.items()
            for ratio in _cost(f"{dialect}: {what}", children, order, events)
        ]
        return [*ratios, *_first_text(dialect, children)]


# --- CPU


def _cost(
    title: str, children: dict[str, Child], order: list[Any], events: int | None
) -> list[Ratio]:
    for child in children.values():
        child.ask(order)  # the first time pays for connections and caches
    rounds = [{name: child.ask(order) for name, child in children.items()} for _ in range(_ROUNDS)]
    times = {name: min(each[name] for each in rounds) / (events or 1) for name in children}
    ratios = _ratios(times)
    show(f"{title}; CPU time", times, ratios)
    unit = "request" if events is None else "event"
    print(f"  over raw aiohttp, per {unit}: {duration(times[OURS] - times[RAW])}", flush=True)
    return ratios


def _ratios(times: dict[str, float]) -> list[Ratio]:
    others = {name: times[name] for name in times if name not in {RAW, BY_HAND, OURS}}
    best = min(others, key=others.__getitem__)
    return [
        Ratio(f"times less than {name}", value / times[OURS],
              at_least=_TIMES_LESS if name == best else None)
        for name, value in others.items()
    ]  # fmt: skip


# --- the first text


def _first_text(dialect: str, children: dict[str, Child]) -> list[Ratio]:
    """How long until there is text, on connections that are open already."""
    order = ["first", 5, 1000, 5]
    found: dict[str, list[float]] = {name: [] for name in children}
    for turn in range(20):
        for name, child in children.items():
            took = child.ask(order)
            found[name] += took if turn else []
    medians = {name: median(times) for name, times in found.items()}
    minima = {f"{name}, the least": min(times) for name, times in found.items()}
    ratios = [
        Ratio("behind aiohttp", (medians[OURS] - medians[RAW]) / _MILLISECOND, 1, unit="ms"),
        Ratio(
            "behind aiohttp, the least of each",
            (min(found[OURS]) - min(found[RAW])) / _MILLISECOND,
            1,
            unit="ms",
        ),
    ]
    title = f"{dialect}: from asking to the first text, median of {len(found[OURS])}"
    show(title, medians | {name: minima[name] for name in list(minima)[:3]}, ratios)
    return ratios


# --- many at once


def _crowd(address: str) -> list[Ratio]:
    """Memory after each of many rounds of very many streams at once."""
    print(f"\n{_CROWD:,} streams of 50 pieces at once, {_CROWD_ROUNDS} rounds; memory after each")
    return [ratio for name in (RAW, OURS) for ratio in _grown(name, address)]


def _grown(name: str, address: str) -> list[Ratio]:
    with _children(CHAT, address, (name,)) as children:
        blocks, memory = zip(*_after_rounds(children[name]), strict=True)
    half = _CROWD_ROUNDS // 2
    slope = linear_regression(range(half), memory[half:]).slope
    print(f"  {name}: {', '.join(f'{size / 2**20:.1f}' for size in memory)} MiB")
    print(f"  {name}: {', '.join(f'{count:,}' for count in blocks)} blocks of Python's")
    print(f"  {name}: {slope / 1024:+.1f} KiB a round, in the last {half}")
    # What a process has is its highest tide: it depends on how far the reader fell behind once.
    # What Python has in use does not.
    ours = name == OURS
    ratios = [
        Ratio(f"{name}: memory, the last {half} against those before",
              median(memory[half:]) / max(memory[:half]), 1.02 if ours else None),
        Ratio(f"{name}: blocks, the last {half} against those before",
              median(blocks[half:]) / max(blocks[:half]), 1.002 if ours else None),
    ]  # fmt: skip
    print(*ratios, sep="\n", flush=True)
    return ratios


def _after_rounds(child: Child) -> Iterator[tuple[int, int]]:
    for _ in range(_CROWD_ROUNDS):
        yield child.ask(["crowd", 50, 20_000, _CROWD]), child.memory


# --- processes


@contextmanager
def _children(dialect: str, address: str, names: tuple[str, ...]) -> Generator[dict[str, Child]]:
    if not names:
        yield {}
        return
    first, *rest = names
    with (
        running("benchmarks.transport_child", first, dialect, address) as process,
        _children(dialect, address, tuple(rest)) as others,
    ):
        yield {first: Child(process), **others}


@contextmanager
def running(module: str, *arguments: str) -> Generator[subprocess.Popen[str]]:
    """A module run as a process, which ends with its standard input."""
    with subprocess.Popen(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-m", module, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parent.parent,
    ) as process:
        yield process
