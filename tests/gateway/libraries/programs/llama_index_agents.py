"""LlamaIndex: an agent where tools are called, else its models."""

import asyncio
from collections.abc import Mapping
from typing import Any

from jobs import KEY, QUESTION, said, serve, weather
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.llms import ChatMessage


def _openai(job: Any) -> Any:
    from llama_index.llms.openai_like import OpenAILike

    return OpenAILike(
        model=job.model, api_base=f"{job.url}/v1", api_key=KEY, is_chat_model=True,
        is_function_calling_model=True, max_retries=0,
    )  # fmt: skip


def _responses(job: Any) -> Any:
    from llama_index.llms.openai import OpenAIResponses

    thinks = {"reasoning_options": {"effort": "low", "summary": "auto"}}
    return OpenAIResponses(
        model=job.model, api_base=f"{job.url}/v1", api_key=KEY, context_window=100_000,
        max_retries=0, **(thinks if job.scenario == "thinking" else {}),
    )  # fmt: skip


def _anthropic(job: Any) -> Any:
    from llama_index.llms.anthropic import Anthropic

    thinks = {"thinking_dict": {"type": "enabled", "budget_tokens": 1024}, "temperature": 1.0}
    return Anthropic(
        model=job.model, base_url=job.url, api_key=KEY, max_retries=0, max_tokens=4096,
        **(thinks if job.scenario == "thinking" else {}),
    )  # fmt: skip


def _google(job: Any) -> Any:
    from google.genai.types import HttpOptions
    from llama_index.llms.google_genai import GoogleGenAI

    return GoogleGenAI(
        model=job.model, api_key=KEY, http_options=HttpOptions(base_url=job.url), max_retries=0,
        context_window=100_000, max_tokens=4096,
    )  # fmt: skip


def _ollama(job: Any) -> Any:
    from llama_index.llms.ollama import Ollama

    return Ollama(
        model=job.model, base_url=job.url, context_window=8192,
        thinking=True if job.scenario == "thinking" else None,
    )  # fmt: skip


def _play(make: Any) -> Any:
    def play(job: Any) -> Mapping[str, Any]:
        return asyncio.run(_run(make(job), job))

    return play


async def _run(model: Any, job: Any) -> Mapping[str, Any]:
    if job.scenario == "tools":
        agent = FunctionAgent(tools=[weather], llm=model, streaming=job.stream)
        return said(await agent.run(QUESTION))
    turns = [ChatMessage(role="user", content=QUESTION)]
    if job.stream:
        async for answer in await model.astream_chat(turns):
            last = answer
    else:
        last = await model.achat(turns)
    blocks = last.message.blocks
    thought = [each.content for each in blocks if each.block_type == "thinking"]
    known = last.message.additional_kwargs.get("thinking") or ""
    return said(last.message.content, "".join(filter(None, thought)) or known)


serve(
    {
        "openai-chat": _play(_openai),
        "openai-responses": _play(_responses),
        "anthropic": _play(_anthropic),
        "gemini": _play(_google),
        "ollama": _play(_ollama),
    }
)
