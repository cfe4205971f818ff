"""Prices: the lists, the user's own, what providers report, and what nobody knows."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman
from dragoman.errors import InvalidInputError
from dragoman.model.messages import Message
from dragoman.model.parts import Origin
from dragoman.model.responses import Choice, Response
from dragoman.model.usage import Usage
from dragoman.providers import genai_prices, price_list, registry
from dragoman.providers.price import Price
from dragoman.providers.prices import Prices, cost_of
from dragoman.providers.registry import provider, provider_names

MILLION = Usage(input=1_000_000)
counts = st.integers(0, 10**7)
usages = st.builds(
    Usage, input=counts, output=counts, cache_read=counts, cache_write=counts, thinking=counts
)
amounts = st.decimals(0, 1000, places=4)
prices = st.builds(Price, amounts, amounts, cache_read=amounts, cache_write=amounts)


@pytest.fixture(autouse=True)
def _our_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """Our own list alone: `test_genai_prices` has the package's."""
    monkeypatch.setattr(genai_prices, "_package", lambda: None)


# --- what a turn costs


@given(usages, prices)
def test_every_bucket_has_its_price(usage: Usage, price: Price) -> None:
    """The cost is the sum over the buckets; thinking is output."""
    cost = price.cost(usage) * 1_000_000
    assert cost == (
        usage.input * price.input
        + (usage.output + usage.thinking) * price.output
        + usage.cache_read * price.cache_read
        + usage.cache_write * price.cache_write
    )


def test_cached_tokens_cost_as_much_as_input_by_default() -> None:
    """Cached tokens are not free because no price for them is set."""
    used = Usage(cache_read=1_000_000, cache_write=1_000_000)
    assert Price(3, 15).cost(used) == 6
    assert Price(3, 15, cache_read="0.3", cache_write="3.75").cost(used) == Decimal("4.05")


def test_long_prompts_are_billed_as_such() -> None:
    """Above the limit all of the request is dearer; at it, nothing is yet."""
    price = Price(1, 2, above=1_000, beyond={"input": 10, "output": 20})
    assert price.cost(Usage(input=400, cache_read=600, output=1_000)) == Decimal("0.003")
    assert price.cost(Usage(input=401, cache_read=600, output=1_000)) == Decimal("0.03001")


def test_an_hour_of_cache_costs_twice_the_input() -> None:
    """Anthropic reports how many of the written tokens are cached for an hour."""
    wire: dict[str, Any] = {
        "id": "m", "type": "message", "role": "assistant", "model": "claude-haiku-4-5",
        "content": [], "stop_reason": "end_turn", "stop_sequence": None,
        "usage": {"input_tokens": 0, "output_tokens": 0, "cache_creation_input_tokens": 1_000_000,
                  "cache_creation": {"ephemeral_1h_input_tokens": 400_000,
                                     "ephemeral_5m_input_tokens": 600_000}},
    }  # fmt: skip
    usage = dragoman.dialect("anthropic").decode_response(wire).usage
    assert cost_of(usage, "claude-haiku-4-5", "anthropic") == Decimal("1.55")


# --- the lists


@pytest.mark.parametrize(
    ("model", "dollars_in", "dollars_out", "read", "write"),
    [
        ("openai:gpt-5", "1.25", "10", "0.125", "1.25"),
        ("openai:gpt-5-2025-08-07", "1.25", "10", "0.125", "1.25"),
        ("openai:gpt-5-mini", "0.25", "2", "0.025", "0.25"),
        ("openai:gpt-4o-2024-08-06", "2.5", "10", "1.25", "2.5"),
        ("openai:gpt-4o-2024-05-13", "5", "15", "5", "5"),
        ("openai:o3", "2", "8", "0.5", "2"),
        ("anthropic:claude-opus-4-1-20250805", "15", "75", "1.5", "18.75"),
        ("anthropic:claude-opus-4-5", "5", "25", "0.5", "6.25"),
        ("anthropic:claude-3-5-sonnet-latest", "3", "15", "0.3", "3.75"),
        ("anthropic:claude-haiku-4-5", "1", "5", "0.1", "1.25"),
        ("google:models/gemini-2.5-flash", "0.3", "2.5", "0.03", "0.3"),
        ("gemini:gemini-2.5-pro", "1.25", "10", "0.125", "1.25"),
        ("grok:grok-3-mini", "0.3", "0.5", "0.075", "0.3"),
        ("groq:openai/gpt-oss-20b", "0.075", "0.3", "0.0375", "0.075"),
    ],
)
def test_what_makers_list(
    model: str, dollars_in: str, dollars_out: str, read: str, write: str
) -> None:
    """Names with a date, a prefix, or a provider's other name are the same model."""
    price = Prices().price(model)
    assert price is not None
    found = (price.input, price.output, price.cache_read, price.cache_write)
    assert found == tuple(map(Decimal, (dollars_in, dollars_out, read, write)))


