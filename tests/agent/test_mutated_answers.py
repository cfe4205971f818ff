"""Agents of models whose answers have a wrong value somewhere: a result or our own error."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from random import Random
from types import MappingProxyType

import pytest

from dragoman import Agent, Messages
from dragoman.agent.limits import RunLimits
from dragoman.errors import DragomanError
from dragoman.transport import Client, Retries
from dragoman.transport.protocol import HttpRequest, Reply, Timeouts
from tests.agent.scripts import clock, weather
from tests.wire.every_place import odd_answer
from tests.wire.mutations import DIALECTS

_MODELS = {
    "openai-chat": "mistral:m", "openai-responses": "openai:gpt-5", "anthropic": "anthropic:claude",
    "gemini": "google:gemini-2.5-pro", "ollama": "ollama:m",
}  # fmt: skip
_SAMPLE = 30


class _Reply:
    """A complete reply."""

    status = 200

    def __init__(self, body: bytes, kind: str) -> None:
        self._body = body
        self.headers: Mapping[str, str] = MappingProxyType({"content-type": kind})

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body in two pieces."""
        half = len(self._body) // 2
        yield self._body[:half]
        yield self._body[half:]

    async def close(self) -> None:
        """Nothing is open."""


class _Odd:
    """Answers each request with an odd answer, the next of its kind."""

    def __init__(self, dialect: str, number: int) -> None:
        self._dialect, self._number = dialect, number
        self.is_stream = False

    async def open(self, request: HttpRequest, timeouts: Timeouts) -> Reply:
        """The reply to a request."""
        assert (request.body is not None, timeouts.connect != 0) == (True, True)
        self._number += 1
        kinds = {"ollama": "application/x-ndjson"}
        kind = kinds.get(self._dialect, "text/event-stream")
        body = odd_answer(self._dialect, self._number, is_stream=self.is_stream)
        return _Reply(body, kind if self.is_stream else "application/json")

    async def close(self) -> None:
        """Nothing is open."""


async def _converse(number: int) -> None:
    dialect = Random(number).choice(DIALECTS)
    transport = _Odd(dialect, number * 100)
    client = Client(_MODELS[dialect], key="k", transport=transport, retries=Retries(attempts=1))
    agent = Agent(client, tools=[weather, clock], limits=RunLimits(steps=3))
    history = Messages()
    for transport.is_stream in (False, True):
        with suppress(DragomanError):
            if transport.is_stream:
                result = await agent.stream("Where?", history=history).collect()
            else:
                result = await agent.send("Where?", history=history)
            repr(result)
            history += result.messages


async def test_mutated_answers() -> None:
    """Whole and streamed, with tools, and what was read of them sent back."""
    for number in range(_SAMPLE):
        await _converse(number)


@pytest.mark.slow
async def test_many_mutated_answers() -> None:
    """The same, many times."""
    for number in range(3_000):
        await _converse(1_000 + number)
