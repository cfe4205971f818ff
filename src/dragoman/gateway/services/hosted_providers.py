"""Files and batches: chooses the provider, and checks the key's permission."""

from __future__ import annotations

from collections.abc import Iterator

from dragoman.errors import InvalidRequest, PermissionDenied
from dragoman.gateway.endpoints import CHAT, RESPONSES
from dragoman.gateway.inbound import InboundRequest
from dragoman.gateway.services.hosted_paths import query_value
from dragoman.gateway.state import Gateway
from dragoman.gateway.upstreams import Upstream

PROVIDER_HEADER = b"x-dragoman-provider"
PERMISSION = "hosted:"
"""The prefix of key patterns that allow files and batches: `hosted:*`, `hosted:openai`."""
_SAME_API = {CHAT: frozenset({CHAT, RESPONSES})}


def hosted_place(inbound: InboundRequest) -> Upstream:
    """Returns the provider whose files and batches the request uses."""
    gateway, front = inbound.gateway, inbound.endpoint.front
    named = query_value(inbound.query, "provider") or inbound.call.header(PROVIDER_HEADER)
    if named is not None:
        return _named(gateway, front, named)
    found = _by_default(gateway, front) or list(_speaking(gateway, front))
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(sorted(upstream.name for upstream in found))
        msg = f"several providers have files and batches of this API: choose one of {names} with"
        msg += " the x-dragoman-provider header or the ?provider= parameter"
    else:
        msg = "files and batches need a provider with this API, and none is configured"
    raise InvalidRequest(msg, status=400, code="unsupported")


def _named(gateway: Gateway, front: str, name: str) -> Upstream:
    for upstream in _speaking(gateway, front):
        if upstream.name == name:
            return upstream
    msg = "there is no provider with this name and this API"
    raise InvalidRequest(msg, status=400, code="unsupported")


def _by_default(gateway: Gateway, front: str) -> list[Upstream]:
    """Returns the first provider of the default route with this API."""
    route = gateway.router.find(None)
    hops = () if route is None else route.hops
    upstreams = (gateway.upstream(hop.place) for hop in hops)
    return [upstream for upstream in upstreams if _speaks(upstream, front)][:1]


def _speaking(gateway: Gateway, front: str) -> Iterator[Upstream]:
    for place in gateway.config.places.values():
        upstream = gateway.upstream(place)
        if _speaks(upstream, front):
            yield upstream


def _speaks(upstream: Upstream, front: str) -> bool:
    if not upstream.is_wire:
        return False
    return upstream.dialect(None).name in _SAME_API.get(front, {front})


def check_allowed(inbound: InboundRequest, place: str) -> None:
    """Raises unless the key may use the operator's files and batches at a provider."""
    key = inbound.key
    if key is None or key.is_admin:
        return
    own = tuple(each for each in key.models if each.startswith(PERMISSION))
    if own:
        from dragoman.gateway.keys.patterns import may_use

        if may_use(own, f"{PERMISSION}{place}"):
            return
    msg = (
        "this key may not use files and batches, because they belong to the operator's account at"
        " the provider, which all keys share. Use an admin key, or a key that allows hosted:*"
    )
    raise PermissionDenied(msg, status=403, code="hosted_not_allowed")
