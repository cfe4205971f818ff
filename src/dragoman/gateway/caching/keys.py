"""Cache keys: digests of everything that a response may depend on."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman._version import __version__
from dragoman.errors import DragomanError
from dragoman.gateway.translation import encoded_for

if TYPE_CHECKING:
    from dragoman.gateway.client_request import ClientRequest
    from dragoman.gateway.config.routing import Route
    from dragoman.gateway.config.settings import Hop
    from dragoman.gateway.exchange import Exchange
    from dragoman.gateway.inbound import InboundRequest
    from dragoman.gateway.middleware import ExchangeFilters

_STATE = ("previous_response_id", "conversation", "store", "background", "container")
_NOTHING = frozenset({b"null", b"false"})
_MAX_BODY_BYTES = 4 * 1024 * 1024
"""Larger bodies are not cached: computing their digest would block other requests."""
_REFUSING = ("no-cache", "no-store")
_encode = msgspec.json.Encoder(order="sorted").encode


def is_stateless(inbound: InboundRequest, exchange: Exchange) -> bool:
    """Whether a request depends on no stored state and stores none itself."""
    if (
        exchange.recorder is not None
        or exchange.override is not None
        or exchange.required_dialect is not None
    ):
        return False
    # Another sink stores the response, and a WebSocket keeps state.
    if exchange.sink is not inbound.call or inbound.connection is not None:
        return False
    cache_control = (inbound.call.header(b"cache-control") or "").lower()
    return not any(word in cache_control for word in _REFUSING) and _names_no_state(
        exchange.client_request
    )


def _names_no_state(client_request: ClientRequest) -> bool:
    if len(client_request.body) > _MAX_BODY_BYTES or b"item_reference" in client_request.body:
        return False
    values = [client_request.fields.get(name) for name in _STATE]
    return all(each is None or bytes(each).strip() in _NOTHING for each in values)


def key_of(
    inbound: InboundRequest,
    exchange: Exchange,
    route: Route,
    digest: bytes,
    filters: ExchangeFilters | None,
) -> bytes | None:
    """The cache key of a request; None: it is unknown what its response depends on.

    Bodies are compared byte by byte: equivalent-looking JSON may differ (duplicate names, long
    numbers).
    """
    client_request, endpoint, key = exchange.client_request, inbound.endpoint, inbound.key
    sent = b"" if exchange.filtered is None else _sent(inbound, exchange, route)
    if sent is None:
        return None
    parts: list[Any] = [
        __version__,
        None if key is None else [key.id],
        endpoint.kind,
        client_request.front.name,
        client_request.agent.name,
        inbound.path,
        client_request.path,
        client_request.stream,
        client_request.model,
        list((client_request.headers or {}).items()),
        route.name,
        sorted((filters.seen_headers if filters else {}).items()),
    ]
    return _digest([_encode(parts), digest, sent, client_request.body])


def _sent(inbound: InboundRequest, exchange: Exchange, route: Route) -> bytes | None:
    """Digest of the upstream requests, if middleware changed the request."""
    gateway, request = inbound.gateway, exchange.filtered
    found: list[bytes] = []
    for hop in route.hops:
        upstream = gateway.upstream(hop.place)
        if not upstream.is_wire or request is None:
            return None
        try:
            encoded = encoded_for(request, upstream, hop.model, gateway.settings_of(route)).encoded
        except DragomanError:  # reported when this hop is tried
            return None
        found += [encoded.to_bytes(), _encode(dict(encoded.headers))]
    return _digest(found)


def route_digest(route: Route, middleware: str) -> bytes | None:
    """Digest that identifies a route and its settings; None: it can't be computed."""
    settings = route.settings
    facts = [
        settings.model,
        settings.cache,
        dict(settings.defaults),
        dict(settings.fixed),
        [_hop(hop) for hop in route.hops],
        middleware,
    ]
    try:
        return sha256(_encode(facts)).digest()
    except (TypeError, ValueError):  # a setting that can't be encoded as JSON
        return None


def _hop(hop: Hop) -> list[Any]:
    place = hop.place
    return [
        place.name,
        None if place.provider is None else place.provider.name,
        place.model_url,
        place.base_url,
        place.dialect,
        place.key_env,
        dict(place.headers),
        dict(place.parameters),
        hop.model,
        hop.weight,
    ]


def _digest(parts: Iterable[bytes]) -> bytes:
    """Digest of several parts; includes their lengths, so that boundaries matter."""
    made = sha256()
    for part in parts:
        made.update(len(part).to_bytes(8, "big"))
        made.update(part)
    return made.digest()
