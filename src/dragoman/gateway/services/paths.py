"""The request path for service fronts; Gemini's paths contain the model name."""

from __future__ import annotations

from urllib.parse import quote

from dragoman.gateway.endpoints import GEMINI
from dragoman.gateway.visits import Visit
from dragoman.wire.service_front import ServiceFront


def service_front(visit: Visit) -> ServiceFront:
    """Returns the front that decodes requests and encodes responses in the client's dialect."""
    return ServiceFront(visit.endpoint.front, path=front_path(visit))


def front_path(visit: Visit) -> str:
    """Returns the path and query, with a model name percent-encoded as received."""
    endpoint = visit.endpoint
    if endpoint.front != GEMINI or not endpoint.action:
        return visit.path
    return f"/v1beta/models/{quote(endpoint.name, safe='')}:{endpoint.action}"
