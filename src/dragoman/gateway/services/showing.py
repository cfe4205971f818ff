"""What Ollama's clients want to know of a model before they use it: above all, what it can do.

Coding tools leave models out that are not said to call tools.
"""

from __future__ import annotations

from typing import Any

from dragoman.errors import DragomanError
from dragoman.gateway.endpoints import OLLAMA
from dragoman.gateway.inbound import InboundRequest
from dragoman.gateway.services.ollama_places import ask_ollama, is_ollama
from dragoman.gateway.upstreams import Upstream
from dragoman.model.catalogue import ModelInfo
from dragoman.model.jsontext import dumps
from dragoman.wire.json_values import is_object


async def described(inbound: InboundRequest, info: ModelInfo) -> ModelInfo:
    """A model, with what its place says about it, or what is known of the API behind it."""
    route = await inbound.gateway.route(info.id)
    hop = route.hops[0]
    upstream = inbound.gateway.upstream(hop.place)
    told = await _told_by_ollama(upstream, hop.model or info.id) if is_ollama(upstream) else None
    fields = _known(upstream, hop.model) if told is None else told
    own = info.extras.get(OLLAMA)
    return info.replace(extras={OLLAMA: {**(own or {}), **fields}})


async def _told_by_ollama(upstream: Upstream, model: str) -> dict[str, Any] | None:
    """What an Ollama says about one of its models; None where it fails to."""
    try:
        told = await ask_ollama(upstream, "/api/show", dumps({"model": model}))
    except DragomanError:
        return None
    return {key: told[key] for key in told if key != "modified_at"} if is_object(told) else None


def _known(upstream: Upstream, model: str | None) -> dict[str, Any]:
    """What the gateway can do with a model: tools are translated for every API."""
    if not upstream.is_wire:
        return {"capabilities": ["completion"]}
    target = upstream.target(model)
    kinds = target.media.kinds if target.is_described else ()
    has_vision = kinds is None or "image" in kinds
    return {"capabilities": ["completion", "tools", *(["vision"] if has_vision else [])]}
