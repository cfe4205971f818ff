"""Services besides conversations, used through the vendors' own SDKs."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from tests.wire.service_gateway import MODELS, TOKENS, Gateway, embedded

IDS = [model.id for model in MODELS]


def _client(sdk: str, kind: str, gateway: Gateway, **options: Any) -> Any:
    """A client of an SDK, with the HTTP library that it uses."""
    kinds = import_module(sdk).DefaultHttpxClient.__mro__
    names = [each.__module__.partition(".")[0] for each in kinds]
    httpx = import_module(next(name for name in names if name.startswith("httpx")))
    http = httpx.Client(transport=gateway.transport(httpx))
    make = getattr(import_module(sdk), kind)
    return make(api_key="k", http_client=http, max_retries=0, **options)


def _openai(dialect: str = "openai-chat") -> tuple[Gateway, Any]:
    pytest.importorskip("openai")
    gateway = Gateway(dialect, [])
    return gateway, _client("openai", "OpenAI", gateway, base_url="http://h/v1")


def _ollama() -> tuple[Gateway, Any]:
    sdk: Any = pytest.importorskip("ollama")
    gateway = Gateway("ollama", [])
    httpx = import_module("ollama._client").httpx
    return gateway, sdk.Client(host="http://h", transport=gateway.transport(httpx))


def _gemini() -> tuple[Gateway, Any]:
    sdk: Any = pytest.importorskip("google.genai")
    gateway = Gateway("gemini", [])
    transport = gateway.transport(import_module("google.genai._api_client").httpx)
    options = sdk.types.HttpOptions(base_url="http://h", client_args={"transport": transport})
    return gateway, sdk.Client(api_key="k", http_options=options)


def _anthropic() -> tuple[Gateway, Any]:
    pytest.importorskip("anthropic")
    gateway = Gateway("anthropic", [])
    return gateway, _client("anthropic", "Anthropic", gateway, base_url="http://h")


# --- embeddings


@pytest.mark.parametrize("form", ["base64", "float", None])
@pytest.mark.parametrize("given", ["one", ["one", "three"], [1, 2, 3], [[1, 2], [3]]])
def test_openai_embeds(form: str | None, given: Any) -> None:
    """Texts and token ids, as numbers and base64, which is the SDK's default."""
    gateway, client = _openai()
    options = {} if form is None else {"encoding_format": form}
    answer = client.embeddings.create(model="e", input=given, dimensions=3, user="u", **options)
    (asked,) = gateway.asked
    assert (asked.model, asked.dimensions, asked.user) == ("e", 3, "u")
    assert asked.answer_form == (form or "base64")
    vectors = (
        answer.data if form != "base64" else client.embeddings.create(model="e", input=given).data
    )
    assert [tuple(one.embedding) for one in vectors] == list(embedded(asked).vectors)
    assert [one.index for one in answer.data] == list(range(len(answer.data)))
    assert (answer.model, answer.usage.prompt_tokens, answer.usage.total_tokens) == ("e", 7, 7)


def test_openai_gets_errors() -> None:
    """The SDK raises its own error with the status."""
    sdk: Any = pytest.importorskip("openai")
    _, client = _openai()
    with pytest.raises(sdk.BadRequestError, match=r"\$\.input"):
        client.embeddings.create(model="e", input=[], encoding_format="float")


def test_gemini_embeds() -> None:
    """Several contents at once, with all options of the SDK."""
    gateway, client = _gemini()
    config = {"task_type": "RETRIEVAL_DOCUMENT", "title": "T", "output_dimensionality": 3}
    answer = client.models.embed_content(model="e", contents=["one", "three"], config=config)
    (asked,) = gateway.asked
    assert (asked.model, asked.task, list(asked.titles)) == ("e", "RETRIEVAL_DOCUMENT", ["T", "T"])
    assert (asked.dimensions, list(asked.inputs)) == (3, ["one", "three"])
    assert [tuple(one.values) for one in answer.embeddings] == list(embedded(asked).vectors)


def test_ollama_embeds() -> None:
    """The current and the legacy method work."""
    gateway, client = _ollama()
    answer = client.embed("e", ["one", "three"], truncate=True, dimensions=3)
    assert [tuple(one) for one in answer.embeddings] == list(embedded(gateway.asked[0]).vectors)
    assert (answer.model, answer.prompt_eval_count) == ("e", 7)
    assert gateway.asked[0].extras == {"ollama": {"truncate": True}}
    assert tuple(client.embed("e", "one").embeddings[0]) == (0.0, 0.75, -0.5)
    assert tuple(client.embeddings("e", "one").embedding) == (0.0, 0.75, -0.5)


# --- models


@pytest.mark.parametrize("dialect", ["openai-chat", "openai-responses"])
def test_openai_lists_models(dialect: str) -> None:
    """The list, and a single model, whose name may have a slash."""
    sdk: Any = pytest.importorskip("openai")
    _, client = _openai(dialect)
    assert [model.id for model in client.models.list()] == IDS
    assert client.models.retrieve("org/three:8b").created == 1_710_000_000
    with pytest.raises(sdk.NotFoundError):
        client.models.retrieve("none")


