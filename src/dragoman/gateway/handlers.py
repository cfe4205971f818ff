"""The handler of each kind of endpoint."""

from __future__ import annotations

from collections.abc import Mapping

from dragoman.gateway.chat import chat
from dragoman.gateway.exposition import metrics
from dragoman.gateway.health import health, ready, root
from dragoman.gateway.inbound import Handler, InboundRequest
from dragoman.gateway.services.counting import count
from dragoman.gateway.services.embeddings import embed
from dragoman.gateway.services.hosted import hosted
from dragoman.gateway.services.listing import model, models, running, show, version
from dragoman.gateway.services.prompts import prompt


async def _responses(inbound: InboundRequest) -> None:
    from dragoman.gateway.responses.creating import create

    await create(inbound)


async def _response(inbound: InboundRequest) -> None:
    from dragoman.gateway.responses.reading import response

    await response(inbound)


async def _compact(inbound: InboundRequest) -> None:
    from dragoman.gateway.responses.state_errors import no_compaction

    await inbound.body()
    raise no_compaction()


async def _conversations(inbound: InboundRequest) -> None:
    from dragoman.gateway.responses.conversing import conversations

    await conversations(inbound)


async def _page_api(inbound: InboundRequest) -> None:
    from dragoman.gateway.page.api import page_api

    await page_api(inbound)


async def _page(inbound: InboundRequest) -> None:
    from dragoman.gateway.page.api import page

    await page(inbound)


HANDLERS: Mapping[str, Handler] = {
    "chat": chat,
    "responses": _responses,
    "response": _response,
    "compact": _compact,
    "conversations": _conversations,
    "conversation": _conversations,
    "prompt": prompt,
    "embed": embed,
    "count": count,
    "models": models,
    "model": model,
    "show": show,
    "running": running,
    "version": version,
    "hosted": hosted,
    "health": health,
    "metrics": metrics,
    "page-api": _page_api,
    "page": _page,
    "ready": ready,
    "root": root,
}
