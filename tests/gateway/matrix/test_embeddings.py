"""Embeddings through the SDKs that support them, from every provider that has them."""

from __future__ import annotations

import pytest

from dragoman.gateway.handlers import HANDLERS
from dragoman.model.usage import Usage
from dragoman.wire.embeddings import Embedded, ToEmbed
from dragoman.wire.service_front import ServiceFront
from tests.gateway.matrix.behind import BACKS, Answer, Behind
from tests.gateway.matrix.cells import CLIENTS, skipped
from tests.gateway.matrix.conversation import Conversation
from tests.gateway.matrix.native import MODELS

pytestmark = pytest.mark.skipif("embed" not in HANDLERS, reason="the gateway has no embeddings yet")
Served = tuple[str, Behind]
TEXTS = ["The Old Bridge", "The Neretva"]
VECTORS = [[0.5, -1.25, 0.0], [2.0, 0.25, -0.125]]
EMBEDDING = [pytest.param(each, marks=skipped(each), id=each.name) for each in CLIENTS
             if each.embeds]  # fmt: skip
PATHS = {"gemini": "/v1beta/models/m:batchEmbedContents", "ollama": "/api/embed"}


def answered(back: str) -> Answer:
    """Embeddings in a provider's format."""
    name = "openai-chat" if back == "openai-responses" else back
    front = ServiceFront(name, path=PATHS.get(name, "/v1/embeddings"))
    told = Embedded(VECTORS, Usage(input=5), MODELS[back])
    return Answer(front.embeddings(told, ToEmbed(MODELS[back], TEXTS)).to_bytes())


@pytest.mark.parametrize("back", [back for back in BACKS if back != "anthropic"])
@pytest.mark.parametrize("client", EMBEDDING)
def test_vectors(served: Served, client: type[Conversation], back: str) -> None:
    """One vector per text, in the same order."""
    url, behind = served
    behind.script(back, MODELS[back], answered(back))
    assert client(url, MODELS[back]).embed(TEXTS) == VECTORS


@pytest.mark.parametrize("client", EMBEDDING)
def test_a_provider_without_embeddings_is_a_client_error(
    served: Served, client: type[Conversation]
) -> None:
    """Anthropic's API has none: the SDK raises its own exception for a 400."""
    url, behind = served
    behind.script("anthropic", MODELS["anthropic"], Answer(b"{}"))
    asking = client(url, MODELS["anthropic"])
    with pytest.raises((asking.failures()[400], asking.failures()[404])) as raised:
        asking.embed(TEXTS)
    assert asking.status(raised.value) in {400, 404}
    assert not behind.asked
