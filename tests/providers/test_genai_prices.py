"""Prices from the package genai-prices: the same sums as its own, whatever was used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, tzinfo
from decimal import Decimal
from typing import Any, Self

import genai_prices
import pytest
from genai_prices.data_snapshot import get_snapshot
from hypothesis import given
from hypothesis import strategies as st

from dragoman import Agent
from dragoman.model.messages import Message
from dragoman.model.parts import Origin
from dragoman.model.responses import Choice, Response
from dragoman.model.usage import Usage
from dragoman.providers import genai_prices as bridge
from dragoman.providers.price import Price
from dragoman.providers.price_list import listed_price
from dragoman.providers.prices import Prices, cost_of
from dragoman.testing import ScriptedModel
from tests.corpus import Corpus
from tests.wire.recorded import bodies

SAME = {"vertex": "google", "xai": "x-ai"}
PROVIDERS = {each.id: each for each in get_snapshot().providers}
MODELS = sorted(
    (place, model.id)
    for place in ("anthropic", "azure", "deepseek", "google", "groq", "mistral", "openai", "xai")
    for model in PROVIDERS[SAME.get(place, place)].models
)
DAY = 1_790_000_000.0
CACHES = ("cache_read", "cache_write", "cache_write_hour")
TIERS = (None, "batch", "flex", "priority", "fast")
counts = st.one_of(st.just(0), st.integers(0, 400_000))


@st.composite
def usages(draw: st.DrawFn) -> Usage:
    """Counts whose details are parts of them."""
    fresh, answer, read, write, thinking = (draw(counts) for _ in range(5))
    hour = draw(st.integers(0, write))
    audio = draw(st.integers(0, fresh))
    details = {"cache_write_1h": hour, "cache_write_5m": write - hour, "input_audio": audio}
    spoken = draw(st.integers(0, answer))
    details |= {"output_audio": spoken, "web_searches": draw(st.integers(0, 3))}
    details |= {
        "cached_audio": draw(st.integers(0, read)),
        "input_image": draw(st.integers(0, fresh - audio)),
        "output_image": draw(st.integers(0, answer - spoken)),
        "tool_input": draw(st.integers(0, fresh - audio)),
    }
    kept = draw(st.sets(st.sampled_from(sorted(details))))
    return Usage(
        input=fresh, output=answer, cache_read=read, cache_write=write, thinking=thinking,
        details={name: count for name, count in details.items() if name in kept},
    )  # fmt: skip


def theirs(usage: Usage, place: str, model: str, tier: str | None) -> Decimal | None:
    """What the package itself makes of it."""
    names = {"cache_write_1h": "cache_write_1h_tokens", "cache_write_5m": "cache_write_5m_tokens",
             "input_audio": "input_audio_tokens", "output_audio": "output_audio_tokens",
             "cached_audio": "cache_audio_read_tokens", "input_image": "input_image_tokens",
             "output_image": "output_image_tokens", "tool_input": "input_tool_tokens",
             "web_searches": "web_searches"}  # fmt: skip
    fields = {
        "input_tokens": usage.total_input,
        "output_tokens": usage.total_output,
        "cache_read_tokens": usage.cache_read,
        "cache_write_tokens": usage.cache_write,
        "output_reasoning_tokens": usage.thinking,
        **{names[name]: count for name, count in usage.details.items()},
    }
    key = "processing" if tier == "batch" else "service_tier"
    found = PROVIDERS[SAME.get(place, place)].find_model(model, all_providers=[*PROVIDERS.values()])
    if found is None:
        return None
    context = None if tier is None else {key: tier}
    if context and not any(each.when == context for each in found.price_variants or ()):
        return None
    try:
        return genai_prices.calc_price(
            genai_prices.Usage(**{name: count for name, count in fields.items() if count}),
            model, provider_id=SAME.get(place, place), price_context=context,
            genai_request_timestamp=datetime.fromtimestamp(DAY, UTC),
        ).total_price  # fmt: skip
    except ValueError:
        return None


@given(st.sampled_from(MODELS), usages(), st.sampled_from(TIERS))
def test_the_sums_are_the_packages_own(
    named: tuple[str, str], usage: Usage, tier: str | None
) -> None:
    """Whatever the model, the tokens and the tier: the quick way and its own calculation agree."""
    place, model = named
    assert bridge.genai_cost(usage, place, model, tier, DAY) == theirs(usage, place, model, tier)


PLACES = {
    "api.openai.com": "openai",
    "api.anthropic.com": "anthropic",
    "generativelanguage.googleapis.com": "google",
    "api.groq.com": "groq",
    "api.mistral.ai": "mistral",
    "api.deepseek.com": "deepseek",
    "api.x.ai": "xai",
    "openrouter.ai": "openrouter",
    "api.perplexity.ai": "perplexity",
}
FLAVOURS = {"openai-chat": "chat", "openai-responses": "responses"}


def _recorded(corpus: Corpus) -> Iterator[tuple[str, str, Mapping[str, Any], Response, str]]:
    for dialect in ("openai-chat", "anthropic", "openai-responses", "gemini"):
        for body in bodies(corpus, dialect):
            place = PLACES.get(body.recording.row.host)
            if body.kind == "response" and place is not None:
                answer = body.decode()
                assert isinstance(answer, Response)
                yield dialect, place, body.wire, answer, body.recording.row.file


def _read_by_package(wire: Mapping[str, Any], place: str, dialect: str, at: float | None) -> Any:
    """The package's own reading of an answer, and its price; None where it can't."""
    provider = PROVIDERS[SAME.get(place, place)]
    flavour = FLAVOURS.get(dialect, "default")
    if flavour not in {each.api_flavor for each in provider.extractors or ()}:
        flavour = "default"
    try:
        read = genai_prices.extract_usage(dict(wire), provider_id=provider.id, api_flavor=flavour)
        day = datetime.fromtimestamp(at, UTC) if at else None
        return read.usage, read.calc_price(genai_request_timestamp=day).total_price
    except (LookupError, ValueError):
        return None


def test_recorded_answers_cost_what_the_package_says(corpus: Corpus) -> None:
    """The package reads the recorded answer by itself; both come to the same amount.

    Excepted is what the provider itself says, and tokens that the package does not see: cached
    ones, and Anthropic's compaction.
    """
    compared: dict[str, int] = {}
    for dialect, place, wire, answer, file in _recorded(corpus):
        found = _read_by_package(wire, place, dialect, answer.created_at)
        usage = answer.usage
        if found is None or usage is None or place in ("openrouter", "perplexity", "xai"):
            continue
        read, cost = found
        if any(name.startswith("compaction_") or name == "other_models" for name in usage.details):
            continue  # billed besides the totals, and left out by the package
        if usage.cache_read != read.cache_read_tokens:
            assert read.cache_read_tokens == 0, file
            continue
        assert Prices().cost_of_response(answer, f"{place}:{answer.model}") == cost, file
        compared[place] = compared.get(place, 0) + 1
    assert compared.keys() >= {"openai", "anthropic", "google", "groq", "mistral", "deepseek"}


def test_recorded_costs_are_what_was_reported(corpus: Corpus) -> None:
    """If the provider reports the cost in its response, that is the cost."""
    compared: set[str] = set()
    for _, place, wire, answer, file in _recorded(corpus):
        usage = wire.get("usage")
        said = (
            usage.get("cost", usage.get("cost_in_usd_ticks")) if isinstance(usage, dict) else None
        )
        if said is None or place not in ("openrouter", "perplexity", "xai"):
            continue
        if isinstance(said, dict):
            said = said["total_cost"]
        assert isinstance(usage, dict)
        reported = Decimal(str(said)) / (10**10 if "cost_in_usd_ticks" in usage else 1)
        if usage.get("is_byok"):
            reported += Decimal(str(usage["cost_details"]["upstream_inference_cost"]))
        assert Prices().cost_of_response(answer, f"{place}:{answer.model}") == reported, file
        compared.add(place)
    assert compared == {"openrouter", "perplexity", "xai"}


OTHERWISE = {
    "deepseek-chat": "theirs is of an earlier model, by the time of day",
    "deepseek-reasoner": "as above",
    "mistral-embed": "nothing is put out",
}


class Noon(datetime):
    """Today at noon: DeepSeek charges more at some hours, and our list has the usual price."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Self:
        """Noon."""
        return super().now(tz).replace(hour=12, minute=0)


