"""Counting the tokens of a prompt."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.errors import ConfigError, InvalidRequest, ModelNotFound, WireError
from dragoman.model.catalogue import TokenCount
from dragoman.model.media import Image
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import Text, Thinking
from dragoman.model.requests import Request, Sampling
from dragoman.model.tools import ToolCall, ToolDefinition, ToolResult
from dragoman.providers.provider import Provider
from dragoman.providers.registry import provider
from dragoman.transport.client import Client
from dragoman.transport.other_endpoints import estimated
from dragoman.transport.retries import Retries
from dragoman.wire.target import Target
from tests.transport.vendors import Came, Goes, Vendor, failed, serving

TOOL = ToolDefinition("look", "Looks", {"type": "object", "properties": {}})
REQUEST = Request(
    system=(Text("Be brief"),),
    messages=(Message.user("How many?"),),
    tools=(TOOL,),
    sampling=Sampling(temperature=0.5, max_tokens=10),
)


def client(vendor: Vendor, model: str, path: str = "", **options: Any) -> Client:
    """A client of a provider on loopback."""
    return Client(model, base_url=f"{vendor.url}{path}", key="k", **options)


async def test_anthropic_counts() -> None:
    """The request contains no field that the endpoint rejects."""
    async with (
        serving(lambda _: Goes({"input_tokens": 14})) as vendor,
        client(vendor, "anthropic:claude-sonnet-4-5") as made,
    ):
        count = await made.count_tokens(REQUEST)
    assert count == TokenCount(14)
    assert (int(count), count.is_estimate) == (14, False)
    (came,) = vendor.came
    assert came.path == "/v1/messages/count_tokens"
    assert came.headers["anthropic-version"]
    assert came.json.keys() == {"model", "messages", "system", "tools"}


async def test_google_counts_whole_requests() -> None:
    """Instructions and tools are included, as only a whole request has them there."""
    async with (
        serving(lambda _: Goes({"totalTokens": 31})) as vendor,
        client(vendor, "google:gemini-2.5-flash") as made,
    ):
        assert await made.count_tokens(REQUEST) == TokenCount(31)
    (came,) = vendor.came
    assert came.path == "/v1beta/models/gemini-2.5-flash:countTokens"
    (whole,) = came.json.values()
    assert whole["model"] == "models/gemini-2.5-flash"
    assert whole.keys() >= {"contents", "systemInstruction", "tools", "generationConfig"}


async def test_vertex_takes_the_fields_without_an_envelope() -> None:
    """Only fields that its endpoint knows are sent."""
    async with (
        serving(lambda _: Goes({"totalTokens": 31})) as vendor,
        client(vendor, "vertex:gemini-2.5-flash", parameters={"project": "p"}) as made,
    ):
        assert (await made.count_tokens(REQUEST)).tokens == 31
    (came,) = vendor.came
    assert came.path.endswith(":countTokens")
    assert came.json.keys() == {"contents", "systemInstruction", "tools", "generationConfig"}


async def test_openai_counts_with_responses() -> None:
    """Chat Completions has no counting endpoint, Responses has one."""
    async with (
        serving(lambda _: Goes({"object": "response.input_tokens", "input_tokens": 9})) as vendor,
        client(vendor, "openai:gpt-4o", "/v1") as made,
    ):
        assert await made.count_tokens(REQUEST) == TokenCount(9)
    (came,) = vendor.came
    assert came.path == "/v1/responses/input_tokens"
    assert came.headers["Authorization"] == "Bearer k"
    assert came.json.keys() == {"model", "input", "instructions", "tools"} or (
        came.json.keys() == {"model", "input", "tools"}
    )


async def test_a_provider_without_a_counter_is_not_asked() -> None:
    """The estimate is marked as one."""
    async with serving(lambda _: failed(500)) as vendor, client(vendor, "mistral:x") as made:
        count = await made.count_tokens("How many tokens are these?")
        assert count.is_estimate
        assert 5 <= count.tokens <= 20
        assert await made.count_tokens("Hi", estimate=lambda _: 42) == TokenCount(42, True)
    assert vendor.came == []
    assert repr(count) == f"TokenCount({count.tokens} tokens, estimated)"


async def test_a_missing_counter_is_skipped() -> None:
    """Servers need not have every endpoint of a dialect; those of other dialects are tried."""

    def llama(came: Came) -> Goes:
        return Goes({"input_tokens": 3}) if "messages" in came.path else Goes({}, 404)

    async with serving(llama) as vendor, client(vendor, "llama.cpp:x", "/v1") as made:
        assert await made.count_tokens("Hi") == TokenCount(3)
    assert [came.path for came in vendor.came] == [
        "/v1/responses/input_tokens",
        "/v1/messages/count_tokens",
    ]
    async with serving(lambda _: Goes({}, 405)) as vendor, client(vendor, "llama.cpp:x") as made:
        assert (await made.count_tokens("Hi")).is_estimate


@pytest.mark.parametrize("status", [404, 405, 501])
async def test_a_missing_counter_is_tried_once(status: int) -> None:
    """In every dialect; later estimates need no request."""
    for dialect in ("anthropic", "openai-responses"):
        place = Provider("acme", (Target(dialect=dialect),), "http://acme.example")
        async with (
            serving(lambda _: Goes({}, status)) as vendor,
            Client(place, base_url=vendor.url, retries=Retries(attempts=1)) as made,
        ):
            for _ in range(3):
                assert (await made.count_tokens("Hi")).is_estimate
        assert len(vendor.came) == 1


@pytest.mark.parametrize("name", ["xai", "openrouter", "lmstudio", "ollama", "deepseek", "mistral"])
async def test_a_provider_known_to_have_no_counter_is_never_asked(name: str) -> None:
    """In none of its dialects."""
    for dialect in provider(name).dialects:
        async with (
            serving(lambda _: failed(500)) as vendor,
            client(vendor, f"{name}:x", dialect=dialect) as made,
        ):
            assert (await made.count_tokens("Hi")).is_estimate
        assert vendor.came == []


async def test_a_missing_model_does_not_disable_the_counter() -> None:
    """Another model is still counted."""

    def picky(came: Came) -> Goes:
        gone = {"type": "error", "error": {"type": "not_found_error", "message": "model: x"}}
        return Goes({"input_tokens": 3}) if came.json["model"] == "y" else Goes(gone, 404)

    async with serving(picky) as vendor, client(vendor, "anthropic") as made:
        with pytest.raises(ModelNotFound):
            await made.count_tokens(REQUEST.replace(model="x"))
        assert await made.count_tokens(REQUEST.replace(model="y")) == TokenCount(3)


async def test_vertex_counts_for_claude_as_its_sdk_does() -> None:
    """The path is the same for all models, so the body names it; Gemini's endpoint is not used."""
    async with (
        serving(lambda _: Goes({"input_tokens": 5})) as vendor,
        client(vendor, "vertex", "/v1", parameters={"project": "p"}) as made,
    ):
        asked = REQUEST.replace(model="claude-sonnet-4-5")
        assert await made.count_tokens(asked) == TokenCount(5)
    (came,) = vendor.came
    assert came.path.endswith("/publishers/anthropic/models/count-tokens:rawPredict")
    assert came.json["model"] == "claude-sonnet-4-5"
    assert came.json["anthropic_version"] == "vertex-2023-10-16"


