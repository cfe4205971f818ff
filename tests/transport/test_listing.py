"""Listing the models of a provider."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from dragoman.errors import AuthenticationError, ConfigError, WireError
from dragoman.model.catalogue import ModelInfo
from dragoman.providers.endpoints import Endpoints
from dragoman.providers.provider import Provider
from dragoman.transport.client import Client
from dragoman.transport.exchanges import with_query
from dragoman.transport.protocol import HttpRequest
from dragoman.transport.replay import ReplayTransport
from dragoman.wire.target import Target
from tests.transport.vendors import Came, Goes, Vendor, failed, serving


def client(vendor: Vendor, model: str | Provider, path: str = "", **options: Any) -> Client:
    """A client of a provider on loopback."""
    return Client(model, base_url=f"{vendor.url}{path}", key="k", **options)


ROWS = [
    (
        "openai",
        {"object": "list", "data": [
            {"id": "gpt-x", "object": "model", "created": 1700000000, "owned_by": "openai"}]},
        ModelInfo("gpt-x", None, None, 1700000000),
    ),
    ("groq", {"data": [{"id": "l", "created": 1, "context_window": 8192}]},
     ModelInfo("l", None, 8192, 1)),
    ("openrouter", {"data": [{"id": "a/b", "name": "A: B", "context_length": 9, "created": 1}]},
     ModelInfo("a/b", "A: B", 9, 1)),
    ("mistral", {"data": [{"id": "m", "name": "m", "max_context_length": 7}]},
     ModelInfo("m", "m", 7)),
    ("vllm", {"data": [{"id": "m", "max_model_len": 5, "created": 0}]}, ModelInfo("m", None, 5)),
    ("llama.cpp", {"data": [{"id": "m", "meta": {"n_ctx_train": 4096}}]},
     ModelInfo("m", None, 4096)),
    ("openai-compatible", [{"id": "bare", "object": "model"}], ModelInfo("bare")),
    (
        "anthropic",
        {"data": [{"type": "model", "id": "claude-x", "display_name": "Claude X",
                   "created_at": "2025-02-19T00:00:00Z", "max_input_tokens": 200000}],
         "has_more": False, "first_id": "claude-x", "last_id": "claude-x"},
        ModelInfo("claude-x", "Claude X", 200000, 1739923200.0),
    ),
    (
        "google",
        {"models": [{"name": "models/gemini-x", "displayName": "Gemini X",
                     "inputTokenLimit": 1048576, "outputTokenLimit": 65536}]},
        ModelInfo("gemini-x", "Gemini X", 1048576),
    ),
    (
        "ollama",
        {"models": [{"name": "llama3.2:latest", "model": "llama3.2:latest",
                     "modified_at": "2025-01-01T00:00:00.123456789Z", "size": 1,
                     "details": {"family": "llama"}}]},
        ModelInfo("llama3.2:latest", None, None, 1735689600.123456),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("name", "body", "info"), ROWS, ids=[row[0] for row in ROWS])
async def test_models_are_listed_in_every_dialect(name: str, body: Any, info: ModelInfo) -> None:
    """Values that a provider doesn't return are None."""
    async with serving(lambda _: Goes(body)) as vendor, client(vendor, name) as made:
        assert await made.models() == (info,)
    assert [came.method for came in vendor.came] == ["GET"]
    assert vendor.came[0].path.endswith(("/models", "/api/tags"))


async def test_other_fields_are_kept() -> None:
    """Under the dialect's name."""
    body = {"data": [{"id": "m", "object": "model", "owned_by": "me", "pricing": {"prompt": "1"}}]}
    async with serving(lambda _: Goes(body)) as vendor, client(vendor, "openai") as made:
        (info,) = await made.models()
    assert info.extras == {"openai": {"owned_by": "me", "pricing": {"prompt": "1"}}}
    assert repr(info) == "ModelInfo(m)"


async def test_pages_are_followed() -> None:
    """Anthropic's by the last id, Google's by a token; in order, with the key each time."""

    def anthropic(came: Came) -> Goes:
        start = int(came.query.get("after_id", "m0").removeprefix("m"))
        rows = [{"id": f"m{start + n}"} for n in (1, 2)]
        return Goes({"data": rows, "has_more": start < 4, "last_id": rows[-1]["id"]})

    async with serving(anthropic) as vendor, client(vendor, "anthropic") as made:
        assert [info.id for info in await made.models()] == [f"m{n}" for n in range(1, 7)]
    assert [came.query.get("after_id") for came in vendor.came] == [None, "m2", "m4"]
    assert {came.query["limit"] for came in vendor.came} == {"1000"}
    assert {came.headers["x-api-key"] for came in vendor.came} == {"k"}

    def google(came: Came) -> Goes:
        if "pageToken" in came.query:
            return Goes({})
        return Goes({"models": [{"name": "models/a"}], "nextPageToken": "t&2"})

    async with serving(google) as vendor, client(vendor, "google") as made:
        assert [info.id for info in await made.models()] == ["a"]
    assert vendor.came[1].query["pageToken"] == "t&2"