@pytest.mark.parametrize(
    "model",
    [
        "openai:gpt-4o-audio-preview", "openai:gpt-9", "openai:ft:gpt-4o-mini:acme", "openai",
        "azure:gpt-5", "vertex:gemini-2.5-pro", "vertex:claude-haiku-4-5",
        "openrouter:openai/gpt-5", "openai-compatible:gpt-5", "perplexity:sonar", "gpt-5",
        "mistral:mistral-large-latest",
        "ollama:gpt-oss:120b-cloud", "acme:gpt-5", "openai:gpt-5|anthropic:claude-haiku-4-5", "",
    ],
)  # fmt: skip
def test_an_unknown_price_is_none(model: str) -> None:
    """Unknown models, and providers without a price list, have no price, rather than zero."""
    assert Prices().price(model) is None
    assert cost_of(MILLION, model) is None


@pytest.mark.parametrize(
    "model",
    ["local", "local:smollm2", "echo", "scripted", "scripted:talk.json", "ollama:llama3.2:3b",
     "llama.cpp:x", "llamacpp:x", "lmstudio:qwen/qwen3-4b", "lm-studio:x", "vllm:meta/llama"],
)  # fmt: skip
def test_a_machine_of_ones_own_is_free(model: str) -> None:
    """It costs nothing, also where nothing was counted."""
    assert cost_of(MILLION, model) == 0
    assert cost_of(None, model) == 0


def test_unknown_usage_is_an_unknown_cost() -> None:
    """With a price, but without counts, there is no cost."""
    assert cost_of(None, "openai:gpt-5") is None


def test_every_list_is_of_a_provider() -> None:
    """No row is out of reach: its provider exists, by its own name, and the row finds itself."""
    own = {"local", "echo", "scripted", "test"}
    assert price_list.LISTING - own <= set(provider_names())
    for name in price_list.LISTING - own:
        assert provider(name).name == name
    for name, rows in price_list._LISTS.items():
        for place, (pattern, price) in enumerate(rows):
            assert price_list.listed_price(name, _sample(pattern)) == price, (name, place)


def _sample(pattern: str) -> str:
    """A name that a row is for: the first of each choice, without what is optional."""
    text = "" if pattern.startswith((".*", "(?!")) else pattern.replace("\\.", ".")
    text = re.sub(r"\([^()]*\)\?", "", text)
    text = re.sub(r"\(([^()|]*)[^()]*\)", r"\1", text)
    return re.sub(r"\[(.)[^]]*\]", r"\1", text).split("|")[0]


# --- the user's own


def test_own_prices_win() -> None:
    """By provider and model, by model, by pattern: an exact key first, then the first that fits."""
    own = Prices({
        "*": Price(9),
        "openai:gpt-5": {"input": "0.5", "output": 4},
        "acme-large": Price(2),
        "azure:*": Price(3),
    })  # fmt: skip
    assert own.cost_of(MILLION, "gpt-5-2025-08-07", "openai") == Decimal("0.5")
    assert own.cost_of(MILLION, "GPT-5", "OpenAI") == Decimal("0.5")
    assert own.cost_of(MILLION, "acme:acme-large") == 2
    assert own.cost_of(MILLION, "acme-large", "azure") == 2
    assert own.cost_of(MILLION, "azure:ours") == 9  # the first pattern that fits
    ordered = Prices({"azure:*": Price(3), "*": Price(9)})
    assert ordered.cost_of(MILLION, "azure-openai:ours") == 3
    assert own.cost_of(MILLION, "local:x") == 9


def test_keys_are_names_not_expressions() -> None:
    """A dot is a dot, a bracket a bracket; only the star means something else."""
    own = Prices({"llama3.2:3b": Price(1), "a[b]*": Price(2), "grok:grok-4": Price(3)})
    assert own.price("llama3x2:3b", "acme") is None
    assert own.cost_of(MILLION, "ollama:llama3.2:3b") == 1
    assert own.cost_of(MILLION, "a[b]c", "acme") == 2
    assert own.price("abc", "acme") is None
    assert own.cost_of(MILLION, "grok-4", "xai") == 3