async def test_a_rejection_by_the_other_dialect_gives_an_estimate() -> None:
    """Not every model of Chat Completions is available in Responses."""
    bad = failed(400, "invalid_request_error")
    async with serving(lambda _: bad) as vendor, client(vendor, "openai:x", "/v1") as made:
        assert (await made.count_tokens("Hi")).is_estimate
    assert len(vendor.came) == 1


async def test_other_failures_are_raised() -> None:
    """A missing model, an invalid request and a missing key are not replaced by an estimate."""
    gone = Goes({"type": "error", "error": {"type": "not_found_error", "message": "model: x"}}, 404)
    async with serving(lambda _: gone) as vendor, client(vendor, "anthropic:x") as made:
        with pytest.raises(ModelNotFound):
            await made.count_tokens("Hi")
    bad = failed(400, "invalid_request_error")
    async with serving(lambda _: bad) as vendor, client(vendor, "anthropic:x") as made:
        with pytest.raises(InvalidRequest):
            await made.count_tokens("Hi")
    async with Client("anthropic:x") as made:
        with pytest.raises(ConfigError, match="API key"):
            await made.count_tokens("Hi")


@pytest.mark.parametrize("body", [[], {"input_tokens": "hush"}, {"input_tokens": -1}, "hush", {}])
async def test_an_invalid_count_is_a_wire_error(body: Any) -> None:
    """It is not quoted."""
    async with serving(lambda _: Goes(body)) as vendor, client(vendor, "anthropic:x") as made:
        with pytest.raises(WireError) as caught:
            await made.count_tokens("Hi")
    assert "hush" not in str(caught.value)


async def test_google_omits_zero() -> None:
    """A count of zero is left out of its JSON."""
    async with serving(lambda _: Goes({})) as vendor, client(vendor, "google:x") as made:
        assert await made.count_tokens("") == TokenCount(0)


def test_estimates_include_every_part() -> None:
    """Every kind of part counts, more text counts more, and media aren't counted as text."""
    small = estimated(Request(messages=(Message.user("Hi"),)))
    call = ToolCall.create("c1", "look", {"at": "x" * 70})
    image = Image.from_bytes(b"\x89PNG\r\n\x1a\n" + b"\x00" * 90_000)
    parts: list[tuple[Any, ...]] = [
        (Text("y" * 70),), (Thinking("y" * 70),), (call,),
        (ToolResult("c1", "y" * 70),), (ToolResult("c1", (Text("y" * 70),)),),
    ]  # fmt: skip
    for added in parts:
        messages = (Message.user("Hi"), make_message(role=Message.user("").role, parts=added))
        assert 20 <= estimated(Request(messages=messages)) - small <= 40
    seen = estimated(Request(messages=(Message.user("Hi", image),)))
    assert 500 <= seen - small <= 2_000
    shown = Message(role=Message.user("").role, parts=(ToolResult("c1", (image,)),))
    assert estimated(Request(messages=(shown,))) >= 500
    assert estimated(REQUEST) > estimated(REQUEST.replace(tools=()))
    assert estimated(Request(messages=(Message.user("\ud800"),))) > 0
