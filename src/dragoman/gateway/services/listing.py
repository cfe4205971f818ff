"""Lists of models: all that a client may ask for, in the form that its API has."""

from __future__ import annotations

import asyncio

from dragoman.errors import DragomanError, ModelNotFound
from dragoman.gateway.config.routing import Route
from dragoman.gateway.endpoints import OLLAMA
from dragoman.gateway.inbound import InboundRequest
from dragoman.gateway.reports import report_headers
from dragoman.gateway.services.ollama_places import ask_ollama, is_ollama
from dragoman.gateway.services.paths import service_front
from dragoman.gateway.services.showing import described
from dragoman.gateway.state import Gateway
from dragoman.gateway.upstreams import Upstream
from dragoman.model.catalogue import ModelInfo
from dragoman.wire.encoded import Encoded
from dragoman.wire.services import services

OLLAMA_VERSION = "0.12.6"
"""The version of Ollama's API that we serve: its clients look whether it is new enough."""
_LONGEST_NAME = 512


async def models(inbound: InboundRequest) -> None:
    """The models that the client may ask for: all of them, or a page."""
    found = await inbound.gateway.router.catalogue.models()
    shown = [info for info in found if is_allowed(inbound, info.id)]
    await _tell(inbound, service_front(inbound).models(shown))


async def model(inbound: InboundRequest) -> None:
    """One model, which the path names."""
    await _tell(inbound, service_front(inbound).model(await _found(inbound, inbound.endpoint.name)))


async def show(inbound: InboundRequest) -> None:
    """One model, which the body names (Ollama)."""
    front = service_front(inbound)
    name = front.decode_model_name(await inbound.body())
    await _tell(inbound, front.model(await described(inbound, await _found(inbound, name))))


async def running(inbound: InboundRequest) -> None:
    """The models that are loaded: here, and at places that are Ollamas."""
    upstreams = [
        inbound.gateway.upstream(place) for place in inbound.gateway.config.places.values()
    ]
    lists = await asyncio.gather(*map(_loaded_at, upstreams))
    loaded = {info.id: info for infos in lists for info in infos}
    shown = [info for info in loaded.values() if await _is_shown(inbound, info.id)]
    await _tell(inbound, service_front(inbound).running(shown))


async def version(inbound: InboundRequest) -> None:
    """The version of Ollama's API."""
    await _tell(inbound, service_front(inbound).version(OLLAMA_VERSION))


async def _tell(inbound: InboundRequest, encoded: Encoded) -> None:
    headers = {**encoded.headers, **report_headers(encoded.losses, encoded.repairs)}
    await inbound.call.respond(200, headers, encoded.to_bytes())


def is_allowed(inbound: InboundRequest, name: str) -> bool:
    """Whether the client's key may use a model; without keys, every one."""
    if inbound.key is None or not inbound.key.models:
        return True
    from dragoman.gateway.keys.patterns import may_use

    return may_use(inbound.key.models, name)


# --- one model


async def _found(inbound: InboundRequest, name: str) -> ModelInfo:
    """A model that can be asked for; one that the key may not use is not told."""
    if 0 < len(name) <= _LONGEST_NAME and is_allowed(inbound, name):
        gateway = inbound.gateway
        for info in await gateway.router.catalogue.models():
            if info.id == name:
                return info
        found = await _routed(gateway, await gateway.route(name), name)
        if found is not None:
            return found
    msg = "there is no model of that name here"
    raise ModelNotFound(msg, status=404, code="model_not_found")


async def _routed(gateway: Gateway, route: Route, name: str) -> ModelInfo | None:
    """A model that no list has under this name: its place may list it under another."""
    for hop in route.hops:
        infos = await gateway.router.catalogue.listed_at(hop.place)
        meant = (hop.model, f"{hop.model}:latest")  # Ollama leaves out `:latest`
        for info in infos:
            if info.id in meant:
                return info.replace(id=name)
        if not infos:  # the place lists nothing: it may well have it
            return ModelInfo(name)
    return None


# --- what is loaded


async def _is_shown(inbound: InboundRequest, name: str) -> bool:
    if not is_allowed(inbound, name):
        return False
    try:
        await inbound.gateway.route(name)
    except DragomanError:
        return False
    return True


async def _loaded_at(upstream: Upstream) -> tuple[ModelInfo, ...]:
    """What a place has loaded; nothing where it does not say."""
    if not upstream.is_wire:
        return (ModelInfo(upstream.place.model_url or upstream.name),) if upstream.is_loaded else ()
    listing = services(OLLAMA).models
    if listing is None or not is_ollama(upstream):
        return ()
    try:
        return tuple(listing.decode(await ask_ollama(upstream, "/api/ps")).models)
    except DragomanError:
        return ()  # as in the catalogue: the others are told all the same
