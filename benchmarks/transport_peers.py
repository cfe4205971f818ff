"""The others that are measured: the official SDKs, and those that speak to several providers.

Each is used as its documentation says. Their types differ from version to version: `Any`.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, AsyncIterable
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Any

from benchmarks.transport_asking import ANTHROPIC, CHAT, LIMIT, MODELS, Client, by_size

# --- the official SDKs


def openai_sdk(_dialect: str, address: str) -> Client:
    """OpenAI's own: typed chunks, which nobody adds up."""
    openai: Any = import_module("openai")
    create = openai.AsyncOpenAI(api_key="none", base_url=f"{address}/v1").chat.completions.create
    bodies = by_size(lambda told: {"messages": told, "model": MODELS[CHAT], "max_tokens": LIMIT})

    @asynccontextmanager
    async def stream(size: int) -> AsyncGenerator[AsyncIterable[Any]]:
        async with await create(**bodies[size], stream=True) as chunks:
            yield chunks

    return Client(
        lambda size: create(**bodies[size]),
        stream,
        lambda chunk: bool(chunk.choices and chunk.choices[0].delta.content),
    )


def anthropic_sdk(_dialect: str, address: str) -> Client:
    """Anthropic's own: typed raw events, which nobody adds up."""
    create, bodies = _anthropic_messages(address).create, _anthropic_bodies()

    @asynccontextmanager
    async def stream(size: int) -> AsyncGenerator[AsyncIterable[Any]]:
        async with await create(**bodies[size], stream=True) as events:
            yield events

    return Client(lambda size: create(**bodies[size]), stream, _is_anthropic_text)


def anthropic_added_up(_dialect: str, address: str) -> Client:
    """Anthropic's own, whose events add up to a message, as ours do."""
    messages, bodies = _anthropic_messages(address), _anthropic_bodies()
    return Client(
        lambda size: messages.create(**bodies[size]),
        lambda size: messages.stream(**bodies[size]),
        _is_anthropic_text,
    )


def _anthropic_messages(address: str) -> Any:
    anthropic: Any = import_module("anthropic")
    return anthropic.AsyncAnthropic(api_key="none", base_url=address).messages


def _anthropic_bodies() -> dict[int, Any]:
    return by_size(lambda told: {"messages": told, "model": MODELS[ANTHROPIC], "max_tokens": LIMIT})


def _is_anthropic_text(event: Any) -> bool:
    return bool(event.type == "content_block_delta")


# --- those that speak to several providers


def through_litellm(dialect: str, address: str) -> Client:
    """Litellm."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # it would ask the network at import
    litellm: Any = import_module("litellm")
    provider, base = ("openai", "/v1") if dialect == CHAT else ("anthropic", "")
    always = {
        "model": f"{provider}/{MODELS[dialect]}",
        "api_key": "none",
        "api_base": address + base,
        "max_tokens": LIMIT,
    }
    bodies = by_size(lambda told: {"messages": told, **always})

    @asynccontextmanager
    async def stream(size: int) -> AsyncGenerator[AsyncIterable[Any]]:
        yield await litellm.acompletion(**bodies[size], stream=True)

    return Client(
        lambda size: litellm.acompletion(**bodies[size]),
        stream,
        lambda chunk: bool(chunk.choices and chunk.choices[0].delta.content),
    )


def through_pydantic_ai(dialect: str, address: str) -> Client:
    """pydantic-ai, without an agent around it."""
    direct: Any = import_module("pydantic_ai.direct")
    messages: Any = import_module("pydantic_ai.messages")
    model = _pydantic_model(dialect, address)
    settings = {"max_tokens": LIMIT}

    def message(told: dict[str, Any]) -> Any:
        if told["role"] == "user":
            return messages.ModelRequest(parts=[messages.UserPromptPart(told["content"])])
        return messages.ModelResponse(parts=[messages.TextPart(told["content"])])

    told = by_size(lambda dicts: [message(each) for each in dicts])
    return Client(
        lambda size: direct.model_request(model, told[size], model_settings=settings),
        lambda size: direct.model_request_stream(model, told[size], model_settings=settings),
        lambda event: event.event_kind in {"part_start", "part_delta"},
    )


def _pydantic_model(dialect: str, address: str) -> Any:
    name = "openai" if dialect == CHAT else "anthropic"
    models: Any = import_module(f"pydantic_ai.models.{name}")
    providers: Any = import_module(f"pydantic_ai.providers.{name}")
    if dialect == CHAT:
        provider = providers.OpenAIProvider(base_url=f"{address}/v1", api_key="none")
        return models.OpenAIChatModel(MODELS[dialect], provider=provider)
    sdk: Any = import_module("anthropic")
    client = sdk.AsyncAnthropic(api_key="none", base_url=address)
    provider = providers.AnthropicProvider(anthropic_client=client)
    return models.AnthropicModel(MODELS[dialect], provider=provider)
