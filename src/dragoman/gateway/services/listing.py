"""Model lists: the models that a client may use, in the format of its API."""

from __future__ import annotations

import asyncio

from dragoman.errors import DragomanError, ModelNotFound
from dragoman.gateway.config.routing import Route
from dragoman.gateway.endpoints import OLLAMA
from dragoman.gateway.inbound import InboundRequest
from dragoman.gateway.large_bodies import translated_aside
from dragoman.gateway.reports import report_headers
from dragoman.gateway.services.ollama_details import described
from dragoman.gateway.services.ollama_servers import ask_ollama, is_ollama
from dragoman.gateway.services.paths import service_front
from dragoman.gateway.state import Gateway
from dragoman.gateway.upstreams import Upstream
from dragoman.model.catalogue import ModelInfo
from dragoman.wire.encoded import Encoded
from dragoman.wire.services import services

OLLAMA_VERSION = "0.12.6"
"""The Ollama version that the gateway reports: clients require a minimum version."""
_MAX_NAME = 512


async def models(inbound: InboundRequest) -> None:
    """Lists the models that the client may use: all of them, or a page."""
    found = await inbound.gateway.router.catalogue.models()
    shown = [info for info in found if is_allowed(inbound, info.id)]
    await _send(inbound, service_front(inbound).models(shown))


async def model(inbound: InboundRequest) -> None:
    """Returns the model named in the path."""
    await _send(inbound, service_front(inbound).model(await _found(inbound, inbound.endpoint.name)))


async def show(inbound: InboundRequest) -> None:
    """Returns the model named in the body (Ollama)."""
    front = service_front(inbound)
    body = await inbound.body()
    name = await translated_aside(body, front.decode_model_name, body)
    await _send(inbound, front.model(await described(inbound, await _found(inbound, name))))


async def running(inbound: InboundRequest) -> None:
    """Lists the loaded models: in this process, and on Ollama servers."""
    upstreams = [
        inbound.gateway.upstream(place) for place in inbound.gateway.config.places.values()
    ]
    lists = await asyncio.gather(*map(_loaded_at, upstreams))
    loaded = {info.id: info for infos in lists for info in infos}
    shown = [info for info in loaded.values() if await _is_shown(inbound, info.id)]
    await _send(inbound, service_front(inbound).running(shown))


async def version(inbound: InboundRequest) -> None:
    """Returns the version of Ollama's API."""
    await _send(inbound, service_front(inbound).version(OLLAMA_VERSION))


async def _send(inbound: InboundRequest, encoded: Encoded) -> None:
    headers = {**encoded.headers, **report_headers(encoded.losses, encoded.repairs)}
    await inbound.call.respond(200, headers, encoded.to_bytes())


def is_allowed(inbound: InboundRequest, name: str) -> bool:
    """Whether the client's key may use a model; always true without keys."""
    if inbound.key is None or not inbound.key.models:
        return True
    from dragoman.gateway.keys.patterns import may_use

    return may_use(inbound.key.models, name)


# --- one model


async def _found(inbound: InboundRequest, name: str) -> ModelInfo:
    """Returns an available model; hides those that the key may not use."""
    if 0 < len(name) <= _MAX_NAME and is_allowed(inbound, name):
        gateway = inbound.gateway
        for info in await gateway.router.catalogue.models():
            if info.id == name:
                return info
        found = await _routed(gateway, await gateway.route(name), name)
        if found is not None:
            return found
    msg = "this gateway has no model with this name"
    raise ModelNotFound(msg, status=404, code="model_not_found")


async def _routed(gateway: Gateway, route: Route, name: str) -> ModelInfo | None:
    """Finds a model that is not listed under this name; its provider may list it under another."""
    for hop in route.hops:
        infos = await gateway.router.catalogue.listed_at(hop.place)
        meant = (hop.model, f"{hop.model}:latest")  # Ollama omits `:latest`
        for info in infos:
            if info.id in meant:
                return info.replace(id=name)
        if not infos:  # the provider lists no models, so it may have this one
            return ModelInfo(name)
    return None


# --- loaded models


async def _is_shown(inbound: InboundRequest, name: str) -> bool:
    if not is_allowed(inbound, name):
        return False
    try:
        await inbound.gateway.route(name)
    except DragomanError:
        return False
    return True


async def _loaded_at(upstream: Upstream) -> tuple[ModelInfo, ...]:
    """Returns the loaded models of a provider; empty if it doesn't report them."""
    if not upstream.is_wire:
        return (ModelInfo(upstream.place.model_url or upstream.name),) if upstream.is_loaded else ()
    listing = services(OLLAMA).models
    if listing is None or not is_ollama(upstream):
        return ()
    try:
        return tuple(listing.decode(await ask_ollama(upstream, "/api/ps")).models)
    except DragomanError:
        return ()  # as in the catalogue: one failure doesn't hide the others
