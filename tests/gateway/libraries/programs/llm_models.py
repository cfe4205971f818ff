"""Simon Willison's llm, with its plugins for Anthropic and Ollama."""

import os
from collections.abc import Mapping
from typing import Any

from jobs import KEY, QUESTION, said, serve, weather


def _chat(job: Any) -> Any:
    from llm.default_plugins.openai_models import Chat

    return Chat(
        "behind", model_name=job.model, api_base=f"{job.url}/v1", supports_tools=True,
        can_stream=True,
    )  # fmt: skip


def _anthropic(job: Any) -> Any:
    from llm_anthropic import ClaudeMessages

    return ClaudeMessages(job.model, base_url=job.url, supports_thinking=True)


def _ollama(job: Any) -> Any:
    os.environ["OLLAMA_HOST"] = job.url
    from llm_ollama.registry import OllamaChatModel

    return OllamaChatModel(
        model_id=f"ollama/{job.model}", ollama_name=job.model, capabilities=["completion", "tools"]
    )


def _play(make: Any) -> Any:
    def play(job: Any) -> Mapping[str, Any]:
        model = make(job)
        model.key = KEY
        if job.scenario == "tools":
            return said(model.chain(QUESTION, tools=[weather], stream=job.stream).text())
        answer = model.prompt(QUESTION, stream=job.stream)
        return said(answer.text())

    return play


serve({"openai-chat": _play(_chat), "anthropic": _play(_anthropic), "ollama": _play(_ollama)})
