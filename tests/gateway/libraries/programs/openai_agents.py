"""OpenAI's Agents SDK."""

import asyncio
from collections.abc import Mapping
from typing import Any

import agents
from jobs import KEY, QUESTION, said, serve, weather
from openai import AsyncOpenAI
from openai.types.shared import Reasoning

agents.set_tracing_disabled(disabled=True)  # it would send traces to OpenAI


def _play(kind: Any) -> Any:
    def play(job: Any) -> Mapping[str, Any]:
        return asyncio.run(_run(kind, job))

    return play


async def _run(kind: Any, job: Any) -> Mapping[str, Any]:
    async with AsyncOpenAI(base_url=f"{job.url}/v1", api_key=KEY, max_retries=0) as client:
        thinks = Reasoning(effort="low", summary="auto") if job.scenario == "thinking" else None
        agent = agents.Agent(
            name="guide",
            model=kind(model=job.model, openai_client=client),
            tools=[agents.function_tool(weather)] if job.scenario == "tools" else [],
            model_settings=agents.ModelSettings(reasoning=thinks),
        )
        if job.stream:
            result = agents.Runner.run_streamed(agent, QUESTION)
            async for _ in result.stream_events():
                pass
        else:
            result = await agents.Runner.run(agent, QUESTION)
    thought = [
        text.text
        for item in result.new_items
        if item.type == "reasoning_item"
        for text in (item.raw_item.summary or item.raw_item.content or ())
    ]
    return said(result.final_output, "".join(thought))


serve(
    {
        "openai-chat": _play(agents.OpenAIChatCompletionsModel),
        "openai-responses": _play(agents.OpenAIResponsesModel),
    }
)
