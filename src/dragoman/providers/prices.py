"""The cost of requests: by user prices, else as reported by the provider, else by list prices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from dragoman.errors import ConfigError
from dragoman.model.frozen import EMPTY
from dragoman.model.messages import Message
from dragoman.model.responses import Response
from dragoman.model.spelling import normalised
from dragoman.model.usage import Usage
from dragoman.model.value import expect
from dragoman.providers.facts.names import is_like
from dragoman.providers.genai_prices import genai_cost, genai_knows, genai_price
from dragoman.providers.price import Price, price_of
from dragoman.providers.price_list import LISTING, listed_price, undated
from dragoman.providers.registry import provider as registered
from dragoman.providers.reported_costs import REPORTING, may_report, reported_cost
from dragoman.providers.service_tiers import response_tier, usage_tier

_WITHOUT_MODELS = frozenset({"local", "echo", "scripted", "test"})
"""Local backends, which are not providers and need no model name."""
_UNLISTED = ("input_audio", "output_audio", "cached_audio", "output_image", "web_searches")
"""Counts whose prices are not in our list."""
_COMPACTION = (
    "compaction_input", "compaction_output", "compaction_cache_read", "compaction_cache_write",
)  # fmt: skip
_OTHER_MODELS = "other_models"
_SEPARATE = frozenset({_OTHER_MODELS, *_COMPACTION})
"""Tokens that are billed besides the counts: Anthropic's compaction, and advisors' calls."""
_CACHE_SIZE = 64
"""Maximum number of cached provider names."""


class Prices:
    """Prices by model: user overrides first, then the providers' list prices.

    ```python
    prices = Prices({
        "openai:gpt-5": Price("1.00", "8.00"),            # this model at this provider
        "azure:*": {"input": "1.25", "output": "10"},     # all deployments there
        "acme-large": Price(2, 6),                        # at any provider
    })
    prices.cost_of(usage, "gpt-5", "openai")
    ```

    A key is `provider:model`, a model name, or either with `*` as a wildcard. An exact key wins,
    then the first match. A key need not include the release date of a model. Unknown prices are
    None, never zero; self-hosted models are free.
    """

    def __init__(self, overrides: Mapping[str, Price | Mapping[str, Any]] = EMPTY) -> None:
        expect(overrides, Mapping, "overrides")
        self._places: dict[str, str] = {}
        self._own: dict[str, Price] = {}
        self._last: tuple[Usage | None, tuple[Any, ...], Decimal | None] | None = None
        for key, given in overrides.items():
            expect(key, str, "a key of overrides")
            self._own[_key(key)] = price_of(given)

    def __repr__(self) -> str:
        return f"Prices({len(self._own)} overrides)"

    def price(self, model: str, provider: str | None = None) -> Price | None:
        """The price of a model, by name and provider, or by `provider:model`; None if unknown."""
        place, name = self._place(model, provider)
        own = self._overriding(place, name)
        if own is not None or place is None:
            return own
        return genai_price(place, name) or listed_price(place, name)

    def usual_price(self, model: str, provider: str | None = None) -> Price | None:
        """The price by which `cost_of` charges usage that `is_usual` now; None: by others."""
        place, name = self._place(model, provider)
        own = self._overriding(place, name)
        if own is not None or place is None or may_report(place):
            return own
        found = genai_price(place, name)
        return (
            listed_price(place, name) if found is None and not genai_knows(place, name) else found
        )

    def own_price(self, model: str, provider: str | None = None) -> Price | None:
        """The user's price of a model, ignoring list prices; None if there is none."""
        return self._overriding(*self._place(model, provider)) if self._own else None

    def cost_of(
        self,
        usage: Usage | None,
        model: str,
        provider: str | None = None,
        *,
        tier: str | None = None,
        at: float | None = None,
    ) -> Decimal | None:
        """The cost of one request in US dollars; None if its price or usage is unknown.

        `tier` is the service tier unless standard (`batch`, `flex`, `priority`). `at` is the time
        of the request: list prices of that day are used if known.

        Call it for each request and add up the costs. Adding up usages first loses details, and
        some providers charge more for long prompts.
        """
        place, name = self._place(model, provider)
        return self._cost(usage, place, (name,), tier, at)

    def cost_of_response(self, response: Response, model: str) -> Decimal | None:
        """Like `cost_of`, for a response; `model` is the requested `provider:model`.

        The model and provider in the response take precedence, since a name may be an alias.
        """
        usage, made, tier = response.usage, response.model, response_tier(response)
        origin = response.choices[0].message.origin if response.choices else None
        provider = None if origin is None else origin.provider
        given = model, made, provider, tier, response.created_at
        last = self._last  # of a traced response, the cost is wanted twice
        if last is not None and last[0] is usage and last[1] == given:
            return last[2]
        place, requested = self._place(model, None)
        if provider is not None:
            made_at = self._provider(provider)
            place, requested = made_at, requested if made_at == place else ""
        names = (_bare(made or ""), requested)
        cost = self._cost(usage, place, names, tier, response.created_at)
        self._last = usage, given, cost
        return cost

    def cost_of_message(self, message: Message) -> Decimal | None:
        """Like `cost_of`, for an assistant message in a conversation or a history.

        None for a message without a known provider or without usage.
        """
        expect(message, Message, "the message")
        origin = message.origin
        if origin is None or origin.provider is None or message.usage is None:
            return None
        place, name = self._place(origin.model or "", origin.provider)
        return self._cost(message.usage, place, (name,), None, message.created_at)

    def _cost(
        self,
        usage: Usage | None,
        place: str | None,
        names: Sequence[str],
        tier: str | None,
        at: float | None,
    ) -> Decimal | None:
        cost = self._cost_of_counts(usage, place, names, tier, at)
        if cost is None or usage is None or usage.details.keys().isdisjoint(_SEPARATE):
            return cost
        if reported_cost(usage, place) is not None:
            return cost  # of everything
        if usage.details.get(_OTHER_MODELS):
            return None
        read, written, cache_read, cache_write = (
            usage.details.get(name, 0) for name in _COMPACTION
        )
        compaction = Usage(read, written, cache_read, cache_write)
        extra = self._cost_of_counts(compaction, place, names, tier or usage_tier(usage), at)
        return None if extra is None else cost + extra

    def _cost_of_counts(
        self,
        usage: Usage | None,
        place: str | None,
        names: Sequence[str],
        tier: str | None,
        at: float | None,
    ) -> Decimal | None:
        if usage is not None and not _is_possible(usage):
            usage = None
        own = _first(self._overriding(place, name) for name in names) if self._own else None
        if own is not None:
            return own.cost(usage) if usage is not None else _nothing(own)
        reported = reported_cost(usage, place)
        if reported is not None or place is None:
            return reported
        tier = tier or (usage_tier(usage) if usage is not None else None)
        for name in names:
            cost = None if usage is None else genai_cost(usage, place, name, tier, at)
            if cost is not None:
                return cost
        listed = _first(listed_price(place, name) for name in names)
        if listed is None or usage is None or listed.is_free:
            return None if listed is None else _nothing(listed)
        if tier is not None or any(usage.details.get(name) for name in _UNLISTED):
            return None  # our list only has the standard tier and text
        return listed.cost(usage)

    def has_price(self, model: str, provider: str | None = None) -> bool:
        """Whether the cost of requests will be known: by a price, or reported by the provider."""
        place, _ = self._place(model, provider)
        return place in REPORTING or self.price(model, provider) is not None

    def _place(self, model: str, provider: str | None) -> tuple[str | None, str]:
        """The canonical provider name, and the model name without it."""
        expect(model, str, "the model name")
        if provider is not None:
            expect(provider, str, "the provider name")
            return self._provider(provider), _bare(model)
        head, colon, rest = model.partition(":")
        if colon or normalised(head) in _WITHOUT_MODELS:
            return self._provider(head), _bare(rest)
        return None, _bare(model)

    def _provider(self, name: str) -> str:
        """The canonical provider name, cached: unknown names require a search of all packages."""
        found = self._places.get(name)
        if found is None:
            if len(self._places) >= _CACHE_SIZE:
                self._places.clear()
            found = self._places[name] = _canonical(name)
        return found

    def _overriding(self, place: str | None, model: str) -> Price | None:
        if not self._own:
            return None
        names = list(dict.fromkeys(_names(place, model)))
        for name in names:
            if name in self._own:
                return self._own[name]
        for key, price in self._own.items():
            if "*" in key and any(is_like(key, name) for name in names):
                return price
        return None


