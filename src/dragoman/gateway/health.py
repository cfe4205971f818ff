"""Whether the gateway is there, and ready: for load balancers, and for clients that look first."""

from __future__ import annotations

from dragoman._version import __version__
from dragoman.gateway.inbound import InboundRequest
from dragoman.model.jsontext import dumps

_JSON = {"content-type": "application/json"}
_UNREADY = 503


async def health(inbound: InboundRequest) -> None:
    """Alive."""
    await inbound.call.respond(200, _JSON, dumps({"status": "ok", "version": __version__}))


async def ready(inbound: InboundRequest) -> None:
    """Whether to send it requests: not any more when it is about to stop."""
    is_ready = not inbound.gateway.is_draining
    status = "ready" if is_ready else "draining"
    await inbound.call.respond(200 if is_ready else _UNREADY, _JSON, dumps({"status": status}))


async def root(inbound: InboundRequest) -> None:
    """What Ollama says at `/`: some of its clients look for it."""
    await inbound.call.respond(
        200, {"content-type": "text/plain; charset=utf-8"}, b"Ollama is running"
    )
