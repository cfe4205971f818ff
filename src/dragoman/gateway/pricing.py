"""The cost of responses, by the operator's `[prices]` or else the providers' list prices."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from time import time

from dragoman.gateway.config.settings import Hop
from dragoman.model.frozen import EMPTY
from dragoman.model.usage import Usage
from dragoman.providers.price import Price
from dragoman.providers.prices import LISTED, Prices, is_usual
from dragoman.wire.lane.plain import Summary

_MAX_CACHED = 1024


class PricedModels:
    """Computes the cost of requests; caches which models have a known price.

    The operator's prices may name an entry of `[providers]` (`lab:*`); these take precedence over
    those of its kind.
    """

    def __init__(self, own: Mapping[str, Price] = EMPTY) -> None:
        self._prices = Prices(own) if own else LISTED
        self._found: dict[tuple[str | None, ...], tuple[str, Price | None] | None] = {}
        self._usual: dict[tuple[str, str], Price | None] = {}
        self._second = 0  # for which the usual prices hold: some depend on the time of day

    def cost(
        self, summary: Summary, provider: str, requested: str | None, place: str | None = None
    ) -> Decimal | None:
        """The cost of a response in US dollars; None: the price is unknown."""
        head, colon, model = provider.partition(":")
        if colon:  # a model in this process, which is a provider of its own: `local:smollm2`
            provider, place, requested = head, None, model
        found = self._known(provider, place, summary.model, requested)
        if found is None:
            return None
        (name, own), usage = found, summary.usage
        if usage is not None and own is None and summary.tier is None and is_usual(usage):
            own = self._usual_price(name, provider)
        if own is not None:
            return None if usage is None else own.cost(usage)
        return self._prices.cost_of(usage, name, provider, tier=summary.tier)

    def _usual_price(self, name: str, provider: str) -> Price | None:
        """The price of most requests: finding it takes ten times as long as using it."""
        second = int(time())
        if second != self._second:
            self._usual, self._second = {}, second
        if (name, provider) not in self._usual:
            self._usual[name, provider] = self._prices.usual_price(name, provider)
        return self._usual[name, provider]

    def estimate(self, usage: Usage, hop: Hop) -> Decimal | None:
        """The estimated cost of a request at one hop of a route."""
        place = hop.place
        provider = place.name if place.provider is None else place.provider.name
        return self.cost(Summary(None, usage), provider, hop.model, place.name)

    def _known(
        self, provider: str, place: str | None, *names: str | None
    ) -> tuple[str, Price | None] | None:
        key = (provider, place, *names)
        try:
            return self._found[key]
        except KeyError:
            found = self._find(provider, place, [name for name in names if name is not None])
        if len(self._found) >= _MAX_CACHED:
            self._found.clear()
        self._found[key] = found
        return found

    def _find(
        self, provider: str, place: str | None, names: list[str]
    ) -> tuple[str, Price | None] | None:
        """The name that has a price: that of the responding or of the requested model."""
        prices = self._prices
        for at in dict.fromkeys((place, provider)):
            for name in names:
                own = prices.own_price(name, at) if at is not None else None
                if own is not None:
                    return name, own
        listed = (name for name in names if prices.has_price(name, provider))
        return next(((name, None) for name in listed), None)
