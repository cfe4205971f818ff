"""The path of a request as the fronts read it: Gemini's name the model there."""

from __future__ import annotations

from urllib.parse import quote

from dragoman.gateway.endpoints import GEMINI
from dragoman.gateway.inbound import InboundRequest
from dragoman.wire.service_front import ServiceFront


def service_front(inbound: InboundRequest) -> ServiceFront:
    """What reads the request, and writes the answer, in the client's dialect."""
    return ServiceFront(inbound.endpoint.front, path=front_path(inbound))


def front_path(inbound: InboundRequest) -> str:
    """The path with its query; a model's name in it is quoted again, as it came."""
    endpoint = inbound.endpoint
    if endpoint.front != GEMINI or not endpoint.action:
        return inbound.path
    return f"/v1beta/models/{quote(endpoint.name, safe='')}:{endpoint.action}"
