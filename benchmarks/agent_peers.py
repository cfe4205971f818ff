"""The other agents, each on a model of its own kind that costs as little as it can.

Used as their documentation says; tracing is off. Their types differ from version to version: `Any`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from importlib import import_module
from typing import Any

from benchmarks import agent_script as script
from benchmarks import conversations

PYDANTIC_AI, LANGCHAIN = "pydantic-ai", "langchain"


def all_jobs() -> dict[str, script.Jobs]:
    """What each peer does, by its name."""
    return {PYDANTIC_AI: pydantic_ai(), LANGCHAIN: langchain()}


# --- pydantic-ai: `Agent` on a `FunctionModel`, which need not estimate usage


def pydantic_ai() -> script.Jobs:
    """One call of its agent for each thing that is measured."""
    history = conversations.pydantic_ai()
    return {
        script.PLAIN: _ran(pydantic_agent()),
        script.ASYNC: _ran(_pydantic_with_tool(script.weather, 1)),
        script.SYNC: _ran(_pydantic_with_tool(script.weather_here, 1)),
        script.PARALLEL: _ran(_pydantic_with_tool(script.weather, script.CALLS)),
        script.TYPED: _ran(_pydantic_typed()),
        script.STREAMED: _run_stream(pydantic_agent()),
        script.LONG: _ran(pydantic_agent(), message_history=history),
    }


def pydantic_agent(model: Any = None, **options: Any) -> Any:
    """An agent; its model answers at once, unless another is given."""
    ai: Any = import_module("pydantic_ai")
    model = pydantic_model() if model is None else model
    return ai.Agent(model, instructions=script.SYSTEM, **options)


def _pydantic_with_tool(function: Callable[..., Any], calls: int) -> Any:
    model = pydantic_model(function.__name__, script.ARGUMENTS, calls)
    return pydantic_agent(model, tools=[function])


def _pydantic_typed() -> Any:
    model = pydantic_model("final_result", script.FORECAST, 1)
    return pydantic_agent(model, output_type=script.Forecast)


def pydantic_model(tool: str = "", arguments: Any = None, calls: int = 0) -> Any:
    """A model of functions, as its documentation has it for tests."""
    peer: Any = import_module("pydantic_ai.messages")
    usage: Any = import_module("pydantic_ai.usage")
    functions: Any = import_module("pydantic_ai.models.function")
    raw = script.as_text(arguments)

    async def answer(messages: Any, _info: Any) -> Any:
        if not calls or isinstance(messages[-1].parts[-1], peer.ToolReturnPart):
            parts = [peer.TextPart(script.ANSWER)]
        else:
            parts = [peer.ToolCallPart(tool, raw, f"call_{n}") for n in range(calls)]
        used = usage.RequestUsage(input_tokens=10, output_tokens=5)
        return peer.ModelResponse(parts=parts, usage=used)

    async def words(_messages: Any, _info: Any) -> AsyncIterator[str]:
        for text in script.DELTAS:
            yield text

    return functions.FunctionModel(answer, stream_function=words)


def _ran(agent: Any, **options: Any) -> script.Job:
    async def job() -> Any:
        return (await agent.run(script.PROMPT, **options)).output

    return job


def _run_stream(agent: Any) -> script.Job:
    async def job() -> str:
        async with agent.run_stream(script.PROMPT) as result:
            texts = [text async for text in result.stream_text(delta=True, debounce_by=None)]
        return "".join(texts)

    return job


# --- LangChain: `create_agent`, on a chat model that is async itself and so needs no thread


def langchain() -> script.Jobs:
    """One call of its agent for each thing that is measured."""
    history = conversations.langchain()
    return {
        script.PLAIN: _invoked(langchain_agent()),
        script.ASYNC: _invoked(_chain_with_tool(script.weather, 1)),
        script.SYNC: _invoked(_chain_with_tool(script.weather_here, 1)),
        script.PARALLEL: _invoked(_chain_with_tool(script.weather, script.CALLS)),
        script.TYPED: _invoked(_chain_typed(), "structured_response"),
        script.STREAMED: _astreamed(langchain_agent()),
        script.LONG: _invoked(langchain_agent(), history=history),
    }


def langchain_agent(model: Any = None, **options: Any) -> Any:
    """An agent; its model answers at once, unless another is given."""
    agents: Any = import_module("langchain.agents")
    model = langchain_model() if model is None else model
    return agents.create_agent(model, system_prompt=script.SYSTEM, **options)


def _chain_with_tool(function: Callable[..., Any], calls: int) -> Any:
    model = langchain_model(function.__name__, script.ARGUMENTS, calls)
    return langchain_agent(model, tools=[function])


def _chain_typed() -> Any:
    structured: Any = import_module("langchain.agents.structured_output")
    model = langchain_model("Forecast", script.FORECAST, 1)
    return langchain_agent(model, response_format=structured.ToolStrategy(script.Forecast))


def langchain_model(tool: str = "", arguments: Any = None, calls: int = 0) -> Any:
    """A chat model of one's own, as its documentation has it."""
    peer: Any = import_module("langchain_core.messages")
    outputs: Any = import_module("langchain_core.outputs")
    models: Any = import_module("langchain_core.language_models.chat_models")
    used = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}

    def answer(messages: Any) -> Any:
        if not calls or isinstance(messages[-1], peer.ToolMessage):
            return peer.AIMessage(script.ANSWER, usage_metadata=used)
        asked = [{"name": tool, "args": arguments, "id": f"call_{n}"} for n in range(calls)]
        return peer.AIMessage("", tool_calls=asked, usage_metadata=used)

    class Quick(models.BaseChatModel):  # type: ignore[misc]  # Any
        _llm_type = "quick"

        def bind_tools(self, _tools: Any, **_options: Any) -> Any:
            return self

        def _generate(self, messages: Any, *_args: Any, **_options: Any) -> Any:
            return outputs.ChatResult(
                generations=[outputs.ChatGeneration(message=answer(messages))]
            )

        async def _agenerate(self, messages: Any, *_args: Any, **_options: Any) -> Any:
            return self._generate(messages)

        async def _astream(self, *_args: Any, **_options: Any) -> AsyncIterator[Any]:
            for text in script.DELTAS:
                yield outputs.ChatGenerationChunk(message=peer.AIMessageChunk(text))

    return Quick(disable_streaming=bool(calls))


def _invoked(agent: Any, key: str = "messages", history: Any = ()) -> script.Job:
    asked = ("user", script.PROMPT)

    async def job() -> Any:
        found = (await agent.ainvoke({"messages": [*history, asked]}))[key]
        return found[-1].text if key == "messages" else found

    return job


def _astreamed(agent: Any) -> script.Job:
    async def job() -> str:
        asked = {"messages": [("user", script.PROMPT)]}
        pieces = agent.astream(asked, stream_mode="messages")
        return "".join([message.text async for message, _ in pieces])

    return job
