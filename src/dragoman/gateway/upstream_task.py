"""A request to a model: the upstreams of its route are tried in order until one succeeds.

Chats, prompts, embeddings and token counts share routing, billing and recording; each subclass
implements a single attempt.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from decimal import Decimal
from time import perf_counter
from typing import Any, Protocol

from dragoman.errors import AllFailed, DragomanError, InvalidRequest, ServerError, WireError
from dragoman.gateway.limits import unknown_maximum
from dragoman.gateway.reports import report_headers
from dragoman.gateway.selection import Selection
from dragoman.gateway.translation import NO_SETTINGS, Settings
from dragoman.gateway.upstreams import Upstream
from dragoman.model.requests import Request
from dragoman.model.usage import Usage
from dragoman.transport.fallback import another_may_answer
from dragoman.transport.protocol import Timeouts, within
from dragoman.wire.known_fields import without_fields
from dragoman.wire.lane.plain import Summary
from dragoman.wire.losses import Loss, Repair
from dragoman.wire.overlay import fields_of

_BAD_GATEWAY = 502


class Sink(Protocol):
    """Where a response is written: an HTTP response or a WebSocket."""

    has_begun: bool

    async def respond(self, status: int, headers: Mapping[str, str], body: bytes, /) -> None:
        """Send a complete response."""

    async def begin(self, headers: Mapping[str, str], /) -> None:
        """Start a streamed response by sending its headers."""

    async def write(self, data: bytes, /) -> None:
        """Send a chunk that consists of complete stream frames."""

    async def end(self, data: bytes = b"", /) -> None:
        """Send the last chunk."""


class UpstreamTask(ABC):
    """A request to a model, and what is known about it afterwards."""

    is_free = False
    """Whether providers don't charge for it."""

    is_complete = False
    """Whether a streamed response reached its end."""
    provider: str | None = None
    place: str | None = None
    model: str | None = None
    """The model name that was sent to the provider."""
    summary = Summary(None, None)
    """The responding model and, for a complete response, the usage that its provider reports."""
    partial: Usage | None = None
    """At least this was used, where the usage is unknown: the response is not complete, or its
    provider reports nothing, or less than was delivered."""
    cost: Decimal | None = None
    losses: list[Loss]
    repairs: list[Repair]
    ignored: Sequence[Loss] = ()
    """Fields of the request that were left out when it arrived."""
    selection: Selection | None = None
    """Which models and addresses the request may choose in fields other than `model`."""
    attempts = 0
    passes = False
    """Whether the response's bytes were passed through unchanged."""
    cached = False
    """Whether the response came from the cache."""
    error: DragomanError | None = None
    tried: list[tuple[str, str | None, float, str | None]]
    """The attempts: the provider's name, model, time, and the error type if it failed."""
    translated: float | None = None
    """When the upstream body was encoded; `response_began`: when the response started."""
    response_began: float | None = None

    def __init__(self, requested_model: str | None, sink: Sink, *, stream: bool = False) -> None:
        self.requested_model = requested_model
        """The model name that the client requested."""
        self.sink = sink
        self.stream = stream
        self.losses, self.repairs, self.tried = [], [], []
        if self.is_free:
            self.cost = Decimal(0)

    @property
    def usage(self) -> Usage | None:
        """The tokens used, as far as known."""
        return self.summary.usage

    async def prepare_estimate(self) -> None:
        """Decode what `estimated_usage` needs, without blocking other requests for long."""
        return  # most have decoded it already

    @abstractmethod
    def estimated_usage(
        self, settings: Settings = NO_SETTINGS, maximum: Callable[[], int] = unknown_maximum
    ) -> Usage:
        """Upper estimate of the usage, to reserve against budgets.

        `maximum` gives the most that a model of the route can put out.
        """

    def supports(self, upstream: Upstream, model: str | None) -> bool:  # noqa: ARG002 - for those that choose
        """Whether an upstream can handle this request at all."""
        return True

    def unsupported(self) -> DragomanError:
        """The error if no upstream of the route supports this request."""
        return InvalidRequest("no provider of this model's route supports this", status=400)

    async def run(
        self, hops: list[tuple[Upstream, str | None]], settings: Settings = NO_SETTINGS,
        timeouts: Timeouts | None = None,
    ) -> int:  # fmt: skip
        """Try the upstreams in order; return the index of the one that responded.

        Raises if none did, or if one failed after the response began.
        """
        causes: list[DragomanError] = []
        for number, (upstream, model) in enumerate(hops):
            self._begin_attempt(upstream, model)
            try:
                if not model and upstream.needs_name():
                    msg = "the request does not name a model"
                    raise InvalidRequest(msg, status=400, param="model")
                limits = upstream.limits(timeouts)
                total = limits.stream_total if self.stream else limits.answer_total
                await within(total, self._attempt(upstream, model, settings, timeouts))
            except DragomanError as error:
                upstream.locate(error, model)
                cause = _as_upstream_error(error)
                self.tried[-1] = (*self.tried[-1][:3], type(cause).__name__)
                if self.sink.has_begun or not another_may_answer(cause):
                    raise cause from None
                causes.append(cause)
            else:
                return number
        if len(causes) == 1:
            raise causes[0]
        msg = "all models of the route failed"
        raise AllFailed(msg, causes=tuple(causes))

    def _begin_attempt(self, upstream: Upstream, model: str | None) -> None:
        self.attempts += 1
        self.provider, self.place, self.model = upstream.provider_name, upstream.name, model
        self.losses, self.repairs, self.partial = list(self.ignored), [], None
        self.error = None
        self.tried.append((upstream.name, model, perf_counter(), None))

    @abstractmethod
    async def _attempt(
        self, upstream: Upstream, model: str | None, settings: Settings, timeouts: Timeouts | None
    ) -> None:
        """Call one upstream and send its response to the client."""

    async def abort(self, error: DragomanError) -> None:
        """End a response that has begun with an error; only streams can do that."""
        raise error

    def left_out(
        self, upstream: Upstream, model: str | None, fields: Mapping[str, Any]
    ) -> Collection[str]:
        """The fields among these that the upstream must not see; reports them as losses."""
        if self.selection is None:
            return ()
        found = self.selection.left_out(upstream.place, model, fields)
        self.losses += [loss for loss in found.values() if loss not in self.losses]
        return found

    def permitted(self, request: Request, upstream: Upstream, model: str | None) -> Request:
        """The request without fields that would choose another model or address than allowed."""
        speaking = upstream.dialect(model).name
        names = self.left_out(upstream, model, fields_of(request.extras, speaking))
        return without_fields(request, speaking, names) if names else request

    def loss_headers(self) -> dict[str, str]:
        """The headers that report losses and repairs."""
        return report_headers(self.losses, self.repairs) if self.losses or self.repairs else {}


def _as_upstream_error(error: DragomanError) -> DragomanError:
    """Turn a decoding error into a 502: by now, only a provider's response can be undecodable."""
    if not isinstance(error, WireError):
        return error
    error.__traceback__ = None  # its frames hold the response
    return ServerError("the provider's response could not be decoded", status=_BAD_GATEWAY)
