"""pydantic-ai."""

import asyncio
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from jobs import KEY, QUESTION, said, serve, weather
from pydantic_ai import Agent, ThinkingPart


def _play(module: str, kind: str, provider: str, path: str, **settings: Any) -> Any:
    def play(job: Any) -> Mapping[str, Any]:
        made = getattr(import_module(f"pydantic_ai.providers.{module}"), provider)
        model = getattr(import_module(f"pydantic_ai.models.{module}"), kind)
        agent = Agent(
            model(job.model, provider=made(base_url=f"{job.url}{path}", api_key=KEY)),
            tools=[weather] if job.scenario == "tools" else [],
            model_settings=settings if job.scenario == "thinking" else None,
            retries=0,
        )
        return asyncio.run(_run(agent, job))

    return play


async def _run(agent: Any, job: Any) -> Mapping[str, Any]:
    if not job.stream:
        result = await agent.run(QUESTION)
        return said(result.output, _thought(result))
    async with agent.run_stream(QUESTION) as result:
        text = await result.get_output()
        return said(text, _thought(result))


def _thought(result: Any) -> str:
    return "".join(
        part.content
        for message in result.all_messages()
        for part in message.parts
        if isinstance(part, ThinkingPart)
    )


_OPENAI = {"openai_reasoning_effort": "low", "openai_reasoning_summary": "auto"}
serve(
    {
        "openai-chat": _play("openai", "OpenAIChatModel", "OpenAIProvider", "/v1", **_OPENAI),
        "openai-responses": _play(
            "openai", "OpenAIResponsesModel", "OpenAIProvider", "/v1", **_OPENAI
        ),
        "anthropic": _play(
            "anthropic", "AnthropicModel", "AnthropicProvider", "",
            anthropic_thinking={"type": "enabled", "budget_tokens": 1024}, max_tokens=4096,
        ),
        "gemini": _play(
            "google", "GoogleModel", "GoogleProvider", "",
            google_thinking_config={"include_thoughts": True},
        ),
        "groq": _play("groq", "GroqModel", "GroqProvider", "", groq_reasoning_format="parsed"),
        "mistral": _play("mistral", "MistralModel", "MistralProvider", ""),
    }
)  # fmt: skip
