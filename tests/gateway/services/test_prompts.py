"""Prompts: OpenAI's completions and Ollama's generate, at every back."""

from __future__ import annotations

import json
from typing import Any

import httpx
import ollama
import openai
import pytest
from aiohttp import web

from dragoman.gateway.config.settings import Place
from tests.gateway.running import place, routed, running, upstream
from tests.gateway.services.clients import ollama_client, openai_client
from tests.gateway.services.conftest import Stage
from tests.gateway.services.upstreams import WORDS

SAID = "".join(WORDS)


def test_a_completion_comes_whole_from_every_back(stage: Stage, back: str) -> None:
    """The response has its usage, which is recorded."""
    answer = openai_client(stage.before(back).url).completions.create(model="m1", prompt="Hi")
    assert (answer.object, answer.choices[0].text) == ("text_completion", SAID)
    assert answer.usage is not None
    assert answer.usage.total_tokens == 7
    record = stage.last(back)
    assert record.usage is not None
    assert (record.kind, record.usage.total, record.stream) == ("prompt", 7, False)


def test_a_completion_is_streamed_from_every_back(stage: Stage, back: str) -> None:
    """The text arrives in chunks."""
    stream = openai_client(stage.before(back).url).completions.create(
        model="m1", prompt="Hi", stream=True
    )
    chunks = list(stream)
    assert "".join(chunk.choices[0].text for chunk in chunks if chunk.choices) == SAID
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert stage.last(back).stream


def test_several_prompts_are_answered_as_one(stage: Stage, back: str) -> None:
    """Responses come in order, with echo, and with the total usage."""
    client = openai_client(stage.before(back).url)
    answer = client.completions.create(model="m1", prompt=["a", "b", "c"], echo=True)
    assert [choice.text for choice in answer.choices] == [f"{each}{SAID}" for each in "abc"]
    assert answer.usage is not None
    assert answer.usage.total_tokens == 21
    record = stage.last(back)
    assert record.usage is not None
    assert record.usage.total == 21


def test_several_prompts_are_streamed_as_one(stage: Stage, back: str) -> None:
    """Each chunk has the index of its prompt."""
    client = openai_client(stage.before(back).url)
    texts = ["", "", ""]
    for chunk in client.completions.create(model="m1", prompt=["a", "b", "c"], stream=True):
        for choice in chunk.choices:
            texts[choice.index] += choice.text
    assert texts == [SAID] * 3
    record = stage.last(back)
    assert record.usage is not None
    assert record.usage.total == 21


def test_several_answers_to_several_prompts(stage: Stage) -> None:
    """`n` is 2 for two prompts at a provider that supports it: four texts."""
    client = openai_client(stage.before("openai").url)
    answer = client.completions.create(model="m1", prompt=["a", "b"], n=2)
    assert [choice.index for choice in answer.choices] == [0, 1, 2, 3]


def test_a_suffix_is_reported_as_lost(stage: Stage, back: str) -> None:
    """Chat APIs have no suffix."""
    client = openai_client(stage.before(back).url)
    answer = client.completions.with_raw_response.create(model="m1", prompt="a", suffix="z")
    assert "extras" in answer.headers["x-dragoman-losses"]


def test_ollama_generates_at_every_back(stage: Stage, back: str) -> None:
    """Whole, streamed, and continued from the returned context."""
    client = ollama_client(stage.before(back).url)
    whole = client.generate(model="m1", prompt="Hi", options={"num_predict": 9})
    assert (whole.response, whole.done) == (SAID, True)
    pieces = list(client.generate(model="m1", prompt="Hi", stream=True, options={"seed": 1}))
    assert "".join(piece.response or "" for piece in pieces) == SAID
    client.generate(model="m1", prompt="And?", context=pieces[-1].context)
    sent = stage.upstream(back).asked[-1].body.decode()
    assert sent.index("Hi") < sent.index(SAID) < sent.index("And?")


def test_a_request_without_a_prompt_loads_the_model(stage: Stage) -> None:
    """Nothing is sent upstream."""
    before = len(stage.upstream("openai").asked)
    answer = ollama_client(stage.before("openai").url).generate(model="m1")
    assert (answer.done, answer.done_reason) == (True, "load")
    assert len(stage.upstream("openai").asked) == before


def test_errors_come_in_the_fronts_form(stage: Stage) -> None:
    """The SDKs raise their own exceptions."""
    url = stage.before("openai").url
    with pytest.raises(openai.BadRequestError, match="token ids"):
        openai_client(url).completions.create(model="m1", prompt=[1, 2])
    with pytest.raises(openai.BadRequestError, match="128 prompts"):
        openai_client(url).completions.create(model="m1", prompt=["x"] * 129)
    dead = stage.upstream("openai").place(base_url="http://127.0.0.1:9")
    with running(routed(dead)) as serving, pytest.raises(ollama.ResponseError) as caught:
        ollama_client(serving.url).generate(model="m1", prompt="x")
    assert caught.value.status_code == 502


def _cut(after: int) -> Any:
    """A server whose third prompt's stream is cut after so many words."""

    async def answer(request: web.Request) -> web.StreamResponse:
        asked = await request.json()
        is_third = asked["messages"][0]["content"] == "c"
        if is_third and after == 0:
            return web.json_response({"error": {"message": "no"}}, status=500)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        choice: dict[str, Any] = {"index": 0, "delta": {"content": "x"}, "finish_reason": None}
        chunk = {"id": "1", "object": "chat.completion.chunk", "created": 1, "choices": [choice]}
        await response.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
        if is_third:
            return response
        choice["finish_reason"] = "stop"
        await response.write(b"data: " + json.dumps(chunk).encode() + b"\n\ndata: [DONE]\n\n")
        return response

    return answer


@pytest.mark.parametrize("after", [0, 1])
def test_a_prompt_that_fails_is_an_error_at_the_client(after: int) -> None:
    """If one of several prompts fails, the client never gets a complete response."""
    with upstream(_cut(after)) as url:
        config = routed(place("lab", "openai-compatible", f"{url}/v1"))
        with running(config) as serving, httpx.Client() as client:
            body = {"model": "m", "prompt": ["a", "b", "c"], "stream": True}
            answer = client.post(f"{serving.url}/v1/completions", json=body)
    assert answer.status_code == 500 or '"error"' in answer.text
    assert "[DONE]" not in answer.text


def test_models_in_this_process_answer_prompts() -> None:
    """The echo model responds whole and streamed, to one prompt and to several."""
    with running(routed(Place(name="echo", model_url="echo:"))) as serving:
        client = openai_client(serving.url)
        for prompt in ("a", ["a", "b"]):
            whole = client.completions.create(model="m", prompt=prompt)
            assert [choice.text for choice in whole.choices] == list(prompt)
            chunks = client.completions.create(model="m", prompt=prompt, stream=True)
            texts = ["" for _ in prompt]
            for chunk in chunks:
                for choice in chunk.choices:
                    texts[choice.index] += choice.text
            assert texts == list(prompt)
