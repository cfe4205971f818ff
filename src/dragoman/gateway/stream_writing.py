"""Writes a response's events to the client, in its dialect."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dragoman.errors import DragomanError, StreamInterrupted
from dragoman.gateway.whole_calls import Answering, WholeCalls
from dragoman.model.events import ChoiceFinish, Event
from dragoman.model.responses import Response

if TYPE_CHECKING:
    from dragoman.gateway.exchange import Exchange


class Complete(NamedTuple):
    """A response that is complete from the start."""

    response: Response


class StreamWriter:
    """Writes the events of one response to the client as they arrive."""

    def __init__(self, exchange: Exchange, source: Answering) -> None:
        self._exchange = exchange
        self._whole = None if exchange.client_request.takes_pieces else WholeCalls(source)
        self._sink = exchange.sink
        self.received = 0
        """The number of events."""
        self._held: list[Event] | None = (
            None  # events after the finish, held until the response is stored
        )

    async def take(self, events: list[Event]) -> None:
        """Write events, as far as they may be sent now."""
        exchange = self._exchange
        self.received += len(events)
        if exchange.filters is not None:
            events = exchange.filters.events(events)
            if not events:
                return
        if self._whole is not None:
            events = self._whole.feed(events)
        encoder = exchange.encoder
        if encoder is None:
            encoder = exchange.encoder = exchange.front().stream()
            await self._sink.begin({**encoder.headers, **exchange.loss_headers()})
        data = encoder.feed_all(self._before_end(events))
        if data:
            await self._sink.write(data)

    def _before_end(self, events: list[Event]) -> list[Event]:
        """Return the events to send now; hold back those that mark the response as complete.

        The held events are not encoded yet: an encoder that ended a response can't add an error.
        """
        filters = self._exchange.filters
        if self._exchange.recorder is None and (filters is None or not filters.holds_end):
            return events
        if self._held is not None:
            self._held += events
            return []
        for number, event in enumerate(events):
            if type(event) is ChoiceFinish:
                self._held = events[number:]
                return events[:number]
        return events

    async def end(self, response: Response) -> None:
        """Write what was held back, and the end of the stream."""
        exchange = self._exchange
        exchange.note(response)
        encoder = exchange.encoder
        if encoder is None:
            msg = "the stream ended without any event"
            raise StreamInterrupted(msg)
        if exchange.filters is not None:
            response = await exchange.filters.ended(response)
        if exchange.recorder is not None:
            await exchange.recorder.keep(response)
        last = encoder.feed_all(self._held or []) + encoder.close()
        exchange.losses += encoder.losses
        exchange.repairs += encoder.repairs
        await self._sink.end(last)

    async def fail(self, error: DragomanError) -> None:
        """Report an interrupted response to the client; raise if nothing was sent yet."""
        if self._exchange.encoder is None:
            filters = self._exchange.filters
            raise error if filters is None else filters.failed(error)
        await self._exchange.abort(error)
