"""Embeddings: in order, in batches, in every dialect that has them."""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable
from typing import Any

import pytest

from dragoman.errors import ConfigError, ContextTooLong, InvalidInputError, RateLimited, WireError
from dragoman.model.catalogue import Embeddings
from dragoman.model.responses import Embedding
from dragoman.model.usage import Usage
from dragoman.transport.client import Client
from dragoman.transport.retries import Retries
from tests.transport.vendors import Came, Goes, Vendor, failed, serving


def number(text: str) -> float:
    """A number that identifies a text."""
    return float(len(text))


def openai(came: Came) -> Goes:
    """OpenAI's response, with the rows out of order."""
    rows = [
        {"object": "embedding", "index": place, "embedding": [number(text), 0.5]}
        for place, text in enumerate(came.json["input"])
    ]
    usage = {"prompt_tokens": len(rows), "total_tokens": len(rows)}
    return Goes({"object": "list", "data": rows[::-1], "model": "e-1", "usage": usage})


def gemini(came: Came) -> Goes:
    """Google's response."""
    texts = [one["content"]["parts"][0]["text"] for one in came.json["requests"]]
    return Goes({"embeddings": [{"values": [number(text), 0.5]} for text in texts]})


def ollama(came: Came) -> Goes:
    """Ollama's response."""
    vectors = [[number(text), 0.5] for text in came.json["input"]]
    return Goes({"model": "e-1", "embeddings": vectors, "prompt_eval_count": len(vectors)})


def client(vendor: Vendor, model: str, path: str = "/v1", **options: Any) -> Client:
    """A client of a provider on loopback."""
    return Client(model, base_url=f"{vendor.url}{path}", key="k", **options)


DIALECTS = [
    pytest.param("openai:e", openai, "/v1", "/v1/embeddings", Usage(2, reported_total=2)),
    pytest.param("mistral:e", openai, "/v1", "/v1/embeddings", Usage(2, reported_total=2)),
    pytest.param("google:e", gemini, "", "/v1beta/models/e:batchEmbedContents", None),
    pytest.param("ollama:e", ollama, "", "/api/embed", Usage(2)),
]


@pytest.mark.parametrize(("model", "answer", "base", "path", "usage"), DIALECTS)
async def test_texts_are_embedded_in_their_order(
    model: str, answer: Callable[[Came], Goes], base: str, path: str, usage: Usage | None
) -> None:
    """In every dialect."""
    async with serving(answer) as vendor, client(vendor, model, base) as made:
        found = await made.embed(["a", "bbb"])
    assert isinstance(found, Embeddings)
    assert found.vectors == ((1.0, 0.5), (3.0, 0.5))
    assert [item.index for item in found] == [0, 1]
    assert found.usage == usage
    assert [came.path for came in vendor.came] == [path]
    assert len(found) == 2
    assert found[1].vector[0] == 3.0
    assert found[:1].vectors == ((1.0, 0.5),)
    with pytest.raises(IndexError):
        _ = found[2]


@pytest.mark.parametrize(("model", "answer", "base", "path", "usage"), DIALECTS)
async def test_one_text_has_one_embedding(
    model: str, answer: Callable[[Came], Goes], base: str, path: str, usage: Usage | None
) -> None:
    """With its usage."""
    async with serving(answer) as vendor, client(vendor, model, base) as made:
        found = await made.embed("four")
    assert isinstance(found, Embedding)
    assert found.vector == (4.0, 0.5)
    assert (found.usage is None) is (usage is None)
    assert vendor.came[0].path == path


@pytest.mark.parametrize(
    ("model", "answer", "base", "most"),
    [
        ("openai:e", openai, "/v1", 2048),
        ("google:e", gemini, "", 100),
        ("ollama:e", ollama, "", 512),
    ],
)
async def test_many_texts_are_split_into_batches(
    model: str, answer: Callable[[Came], Goes], base: str, most: int
) -> None:
    """The order is kept, and usage is summed."""
    texts = ["x" * (place % 97) for place in range(most * 2 + 1)]
    async with serving(answer) as vendor, client(vendor, model, base) as made:
        found = await made.embed(texts)
    assert [vector[0] for vector in found.vectors] == list(map(number, texts))
    assert [item.index for item in found] == list(range(len(texts)))
    assert len(vendor.came) == 3
    assert found.usage is None or found.usage.total == len(texts)


