"""Lists of models: all that a client may ask for, in the form that its API has."""

from __future__ import annotations

import asyncio

from dragoman.errors import DragomanError, ModelNotFound
from dragoman.gateway.config.routing import Route
from dragoman.gateway.endpoints import OLLAMA
from dragoman.gateway.reports import report_headers
from dragoman.gateway.services.ollama_places import ask_ollama, is_ollama
from dragoman.gateway.services.paths import service_front
from dragoman.gateway.services.showing import described
from dragoman.gateway.state import Gateway
from dragoman.gateway.upstreams import Upstream
from dragoman.gateway.visits import Visit
from dragoman.model.catalogue import ModelInfo
from dragoman.wire.encoded import Encoded
from dragoman.wire.services import services

OLLAMA_VERSION = "0.12.6"
"""The version of Ollama's API that we serve: its clients look whether it is new enough."""
_LONGEST_NAME = 512


async def models(visit: Visit) -> None:
    """The models that the client may ask for: all of them, or a page."""
    found = await visit.gateway.router.catalogue.models()
    shown = [info for info in found if is_allowed(visit, info.id)]
    await _tell(visit, service_front(visit).models(shown))


async def model(visit: Visit) -> None:
    """One model, which the path names."""
    await _tell(visit, service_front(visit).model(await _found(visit, visit.endpoint.name)))


async def show(visit: Visit) -> None:
    """One model, which the body names (Ollama)."""
    front = service_front(visit)
    name = front.decode_model_name(await visit.body())
    await _tell(visit, front.model(await described(visit, await _found(visit, name))))


async def running(visit: Visit) -> None:
    """The models that are loaded: here, and at places that are Ollamas."""
    upstreams = [visit.gateway.upstream(place) for place in visit.gateway.config.places.values()]
    lists = await asyncio.gather(*map(_loaded_at, upstreams))
    loaded = {info.id: info for infos in lists for info in infos}
    shown = [info for info in loaded.values() if await _is_shown(visit, info.id)]
    await _tell(visit, service_front(visit).running(shown))


async def version(visit: Visit) -> None:
    """The version of Ollama's API."""
    await _tell(visit, service_front(visit).version(OLLAMA_VERSION))


async def _tell(visit: Visit, encoded: Encoded) -> None:
    headers = {**encoded.headers, **report_headers(encoded.losses, encoded.repairs)}
    await visit.call.whole(200, headers, encoded.to_bytes())


def is_allowed(visit: Visit, name: str) -> bool:
    """Whether the client's key may use a model; without keys, every one."""
    if visit.key is None or not visit.key.models:
        return True
    from dragoman.gateway.keys.patterns import may_use

    return may_use(visit.key.models, name)


# --- one model


async def _found(visit: Visit, name: str) -> ModelInfo:
    """A model that can be asked for; one that the key may not use is not told."""
    if 0 < len(name) <= _LONGEST_NAME and is_allowed(visit, name):
        gateway = visit.gateway
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


async def _is_shown(visit: Visit, name: str) -> bool:
    if not is_allowed(visit, name):
        return False
    try:
        await visit.gateway.route(name)
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
