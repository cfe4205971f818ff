"""A request to a model: the places of a route are asked in turn, until one answers.

Chats, prompts, embeddings and token counts are routed, paid for and recorded alike; how one place
is asked is each one's own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from decimal import Decimal
from time import perf_counter
from typing import Protocol

from dragoman.errors import AllFailed, DragomanError, InvalidRequest, ServerError, WireError
from dragoman.gateway.reports import report_headers
from dragoman.gateway.translation import NO_SETTINGS, Settings
from dragoman.gateway.upstreams import Upstream
from dragoman.model.usage import Usage
from dragoman.transport.fallback import another_may_answer
from dragoman.transport.protocol import Timeouts
from dragoman.wire.lane.plain import Summary
from dragoman.wire.losses import Loss, Repair

MIN_BYTES_PER_TOKEN = 3
"""Bytes of a body that are at least a token."""
_BAD_GATEWAY = 502


class Sink(Protocol):
    """Where an answer goes: an HTTP response, or a WebSocket."""

    has_begun: bool

    async def respond(self, status: int, headers: Mapping[str, str], body: bytes, /) -> None:
        """Answer in one piece."""

    async def begin(self, headers: Mapping[str, str], /) -> None:
        """Send the head of an answer that comes in pieces."""

    async def write(self, data: bytes, /) -> None:
        """Send a piece: whole frames of a stream."""

    async def end(self, data: bytes = b"", /) -> None:
        """Send the last piece."""


class UpstreamTask(ABC):
    """A request that is being answered, and what is known about it afterwards."""

    is_free = False
    """Whether no place charges for it."""

    def __init__(self, requested_model: str | None, sink: Sink, *, stream: bool = False) -> None:
        self.requested_model = requested_model
        """The model, by the client's name for it."""
        self.sink = sink
        self.stream = stream
        self.began = perf_counter()
        self.is_complete = False
        """Whether the model said that a streamed answer is done."""
        self.provider: str | None = None
        self.place: str | None = None
        self.model: str | None = None
        """The model that was asked, by the name that its provider knows."""
        self.summary = Summary(None, None)
        """Who answered, and the usage; what is known of it so far."""
        self.cost: Decimal | None = Decimal(0) if self.is_free else None
        self.losses: list[Loss] = []
        self.repairs: list[Repair] = []
        self.attempts = 0
        self.passes = False
        """Whether the answer's bytes passed untouched."""
        self.cached = False
        """Whether it was answered out of the cache."""
        self.error: DragomanError | None = None
        self.tried: list[tuple[str, str | None, float, str | None]] = []
        """The places that were asked: provider, model, when, and the kind of error."""
        self.translated: float | None = None
        """When the body for the place was ready, and when its answer began."""
        self.response_began: float | None = None

    @property
    def usage(self) -> Usage | None:
        """The tokens that were used, as far as that is known."""
        return self.summary.usage

    @abstractmethod
    def estimated_usage(self) -> Usage:
        """The most that it is likely to use, for what it reserves of a budget."""

    def supports(self, upstream: Upstream, model: str | None) -> bool:  # noqa: ARG002 - for those that choose
        """Whether a place can be asked for this at all."""
        return True

    def unsupported(self) -> DragomanError:
        """What to say where no place of the route can be asked for this."""
        return InvalidRequest("no place of this model's route can do this", status=400)

    async def run(
        self, hops: list[tuple[Upstream, str | None]], settings: Settings = NO_SETTINGS,
        timeouts: Timeouts | None = None,
    ) -> int:  # fmt: skip
        """Answer; returns the number of the place that did. Raises before anything was sent."""
        causes: list[DragomanError] = []
        for number, (upstream, model) in enumerate(hops):
            self._begin_attempt(upstream, model)
            try:
                if not model and upstream.needs_name():
                    msg = "the request names no model"
                    raise InvalidRequest(msg, status=400, param="model")
                await self._attempt(upstream, model, settings, timeouts)
            except DragomanError as error:
                cause = _blamed(error)
                self.tried[-1] = (*self.tried[-1][:3], type(cause).__name__)
                if self.sink.has_begun or not another_may_answer(cause):
                    raise cause from None
                causes.append(cause)
            else:
                return number
        if len(causes) == 1:
            raise causes[0]
        msg = "every model of the route failed"
        raise AllFailed(msg, causes=tuple(causes))

    def _begin_attempt(self, upstream: Upstream, model: str | None) -> None:
        self.attempts += 1
        self.provider, self.place, self.model = upstream.provider_name, upstream.name, model
        self.losses, self.repairs = [], []
        self.tried.append((upstream.provider_name, model, perf_counter(), None))

    @abstractmethod
    async def _attempt(
        self, upstream: Upstream, model: str | None, settings: Settings, timeouts: Timeouts | None
    ) -> None:
        """Ask one place, and answer the client."""

    async def abort(self, error: DragomanError) -> None:
        """End an answer that has begun with an error; one that is whole can't be."""
        raise error

    def loss_headers(self) -> dict[str, str]:
        """The headers that tell what was lost and repaired."""
        return report_headers(self.losses, self.repairs) if self.losses or self.repairs else {}


def _blamed(error: DragomanError) -> DragomanError:
    """What can't be read by now is what a place answered: the client has read well."""
    if not isinstance(error, WireError):
        return error
    return ServerError("the provider's answer could not be read", status=_BAD_GATEWAY)


def answer_total(timeouts: Timeouts | None) -> float | None:
    """The seconds that a route allows for a whole answer; None: as its places say."""
    return None if timeouts is None else timeouts.answer_total