async def test_a_loop_of_pages_ends() -> None:
    """A server that always returns the same page token is asked twice, not for ever."""
    page = {"models": [{"name": "models/a"}], "nextPageToken": "again"}
    async with serving(lambda _: Goes(page)) as vendor, client(vendor, "google") as made:
        assert len(await made.models()) == 2
    assert len(vendor.came) == 2


async def test_a_query_in_the_base_url_is_kept() -> None:
    """Azure has its version there."""
    async with serving(lambda _: Goes({"data": []})) as vendor, client(vendor, "azure") as made:
        assert await made.models() == ()
    assert vendor.came[0].query["api-version"]


@pytest.mark.parametrize("own", ["", "?api-version=1"])
def test_page_parameters_are_added_to_the_query_of_the_url(own: str) -> None:
    """Each parameter can be read by its name."""
    asked = with_query(HttpRequest(url=f"https://a.test/models{own}"), {"after": "a&b", "n": "2"})
    read = dict(parse_qsl(urlsplit(asked.url).query, strict_parsing=True))
    assert read == {**({"api-version": "1"} if own else {}), "after": "a&b", "n": "2"}


@pytest.mark.parametrize("body", [{}, {"data": 1}, "hush", {"data": None}, 5])
async def test_an_invalid_list_is_a_wire_error(body: Any) -> None:
    """It is not quoted; invalid rows are left out."""
    async with serving(lambda _: Goes(body)) as vendor, client(vendor, "openai") as made:
        with pytest.raises(WireError) as caught:
            await made.models()
    assert "hush" not in str(caught.value)
    odd = {"data": [1, {"id": 2}, {"id": "ok", "created": "yesterday", "name": 1}]}
    async with serving(lambda _: Goes(odd)) as vendor, client(vendor, "openai") as made:
        assert await made.models() == (ModelInfo("ok"),)
    odd = {"data": [{"id": "ok", "created_at": "yesterday"}, {"id": "o", "created_at": 3}]}
    async with serving(lambda _: Goes(odd)) as vendor, client(vendor, "anthropic") as made:
        assert await made.models() == (ModelInfo("ok"), ModelInfo("o"))


async def test_errors_are_the_providers() -> None:
    """As for other requests."""
    async with serving(lambda _: failed(401)) as vendor, client(vendor, "openai") as made:
        with pytest.raises(AuthenticationError):
            await made.models()


async def test_a_provider_without_a_list_is_an_error() -> None:
    """The error names the provider."""
    paths = {"openai-chat": Endpoints(generate="/x")}
    acme = Provider("acme", (Target(dialect="openai-chat"),), "http://x.invalid", endpoints=paths)
    async with Client(acme, key="k") as made:
        with pytest.raises(ConfigError, match="acme"):
            await made.models()


async def test_the_blocking_api_has_all_of_it(tmp_path: Path) -> None:
    """Lists, embeddings, counts and uploads, from recordings."""
    rows = {"data": [{"id": "m", "index": 0, "embedding": [0.5]}]}
    path = tmp_path / "x.jsonl"
    async with serving(lambda _: Goes({**rows, "id": "f", "input_tokens": 3})) as vendor:
        recording = ReplayTransport(path, "record")
        async with client(vendor, "openai:m", transport=recording) as made:
            await made.models()
            await made.embed("a")
            await made.embed(["b"])
            await made.count_tokens("Hi")
            await made.upload(b"x")
        await recording.close()

    def script() -> None:
        with Client("openai:m", key="k", base_url="http://x.invalid",
                    transport=ReplayTransport(path)) as made:  # fmt: skip
            assert made.models_sync() == (ModelInfo("m"),)
            assert made.embed_sync("a").vector == (0.5,)
            assert made.embed_sync(["b"]).vectors == ((0.5,),)
            assert made.count_tokens_sync("Hi").tokens == 3
            assert made.upload_sync(b"x").file_id == "f"

    await asyncio.to_thread(script)
