"""How many bytecodes a job takes: a count that a busy machine doesn't change.

Work in C (TLS, JSON, SQLite, system calls) counts as one instruction. So what is added in Python
looks larger here than in CPU time.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from types import CodeType, FrameType
from typing import Any

Belongs = Callable[[CodeType], bool]
_TRIES = 3  # the fewest count: how often a loop waits is up to the system


async def bytecodes(
    job: Callable[[], Awaitable[Any]], part: Belongs = lambda _: False
) -> tuple[int, int]:
    """Those of a job in a task of its own, on this thread; and how many are of a part of it."""
    await job()
    return min([await _counted(job, part) for _ in range(_TRIES)])


async def _counted(job: Callable[[], Awaitable[Any]], part: Belongs) -> tuple[int, int]:
    counts = {True: 0, False: 0}
    known: dict[CodeType, bool] = {}

    def trace(frame: FrameType, event: str, _argument: object) -> Any:
        if event == "call":
            frame.f_trace_lines, frame.f_trace_opcodes = False, True
        elif event == "opcode":
            code = frame.f_code
            if code not in known:
                known[code] = part(code)
            counts[known[code]] += 1
        return trace

    async def run() -> None:
        await job()

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        await asyncio.create_task(run())
    finally:
        sys.settrace(before)
    return sum(counts.values()), counts[True]
