"""What a send and a window cost on a long history, against a short one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from time import process_time

from benchmarks.histories_places import BACKENDS
from benchmarks.histories_subjects import new_session
from benchmarks.histories_turns import Batch, in_turn
from benchmarks.report import Ratio, duration
from dragoman import Agent, ChatHistory, ChatHistoryConfig, Message
from dragoman.history.truncation import LastTurns
from dragoman.testing import ScriptedModel

SHORT, LONG = 10, 10_000
PLACES = ("memory", "sqlite")
_EACH = 10
_WHOLE = 100_000_000  # tokens: more than all of it


def windows() -> list[Ratio]:
    """A send with the last five turns, and a window with all, of a short and a long history."""
    print(f"\nA send with the last five turns, of {SHORT:,} messages and of {LONG:,};")
    print(f"a window that is cut, and one with everything, of {LONG:,}: the second and later ones")
    return asyncio.run(_windows())


async def _windows() -> list[Ratio]:
    ratios: list[Ratio] = []
    for place in PLACES:
        async with AsyncExitStack() as stack:
            short = await stack.enter_async_context(_opened(place, SHORT))
            long = await stack.enter_async_context(_opened(place, LONG))
            cut = await stack.enter_async_context(_opened(place, LONG, "cut"))
            whole = await stack.enter_async_context(_opened(place, LONG, "whole"))
            times = await in_turn(
                {
                    "short": _sends(short),
                    "long": _sends(long),
                    "cut": _asks(cut),
                    "whole": _asks(whole),
                }
            )
        ratios += _shown(place, times)
    return ratios


@asynccontextmanager
async def _opened(place: str, count: int, kind: str = "turns") -> AsyncGenerator[ChatHistory]:
    configs = {
        "turns": ChatHistoryConfig(strategy=LastTurns(5)),
        "cut": ChatHistoryConfig(context_window=2_000),
        "whole": ChatHistoryConfig(context_window=_WHOLE),
    }
    async with BACKENDS[place]() as storage:
        history = await ChatHistory.open(new_session(), storage, configs[kind])
        await history.extend([message for n in range(count // 2) for message in _turn(n)])
        yield history


def _turn(number: int) -> list[Message]:
    asked = Message.user(f"Question {number}: " + "what about this one? " * 10)
    return [asked, Message.assistant(f"Answer {number}: " + "it is like the others. " * 10)]


def _sends(history: ChatHistory) -> Batch:
    agent = Agent(ScriptedModel(["It is like the others. " * 10], repeat=True))

    async def batch() -> float:
        start = process_time()
        for number in range(_EACH):
            await agent.send(_turn(number)[0].text, history=history)
        return (process_time() - start) / _EACH

    return batch


def _asks(history: ChatHistory) -> Batch:
    async def batch() -> float:
        spent = 0.0
        for _ in range(_EACH):
            await history.add("ok")
            start = process_time()
            await history.window()
            spent += process_time() - start
        return spent / _EACH

    return batch


def _shown(place: str, times: dict[str, float]) -> list[Ratio]:
    sends = f"sent {duration(times['short'])}, {duration(times['long'])}"
    asked = f"window {duration(times['cut'])} cut, {duration(times['whole'])} whole"
    print(f"  dragoman, {place:26} {sends}; {asked}")
    ratios = [
        Ratio(f"{place}: a send", times["long"] / times["short"], at_most=1.2),
        Ratio(f"{place}: a window that is cut", times["cut"] * 1e3, at_most=1.0, unit="ms"),
        Ratio(f"{place}: a window of all", times["whole"] * 1e3, at_most=1.0, unit="ms"),
    ]
    print(*ratios, sep="\n", flush=True)
    return ratios
