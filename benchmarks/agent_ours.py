"""Our agent, on a model that costs next to nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, Self

from benchmarks import agent_script as script
from benchmarks import conversations
from dragoman import Agent, Message, Messages, Request, Response, ToolCall
from dragoman.model.events import ChoiceFinish, Event, PartDelta, PartStart, PartStop, ResponseEnd
from dragoman.model.parts import Text
from dragoman.model.responses import Choice
from dragoman.model.usage import FinishReason, Usage
from dragoman.transport.synthetic_answers import PlayedStream


class QuickModel:
    """Calls a tool so many times when the user has spoken, and answers when it has the results."""

    name = "openai:gpt-4.1"
    """One that has a price: looking it up is part of a turn."""

    def __init__(self, tool: str = "", arguments: Any = None, calls: int = 0) -> None:
        self._tool, self._raw, self._calls = tool, script.as_text(arguments), calls

    async def send(self, request: Request) -> Response:
        """A new answer each time, as from a wire."""
        if not self._calls or request.messages[-1].tool_results:
            message, finish = Message.assistant(script.ANSWER), FinishReason.STOP
        else:
            calls = [ToolCall.create(f"call_{n}", self._tool, self._raw)
                     for n in range(self._calls)]  # fmt: skip
            message, finish = Message.assistant(tool_calls=calls), FinishReason.TOOL_CALLS
        return Response(choices=(Choice(0, message, finish),), usage=Usage(input=10, output=5))

    def stream(self, request: Request) -> PlayedStream:  # noqa: ARG002 - a model's
        """The words, one by one."""
        return PlayedStream(_words)

    async def close(self) -> None:
        """Nothing is open."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()


async def _words(_heard: object) -> AsyncIterator[Event]:
    yield PartStart(0, Text(""))
    for text in script.DELTAS:
        yield PartDelta(0, text)
    yield PartStop(0)
    yield ChoiceFinish(FinishReason.STOP)
    yield ResponseEnd()


def jobs() -> script.Jobs:
    """One call of it for each thing that is measured."""
    history = conversations.ours()
    return {
        script.PLAIN: _sent(Agent(QuickModel(), system=script.SYSTEM)),
        script.ASYNC: _sent(with_tool(script.weather, 1)),
        script.SYNC: _sent(with_tool(script.weather_here, 1)),
        script.PARALLEL: _sent(with_tool(script.weather, script.CALLS)),
        script.TYPED: _sent(_typed()),
        script.STREAMED: _streamed(Agent(QuickModel(), system=script.SYSTEM)),
        script.LONG: _sent(Agent(QuickModel(), system=script.SYSTEM), history),
    }


def idle(model: QuickModel) -> Agent:
    """An agent that does nothing, to be kept."""
    return Agent(model, tools=[script.weather], system=script.SYSTEM)


def with_tool(function: Callable[..., Any], calls: int) -> Agent:
    """An agent whose model calls the function so many times, then answers."""
    model = QuickModel(function.__name__, script.ARGUMENTS, calls)
    return Agent(model, tools=[function], system=script.SYSTEM)


def _typed() -> Agent[Any, script.Forecast]:
    model = QuickModel("return_result", script.FORECAST, 1)
    return Agent(model, output=script.Forecast, output_mode="tool", system=script.SYSTEM)


def _sent(agent: Agent[Any, Any], history: Messages | None = None) -> script.Job:
    async def job() -> Any:
        return (await agent.send(script.PROMPT, history=history)).output

    return job


def _streamed(agent: Agent) -> script.Job:
    async def job() -> str:
        return "".join([chunk.output async for chunk in agent.stream(script.PROMPT)])

    return job
