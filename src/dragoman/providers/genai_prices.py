"""List prices from the package `genai-prices`, if it is installed (extra `prices`).

It has more models than our own list, historical prices, and prices of audio, images, searches,
batches and other service tiers. Its own calculation takes 200 µs; for plain prices and usage,
`Price` calculates the same in a few µs.
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
"""The package's names of our providers."""
_PLAIN = ("input", "output", "cache_read", "cache_write", "cache_write_1h")
"""The fields of `Price`, by the package's names."""
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
"""The package's names of counts in `Usage.details`."""
_CACHE_SIZE = 1024
_EARLIEST = 1_577_836_800  # 2020
_MAX_NAME_LENGTH = 256
"""Maximum characters of a model name."""


@cache
def _package() -> Any:
    """The package; None if it is not installed or can't be loaded."""
    try:
        import genai_prices
    except Exception:  # noqa: BLE001 - a broken installation counts as missing
        return None
    return genai_prices


def genai_price(place: str, model: str) -> Price | None:
    """Today's price of a model; None if it is unknown or can't be expressed as a `Price`."""
    found = _found(place, model)
    return None if found is None else _plain(found[1].get_prices(datetime.now(UTC)))


def genai_knows(place: str, model: str) -> bool:
    """Whether the package has prices of a model."""
    return _found(place, model) is not None


def genai_cost(
    usage: Usage, place: str, model: str, tier: str | None, at: float | None
) -> Decimal | None:
    """The cost of a request by the list prices on its day; None if unknown."""
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
    """A cache of looked-up models, found or not: the package searches linearly."""

    def __init__(self) -> None:
        self.snapshot: Any = None
        self.known: dict[tuple[str, str], tuple[Any, Any] | None] = {}


_models = _Models()
_UNSEEN: Any = object()


def _found(place: str, model: str) -> tuple[Any, Any] | None:
    """The package's objects for a provider and model."""
    package = _package()
    if package is None or place not in _PLACES or not 0 < len(model) <= _MAX_NAME_LENGTH:
        return None
    snapshot = package.data_snapshot.get_snapshot()
    if _models.snapshot is not snapshot or len(_models.known) >= _CACHE_SIZE:
        _models.snapshot, _models.known = snapshot, {}
    key = place, model
    found: tuple[Any, Any] | None = _models.known.get(key, _UNSEEN)
    if found is _UNSEEN:
        found = _models.known[key] = _searched(snapshot, _PLACES[place], model)
    return found


def _searched(snapshot: Any, place: str, model: str) -> tuple[Any, Any] | None:
    try:
        provider = snapshot.find_provider(None, place, None)
        found = provider.find_model(model.lower(), all_providers=snapshot.providers)
    except Exception:  # noqa: BLE001 - usually LookupError for an unknown model
        return None
    return None if found is None else (provider, found)


_kept: dict[int, tuple[Any, Price | None]] = {}


def _plain(prices: Any) -> Price | None:
    """Convert prices to a `Price`; None if it can't express all of them for plain usage."""
    kept = _kept.get(id(prices))
    if kept is not None and kept[0] is prices:
        return kept[1]
    price = _converted({name: prices.__dict__.get(f"{name}_mtok") for name in _PLAIN}, prices)
    if len(_kept) >= _CACHE_SIZE:
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
    """Whether the usage has counts with separate prices."""
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
    """The package's price context for a service tier; None if it has no price for it."""
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
    except Exception:  # noqa: BLE001 - contradictory counts, or an inapplicable price
        return None
    total: Decimal = done.total_price
    return total if total.is_finite() and total >= 0 else None


def _time(at: float) -> datetime:
    """The time of a request; now if it is implausible (some servers send 0)."""
    now = datetime.now(UTC)
    if not at:
        return now
    if not _EARLIEST <= at <= now.timestamp():
        return now
    return datetime.fromtimestamp(at, UTC)
