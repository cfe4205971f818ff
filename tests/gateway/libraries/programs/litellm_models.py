"""LiteLLM, as the client of each API that it speaks."""

import json
import os
from collections.abc import Mapping
from typing import Any

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # it would fetch the newest

import litellm
from jobs import KEY, QUESTION, said, serve, weather

litellm.telemetry = False
litellm.drop_params = True
_TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": weather.__doc__,
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}


def _play(prefix: str, path: str) -> Any:
    def play(job: Any) -> Mapping[str, Any]:
        turns: list[Any] = [{"role": "user", "content": QUESTION}]
        given: dict[str, Any] = {
            "model": f"{prefix}/{job.model}",
            "api_base": f"{job.url}{path}",
            "api_key": KEY,
            "stream": job.stream,
            "num_retries": 0,
            "max_retries": 0,
        }
        if job.scenario == "tools":
            given["tools"] = [_TOOL]
        if job.scenario == "thinking":
            given["reasoning_effort"] = "low"
        message = _message(litellm.completion(messages=turns, **given), job)
        if job.scenario == "tools":
            turns.append(message.model_dump(exclude_none=True))
            for call in message.tool_calls:
                result = weather(**json.loads(call.function.arguments))
                turns.append({"role": "tool", "tool_call_id": call.id, "content": result})
            message = _message(litellm.completion(messages=turns, **given), job)
        return said(message.content, getattr(message, "reasoning_content", None))

    return play


def _message(answer: Any, job: Any) -> Any:
    if job.stream:
        answer = litellm.stream_chunk_builder(list(answer))
    return answer.choices[0].message


def _responses(job: Any) -> Mapping[str, Any]:
    given: dict[str, Any] = {
        "model": f"openai/{job.model}", "api_base": f"{job.url}/v1", "api_key": KEY,
        "stream": job.stream,
    }  # fmt: skip
    if job.scenario == "thinking":
        given["reasoning"] = {"effort": "low", "summary": "auto"}
    turns: list[Any] = [{"role": "user", "content": QUESTION}]
    if job.scenario == "tools":
        given["tools"] = [{"type": "function", **_TOOL["function"]}]
    items = _items(litellm.responses(input=turns, **given), job)
    if job.scenario == "tools":
        for item in items:
            turns.append(item)
            if item["type"] == "function_call":
                result = weather(**json.loads(item["arguments"]))
                turns.append({
                    "type": "function_call_output", "call_id": item["call_id"], "output": result,
                })  # fmt: skip
        items = _items(litellm.responses(input=turns, **given), job)
    text = [part["text"] for item in items if item["type"] == "message" for part in item["content"]]
    thought = [
        part["text"] for item in items if item["type"] == "reasoning" for part in item["summary"]
    ]
    return said("".join(text), "".join(thought))


def _items(answer: Any, job: Any) -> list[Any]:
    if job.stream:
        for event in answer:
            if getattr(event, "type", "") == "response.completed":
                answer = event.response
    return [
        item if isinstance(item, dict) else item.model_dump(exclude_none=True)
        for item in answer.output
    ]


serve(
    {
        "openai-chat": _play("openai", "/v1"),
        "openai-responses": _responses,
        "anthropic": _play("anthropic", ""),
        "gemini": _play("gemini", "/v1beta"),
        "ollama": _play("ollama_chat", ""),
    }
)
