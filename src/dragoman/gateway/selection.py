"""What a request may choose in fields other than `model`: further models, hosts, addresses.

Routers behind the gateway choose by fields such as `models`, `provider` or `api_base`, which their
`Provider.selectors` name. They are subject to the same rules as `model`: a field that would lead
past the key's list, past the route, or past what a budget can be reserved for is left out, and
reported. Addresses are the operator's alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from dragoman.gateway.config.matching import model_at
from dragoman.gateway.keys.patterns import may_use
from dragoman.wire.known_fields import folded
from dragoman.wire.losses import Loss

if TYPE_CHECKING:
    from dragoman.gateway.config.routing import Route
    from dragoman.gateway.config.settings import Place
    from dragoman.gateway.inbound import InboundRequest
    from dragoman.providers.provider import Provider

_value = msgspec.json.Decoder().decode
_LONGEST = 256  # characters of a field's name


class Selection:
    """The rules for one request on its route."""

    def __init__(self, inbound: InboundRequest, route: Route, requested: str | None) -> None:
        self._key = inbound.key
        self._router = inbound.gateway.router
        self._route = route
        self._requested = requested

    def left_out(
        self, place: Place, model: str | None, fields: Mapping[str, Any]
    ) -> dict[str, Loss]:
        """The fields of a request that a place must not see, with the reasons."""
        provider = place.provider
        if provider is None or not provider.selectors:
            return {}
        selectors, found = _by_folded_name(provider), dict[str, Loss]()
        for name, value in fields.items():
            meant = selectors.get(folded(name)) if len(name) <= _LONGEST else None
            if meant is None:
                continue
            reason = "its name is another spelling of this field's"
            if meant == name:
                reason = self._reason(provider.selectors[name], place, model, value)
            if reason:
                found[name] = Loss(f"extras.{meant}", f"left out: {reason}")
        return found

    def _reason(self, kind: str, place: Place, model: str | None, value: Any) -> str:
        """Why a field must not be sent; empty: it may."""
        key = self._key
        if kind == "address":
            return "only the gateway's operator chooses addresses and their keys"
        if self._is_pinned(place, model):
            return "the route says which model and host serve it"
        if key is not None and key.has_cost_budget:
            return "the key has a cost budget, and the price would be another"
        if kind == "model" and not self._may_choose(place, value):
            return "it could choose a model that the key or the route does not allow"
        return ""

    def _is_pinned(self, place: Place, model: str | None) -> bool:
        """Whether the operator chose the model rather than the client."""
        config = self._router.config
        if config.routes and any(hop.model is not None for hop in self._route.settings.to):
            return True
        return self._requested in config.aliases or model != model_at(place, self._requested)

    def _may_choose(self, place: Place, value: Any) -> bool:
        """Whether the client could request each of these models by its name."""
        key, config = self._key, self._router.config
        is_free = (key is None or not key.models) and not config.routes
        names = _names(value)
        if is_free or names is None:
            return is_free
        prefix = f"{place.name}:"
        is_prefixed = self._requested is not None and self._requested.startswith(prefix)
        for name in names:
            asked = f"{prefix}{name}" if is_prefixed else name
            if key is not None and not may_use(key.models, asked):
                return False
            if config.routes:
                route = self._router.find(asked)
                if route is None or route.settings is not self._route.settings:
                    return False
        return True


def _names(value: Any) -> list[str] | None:
    """The model names in a field; None: they can't be told."""
    if isinstance(value, Raw):
        try:
            value = _value(value)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, (list, tuple)):
        return None
    names = [each for each in listed if isinstance(each, str)]
    return names if len(names) == len(listed) else None


@lru_cache(maxsize=256)
def _folded_names(names: tuple[str, ...]) -> Mapping[str, str]:
    return {folded(name): name for name in names}


def _by_folded_name(provider: Provider) -> Mapping[str, str]:
    return _folded_names(tuple(provider.selectors))
