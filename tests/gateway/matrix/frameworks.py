"""Agents of other libraries, each with the tool `weather`, on every front they support."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

QUESTION = "How warm is it in Mostar?"
KEY = "none"


class Framework(NamedTuple):
    """A library with one of the fronts it supports."""

    name: str
    needs: tuple[str, ...]
    """Modules that must be installed."""
    ask: Callable[..., str]
    """`(url, model, *, stream)` → the agent's final answer, after it ran the tool."""


def weather(city: str) -> str:
    """Tell the temperature in a city."""
    return f"31 °C in {city}"


# --- pydantic-ai


def _pydantic_ai(module: str, kind: str, provider: str, path: str = "") -> Callable[..., str]:
    def ask(url: str, model: str, *, stream: bool) -> str:
        from pydantic_ai import Agent

        made: Any = getattr(
            import_module(f"pydantic_ai.providers.{provider}"), _PROVIDERS[provider]
        )
        models: Any = getattr(import_module(f"pydantic_ai.models.{module}"), kind)
        served = made(base_url=f"{url}{path}", api_key=KEY)
        agent = Agent(models(model, provider=served), tools=[weather], retries=0)
        return asyncio.run(_run(agent)) if not stream else asyncio.run(_streamed(agent))

    return ask


_PROVIDERS = {
    "openai": "OpenAIProvider",
    "anthropic": "AnthropicProvider",
    "google": "GoogleProvider",
    "groq": "GroqProvider",
    "mistral": "MistralProvider",
    "ollama": "OllamaProvider",
}


async def _run(agent: Any) -> str:
    return str((await agent.run(QUESTION)).output)


async def _streamed(agent: Any) -> str:
    async with agent.run_stream(QUESTION) as result:
        return str(await result.get_output())


# --- LangChain


def _langchain(module: str, kind: str, **settings: Any) -> Callable[..., str]:
    def ask(url: str, model: str, *, stream: bool) -> str:
        from langchain_core.messages import HumanMessage, ToolMessage
        from langchain_core.tools import tool

        made: Any = getattr(import_module(module), kind)
        given = {name: value.format(url=url) if isinstance(value, str) else value
                 for name, value in settings.items()}  # fmt: skip
        chat = made(model=model, **given).bind_tools([tool(weather)])
        turns: list[Any] = [HumanMessage(QUESTION)]
        for _ in range(2):
            message = _joined(chat.stream(turns)) if stream else chat.invoke(turns)
            turns.append(message)
            turns += [
                ToolMessage(weather(**call["args"]), tool_call_id=call["id"])
                for call in message.tool_calls
            ]
        assert any(isinstance(turn, ToolMessage) for turn in turns)
        return str(turns[-1].text)

    return ask


def _joined(chunks: Any) -> Any:
    whole = None
    for chunk in chunks:
        whole = chunk if whole is None else whole + chunk
    return whole


# --- OpenAI's Agents SDK


def _agents(kind: str) -> Callable[..., str]:
    def ask(url: str, model: str, *, stream: bool) -> str:
        from openai import AsyncOpenAI

        agents: Any = import_module("agents")
        agents.set_tracing_disabled(disabled=True)  # it would send traces to OpenAI

        async def run() -> str:
            async with AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0) as client:
                chosen = getattr(agents, kind)(model=model, openai_client=client)
                tools = [agents.function_tool(weather)]
                agent = agents.Agent(name="guide", model=chosen, tools=tools)
                if not stream:
                    return str((await agents.Runner.run(agent, QUESTION)).final_output)
                result = agents.Runner.run_streamed(agent, QUESTION)
                async for _ in result.stream_events():
                    pass
                return str(result.final_output)

        return asyncio.run(run())

    return ask


_PYDANTIC = "pydantic_ai"
FRAMEWORKS = (
    Framework("pydantic-ai, openai chat", (_PYDANTIC, "openai"),
              _pydantic_ai("openai", "OpenAIChatModel", "openai", "/v1")),
    Framework("pydantic-ai, openai responses", (_PYDANTIC, "openai"),
              _pydantic_ai("openai", "OpenAIResponsesModel", "openai", "/v1")),
    Framework("pydantic-ai, ollama", (_PYDANTIC, "openai"),
              _pydantic_ai("openai", "OpenAIChatModel", "ollama", "/v1")),
    Framework("pydantic-ai, anthropic", (_PYDANTIC, "anthropic"),
              _pydantic_ai("anthropic", "AnthropicModel", "anthropic")),
    Framework("pydantic-ai, google", (_PYDANTIC, "google.genai"),
              _pydantic_ai("google", "GoogleModel", "google")),
    Framework("pydantic-ai, groq", (_PYDANTIC, "groq"),
              _pydantic_ai("groq", "GroqModel", "groq")),
    Framework("pydantic-ai, mistral", (_PYDANTIC, "mistralai.client"),
              _pydantic_ai("mistral", "MistralModel", "mistral")),
    Framework("LangChain, openai chat", ("langchain_openai",),
              _langchain("langchain_openai", "ChatOpenAI", base_url="{url}/v1", api_key=KEY,
                         max_retries=0)),
    Framework("LangChain, openai responses", ("langchain_openai",),
              _langchain("langchain_openai", "ChatOpenAI", base_url="{url}/v1", api_key=KEY,
                         max_retries=0, use_responses_api=True)),
    Framework("LangChain, anthropic", ("langchain_anthropic",),
              _langchain("langchain_anthropic", "ChatAnthropic", base_url="{url}", api_key=KEY,
                         max_retries=0)),
    Framework("LangChain, google", ("langchain_google_genai",),
              _langchain("langchain_google_genai", "ChatGoogleGenerativeAI", base_url="{url}",
                         api_key=KEY, max_retries=0)),
    Framework("LangChain, ollama", ("langchain_ollama",),
              _langchain("langchain_ollama", "ChatOllama", base_url="{url}")),
    Framework("OpenAI Agents, chat", ("agents", "openai"), _agents("OpenAIChatCompletionsModel")),
    Framework("OpenAI Agents, responses", ("agents", "openai"), _agents("OpenAIResponsesModel")),
)  # fmt: skip
