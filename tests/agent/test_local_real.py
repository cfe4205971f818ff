"""The agent with tools on the real llama.cpp and a real model, in its three dialects.

Needs xllamacpp (`pip install 'dragoman[local]'`) and smollm2 in the user's cache, which
`DRAGOMAN_LOCAL=1` downloads (93 MB); skipped without.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from msgspec import UNSET, Meta

from dragoman import Agent, Messages, Role, RunContext, tool
from dragoman.agent import Hooks
from dragoman.agent.results import Result
from dragoman.model import ToolChoice
from dragoman.model.requests import Request
from dragoman.transport.local.model import LocalModel
from tests.agent.test_dialects import STREAMS, asked

_MAY_FETCH = os.environ.get("DRAGOMAN_LOCAL") == "1"

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("real_llama")]

DIALECTS = ("openai-chat", "openai-responses", "anthropic")
EACH = pytest.mark.parametrize("dialect", DIALECTS)
PARIS = "What is the weather in Paris?"
runs: list[str] = []

City = Annotated[str, Meta(max_length=20)]


@tool
def weather(city: City) -> str:
    """The weather in a city."""
    runs.append(city)
    return "Sunny, 21 degrees"


@tool
def square(number: Literal[3, 4, 5]) -> int:
    """The square of a number."""
    return number * number


@dataclass
class Town:
    """A town."""

    name: City
    is_big: bool


@pytest.fixture(autouse=True)
def no_runs() -> None:
    """Reset the record of tool runs."""
    runs.clear()


@asynccontextmanager
async def agent_on(dialect: str, **settings: Any) -> AsyncGenerator[Agent[Any, Any]]:
    """An agent with the local model."""
    async with LocalModel("smollm2", dialect=dialect, fetch=_MAY_FETCH) as model:
        yield Agent(model, temperature=0, max_tokens=100, **settings)


def _check_round(result: Result[Any], name: str) -> None:
    assert [m.role for m in result.messages] == [
        Role.USER, Role.ASSISTANT, Role.TOOL, Role.ASSISTANT
    ]  # fmt: skip
    calls = result.messages[1].tool_calls
    assert {call.name for call in calls} == {name}
    results = result.messages[2].tool_results
    assert [each.call_id for each in results] == [call.id for call in calls]
    assert not any(each.is_error for each in results)
    assert result.usage is not None
    assert result.usage.total_output > 0


@STREAMS
@EACH
async def test_the_named_tool_is_run_and_its_result_is_used(dialect: str, streams: bool) -> None:
    """It is called once; then the model is free to answer, and uses the result."""
    async with agent_on(dialect, tools=[weather, square], tool_choice="weather") as agent:
        result = await asked(agent, PARIS, streams=streams)
    _check_round(result, "weather")
    assert runs
    assert "21" in result.text


@STREAMS
@EACH
async def test_an_unrelated_tool_gets_valid_arguments(dialect: str, streams: bool) -> None:
    """Its arguments match its schema, whatever the question."""
    async with agent_on(dialect, tools=[weather, square], tool_choice="square") as agent:
        result = await asked(agent, PARIS, streams=streams)
    _check_round(result, "square")
    assert result.messages[1].tool_calls[0].arguments["number"] in {3, 4, 5}


@STREAMS
@EACH
async def test_a_typed_output(dialect: str, streams: bool) -> None:
    """By a schema, or by a tool if the dialect has none: the smallest model gives the value."""
    async with agent_on(dialect, output=Town) as agent:
        result = await asked(agent, "Name a town.", streams=streams)
    assert isinstance(result.output, Town)
    assert result.output.name


async def _to_the_end(request: Request, run: RunContext[Any]) -> Request:
    """Without a forced choice, a model this small would call the weather for ever."""
    if run.step == 1 or all(each.name != "return_result" for each in request.tools):
        return request
    return request.replace(tool_choice=ToolChoice("named", ("return_result",)))


@STREAMS
@EACH
async def test_tools_and_a_typed_output(dialect: str, streams: bool) -> None:
    """The named tool first, then the value."""
    async with agent_on(
        dialect, tools=[weather], tool_choice="weather", output=Town,
        hooks=Hooks(before_response=_to_the_end),
    ) as agent:  # fmt: skip
        result = await asked(agent, PARIS, streams=streams)
    assert isinstance(result.output, Town)
    assert runs
    assert result.messages[1].tool_calls[0].name == "weather"


async def test_a_conversation_can_switch_dialects() -> None:
    """One agent switches its model in mid-conversation: each continues from the others."""
    history = Messages()
    models = [LocalModel("smollm2", dialect=name, fetch=_MAY_FETCH) for name in DIALECTS]
    try:
        agent = Agent(models[0], tools=[weather], tool_choice="weather", temperature=0,
                      max_tokens=100)  # fmt: skip
        counts: list[int] = []
        for model in models:
            result = await agent.with_model(model).send(PARIS, history=history)
            _check_round(result, "weather")
            history += result.messages
            assert result.usage is not None
            counts.append(result.usage.total_input)
    finally:
        for model in models:
            await model.close()
    assert counts[0] < counts[1] < counts[2]


@pytest.mark.parametrize("dialect", ["openai-chat", "openai-responses"])
async def test_a_value_can_be_streamed(dialect: str) -> None:
    """Its partial values grow."""
    async with agent_on(dialect, output=Town) as agent:
        stream = agent.stream("Name a town.")
        chunks = [chunk async for chunk in stream]
    assert sum(chunk.partial_json is not UNSET for chunk in chunks) > 1
    partial = [chunk.partial for chunk in chunks if chunk.partial is not UNSET]
    assert partial[-1] == stream.result.output
