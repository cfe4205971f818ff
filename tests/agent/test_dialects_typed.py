"""Typed output with and without tools, in each dialect's wire format: all three modes.

The model on loopback is obedient: it runs its tools, then gives the value in the requested form.
Requests are validated as in `tests/agent/vendors.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest
from msgspec import UNSET

from dragoman import Agent
from dragoman.model.requests import Request
from tests.agent.scripts import clock, weather
from tests.agent.test_dialects import STREAMS, asked
from tests.agent.vendors import Obedient, speaking


@dataclass
class Report:
    """The weather in a city."""

    city: str
    degrees: int
    notes: list[str] = field(default_factory=list)


class Row(NamedTuple):
    """A model, and how a value is requested: alone, and with tools."""

    model: str
    dialect: str
    alone: str
    beside: str


ROWS = (
    Row("openai:gpt-4.1", "openai-chat", "native", "native"),
    Row("openai:gpt-5", "openai-responses", "native", "native"),
    Row("deepseek:deepseek-chat", "openai-chat", "tool", "tool"),
    Row("deepseek:deepseek-reasoner", "openai-chat", "tool", "tool"),
    Row("groq:llama-3.3-70b-versatile", "openai-chat", "tool", "tool"),
    Row("groq:openai/gpt-oss-120b", "openai-chat", "native", "two_phase"),
    Row("mistral:mistral-large-latest", "openai-chat", "native", "native"),
    Row("openrouter:anthropic/claude-sonnet-4.5", "openai-chat", "native", "native"),
    Row("anthropic:claude-3-5-haiku-latest", "anthropic", "tool", "tool"),
    Row("anthropic:claude-sonnet-4-5", "anthropic", "native", "native"),
    Row("google:gemini-2.0-flash", "gemini", "native", "two_phase"),
    Row("google:gemini-2.5-flash", "gemini", "native", "two_phase"),
    Row("google:gemini-3-pro-preview", "gemini", "native", "native"),
    Row("ollama:llama3.2", "ollama", "native", "two_phase"),
)
EACH = pytest.mark.parametrize("row", ROWS, ids=[f"{row.model}" for row in ROWS])
KINDS: tuple[tuple[Any, Any, Any], ...] = (
    (Report, {"city": "Basel", "degrees": 3, "notes": ["wet"]}, Report("Basel", 3, ["wet"])),
    (list[int], [1, 2, 3], [1, 2, 3]),
    (int | None, 5, 5),
)
"""A type, its value as JSON, and the value."""


def modes(requests: list[Request]) -> list[str]:
    """How each request asks for the value, if it does."""
    return [
        "schema" if request.output is not None and request.output.format == "schema"
        else "tool" if any(tool.name == "return_result" for tool in request.tools)
        else "none"
        for request in requests
    ]  # fmt: skip


EXPECTED = {"native": ["schema", "schema"], "tool": ["tool", "tool"],
            "two_phase": ["none", "none", "schema"]}  # fmt: skip


@STREAMS
@EACH
@pytest.mark.parametrize(("kind", "plainly", "value"), KINDS, ids=["record", "list", "optional"])
async def test_with_tools(row: Row, kind: Any, plainly: Any, value: Any, streams: bool) -> None:
    """The tools are run, then the value is requested in the model's mode."""
    model = Obedient(row.dialect, plainly)
    async with speaking(model, row.model) as client:
        agent = Agent(client, tools=[weather, clock], output=kind, max_tokens=900)
        result = await asked(agent, "Weather?", streams=streams)
    assert model.faults == []
    assert result.output == value
    assert modes(model.requests) == EXPECTED[row.beside]
    if row.beside == "two_phase":
        assert not model.requests[-1].tools
    results = [each for m in result.messages for each in m.tool_results]
    assert [each.text for each in results[:2]] == ["rain in Basel", '{"city":"B","hour":15}']


@STREAMS
@EACH
async def test_without_tools(row: Row, streams: bool) -> None:
    """One request is enough."""
    kind, plainly, value = KINDS[0]
    model = Obedient(row.dialect, plainly)
    async with speaking(model, row.model) as client:
        agent = Agent(client, output=kind, max_tokens=900)
        result = await asked(agent, "Weather?", streams=streams)
    assert model.faults == []
    assert result.output == value
    assert modes(model.requests) == ["schema" if row.alone == "native" else "tool"]


@STREAMS
@EACH
async def test_an_invalid_value_is_sent_back(row: Row, streams: bool) -> None:
    """The feedback fits the mode, and the conversation stays valid."""
    kind, plainly, value = KINDS[0]
    model = Obedient(row.dialect, plainly, misfits=2)
    async with speaking(model, row.model) as client:
        agent = Agent(client, tools=[weather, clock], output=kind, max_tokens=900)
        result = await asked(agent, "Weather?", streams=streams)
        again = await asked(agent, "And now?", history=result.messages, streams=streams)
    assert model.faults == []
    assert result.output == again.output == value


@EACH
async def test_partial_values_are_streamed(row: Row) -> None:
    """As far as each dialect allows; the last one is complete."""
    kind, plainly, value = KINDS[0]
    model = Obedient(row.dialect, plainly)
    async with speaking(model, row.model) as client:
        agent = Agent(client, tools=[weather, clock], output=kind, max_tokens=900)
        stream = agent.stream("Weather?")
        chunks = [chunk async for chunk in stream]
    assert stream.result.output == value
    assert [each.partial_json for each in chunks if each.partial_json is not UNSET][-1] == plainly
    assert [each.partial for each in chunks if each.partial is not UNSET][-1] == value
