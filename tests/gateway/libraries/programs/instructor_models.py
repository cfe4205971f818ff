"""instructor: a pydantic model as the answer, from tool calls or JSON."""

from collections.abc import Mapping
from typing import Any

import instructor
from jobs import KEY, QUESTION, said, serve
from pydantic import BaseModel


class Weather(BaseModel):
    """The weather in a city."""

    city: str
    celsius: int


def _asked(client: Any, job: Any, **more: Any) -> Mapping[str, Any]:
    asked = {
        "messages": [{"role": "user", "content": QUESTION}],
        "response_model": Weather,
        "max_retries": 0,
        **more,
    }
    if not job.stream:
        return said(client.create(**asked).model_dump_json())
    last = None
    for partial in client.create_partial(**asked):
        last = partial
    return said(Weather.model_validate(last.model_dump()).model_dump_json())


def _mode(job: Any, tools: str, json: str) -> Any:
    return instructor.Mode[json if job.scenario == "json" else tools]


def _chat(job: Any) -> Mapping[str, Any]:
    from openai import OpenAI

    client = OpenAI(base_url=f"{job.url}/v1", api_key=KEY, max_retries=0)
    made = instructor.from_openai(client, mode=_mode(job, "TOOLS", "JSON_SCHEMA"))
    return _asked(made, job, model=job.model)


def _responses(job: Any) -> Mapping[str, Any]:
    from openai import OpenAI

    client = OpenAI(base_url=f"{job.url}/v1", api_key=KEY, max_retries=0)
    made = instructor.from_openai(client, mode=instructor.Mode.RESPONSES_TOOLS)
    return _asked(made, job, model=job.model)


def _anthropic(job: Any) -> Mapping[str, Any]:
    from anthropic import Anthropic

    client = Anthropic(base_url=job.url, api_key=KEY, max_retries=0)
    made = instructor.from_anthropic(client, mode=_mode(job, "ANTHROPIC_TOOLS", "ANTHROPIC_JSON"))
    return _asked(made, job, model=job.model, max_tokens=1024)


def _google(job: Any) -> Mapping[str, Any]:
    from google import genai

    client = genai.Client(api_key=KEY, http_options={"base_url": job.url})
    mode = _mode(job, "GENAI_TOOLS", "GENAI_STRUCTURED_OUTPUTS")
    return _asked(instructor.from_genai(client, mode=mode), job, model=job.model)


serve(
    {
        "openai-chat": _chat,
        "openai-responses": _responses,
        "anthropic": _anthropic,
        "gemini": _google,
    }
)
