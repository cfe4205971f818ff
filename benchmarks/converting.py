"""`dragoman convert` on a large file, beside a bare pass of JSON through orjson."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from benchmarks import conversations
from benchmarks.report import Ratio, show

_MEGABYTE = 1024 * 1024
_ROUNDS_OF_A_DOCUMENT = (1, 2, 3, 5, 8)  # of four messages each


def size() -> int:
    """Megabytes to convert: what `DRAGOMAN_BENCH_MB` says, else 64."""
    return int(os.environ.get("DRAGOMAN_BENCH_MB") or 64)


def converting(megabytes: int) -> list[Ratio]:
    """JSON lines, OpenAI Chat to Anthropic, in one process and in two."""
    with TemporaryDirectory(prefix="dragoman-bench-") as folder:
        whole, part = Path(folder, "whole.jsonl"), Path(folder, "part.jsonl")
        count = write_documents(whole, megabytes * _MEGABYTE)
        write_documents(part, megabytes * _MEGABYTE // 4)
        runs = {jobs: (_orjson(whole, jobs), converted(whole, jobs)) for jobs in (1, 2)}
        smaller = converted(part, 1)
    times: dict[str, float] = {}
    ratios: list[Ratio] = []
    for jobs, (raw, ours) in runs.items():
        word = "1 process" if jobs == 1 else f"{jobs} processes"
        times |= {f"orjson, {word}": raw.seconds, f"dragoman convert, {word}": ours.seconds}
        ratios.append(Ratio(f"against orjson, {word}", ours.seconds / raw.seconds, at_most=8))
    peak, speedup = runs[1][1].peak, runs[1][1].seconds / runs[2][1].seconds
    ratios += [
        Ratio("times faster in 2 processes than in 1", speedup),
        Ratio("peak memory, against a quarter of the file", peak / smaller.peak, at_most=1.25),
    ]
    show(f"{megabytes:,} MB of JSON lines converted, {count:,} documents", times, ratios)
    print(f"  {'peak memory of one process, MB':58} {peak / _MEGABYTE:10.0f}")
    return ratios


def write_documents(path: Path, size: int) -> int:
    """Fill a file with so many bytes of requests, one a line; returns their number."""
    lines = [conversations.body(n) + b"\n" for n in _ROUNDS_OF_A_DOCUMENT]
    block = b"".join(lines)
    blocks = max(1, size // len(block))
    with path.open("wb") as file:
        for _ in range(blocks):
            file.write(block)
    return blocks * len(lines)


class Run(NamedTuple):
    """What a command took: seconds, and the bytes of memory of its largest process."""

    seconds: float
    peak: int


def converted(path: Path, jobs: int) -> Run:
    """Dragoman's way."""
    out = path.with_suffix(".out")
    command = [sys.executable, "-m", "dragoman.cli", "convert", str(path), "--from", "openai-chat"]
    done = _run([*command, "--to", "anthropic", "--out", str(out), "--jobs", str(jobs)])
    _expect_all(path, out)
    return done


def _orjson(path: Path, jobs: int) -> Run:
    out = path.with_suffix(".out")
    done = _run([sys.executable, "-m", "benchmarks.raw_pass", str(path), str(out), str(jobs)])
    _expect_all(path, out)
    return done


def _run(command: list[str]) -> Run:
    """The better of two runs: a file this large needs no more."""
    first, second = _once(command), _once(command)
    return Run(min(first.seconds, second.seconds), max(first.peak, second.peak))


def _once(command: list[str]) -> Run:
    measured = [sys.executable, "-m", "benchmarks.measured", *command]
    done = subprocess.run(measured, check=True, stdout=subprocess.PIPE)
    took, peak = done.stdout.split()
    return Run(float(took), int(peak))


def _expect_all(path: Path, out: Path) -> None:
    """A benchmark of half the work would be none."""
    assert _lines(out) == _lines(path), "not every document came through"
    out.unlink()


def _lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(_MEGABYTE), b""))
