"""Streams stored responses from any event on, and follows those still in progress."""

from __future__ import annotations

import asyncio

from dragoman.gateway.inbound import InboundRequest
from dragoman.gateway.responses.current_response import load_current
from dragoman.gateway.responses.frames import data_in, frame_of, is_end, number_of
from dragoman.gateway.responses.lifecycle import end_event, frames_of
from dragoman.gateway.responses.store import ResponseStore, StoredResponse

_POLL_INTERVAL = 0.1  # seconds


async def replay(inbound: InboundRequest, store: ResponseStore, id: str, after: int) -> None:
    """Streams the events numbered above `after`, until the response ends."""
    call, row, last = inbound.call, 0, -1
    await call.begin({"content-type": "text/event-stream"})
    while True:
        found = await load_current(store, id)
        events, row = await store.events(id, row)
        if found is None:  # deleted during the stream
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
            await asyncio.sleep(_POLL_INTERVAL)


def _rest(found: StoredResponse, after: int, last: int) -> bytes:
    """Returns the remaining frames of a finished response whose last event was not stored."""
    if last >= 0 or found.status in {"cancelled", "failed"}:
        return end_event(found.answer, max(last, after) + 1)
    events = data_in(frames_of(found.answer))
    return b"".join([frame_of(each) for each in events if number_of(each) > after])