def test_our_list_agrees_with_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """What our own list says of a model is what the package says of it today.

    Ours has more prices of long prompts.
    """
    monkeypatch.setattr(bridge, "datetime", Noon)
    compared = 0
    for place, model in MODELS:
        ours, package = listed_price(place, model), bridge.genai_price(place, model)
        if ours is not None and package is not None:
            if package.above is None:
                ours = Price(*(getattr(ours, name) for name in ("input", "output")),
                             **{name: getattr(ours, name) for name in CACHES})  # fmt: skip
            assert ours == package or model in OTHERWISE, (place, model)
            compared += 1
    assert compared > 80


def test_without_the_package_our_list_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else changes; what only the package knows is unknown."""
    assert cost_of(Usage(input=10**6), "azure:gpt-5") == Decimal("1.25")
    monkeypatch.setattr(bridge, "_package", lambda: None)
    assert cost_of(Usage(input=10**6), "azure:gpt-5") is None
    assert cost_of(Usage(input=10**6), "openai:gpt-5") == Decimal("1.25")


@pytest.mark.parametrize("has_package", [True, False])
@pytest.mark.parametrize(
    ("dialect", "extras"),
    [
        ("openai-chat", {"service_tier": "scale"}),
        ("openai-chat", {"service_tier": "provisioned"}),
        ("gemini", {"trafficType": "PROVISIONED_THROUGHPUT"}),
        ("anthropic", {"inference_geo": "us"}),
    ],
)
def test_a_tier_without_a_price_is_unknown(
    dialect: str, extras: dict[str, str], has_package: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not billed as the standard one."""
    if not has_package:
        monkeypatch.setattr(bridge, "_package", lambda: None)
    model = {"openai-chat": "openai:gpt-5", "gemini": "google:gemini-2.5-pro",
             "anthropic": "anthropic:claude-opus-4-5"}[dialect]  # fmt: skip
    usage = Usage(input=1000, extras={dialect: extras})
    assert cost_of(usage, model) is None
    assert cost_of(usage.counts, model) == cost_of(Usage(input=1000), model) is not None


