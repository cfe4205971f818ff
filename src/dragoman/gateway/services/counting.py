"""Token counts: by the provider if it supports counting, else estimated."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from dragoman.errors import DragomanError
from dragoman.gateway.chat import answer
from dragoman.gateway.client_request import accepted_fields
from dragoman.gateway.http import Call
from dragoman.gateway.inbound import InboundRequest
from dragoman.gateway.large_bodies import expect_few_messages, translated_aside
from dragoman.gateway.limits import unknown_maximum
from dragoman.gateway.services.embeddings import ESTIMATED
from dragoman.gateway.services.paths import service_front
from dragoman.gateway.translation import NO_SETTINGS, Settings
from dragoman.gateway.upstream_task import UpstreamTask
from dragoman.gateway.upstreams import Upstream
from dragoman.history.tokens import count as count_messages
from dragoman.model.catalogue import TokenCount
from dragoman.model.requests import Request
from dragoman.model.usage import Usage
from dragoman.transport.protocol import Timeouts
from dragoman.wire.error_reporting import reported
from dragoman.wire.service_front import ServiceFront

T = TypeVar("T")


async def count(inbound: InboundRequest) -> None:
    """Handles a request to count the tokens of a prompt."""
    front = service_front(inbound)
    body = await inbound.body()
    try:
        body, _, losses = await translated_aside(body, accepted_fields, front.dialect, body)
        request = await translated_aside(body, front.decode_count, body)
        expect_few_messages(len(request.messages))
    except DragomanError as error:
        problem = reported(error)
    else:
        task = Counting(inbound.call, front, request, body)
        task.ignored = losses
        await answer(inbound, task)
        return
    raise problem


class Counting(UpstreamTask):
    """A request for a token count, which is free of charge."""

    is_free = True

    def __init__(self, sink: Call, front: ServiceFront, request: Request, body: bytes) -> None:
        super().__init__(request.model, sink)
        self._body = body
        self._front = front
        self._request = request

    def estimated_usage(
        self,
        settings: Settings = NO_SETTINGS,  # noqa: ARG002 - no limits
        maximum: Callable[[], int] = unknown_maximum,  # noqa: ARG002
    ) -> Usage:
        """Returns zero usage: counting consumes no tokens."""
        return Usage()

    async def _attempt(
        self, upstream: Upstream, model: str | None, settings: Settings, timeouts: Timeouts | None
    ) -> None:
        del timeouts  # `run` applies their total
        # Unchecked: it is the same model under another name, so its thinking parts stay valid.
        request = settings.applied(self._request.replace_unchecked(model=model))
        counted = await self._counted(upstream, request)
        encoded = self._front.count(counted)
        headers = {**encoded.headers, **(ESTIMATED if counted.is_estimate else {})}
        await self.sink.respond(200, {**headers, **self.loss_headers()}, encoded.to_bytes())

    async def _counted(self, upstream: Upstream, request: Request) -> TokenCount:
        counted = None
        if upstream.is_wire:
            request = self.permitted(request, upstream, request.model)
            with suppress(_NoCounter):
                counted = await upstream.client.count_tokens(request, estimate=_leave_it)
        if counted is None:
            return TokenCount(await self._aside(estimate, request), is_estimate=True)
        encoded = await self._aside(upstream.client.encode, request)
        self.losses += encoded.losses
        self.repairs += encoded.repairs
        return counted

    async def _aside(self, work: Callable[[Request], T], request: Request) -> T:
        """Work that takes milliseconds for a short prompt, and a second for a long one."""
        return await translated_aside(self._body, work, request)


class _NoCounter(Exception):  # noqa: N818 - not a failure
    """The provider can't count."""


def _leave_it(_request: Request) -> int:
    """Takes the place of an estimate, which would be made on the event loop."""
    raise _NoCounter


def estimate(request: Request) -> int:
    """Estimates the tokens of a prompt."""
    return count_messages(request.messages, tools=request.tools, system=request.system).total
