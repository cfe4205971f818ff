"""Custom prices: read from the file, and used for costs."""

from __future__ import annotations

from decimal import Decimal

import pytest
from msgspec.structs import replace

from dragoman.gateway.config.problems import ConfigFileError
from dragoman.gateway.config.reading import parse_config
from dragoman.gateway.config.settings import Hop, Place
from dragoman.gateway.pricing import PricedModels
from dragoman.model.usage import Usage
from dragoman.providers.price import Price
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
