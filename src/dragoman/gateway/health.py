"""Health and readiness checks, for load balancers and for clients that probe the server."""

from __future__ import annotations

from dragoman._version import __version__
from dragoman.gateway.inbound import InboundRequest
from dragoman.model.jsontext import dumps

_JSON = {"content-type": "application/json"}
_UNREADY = 503


async def health(inbound: InboundRequest) -> None:
    """Report that the server is alive."""
    await inbound.call.respond(200, _JSON, dumps({"status": "ok", "version": __version__}))


async def ready(inbound: InboundRequest) -> None:
    """Report whether the server accepts requests; it doesn't while it shuts down."""
    is_ready = not inbound.gateway.is_draining
    status = "ready" if is_ready else "draining"
    await inbound.call.respond(200 if is_ready else _UNREADY, _JSON, dumps({"status": status}))


async def root(inbound: InboundRequest) -> None:
    """Respond as Ollama does at `/`: some of its clients check for this text."""
    await inbound.call.respond(
        200, {"content-type": "text/plain; charset=utf-8"}, b"Ollama is running"
    )
