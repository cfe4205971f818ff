"""Lists the models of a provider."""

from __future__ import annotations

from dragoman.errors import WireError
from dragoman.model.catalogue import ModelInfo
from dragoman.transport.exchanges import Line, with_query
from dragoman.wire.json_values import opened
from dragoman.wire.services import services

_MAX_PAGES = 1000


async def list_models(line: Line) -> tuple[ModelInfo, ...]:
    """All models that the provider lists for this key, from all pages, in its order."""
    found = line.needs(services(line.dialect).models, "list of models")
    first = line.deployment.request("models", method="GET")
    models: list[ModelInfo] = []
    query = found.query
    for _ in range(_MAX_PAGES):
        answer = await line.exchange(with_query(first, query))
        page = found.decode(opened(answer.body, line.dialect))
        models += page.models
        # A page that points to itself would loop forever.
        if page.following is None or page.following == query:
            return tuple(models)
        query = page.following
    msg = f"the list of models has more than {_MAX_PAGES} pages"
    raise WireError(msg, dialect=line.dialect)