def test_anthropic_lists_models_page_by_page() -> None:
    """Forwards and backwards, with the SDK's own pagination."""
    sdk: Any = pytest.importorskip("anthropic")
    _, client = _anthropic()
    assert [model.id for model in client.models.list(limit=1)] == IDS
    assert [model.id for model in client.models.list(limit=2)] == IDS
    assert [model.id for model in client.models.list(limit=1, before_id=IDS[2])] == IDS[1::-1]
    assert client.models.list(after_id=IDS[0]).data[0].display_name == "two"
    found = client.models.retrieve("org/three:8b")
    assert (found.display_name, found.max_input_tokens, found.lifecycle) == (
        "Three",
        4096,
        "active",
    )
    assert found.created_at.year == 2024
    with pytest.raises(sdk.BadRequestError):
        client.models.list(after_id="none")
    with pytest.raises(sdk.BadRequestError):
        client.models.list(limit=0)


def test_gemini_lists_models_page_by_page() -> None:
    """The SDK's own pagination works, and so does a single model."""
    _, client = _gemini()
    found = list(client.models.list(config={"page_size": 1}))
    assert [model.name for model in found] == [f"models/{name}" for name in IDS]
    assert found[0].input_token_limit == 8192
    assert "generateContent" in found[0].supported_actions
    assert client.models.get(model="one").display_name == "The One"


def test_ollama_lists_models() -> None:
    """Local models, a single one, loaded ones, and the server's version."""
    sdk: Any = pytest.importorskip("ollama")
    gateway, client = _ollama()
    assert [model.model for model in client.list().models] == IDS
    assert client.show("one").modelinfo["unknown.context_length"] == 8192
    assert client.show("one").capabilities == ["completion"]
    assert [model.model for model in client.ps().models] == IDS
    with pytest.raises(sdk.ResponseError):
        client.show("none")
    assert gateway("/api/version", b"")[2] == b'{"version":"1.2.3"}'


# --- token counts


def test_tokens_are_counted() -> None:
    """Whole requests are counted, including tools and instructions."""
    gateway, client = _anthropic()
    turns: Any = [{"role": "user", "content": "Hi"}]
    tools: Any = [{"name": "t", "input_schema": {"type": "object"}}]
    found = client.messages.count_tokens(model="m", messages=turns, tools=tools, system="Be brief.")
    assert found.input_tokens == TOKENS
    gateway_of_google, google = _gemini()
    assert google.models.count_tokens(model="m", contents="Hi").total_tokens == TOKENS
    gateway_of_openai, openai = _openai("openai-responses")
    counted = openai.responses.input_tokens.count(model="m", input="Hi", instructions="Be brief.")
    assert (counted.input_tokens, counted.object) == (TOKENS, "response.input_tokens")
    requests = [each.asked[0] for each in (gateway, gateway_of_google, gateway_of_openai)]
    assert [request.messages[0].text for request in requests] == ["Hi"] * 3
    assert [request.model for request in requests] == ["m"] * 3
    assert [part.text for request in requests for part in request.system] == ["Be brief."] * 2
    assert requests[0].tools[0].name == "t"


# --- prompts


def test_openai_completes() -> None:
    """Plain and streamed, one prompt and several."""
    gateway, client = _openai()
    found = client.completions.create(model="m", prompt=["A", "B"], echo=True, max_tokens=9)
    assert [choice.text for choice in found.choices] == ["Are: A", "Bre: B"]
    assert (found.object, found.usage.total_tokens, found.model) == ("text_completion", 10, "m")
    assert found.id.startswith("cmpl-")
    assert gateway.asked[0].sampling.max_tokens == 9
    texts: dict[int, str] = {}
    options: Any = {"stream": True, "stream_options": {"include_usage": True}}
    chunks = list(client.completions.create(model="m", prompt=["A", "B"], **options))
    for chunk in chunks:
        assert (chunk.object, chunk.model, chunk.id) == ("text_completion", "m", chunks[0].id)
        for choice in chunk.choices:
            texts[choice.index] = texts.get(choice.index, "") + choice.text
    assert texts == {0: "re: A", 1: "re: B"}
    assert chunks[-1].usage.total_tokens == 10
    finishes = [choice.finish_reason for chunk in chunks for choice in chunk.choices]
    assert finishes.count("stop") == 2


def test_ollama_generates() -> None:
    """Plain and streamed, with a system prompt and an image."""
    gateway, client = _ollama()
    found = client.generate("m", "Hi", system="Be brief.", images=[b"png"], think=True)
    assert (found.response, found.done, found.done_reason) == ("re: Hi", True, "stop")
    assert (found.prompt_eval_count, found.eval_count, found.model) == (3, 2, "m")
    assert found.total_duration is not None
    request = gateway.asked[0]
    assert [message.role.value for message in request.messages] == ["system", "user"]
    assert request.thinking.enabled is True
    lines = list(client.generate("m", "Hi", stream=True))
    assert "".join(line.response for line in lines) == "re: Hi"
    assert [line.done for line in lines] == [False] * (len(lines) - 1) + [True]
    assert lines[-1].eval_count == 2
