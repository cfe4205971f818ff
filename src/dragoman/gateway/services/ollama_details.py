"""Model details for Ollama's clients, above all the capabilities.

Coding tools hide models that don't declare tool calling.
"""

from __future__ import annotations

from typing import Any

from dragoman.errors import DragomanError
from dragoman.gateway.endpoints import OLLAMA
from dragoman.gateway.inbound import InboundRequest
from dragoman.gateway.services.ollama_servers import ask_ollama, is_ollama
from dragoman.gateway.upstreams import Upstream
from dragoman.model.catalogue import ModelInfo
from dragoman.model.jsontext import dumps
from dragoman.wire.json_values import is_object


async def described(inbound: InboundRequest, info: ModelInfo) -> ModelInfo:
    """Adds details to a model: those of its Ollama server, or those known of its API."""
    route = await inbound.gateway.route(info.id)
    hop = route.hops[0]
    upstream = inbound.gateway.upstream(hop.place)
    told = await _from_ollama(upstream, hop.model or info.id) if is_ollama(upstream) else None
    fields = _known(upstream, hop.model) if told is None else told
    own = info.extras.get(OLLAMA)
    return info.replace(extras={OLLAMA: {**(own or {}), **fields}})


async def _from_ollama(upstream: Upstream, model: str) -> dict[str, Any] | None:
    """Returns an Ollama server's details of a model; None if the request fails."""
    try:
        told = await ask_ollama(upstream, "/api/show", dumps({"model": model}))
    except DragomanError:
        return None
    return {key: told[key] for key in told if key != "modified_at"} if is_object(told) else None


def _known(upstream: Upstream, model: str | None) -> dict[str, Any]:
    """Returns the capabilities known of a model; the gateway translates tools for every API."""
    if not upstream.is_wire:
        return {"capabilities": ["completion"]}
    target = upstream.target(model)
    kinds = target.media.kinds if target.is_described else ()
    has_vision = kinds is None or "image" in kinds
    return {"capabilities": ["completion", "tools", *(["vision"] if has_vision else [])]}
