"""List prices from the package `genai-prices`, where it is installed (extra `prices`).

It knows more models than our own list, what prices were on a given day, and what audio, images,
searches, batches and other service tiers cost. Its own calculation takes 200 µs: where a model's
prices and a request's usage are of the plain kind, `Price` calculates the same in a few.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from typing import Any

from dragoman.model.usage import Usage
from dragoman.providers.price import Price

_PLACES = {
    "anthropic": "anthropic",
    "azure": "azure",
    "deepseek": "deepseek",
    "google": "google",
    "groq": "groq",
    "mistral": "mistral",
    "openai": "openai",
    "openrouter": "openrouter",
    "perplexity": "perplexity",
    "vertex": "google",
    "xai": "x-ai",
}
"""What the package calls our providers."""
_PLAIN = ("input", "output", "cache_read", "cache_write", "cache_write_1h")
"""The prices that `Price` has, by the package's names."""
_PLAIN_KEYS = frozenset(f"{name}_mtok" for name in _PLAIN)
_NAMES = {"cache_write_1h": "cache_write_hour"}
_COUNTS = {
    "cache_write_1h": "cache_write_1h_tokens",
    "cache_write_5m": "cache_write_5m_tokens",
    "cached_audio": "cache_audio_read_tokens",
    "cached_image": "cache_image_read_tokens",
    "cached_text": "cache_text_read_tokens",
    "cached_video": "cache_video_read_tokens",
    "input_audio": "input_audio_tokens",
    "input_image": "input_image_tokens",
    "input_text": "input_text_tokens",
    "input_video": "input_video_tokens",
    "output_audio": "output_audio_tokens",
    "output_image": "output_image_tokens",
    "output_text": "output_text_tokens",
    "tool_input": "input_tool_tokens",
    "web_searches": "web_searches",
}
"""What the package calls the counts in `Usage.details`."""
_MOST_KEPT = 1024
_EARLIEST = 1_577_836_800  # 2020
_LONGEST = 256
"""Characters that a model's name may have."""


@cache
def _package() -> Any:
    """The package; None where it is not installed, or can't be loaded."""
    try:
        import genai_prices
    except Exception:  # noqa: BLE001 - a broken installation is none
        return None
    return genai_prices


def genai_price(place: str, model: str) -> Price | None:
    """The price of a model today; None where it is unknown, or more than a `Price` can say."""
    found = _found(place, model)
    return None if found is None else _plain(found[1].get_prices(datetime.now(UTC)))


def genai_cost(
    usage: Usage, place: str, model: str, tier: str | None, at: float | None
) -> Decimal | None:
    """What a request cost by the package's list on the day that it was made; None: unknown."""
    found = _found(place, model)
    if found is None:
        return None
    provider, info = found
    day = _time(at or 0)
    if tier is None:
        prices = info.get_prices(day)
        plain = _plain(prices)
        if plain is not None and not _is_special(usage, prices):
            return plain.cost(usage)
    context = None if tier is None else _context(tier, info)
    if tier is not None and context is None:
        return None
    return _calculated(usage, provider, info, day, context)


class _Models:
    """The package's models that were asked for, found or not: it looks through all of its own."""

    def __init__(self) -> None:
        self.snapshot: Any = None
        self.known: dict[tuple[str, str], tuple[Any, Any] | None] = {}


_models = _Models()


def _found(place: str, model: str) -> tuple[Any, Any] | None:
    """The package's provider and model."""
    package = _package()
    if package is None or place not in _PLACES or not 0 < len(model) <= _LONGEST:
        return None
    snapshot = package.data_snapshot.get_snapshot()
    if _models.snapshot is not snapshot or len(_models.known) >= _MOST_KEPT:
        _models.snapshot, _models.known = snapshot, {}
    known = _models.known
    if (place, model) not in known:
        known[place, model] = _searched(snapshot, _PLACES[place], model)
    return known[place, model]


def _searched(snapshot: Any, place: str, model: str) -> tuple[Any, Any] | None:
    try:
        provider = snapshot.find_provider(None, place, None)
        found = provider.find_model(model.lower(), all_providers=snapshot.providers)
    except Exception:  # noqa: BLE001 - LookupError as a rule: it does not know them
        return None
    return None if found is None else (provider, found)


_kept: dict[int, tuple[Any, Price | None]] = {}


def _plain(prices: Any) -> Price | None:
    """The prices as ours; None where ours can't say all that they do for plain usage."""
    kept = _kept.get(id(prices))
    if kept is not None and kept[0] is prices:
        return kept[1]
    price = _converted({name: prices.__dict__.get(f"{name}_mtok") for name in _PLAIN}, prices)
    if len(_kept) >= _MOST_KEPT:
        _kept.clear()
    _kept[id(prices)] = prices, price
    return price


def _converted(given: Mapping[str, Any], prices: Any) -> Price | None:
    if given["input"] is None or given["output"] is None or "requests_kcount" in prices.__dict__:
        return None
    amounts = {_NAMES.get(name, name): each for name, each in given.items() if each is not None}
    tiered = {name: each for name, each in amounts.items() if not isinstance(each, Decimal)}
    if not tiered:
        return Price(**amounts)
    starts = [tuple(tier.start for tier in each.tiers) for each in tiered.values()]
    if len(starts[0]) != 1 or len(set(starts)) > 1:
        return None
    base = {name: each.base for name, each in tiered.items()}
    beyond = {name: each.tiers[0].price for name, each in tiered.items()}
    return Price(**(amounts | base), above=starts[0][0], beyond=Price(**(amounts | beyond)))


def _is_special(usage: Usage, prices: Any) -> bool:
    """Whether there is something in the usage that has a price of its own."""
    if usage.thinking and prices.__dict__.get("output_reasoning_mtok") is not None:
        return True
    if not usage.details:
        return False
    others = prices.__dict__.keys() - _PLAIN_KEYS
    return bool(others) and any(
        count and name in _COUNTS and name != "cache_write_1h"
        for name, count in usage.details.items()
    )


def _context(tier: str, info: Any) -> dict[str, str] | None:
    """How the package asks for a service tier; None where it does not know its price."""
    for key in ("service_tier", "processing"):
        context = {key: tier}
        if any(variant.when == context for variant in info.price_variants or ()):
            return context
    return None


def _calculated(
    usage: Usage, provider: Any, info: Any, day: datetime, context: dict[str, str] | None
) -> Decimal | None:
    counts = {
        "input_tokens": usage.total_input,
        "output_tokens": usage.total_output,
        "cache_read_tokens": usage.cache_read,
        "cache_write_tokens": usage.cache_write,
        "output_reasoning_tokens": usage.thinking,
    }
    for name, count in usage.details.items():
        if count > 0 and name in _COUNTS:
            counts[_COUNTS[name]] = count
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            given = _package().Usage(**{name: count for name, count in counts.items() if count})
            done = info.calc_price(
                given, provider, genai_request_timestamp=day, price_context=context
            )
    except Exception:  # noqa: BLE001 - counts that contradict each other, or a price that it can't apply
        return None
    total: Decimal = done.total_price
    return total if total.is_finite() and total >= 0 else None


def _time(at: float) -> datetime:
    """When a request was made; now, where there was no list at that time (some servers send 0)."""
    now = datetime.now(UTC)
    if not _EARLIEST <= at <= now.timestamp():
        return now
    return datetime.fromtimestamp(at, UTC)
