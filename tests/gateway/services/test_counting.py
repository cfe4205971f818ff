"""Token counts: by the provider if it supports counting, else estimated and marked as such."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import httpx
import pytest

from tests.gateway.services.clients import anthropic_client, gemini_client, openai_client
from tests.gateway.services.conftest import Stage

HELLO: list[Any] = [{"role": "user", "content": "Hello, how are you today?"}]
COUNTED = 42
ESTIMATED = "x-dragoman-estimated"


def test_anthropic_clients_get_counts_of_every_back(stage: Stage, back: str) -> None:
    """Ollama has no token counter, so the gateway estimates."""
    client = anthropic_client(stage.before(back).url)
    answer = client.messages.with_raw_response.count_tokens(model="m1", messages=HELLO)
    tokens = answer.parse().input_tokens
    assert (ESTIMATED in answer.headers) is (back == "ollama")
    assert 5 < tokens < 20 if back == "ollama" else tokens == COUNTED


def test_gemini_clients_get_counts_of_every_back(stage: Stage, back: str) -> None:
    """Gemini's clients name the model in the path."""
    client = gemini_client(stage.before(back).url)
    tokens = client.models.count_tokens(model="m1", contents="Hello, how are you?").total_tokens
    assert tokens is not None
    assert 5 < tokens < 20 if back == "ollama" else tokens == COUNTED


def test_responses_clients_get_counts_of_every_back(stage: Stage, back: str) -> None:
    """OpenAI counts tokens only in its Responses API, which the gateway calls."""
    client = openai_client(stage.before(back).url)
    tokens = client.responses.input_tokens.count(model="m1", input="Hello, how are you?")
    assert 5 < tokens.input_tokens < 20 if back == "ollama" else tokens.input_tokens == COUNTED


def test_a_count_costs_nothing(stage: Stage) -> None:
    """A count is recorded, without cost."""
    anthropic_client(stage.before("anthropic").url).messages.count_tokens(
        model="m1", messages=HELLO
    )
    record = stage.last("anthropic")
    assert (record.kind, record.usage, record.cost) == ("count", None, Decimal(0))


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"model": 1}', b'{"messages": []}', b"\xff"])
def test_bad_bodies_are_refused(stage: Stage, body: bytes) -> None:
    """Errors have Anthropic's format."""
    url = f"{stage.before('anthropic').url}/v1/messages/count_tokens"
    answer = httpx.post(url, content=body)
    assert answer.status_code in {200, 400, 404}
    if answer.status_code != 200:
        assert answer.json()["type"] == "error"