def test_a_response_is_priced_by_its_service_tier() -> None:
    """OpenAI reports the tier beside the usage, Anthropic inside it.

    For a batch, `tier` names it.
    """
    usage = Usage(input=10**6)
    flex = Response(
        usage=usage, model="gpt-5", extras={"openai-responses": {"service_tier": "flex"}}
    )
    assert Prices().cost_of_response(flex, "openai:gpt-5") == Decimal("0.625")
    batch = Usage(input=10**6, extras={"anthropic": {"service_tier": "batch"}})
    assert cost_of(batch, "anthropic:claude-haiku-4-5") == Decimal("0.5")
    assert cost_of(usage, "openai:gpt-5", tier="batch") == Decimal("0.625")


def test_audio_without_the_package_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Our list has the price of text; audio, images that are made, and searches have others."""
    usage = Usage(input=1000, details={"input_audio": 900})
    assert cost_of(usage, "google:gemini-2.5-flash") == Decimal("0.00093")
    monkeypatch.setattr(bridge, "_package", lambda: None)
    assert cost_of(usage, "google:gemini-2.5-flash") is None
    assert cost_of(Usage(input=1000, details={"input_audio": 0}), "google:gemini-2.5-flash")


def test_counts_that_contradict_each_other_are_unknown() -> None:
    """With more audio tokens than tokens in total, the cost is unknown."""
    wrong = Usage(input=10, details={"input_audio": 900, "input_text": 900})
    assert cost_of(wrong, "google:gemini-2.5-flash") is None


@pytest.mark.parametrize("at", [0, -5, 1e300, float("inf"), float("nan"), 4e9])
def test_a_time_that_is_none_is_now(at: float) -> None:
    """Compatible servers send zero, and some nonsense: today's price counts."""
    usage = Usage(input=10**6)
    assert cost_of(usage, "mistral:mistral-small-latest", at=at) == cost_of(
        usage, "mistral:mistral-small-latest"
    )


def test_the_price_of_the_day_counts() -> None:
    """Mistral Small became dearer in March 2026."""
    usage = Usage(input=10**6)
    assert cost_of(usage, "mistral:mistral-small-latest", at=1_767_225_600) == Decimal("0.1")
    assert cost_of(usage, "mistral:mistral-small-latest", at=1_780_000_000) == Decimal("0.15")


@given(st.text(max_size=300), st.sampled_from(["openai", "google", "acme", ""]))
def test_any_name_is_a_model_or_unknown(model: str, place: str) -> None:
    """Names come from outside: none raises, none is remembered without bound."""
    cost_of(Usage(input=1), model, place)
    assert len(bridge._models.known) <= 1024


def test_a_stored_answer_has_its_cost() -> None:
    """A stored message is priced by its origin's provider and model.

    Without them the cost is unknown.
    """
    origin = Origin(dialect="anthropic", provider="anthropic", model="claude-haiku-4-5")
    answer = Message.assistant("Yes.").replace(origin=origin, usage=Usage(input=10**6))
    assert Prices().cost_of_message(answer) == 1
    assert Prices().cost_of_message(answer.replace(usage=None)) is None
    assert Prices().cost_of_message(Message.user("?")) is None
    assert Prices({"anthropic:*": {"input": 3}}).cost_of_message(answer) == 3


def test_a_reported_cost_is_kept_with_the_message() -> None:
    """The cost that OpenRouter reports is stored in the message's usage, so histories know it."""
    usage = Usage(input=5, extras={"openai-chat": {"cost": 0.00125, "is_byok": False, "x": "y"}})
    origin = Origin(dialect="openai-chat", provider="openrouter", model="any/model")
    answer = Message.assistant("Yes.").replace(origin=origin, usage=usage.counts)
    assert Prices().cost_of_message(answer) == Decimal("0.00125")
    response = Response(choices=(Choice(0, answer),), usage=usage, model="any/model")
    assert Prices().cost_of_response(response, "openrouter:any/model") == Decimal("0.00125")


def test_an_agents_answers_keep_their_tier() -> None:
    """A response of a cheaper tier has the cheaper price in the history as well."""
    origin = Origin(dialect="openai-responses", provider="openai", model="gpt-5")
    said = Message.assistant("Yes.").replace(origin=origin)
    answer = Response(choices=(Choice(0, said),), usage=Usage(input=10**6), model="gpt-5",
                      extras={"openai-responses": {"service_tier": "flex"}})  # fmt: skip
    result = Agent(ScriptedModel([answer])).send_sync("Well?")
    assert Prices().cost_of_message(result.messages[-1]) == Decimal("0.625")
