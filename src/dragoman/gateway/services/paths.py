"""The request path for service fronts; Gemini's paths contain the model name."""

from __future__ import annotations

from urllib.parse import quote

from dragoman.gateway.endpoints import GEMINI
from dragoman.gateway.inbound import InboundRequest
from dragoman.wire.service_front import ServiceFront


def service_front(inbound: InboundRequest) -> ServiceFront:
    """Returns the front that decodes requests and encodes responses in the client's dialect."""
    return ServiceFront(inbound.endpoint.front, path=front_path(inbound))


def front_path(inbound: InboundRequest) -> str:
    """Returns the path and query, with a model name percent-encoded as received."""
    endpoint = inbound.endpoint
    if endpoint.front != GEMINI or not endpoint.action:
        return inbound.path
    return f"/v1beta/models/{quote(endpoint.name, safe='')}:{endpoint.action}"
