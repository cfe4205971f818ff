"""Custom prices: read from the file, and used for costs."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from dragoman.gateway.config.problems import ConfigFileError
from dragoman.gateway.config.reading import parse_config
from dragoman.gateway.config.settings import Hop, Place
from dragoman.gateway.pricing import PricedModels
from dragoman.model.usage import Usage
from dragoman.providers.price import Price
from dragoman.providers.prices import LISTED, Prices, cost_of
from dragoman.wire.lane.plain import Summary
from tests.gateway.middleware.conftest import Stage

FILE = """
[providers.lab]
kind = "openai-compatible"
base_url = "http://127.0.0.1:9/v1"

[prices]
"lab:*" = { input = 0.1, output = 0.2 }
"lab:big" = { input = 1, output = 2, cache_read = 0.5, above = 1000, beyond = { input = 3 } }
gpt-5 = { input = 7 }
"""


def test_prices_are_read_from_the_file() -> None:
    """By provider and model, with patterns; each is a `Price`."""
    prices = parse_config(FILE, {}).prices
    assert prices["lab:*"] == Price("0.1", "0.2")
    assert prices["lab:big"] == Price(1, 2, cache_read="0.5", above=1000, beyond=Price(3))


_MODELS = (
    ("anthropic", "claude-sonnet-4-5"), ("openai", "gpt-5"), ("google", "gemini-2.5-pro"),
    ("google", "gemini-2.5-flash"), ("deepseek", "deepseek-chat"), ("xai", "grok-4"),
    ("openrouter", "openai/gpt-5"), ("groq", "llama-3.3-70b-versatile"), ("vllm", "anything"),
    ("openai", "unheard-of"), ("perplexity", "sonar"), ("openai", "gpt-4o-audio-preview"),
)  # fmt: skip
_counts = st.sampled_from([0, 0, 1, 300_000, -1])
_usages = st.builds(
    Usage, _counts, _counts, _counts, _counts, _counts,
    extras=st.sampled_from([
        {}, {"openai-chat": {"service_tier": "flex"}}, {"openai-chat": {"cost": 2}},
        {"anthropic": {"service_tier": "standard", "inference_geo": "us"}},
        {"openai-chat": {"cost_in_usd_ticks": 5}},
    ]),
    details=st.sampled_from([
        {}, {"cache_write_1h": 0}, {"cache_write_1h": 7}, {"input_audio": 5}, {"web_searches": 1},
        {"other_models": 3}, {"compaction_input": 9},
    ]),
)  # fmt: skip


@given(st.sampled_from(_MODELS), _usages, st.sampled_from([None, None, "batch"]))
def test_remembered_prices_are_those_of_the_list(
    at: tuple[str, str], usage: Usage, tier: str | None
) -> None:
    """Whatever the usage has: details, extras, a tier, counts that can't be."""
    provider, model = at
    found = PricedModels().cost(Summary(model, usage, None, tier), provider, model)
    has_price = LISTED.has_price(model, provider)
    assert found == (cost_of(usage, model, provider, tier=tier) if has_price else None)


def test_a_price_is_remembered_for_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may depend on the time of day."""
    prices, asked = PricedModels(), list[str]()
    listed = Prices.usual_price

    def usual_price(self: Prices, model: str, provider: str | None = None) -> Price | None:
        asked.append(model)
        return listed(self, model, provider)

    monkeypatch.setattr(Prices, "usual_price", usual_price)
    for now in (5.0, 5.5, 5.99, 6.0, 6.5):
        monkeypatch.setattr("dragoman.gateway.pricing.time", lambda now=now: now)
        summary = Summary("claude-sonnet-4-5", Usage(100_000))
        assert prices.cost(summary, "anthropic", None) == Decimal("0.3")
    assert len(asked) == 2


@pytest.mark.parametrize(
    ("text", "line", "column", "said"),
    [
        ("[prices]\nx = 3", 2, 5, "a price is a table"),
        ("[prices]\nx = { output = 1 }", 2, 1, "input is missing"),
        ('[prices]\nx = { input = "1" }', 2, 15, "dollars"),
        ("[prices]\nx = { input = -1 }", 2, 15, "dollars"),
        ("[prices]\nx = { input = nan }", 2, 15, "dollars"),
        ("[prices]\nx = { input = 1, inputs = 2 }", 2, 18, "unknown field"),
        ("[prices]\nx = { input = 1, above = 5 }", 2, 5, "belong together"),
        ("[prices]\nx = { input = 1, above = 5, beyond = 3 }", 2, 38, "a price is a table"),
        ("prices = 3", 1, 10, "this must be a table"),
    ],
)
def test_problems_have_line_and_column(text: str, line: int, column: int, said: str) -> None:
    """Of the value, or of its key if something is missing."""
    with pytest.raises(ConfigFileError) as caught:
        parse_config(text, {})
    assert (caught.value.line, caught.value.column) == (line, column), str(caught.value)
    assert said in str(caught.value)


def test_custom_prices_override_listed_ones() -> None:
    """By provider or for any, exact names first; lists apply to all others."""
    prices = PricedModels(parse_config(FILE, {}).prices)
    usage = Usage(input=1_000_000, output=1_000_000)

    def cost(model: str, provider: str, place: str) -> Decimal | None:
        return prices.cost(Summary(None, usage), provider, model, place)

    assert cost("small", "openai-compatible", "lab") == Decimal("0.3")
    assert cost("gpt-5", "openai", "openai") == 7
    assert cost("gpt-5", "openai-compatible", "lab") == 7  # an exact name wins over a pattern
    assert cost("claude-haiku-4-5", "anthropic", "anthropic") == 6
    assert cost("unknown", "openai-compatible", "elsewhere") is None
    assert PricedModels().cost(Summary(None, usage), "anthropic", "claude-haiku-4-5") == 6


def test_costs_use_custom_prices(stage: Stage) -> None:
    """By the provider that answered."""
    config = stage.gateway.config
    try:
        stage.gateway.apply(replace(config, prices={"gemini:*": Price(1000, 2000)}))
        stage.text("openai-chat", model="gemini")
        stage.text("openai-chat", model="gemini", stream=True)
        stage.text("openai-chat", model="anthropic")
        costs = [record.cost for record in stage.records]
    finally:
        stage.gateway.apply(config)
    assert costs == [Decimal("0.025"), Decimal("0.025"), None]


@pytest.mark.parametrize("name", ["echo:", "echo:fast", "local:smollm2", "scripted:play.json"])
def test_in_process_models_are_free_unless_they_have_a_price(name: str) -> None:
    """So that a key with a cost budget may use them."""
    hop = Hop(place=Place(name=name, model_url=name))
    usage = Usage(input=1_000_000)
    kind = name.partition(":")[0]
    assert PricedModels().estimate(usage, hop) == 0
    assert PricedModels({f"{kind}:*": Price(3)}).estimate(usage, hop) == 3
    assert PricedModels({name: Price(3)}).estimate(usage, hop) == 3