@pytest.mark.parametrize(
    "bad",
    [
        5, {"openai:gpt-5": 5}, {5: Price(1)}, {"x": {}}, {"x": {"output": 1}},
        {"x": {"input": 1, "zqzq": 2}}, {"x": {"input": "zqzq"}}, {"x": {"input": -1}},
        {"x": {"input": True}}, {"x": {"input": float("inf")}}, {"x": {"input": None}},
        {"x": {"input": "1e400"}}, {"x": {"input": 1, "above": 5}}, {"x": {5: 1, "input": 1}},
        {"x": {"input": 1, "beyond": {"input": 2}}},
        {"x": {"input": 1, "above": 1.5, "beyond": {"input": 2}}},
    ],
)  # fmt: skip
def test_prices_that_are_none(bad: Any) -> None:
    """They are refused when they are given, in words that don't quote them."""
    with pytest.raises(InvalidInputError) as raised:
        Prices(bad)
    assert "zqzq" not in str(raised.value)
    assert raised.value.__cause__ is None


@given(st.text(), st.none() | st.text())
def test_any_name_will_do(model: str, place: str | None) -> None:
    """Whatever a model is called, there is a price or there is none."""
    for found in (Prices(), Prices({"*": Price(1)}), Prices({model: Price(1)})):
        cost = found.cost_of(MILLION, model, place)
        assert cost is None or cost >= 0


# --- what providers report


def _chat_usage(**fields: Any) -> Usage:
    counted = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15, **fields}
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "x"}}
    wire = {"id": "r", "model": "m", "choices": [choice], "usage": counted}
    usage = dragoman.dialect("openai-chat").decode_response(wire).usage
    assert usage is not None
    return usage


@pytest.mark.parametrize(
    ("place", "fields", "dollars"),
    [
        ("openrouter", {"cost": 0.0000355}, "0.0000355"),
        ("openrouter", {"cost": 0.001, "is_byok": True,
                        "cost_details": {"upstream_inference_cost": 0.002}}, "0.003"),
        ("openrouter", {"cost": 0.001, "is_byok": True}, None),
        ("openrouter", {"cost": "free"}, None),
        ("openrouter", {"cost": -1}, None),
        ("openrouter", {}, None),
        ("perplexity", {"cost": {"total_cost": 0.006}}, "0.006"),
        ("perplexity", {"cost": 5}, None),
        ("xai", {"cost_in_usd_ticks": 7106000}, "0.0007106"),
        ("acme", {"cost": 1}, None),
    ],
)  # fmt: skip
def test_a_reported_cost_counts(place: str, fields: dict[str, Any], dollars: str | None) -> None:
    """The cost that a provider reports is used, unless the user set a price."""
    usage = _chat_usage(**fields)
    assert cost_of(usage, "some/model", place) == (None if dollars is None else Decimal(dollars))
    assert Prices({"some/model": Price(100_000)}).cost_of(usage, "some/model", place) == 1


def test_whether_a_cost_will_be_known() -> None:
    """By a price, or because the provider always reports it."""
    assert Prices().has_price("openrouter:some/model")
    assert Prices().has_price("openai:gpt-5")
    assert not Prices().has_price("azure:ours")
    assert Prices({"azure:ours": Price(1)}).has_price("azure:ours")


# --- answers


def _answer(model: str | None, place: str | None) -> Response:
    origin = Origin(dialect="openai-chat", provider=place)
    message = Message.assistant("x").replace(origin=origin)
    return Response(choices=(Choice(0, message),), usage=MILLION, model=model)


@pytest.mark.parametrize(
    ("asked", "answered", "place", "dollars"),
    [
        ("openai:gpt-5", "gpt-5-2025-08-07", "openai", "1.25"),
        ("openai:gpt-5", None, None, "1.25"),
        ("openai:gpt-9|anthropic:x", "claude-haiku-4-5-20251001", "anthropic", "1"),
        ("google:gemini-flash-latest", "gemini-2.5-flash", "google", "0.3"),
        ("azure:gpt-5", "gpt-5-2025-08-07", "azure", None),
        ("openai:gpt-5", "unheard-of", "openai", "1.25"),
        ("openai:gpt-5", "unheard-of", "acme", None),
        ("scripted", "whatever", None, "0"),
    ],
)
def test_a_response_is_priced_by_its_own_model(
    asked: str, answered: str | None, place: str | None, dollars: str | None
) -> None:
    """The response's names come first, then the requested name if the provider is the same."""
    cost = Prices().cost_of_response(_answer(answered, place), asked)
    assert cost == (None if dollars is None else Decimal(dollars))