async def test_options_are_sent() -> None:
    """Dimensions, another model, smaller batches, and the provider's own fields."""
    async with serving(openai) as vendor, client(vendor, "openai?chat=c&embeddings=e") as made:
        await made.embed(iter(["a", "b", "c"]), dimensions=8, batch=2, extra={"user": "u"})
        await made.embed("a", model="other")
    assert [came.json for came in vendor.came] == [
        {"model": "e", "input": ["a", "b"], "dimensions": 8, "user": "u"},
        {"model": "e", "input": ["c"], "dimensions": 8, "user": "u"},
        {"model": "other", "input": ["a"]},
    ]
    async with serving(gemini) as vendor, client(vendor, "google:models/e", "") as made:
        await made.embed("a", dimensions=8, extra={"taskType": "RETRIEVAL_QUERY"})
    assert vendor.came[0].json == {
        "requests": [
            {
                "model": "models/e",
                "outputDimensionality": 8,
                "taskType": "RETRIEVAL_QUERY",
                "content": {"parts": [{"text": "a"}]},
            }
        ]
    }
    async with serving(ollama) as vendor, client(vendor, "ollama:e", "") as made:
        await made.embed("a", dimensions=8)
    assert vendor.came[0].json == {"model": "e", "input": ["a"], "dimensions": 8}


async def test_an_empty_list_of_texts_sends_no_request() -> None:
    """The result is empty."""
    async with serving(openai) as vendor, client(vendor, "openai:e") as made:
        found = await made.embed([])
    assert (len(found), found.usage, vendor.came) == (0, None, [])


@pytest.mark.parametrize("code", ["context_length_exceeded", "max_tokens_per_request"])
async def test_a_batch_that_is_too_long_is_halved(code: str) -> None:
    """Providers limit tokens as well: this one accepts four words."""

    def picky(came: Came) -> Goes:
        return failed(400, code) if sum(map(len, came.json["input"])) > 4 else openai(came)

    async with serving(picky) as vendor, client(vendor, "openai:e") as made:
        found = await made.embed(["a", "bb", "ccc", "d", "ee"])
        assert [vector[0] for vector in found.vectors] == [1, 2, 3, 1, 2]
        assert found.usage == Usage(5, reported_total=5)
        if code == "context_length_exceeded":
            with pytest.raises(ContextTooLong):
                await made.embed(["a", "x" * 5])
    assert {len(came.json["input"]) for came in vendor.came} >= {5, 2}


async def test_base64_is_read_as_well() -> None:
    """For `encoding_format`."""
    packed = base64.b64encode(struct.pack("<2f", 0.25, -2.0)).decode()

    def answer(came: Came) -> Goes:
        assert came.json["encoding_format"] == "base64"
        return Goes({"data": [{"embedding": packed, "index": 0}]})

    async with serving(answer) as vendor, client(vendor, "openai:e") as made:
        found = await made.embed("a", extra={"encoding_format": "base64"})
    assert found.vector == (0.25, -2.0)


@pytest.mark.parametrize(
    "body",
    [
        {"data": []},
        {"data": "hush"},
        {"data": [{"embedding": "hush", "index": 0}]},
        {"data": [{"embedding": ["hush"], "index": 0}]},
        {"data": [{"index": 0}]},
        [],
        "hush",
    ],
)
async def test_an_invalid_embedding_is_a_wire_error(body: Any) -> None:
    """It is not quoted."""
    async with serving(lambda _: Goes(body)) as vendor, client(vendor, "openai:e") as made:
        with pytest.raises(WireError) as caught:
            await made.embed("a")
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(("model", "base"), [("google:e", ""), ("ollama:e", "")])
@pytest.mark.parametrize("body", [{}, {"embeddings": "hush"}, {"embeddings": [1]}, []])
async def test_an_invalid_embedding_is_a_wire_error_in_other_dialects(
    model: str, base: str, body: Any
) -> None:
    """Google and Ollama have their own fields."""
    async with serving(lambda _: Goes(body)) as vendor, client(vendor, model, base) as made:
        with pytest.raises(WireError):
            await made.embed("a")


async def test_invalid_arguments_are_reported_before_sending() -> None:
    """No model, no embeddings endpoint, values that aren't texts."""
    async with serving(openai) as vendor:
        async with client(vendor, "openai") as made:
            with pytest.raises(ConfigError, match="embedding model"):
                await made.embed("a")
        async with client(vendor, "anthropic:c", "") as made:
            with pytest.raises(ConfigError, match="embeddings"):
                await made.embed("a")
        async with client(vendor, "openai:e") as made:
            with pytest.raises(InvalidInputError):
                await made.embed(["a", 1])  # type: ignore[list-item]
            with pytest.raises(InvalidInputError):
                await made.embed(["a"], batch=0)
    assert vendor.came == []


async def test_failures_are_retried_and_then_raised() -> None:
    """As for answers."""
    moods = iter(
        [failed(429, "x", **{"Retry-After": "0"}), failed(429, "x", **{"Retry-After": "0"})]
    )

    def answer(came: Came) -> Goes:
        return next(moods, openai(came))

    at_once = Retries(initial_delay=0, max_delay=0)
    async with serving(answer) as vendor, client(vendor, "openai:e", retries=at_once) as made:
        assert (await made.embed("abc")).vector[0] == 3
        assert len(vendor.came) == 3
    async with serving(lambda _: failed(429)) as vendor:
        once = Retries(attempts=1)
        async with client(vendor, "openai:e", retries=once) as made:
            with pytest.raises(RateLimited) as caught:
                await made.embed("a")
    assert caught.value.provider == "openai"
