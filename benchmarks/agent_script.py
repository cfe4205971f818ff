"""What every agent is put through: the same prompts, tools and answers, and what comes of them."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

Job = Callable[[], Awaitable[Any]]
Jobs = Mapping[str, Job]
"""By what is measured: one call of an agent, which gives back what `EXPECTED` says."""

PLAIN, ASYNC, SYNC = "a plain turn", "a turn with one async tool", "a turn with one sync tool"
PARALLEL, TYPED = "a turn with 10 tools at once", "a turn with typed output"
STREAMED, LONG = "a streamed turn of 100 deltas", "a turn on a history of 1,000 messages"

PROMPT = "Will it rain in Basel?"
ANSWER = "It rains all day."
SYSTEM = "Be brief."
ARGUMENTS = {"city": "Basel", "days": 2}
CALLS = 10
DELTAS = tuple(f"word {n} " for n in range(100))


async def weather(city: str, days: int) -> str:
    """The weather somewhere, for some days."""
    return f"{days} days of rain in {city}"


def weather_here(city: str, days: int) -> str:
    """The weather somewhere, for some days."""
    return f"{days} days of rain in {city}"


@dataclass
class Forecast:
    """What the weather will be."""

    city: str
    degrees: int


FORECAST = {"city": "Basel", "degrees": 17}


def as_text(arguments: Any) -> str:
    """Arguments as most wires have them; LangChain's chat models have read them already."""
    return json.dumps(arguments)


EXPECTED: Mapping[str, Any] = {
    PLAIN: ANSWER,
    ASYNC: ANSWER,
    SYNC: ANSWER,
    PARALLEL: ANSWER,
    TYPED: Forecast("Basel", 17),
    STREAMED: "".join(DELTAS),
    LONG: ANSWER,
}
