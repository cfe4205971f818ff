"""Streams of stored responses: again from any event on, and on while they are being written."""

from __future__ import annotations

import asyncio

from dragoman.gateway.inbound import InboundRequest
from dragoman.gateway.responses.frames import data_in, frame_of, is_end, number_of
from dragoman.gateway.responses.lifecycle import end_event, frames_of
from dragoman.gateway.responses.reading_state import settled
from dragoman.gateway.responses.store import ResponseStore, Stored

_PAUSE = 0.1
"""Seconds between two looks for new events."""


async def replay(inbound: InboundRequest, store: ResponseStore, id: str, after: int) -> None:
    """Stream a response's events whose numbers are above `after`, until it is over."""
    call, row, last = inbound.call, 0, -1
    await call.begin({"content-type": "text/event-stream"})
    while True:
        found = await settled(store, id)
        events, row = await store.events(id, row)
        if found is None:  # deleted while it was streamed
            await call.end()
            return
        if not events and found.is_over:
            await call.end(_rest(found, after, last))
            return
        for event in events:
            last = max(last, number_of(event))
        sent = b"".join([frame_of(each) for each in events if number_of(each) > after])
        if events and is_end(events[-1]):
            await call.end(sent)
            return
        if sent:
            await call.write(sent)
        if not events:
            await asyncio.sleep(_PAUSE)


def _rest(found: Stored, after: int, last: int) -> bytes:
    """What is left to say of a response that is over, whose last event was not written down."""
    if last >= 0 or found.status in {"cancelled", "failed"}:
        return end_event(found.answer, max(last, after) + 1)
    events = data_in(frames_of(found.answer))
    return b"".join([frame_of(each) for each in events if number_of(each) > after])