def test_an_answer_of_a_model_that_has_a_price_of_ones_own() -> None:
    """The user's price for the name that was asked wins over the list's for the one answering."""
    own = Prices({"google:gemini-flash-latest": Price(7), "scripted": Price(2)})
    answer = _answer("gemini-2.5-flash", "google")
    assert own.cost_of_response(answer, "google:gemini-flash-latest") == 7
    assert own.cost_of_response(_answer("m", None), "scripted") == 2
    assert own.cost_of_response(Response(usage=MILLION), "scripted") == 2


def test_packages_are_looked_through_once_for_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model of one's own is looked up on each answer: what is installed is read the first time.

    However many names there are, only so many are kept.
    """
    looked: list[str] = []
    monkeypatch.setattr(registry._ADDED, "refresh", lambda: looked.append("again"))
    own = Prices({"mine:*": Price(1, 2)})
    looked.clear()
    costs = [own.cost_of(MILLION, "mine:large") for _ in range(3)]
    assert costs == [Decimal(1)] * 3
    assert looked == ["again"]
    for number in range(150):
        assert own.price(f"other{number}:x") is None
    assert len(own._places) < 100


def test_output_costs_no_less_than_input() -> None:
    """This holds for all vendors: a row that breaks it has its figures swapped."""
    for name, rows in price_list._LISTS.items():
        for pattern, price in rows:
            is_embedding = price.output == 0
            assert is_embedding or price.output >= price.input, (name, pattern)


def _compacted(*iterations: dict[str, Any], stream: bool = False) -> Response:
    """A response of Claude that took these iterations besides the one that answered."""
    usage = {"input_tokens": 1000, "output_tokens": 100}
    last = {"type": "message", "cache_read_input_tokens": 0, **usage}
    whole: dict[str, Any] = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-6",
        "content": [], "stop_reason": "end_turn", "stop_sequence": None,
        "usage": {**usage, "iterations": [*iterations, last]},
    }  # fmt: skip
    anthropic = dragoman.dialect("anthropic")
    if not stream:
        return anthropic.decode_response(whole)
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**whole, "stop_reason": None, "usage": usage}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": whole["usage"]},
        {"type": "message_stop"},
    ]
    decoder = anthropic.stream_decoder()
    for event in events:
        decoder.feed(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
    decoder.close()
    return decoder.response


@pytest.mark.parametrize("stream", [False, True])
def test_compaction_is_billed_besides_the_counts_of_the_response(*, stream: bool) -> None:
    """Anthropic leaves its tokens out of the totals, and bills them; an advisor's are unknown."""
    summary = {"type": "compaction", "input_tokens": 100_000, "output_tokens": 200}
    plain, more = _compacted(stream=stream), _compacted(summary, stream=stream)
    prices = Prices({"anthropic:*": Price(input=3, output=15)})
    for each in (prices, Prices()):
        before = each.cost_of_response(plain, "anthropic:claude-sonnet-4-6")
        after = each.cost_of_response(more, "anthropic:claude-sonnet-4-6")
        assert before == Decimal("0.0045")
        assert after == before + Decimal("0.303")
    advised = _compacted(
        {"type": "advisor_message", "model": "x", "input_tokens": 5}, stream=stream
    )
    assert Prices().cost_of_response(advised, "anthropic:claude-sonnet-4-6") is None


@pytest.mark.parametrize(
    ("bucket", "dollars"),
    [
        ("input_tokens", 3), ("output_tokens", 15), ("cache_read_input_tokens", "0.3"),
        ("cache_creation_input_tokens", "3.75"),
    ],
)  # fmt: skip
def test_every_count_of_a_compaction_has_its_price(bucket: str, dollars: str) -> None:
    """Read, written, and taken from or put into the cache."""
    counts = {"input_tokens": 0, "output_tokens": 0, bucket: 1_000_000}
    more = _compacted({"type": "compaction", **counts})
    price = Price(3, 15, cache_read="0.3", cache_write="3.75")
    prices = Prices({"anthropic:*": price})
    before = prices.cost_of_response(_compacted(), "anthropic:claude-sonnet-4-6")
    after = prices.cost_of_response(more, "anthropic:claude-sonnet-4-6")
    assert before is not None
    assert after == before + Decimal(dollars)