def is_usual(usage: Usage) -> bool:
    """Whether one price charges it: counts of text at the standard tier, without thinking."""
    least = min(usage.input, usage.output, usage.cache_read, usage.cache_write)
    if least < 0 or usage.thinking or (usage.details and any(usage.details.values())):
        return False
    return not usage.extras or usage_tier(usage) is None


LISTED = Prices()
"""List prices only."""


def cost_of(
    usage: Usage | None,
    model: str,
    provider: str | None = None,
    *,
    tier: str | None = None,
    at: float | None = None,
) -> Decimal | None:
    """The cost of one request by list prices, in US dollars; None if unknown.

    >>> cost_of(Usage(input=1_000_000), "anthropic:claude-haiku-4-5")
    Decimal('1')
    """
    return LISTED.cost_of(usage, model, provider, tier=tier, at=at)


# --- names


def _key(key: str) -> str:
    """Normalise a key: lower case, with the canonical provider name."""
    head, colon, rest = key.partition(":")
    return f"{_canonical(head)}:{rest.lower()}" if colon and _is_provider(head) else key.lower()


def _names(place: str | None, model: str) -> Iterator[str]:
    """The names by which a key may refer to a model, most exact first."""
    if not model:
        yield from (place, f"{place}:") if place in _WITHOUT_MODELS else ()
        return
    lower = model.lower()
    for name in (lower, undated(lower)):
        if place is not None:
            yield f"{place}:{name}"
        yield name


def _nothing(price: Price) -> Decimal | None:
    """The cost of a request without usage: zero if the model is free, else unknown."""
    return Decimal(0) if price.is_free else None


def _is_possible(usage: Usage) -> bool:
    """Whether the counts can be counts: an old history may have others, as servers send them."""
    counts = (usage.input, usage.output, usage.cache_read, usage.cache_write, usage.thinking)
    return min(counts) >= 0


def _first(prices: Iterable[Price | None]) -> Price | None:
    return next((price for price in prices if price is not None), None)


def _bare(model: str) -> str:
    return model.removeprefix("models/")  # Google's


def _is_provider(name: str) -> bool:
    if name in LISTING or normalised(name) in _WITHOUT_MODELS:
        return True
    try:
        registered(name)
    except ConfigError:
        return False
    return True


def _canonical(name: str) -> str:
    if name in LISTING:
        return name
    heard = normalised(name)
    if heard in _WITHOUT_MODELS:
        return heard
    try:
        return registered(name).name
    except ConfigError:
        return name.lower()  # a custom provider, which may have a user price
