"""Embeddings: every front with every provider that has them, through the official SDKs."""

from __future__ import annotations

from decimal import Decimal

import httpx
import ollama
import openai
import pytest

from tests.gateway.services.clients import (
    gemini_client,
    gemini_errors,
    ollama_client,
    openai_client,
)
from tests.gateway.services.conftest import Stage
from tests.gateway.services.upstreams import vector

TEXTS = ["one", "three"]
VECTORS = [vector(text) for text in TEXTS]


@pytest.fixture(params=["gemini", "ollama", "openai"])
def embedder(request: pytest.FixtureRequest) -> str:
    """The dialects that have embeddings."""
    return str(request.param)


def test_openai_clients_get_embeddings_of_every_back(stage: Stage, embedder: str) -> None:
    """OpenAI's SDK requests base64, which no other provider supports."""
    client = openai_client(stage.before(embedder).url)
    answer = client.embeddings.create(model="text-embedding-3-small", input=TEXTS)
    assert [row.embedding for row in answer.data] == VECTORS
    assert answer.usage.total_tokens > 0


def test_gemini_clients_get_embeddings_of_every_back(stage: Stage, embedder: str) -> None:
    """With one content and with several."""
    client = gemini_client(stage.before(embedder).url)
    answer = client.models.embed_content(model="m1", contents=TEXTS)
    assert [each.values for each in answer.embeddings or ()] == VECTORS


def test_ollama_clients_get_embeddings_of_every_back(stage: Stage, embedder: str) -> None:
    """With the newer and the older endpoint."""
    client = ollama_client(stage.before(embedder).url)
    assert [list(each) for each in client.embed(model="m1", input=TEXTS).embeddings] == VECTORS
    assert list(client.embeddings(model="m1", prompt="one").embedding) == VECTORS[0]


def test_a_back_without_embeddings_is_refused_in_the_fronts_words(stage: Stage) -> None:
    """Anthropic has none: the SDKs raise their bad-request class, and nothing is sent upstream."""
    url = stage.before("anthropic").url
    before = len(stage.upstream("anthropic").asked)
    with pytest.raises(openai.BadRequestError, match="does not support embeddings"):
        openai_client(url).embeddings.create(model="m1", input="x")
    with pytest.raises(gemini_errors.ClientError, match="does not support embeddings"):
        gemini_client(url).models.embed_content(model="m1", contents="x")
    with pytest.raises(ollama.ResponseError, match="does not support embeddings"):
        ollama_client(url).embed(model="m1", input="x")
    assert len(stage.upstream("anthropic").asked) == before


def test_places_without_embeddings_are_left_out_of_a_route(stage: Stage) -> None:
    """The route's next provider is used, and the first doesn't count as failed."""
    client = openai_client(stage.before("anthropic", "openai").url)
    answer = client.embeddings.create(model="m1", input="one", encoding_format="float")
    assert answer.data[0].embedding == VECTORS[0]
    assert stage.last("anthropic", "openai").attempts == 1


def test_usage_and_cost_are_counted(stage: Stage) -> None:
    """The record of a request for embeddings, as metrics and keys receive it."""
    client = openai_client(stage.before("openai").url)
    client.embeddings.create(model="text-embedding-3-small", input=TEXTS)
    record = stage.last("openai")
    assert (record.kind, record.provider, record.model) == (
        "embed", "openai", "text-embedding-3-small",
    )  # fmt: skip
    assert record.usage is not None
    assert record.usage.total_input == 7
    assert record.cost == Decimal("0.02") * 7 / 1_000_000


def test_losses_and_estimates_are_in_headers(stage: Stage) -> None:
    """Gemini takes no user id and reports no usage."""
    body = {"model": "m1", "input": ["one"], "user": "u1"}
    answer = httpx.post(f"{stage.before('gemini').url}/v1/embeddings", json=body)
    assert answer.headers["x-dragoman-losses"].startswith("1; user: ")
    assert answer.headers["x-dragoman-estimated"] == "true"
    assert answer.json()["usage"]["prompt_tokens"] == 1


def test_token_ids_pass_to_openai_only(stage: Stage) -> None:
    """Other providers use other tokens, so token ids are rejected there."""
    body = {"model": "m1", "input": [[1, 2], [3]]}
    answer = httpx.post(f"{stage.before('openai').url}/v1/embeddings", json=body)
    assert answer.status_code == 200
    assert stage.upstream("openai").asked[-1].json["input"] == [[1, 2], [3]]
    refused = httpx.post(f"{stage.before('ollama').url}/v1/embeddings", json=body)
    assert refused.status_code == 400
    assert "token ids" in refused.json()["error"]["message"]


def test_an_empty_request_loads_the_model(stage: Stage) -> None:
    """Ollama's clients load a model this way; nothing is sent upstream."""
    answer = httpx.post(f"{stage.before('anthropic').url}/api/embed", json={"model": "m1"})
    assert answer.json() == {"model": "m1", "embeddings": []}
