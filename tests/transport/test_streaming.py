"""Streams: recordings of every dialect, cut anywhere, and what a reader may do with them."""

from __future__ import annotations

import asyncio
import gc
import warnings
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from itertools import chain, repeat
from typing import Self

import pytest

import dragoman
from dragoman import errors
from dragoman.errors import (
    ConfigError,
    DragomanError,
    InvalidInputError,
    Overloaded,
    ProviderError,
    RateLimited,
    ResponseTooLarge,
    StreamInterrupted,
    StreamSilent,
    WireError,
)
from dragoman.model.events import Event, ResponseEnd, ResponseStart, StreamError
from dragoman.model.frozen import EMPTY
from dragoman.transport.protocol import HttpRequest, Timeouts
from dragoman.transport.retries import Retries
from dragoman.transport.streaming import ResponseStream
from tests.corpus import Corpus, Recording
from tests.transport.answers import DIALECTS, TEXT, body, client, frames, kind, naps, said
from tests.transport.servers import Fault, Seen, Step, chunk, plain, serving, streamed
from tests.wire.recorded import ENDPOINTS, SPOKEN_BY

pytestmark = pytest.mark.usefixtures("network")
_EVERY = 2


def _recordings(corpus: Corpus, dialect: str) -> list[Recording]:
    found = corpus.select(provider_api=SPOKEN_BY[dialect], status=200, streaming=True)
    asked = [one for one in found if ENDPOINTS[dialect].search(one.request_path.partition("?")[0])]
    return [one for one in asked if one.response_stream][::_EVERY]


@pytest.mark.corpus
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_streams_equal_the_decoded_recordings(dialect: str, corpus: Corpus) -> None:
    """Events, response and completeness are those of decoding the recording directly."""
    complete = 0
    for recording in _recordings(corpus, dialect):
        raw = recording.response_stream or b""
        decoder = dragoman.dialect(dialect).stream_decoder()
        try:
            want = [*decoder.feed(raw), *decoder.close()]
        except WireError:
            continue
        async with (
            serving(streamed(raw, kind=kind(dialect))) as server,
            client(dialect, server.url, retries=Retries(attempts=1)) as made,
            made.stream("hi") as stream,
        ):
            if not decoder.is_complete:
                with pytest.raises((StreamInterrupted, ProviderError, WireError)):
                    await stream.collect()
                continue
            got = [event async for event in stream]
        complete += 1
        assert [_bare(event) for event in got] == [_bare(event) for event in want]
        assert stream.response == decoder.response
        assert stream.response.usage == decoder.response.usage
        assert stream.is_complete
    assert complete


def _bare(event: Event) -> Event:
    return event.replace(origin=None) if isinstance(event, ResponseStart) else event


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_events_arrive_as_they_are_sent(dialect: str) -> None:
    """The reader has an event before the server sends the next."""
    pieces, go = frames(dialect), asyncio.Event()
    begun = said(dialect, pieces[:5]).text
    reply = streamed(*pieces[:5], go, *pieces[5:], kind=kind(dialect))
    async with serving(reply) as server, client(dialect, server.url) as made:
        async with made.stream("hi") as stream:
            async for _ in stream:
                if stream.response.text == begun:
                    go.set()
        assert begun
        assert begun != stream.response.text == TEXT


@pytest.mark.parametrize(
    "fault", [Fault.CLOSE, Fault.RESET, None], ids=["closed", "reset", "ended"]
)
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_stream_cut_at_any_event_is_never_complete(
    dialect: str, fault: Fault | None
) -> None:
    """The error has the part that arrived, which is a prefix of the whole."""
    pieces = frames(dialect)
    for cut in range(len(pieces)):
        steps: list[bytes | Fault] = [*pieces[:cut]]
        steps += [fault] if fault else []
        async with (
            serving(streamed(*steps, kind=kind(dialect))) as server,
            client(dialect, server.url, retries=Retries(attempts=1)) as made,
            made.stream("hi") as stream,
        ):
            with pytest.raises(StreamInterrupted) as raised:
                await stream.collect()
        assert not stream.is_complete
        assert raised.value.partial == said(dialect, pieces[:cut]), cut
        assert raised.value.partial.text == stream.response.text
        assert raised.value.__context__ is None
        assert raised.value.sent


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_connection_that_breaks_after_the_end_does_no_harm(dialect: str) -> None:
    """The answer was complete."""
    for fault in (Fault.CLOSE, Fault.RESET):
        reply = streamed(*frames(dialect), fault, kind=kind(dialect))
        async with serving(reply) as server, client(dialect, server.url) as made:
            response = await made.stream("hi").collect()
        assert response.text == TEXT


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_garbage_within_a_stream_is_an_interruption(dialect: str) -> None:
    """The error has the part that came before it."""
    pieces = frames(dialect)
    garbage = b"\x00\xff{]\n" if dialect == "ollama" else b"data: {]\n\n"
    reply = streamed(*pieces[:4], garbage, *pieces[4:], kind=kind(dialect))
    async with (
        serving(reply) as server,
        client(dialect, server.url, retries=Retries(attempts=1)) as made,
    ):
        with pytest.raises(StreamInterrupted) as raised:
            await made.stream("hi").collect()
    assert raised.value.partial.text
    assert TEXT.startswith(raised.value.partial.text)


# --- answers that aren't streams


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_plain_answer_to_a_streaming_request_is_accepted(dialect: str) -> None:
    """Some servers can't stream; events and response are those of the plain answer."""
    wire = body(dialect)
    async with serving(plain(wire)) as server, client(dialect, server.url) as made:
        stream = made.stream("hi")
        events = [event async for event in stream]
        assert stream.response == await made.send("hi")
    assert stream.is_complete
    assert stream.response.text == TEXT
    assert isinstance(events[0], ResponseStart)
    assert isinstance(events[-1], ResponseEnd)
    assert server.seen[0].path.partition("?")[0]


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_stream_in_answer_to_a_plain_request_is_accepted(dialect: str) -> None:
    """Some servers always stream."""
    reply = plain(b"".join(frames(dialect)), kind=kind(dialect))
    async with serving(reply) as server, client(dialect, server.url) as made:
        assert (await made.send("hi")).text == TEXT


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_web_page_is_not_an_answer(dialect: str, stream: bool) -> None:
    """The error says what to check and quotes nothing; it isn't retried."""
    page = b"<!doctype html><title>Sign in, Mr Secret</title>"
    async with (
        serving(plain(page, kind="text/html")) as server,
        client(dialect, server.url) as made,
    ):
        with pytest.raises(WireError) as raised:
            await (made.stream("hi").collect() if stream else made.send("hi"))
    assert "Secret" not in str(raised.value)
    assert len(server.seen) == 1


async def test_a_web_page_in_place_of_a_stream_names_the_base_url() -> None:
    """A wrong base URL is the usual reason."""
    page = plain(b"<html>", kind="text/html")
    async with serving(page) as server, client("openai-chat", server.url) as made:
        with pytest.raises(WireError, match="base_url"):
            await made.stream("hi").collect()


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_an_empty_stream_is_retried(dialect: str) -> None:
    """Nothing arrived, so nothing is repeated."""
    replies = [streamed(kind=kind(dialect)), streamed(*frames(dialect), kind=kind(dialect))]
    async with serving(*replies) as server, client(dialect, server.url) as made:
        assert (await made.stream("hi").collect()).text == TEXT
    assert len(naps(made)) == 1


# --- errors in streams

_OVERLOADED = {
    "anthropic": b'event: error\ndata: {"type":"error","error":'
    b'{"type":"overloaded_error","message":"Overloaded"}}\n\n',
    "openai-chat": b'data: {"error":{"message":"x","code":"service_unavailable","status":503}}\n\n',
    "openai-responses": b"event: error\n"
    b'data: {"type":"error","code":"service_unavailable","message":"x"}\n\n',
    "gemini": b'data: {"error":{"code":503,"message":"x","status":"UNAVAILABLE"}}\n\n',
    "ollama": b'{"error":"the server is overloaded"}\n',
}


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_an_error_before_the_answer_has_its_usual_class(dialect: str) -> None:
    """The class is that of its status, and it is retried."""
    bad = streamed(_OVERLOADED[dialect], kind=kind(dialect))
    good = streamed(*frames(dialect), kind=kind(dialect))
    async with serving(bad, good) as server, client(dialect, server.url) as made:
        assert (await made.stream("hi").collect()).text == TEXT
        assert len(naps(made)) == 1
    async with (
        serving(bad) as server,
        client(dialect, server.url, retries=Retries(attempts=1)) as made,
    ):
        with pytest.raises(Overloaded) as raised:
            await made.stream("hi").collect()
    assert raised.value.provider == made.provider.name


async def _gathered(stream: ResponseStream, events: list[Event]) -> None:
    """Collect events as they arrive, including those before an error."""
    async for event in stream:
        events.append(event)  # noqa: PERF401 - as above


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_an_error_within_the_answer_is_an_interruption(dialect: str) -> None:
    """Its cause is the provider's error; the error event comes first."""
    pieces = [*frames(dialect)[:4], _OVERLOADED[dialect]]
    events: list[Event] = []
    async with (
        serving(streamed(*pieces, Fault.HANG, kind=kind(dialect))) as server,
        client(dialect, server.url) as made,
    ):
        with pytest.raises(StreamInterrupted) as raised:
            await _gathered(made.stream("hi"), events)
        await server.until_idle()  # closed at once, though the server would go on
    assert isinstance(raised.value.__cause__, Overloaded)
    assert any(isinstance(event, StreamError) for event in events)
    assert TEXT.startswith(raised.value.partial.text)
    assert raised.value.partial.text


# --- retries

_DIALECT = "openai-chat"
_GOOD = streamed(*frames(_DIALECT))
_CUT = streamed(*frames(_DIALECT)[:3], Fault.CLOSE)


async def test_a_rejection_before_the_stream_is_retried() -> None:
    """As for plain requests, and `Retry-After` counts."""
    replies = [plain({}, 429, {"retry-after": "3"}), plain({}, 500), _GOOD]
    async with serving(*replies) as server, client(_DIALECT, server.url) as made:
        assert (await made.stream("hi").collect()).text == TEXT
    assert naps(made)[0] == 3.0
    assert len(naps(made)) == 2
    assert len({seen.body for seen in server.seen}) == 1


async def test_a_stream_with_events_is_not_retried_by_default() -> None:
    """The interruption is raised after one request."""
    async with serving(_CUT, _GOOD) as server, client(_DIALECT, server.url) as made:
        with pytest.raises(StreamInterrupted):
            await made.stream("hi").collect()
    assert len(server.seen) == 1


async def test_interrupted_streams_can_be_restarted() -> None:
    """The events start over, and the response is that of the last attempt."""
    retries = Retries(interrupted=True)
    events: list[Event] = []
    async with (
        serving(_CUT, _CUT, _GOOD) as server,
        client(_DIALECT, server.url, retries=retries) as made,
    ):
        stream = made.stream("hi")
        await _gathered(stream, events)
    assert sum(isinstance(event, ResponseStart) for event in events) >= 3
    assert stream.response.text == TEXT
    assert len(naps(made)) == 2
    assert len(server.seen) == 3


async def test_restarts_are_limited() -> None:
    """The last failure is raised, with the partial response of that attempt."""
    retries = Retries(interrupted=True)
    async with serving(_CUT) as server, client(_DIALECT, server.url, retries=retries) as made:
        with pytest.raises(StreamInterrupted) as raised:
            await made.stream("hi").collect()
    assert len(server.seen) == 3
    assert TEXT.startswith(raised.value.partial.text)


# --- reading


async def test_a_stream_is_iterated_once() -> None:
    """A second iteration is an error, during and after the first."""
    async with serving(_GOOD) as server, client(_DIALECT, server.url) as made:
        stream = made.stream("hi")
        async for _ in stream:
            with pytest.raises(InvalidInputError, match="once"):
                aiter(stream)
        with pytest.raises(InvalidInputError, match="once"):
            async for _ in stream:
                pass
        with pytest.raises(InvalidInputError, match="once"):
            await stream.collect()
        with pytest.raises(StopAsyncIteration):
            await anext(stream)
    assert len(server.seen) == 1


async def test_a_stream_has_one_reader() -> None:
    """A second reader gets an error, and doesn't affect the first."""
    go = asyncio.Event()
    async with (
        serving(streamed(go, *frames(_DIALECT))) as server,
        client(_DIALECT, server.url) as made,
    ):
        stream = made.stream("hi")
        first = asyncio.create_task(stream.collect())
        await server.until(lambda seen: bool(seen.seen))
        with pytest.raises(InvalidInputError, match="one reader"):
            await anext(stream)
        go.set()
        assert (await first).text == TEXT


async def test_nothing_is_sent_before_iteration() -> None:
    """A stream that isn't iterated sends nothing and gives no warning."""
    async with serving(_GOOD) as server, client(_DIALECT, server.url) as made:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            made.stream("hi")
            async with made.stream("hi"):
                pass
            gc.collect()
        assert server.connections == 0
        assert made.stream("hi").response.choices == ()


async def test_a_connection_is_reused_after_a_stream() -> None:
    """If its body was read to the end."""
    async with serving(_GOOD) as server, client(_DIALECT, server.url) as made:
        for _ in range(3):
            async with made.stream("hi") as stream:
                async for _ in stream:
                    pass
        assert server.connections == 1


@pytest.mark.parametrize("way", ["break", "close", "with", "aclosing", "dropped"])
async def test_leaving_a_stream_early_closes_the_connection(way: str) -> None:
    """At once, in every way: the server notices while it is still sending."""
    reply = streamed(*frames(_DIALECT)[:3], Fault.HANG)
    async with serving(reply) as server, client(_DIALECT, server.url) as made:
        stream = made.stream("hi")
        if way == "close":
            await anext(stream)
            await stream.close()
            await stream.close()
        elif way == "with":
            async with stream:
                await anext(stream)
        elif way == "aclosing":
            async with aclosing(stream):
                await anext(stream)
        else:
            async for _ in stream:
                break
            if way == "break":
                await stream.close()
            del stream
        await server.until_idle()
        assert len(asyncio.all_tasks()) == 1


async def test_closing_a_client_ends_its_streams() -> None:
    """They are interrupted with their partial response; no connection is opened."""
    reply = streamed(*frames(_DIALECT)[:3], Fault.HANG)
    async with serving(reply) as server:
        made = client(_DIALECT, server.url)
        stream = made.stream("hi")
        await anext(stream)
        waiting = asyncio.create_task(_drained(stream))
        await asyncio.sleep(0)
        await made.close()
        with pytest.raises(StreamInterrupted):
            await waiting
        await server.until_idle()
        assert len(server.seen) == 1


async def _drained(stream: ResponseStream) -> None:
    while await stream.batch():
        pass


async def test_closing_a_stream_in_another_task_ends_its_reader() -> None:
    """Even before its head has arrived; nothing stays open."""
    never = asyncio.Event()
    for reply in ([never], streamed(*frames(_DIALECT)[:3], Fault.HANG)):
        async with serving(reply) as server, client(_DIALECT, server.url) as made:
            stream = made.stream("hi")
            reading = asyncio.create_task(_drained(stream))
            await server.until(lambda seen: bool(seen.seen))
            await asyncio.sleep(0.01)
            await stream.close()
            if len(reply) == 1:
                reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
            await server.until_idle()
            assert len(asyncio.all_tasks()) == 1


# --- timeouts


async def test_the_total_timeout_covers_the_whole_stream() -> None:
    """It is our own timeout, and doesn't affect the reader's own awaits."""
    reply = streamed(*frames(_DIALECT)[:3], Fault.HANG)
    timeouts = Timeouts(total=1)
    async with (
        serving(reply) as server,
        client(_DIALECT, server.url, timeouts=timeouts) as made,
        made.stream("hi") as stream,
    ):
        await anext(stream)
        await asyncio.sleep(1.1)  # not cancelled: it isn't waiting for the server
        with pytest.raises(errors.TimeoutError, match="total"):
            await _drained(stream)
        assert TEXT.startswith(stream.response.text)
        await server.until_idle()


async def test_a_slow_reader_is_no_timeout() -> None:
    """Pauses of the reader don't count as the server's."""
    pieces = frames(_DIALECT)
    timeouts = Timeouts(between_chunks=0.5)
    go = asyncio.Event()
    reply = streamed(*pieces[:3], go, *pieces[3:])
    async with (
        serving(reply) as server,
        client(_DIALECT, server.url, timeouts=timeouts) as made,
        made.stream("hi") as stream,
    ):
        await anext(stream)
        go.set()
        await asyncio.sleep(0.6)
        await _drained(stream)
    assert stream.response.text == TEXT


async def test_a_stream_that_stalls_is_an_interruption() -> None:
    """The error has the partial response; the connection is closed."""
    reply = streamed(*frames(_DIALECT)[:4], Fault.HANG)
    timeouts = Timeouts(between_chunks=0.5)
    async with serving(reply) as server, client(_DIALECT, server.url, timeouts=timeouts) as made:
        with pytest.raises(StreamInterrupted, match="stopped sending") as raised:
            await made.stream("hi").collect()
        await server.until_idle()
    assert raised.value.partial.text == said(_DIALECT, frames(_DIALECT)[:4]).text


# --- streams that never end

_COMMENTS = {"ollama": b"\n", "gemini": b": ping\r\n\r\n"}


def _endless(begun: list[bytes], piece: bytes) -> Callable[[Seen], Iterator[Step]]:
    """An answer that begins so, and goes on with the same for ever."""
    return lambda _: chain(streamed(*begun, Fault.HANG)[:-1], repeat(chunk(piece)))


@pytest.mark.parametrize("begins", [False, True], ids=["at once", "after some text"])
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_comments_without_end_are_an_error_of_their_own(dialect: str, begins: bool) -> None:
    """They are chunks, and no events; the partial response is in the error."""
    begun = frames(dialect)[:4] if begins else []
    reply = _endless(begun, _COMMENTS.get(dialect, b": ping\n\n"))
    timeouts = Timeouts(between_events=0.2)
    async with serving(reply) as server, client(dialect, server.url, timeouts=timeouts) as made:
        with pytest.raises(StreamSilent, match="between_events") as raised:
            await made.stream("hi").collect()
        await server.until_idle()
    assert len(server.seen) == 1  # another attempt would take as long
    assert raised.value.partial.text == said(dialect, begun).text


async def test_comments_are_limited_in_size_too() -> None:
    """A server that floods the client with them is noticed long before a time limit."""
    reply = _endless([], b":" + b" " * 1_000_000 + b"\n\n")
    timeouts = Timeouts(between_events=None)
    async with serving(reply) as server, client(_DIALECT, server.url, timeouts=timeouts) as made:
        with pytest.raises(StreamSilent, match="67,108,864 bytes"):
            await made.stream("hi").collect()


async def test_pauses_between_events_may_hold_comments() -> None:
    """Servers send them while a model thinks: each event begins the time anew."""
    pieces = [b for frame in frames(_DIALECT) for b in (b": ping\n\n", frame)]
    async with serving(streamed(*pieces)) as server, client(_DIALECT, server.url) as made:
        assert (await made.stream("hi").collect()).text == TEXT


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_stream_that_never_ends_is_too_large(dialect: str) -> None:
    """The error says so, and has the part that came before the limit."""
    begun = frames(dialect)
    text = next(frame for frame in begun if b"Bridge" in frame)
    place = begun.index(text)
    reply = _endless(begun[:place], text)
    async with serving(reply) as server, client(dialect, server.url, max_bytes=100_000) as made:
        with pytest.raises(ResponseTooLarge, match="exceeds 100,000 bytes") as raised:
            await made.stream("hi").collect()
        await server.until_idle()
    assert raised.value.partial is not None


async def test_a_body_that_never_ends_is_too_large() -> None:
    """Spaces are valid before JSON: servers keep connections open with them."""
    reply = _endless([], b" " * 1000)
    async with serving(reply) as server, client(_DIALECT, server.url, max_bytes=100_000) as made:
        with pytest.raises(ResponseTooLarge, match="exceeds 100,000 bytes"):
            await made.send("hi")
        await server.until_idle()


# --- custom transports


class _Failing:
    """A transport and its reply: some chunks, then an error."""

    status, headers = 200, EMPTY

    def __init__(self, pieces: list[bytes], error: DragomanError) -> None:
        self._pieces, self._error = pieces, error
        self.is_closed = False

    async def open(self, _request: HttpRequest, _timeouts: Timeouts) -> Self:
        return self

    async def chunks(self) -> AsyncGenerator[bytes]:
        for piece in self._pieces:
            yield piece
        raise self._error

    async def close(self) -> None:
        self.is_closed = True


@pytest.mark.parametrize("total", [None, 20.0])
async def test_any_error_of_a_transport_within_an_answer_is_an_interruption(
    total: float | None,
) -> None:
    """The part that arrived isn't lost, and the reply is closed."""
    pieces = frames(_DIALECT)[:4]
    transport = _Failing(pieces, ConfigError("the tape is torn"))
    made = client(_DIALECT, "http://tape", transport=transport, timeouts=Timeouts(total=total))
    with pytest.raises(StreamInterrupted, match="torn") as raised:
        await made.stream("hi").collect()
    assert raised.value.partial.text == said(_DIALECT, pieces).text
    assert transport.is_closed


async def test_a_transport_error_before_the_answer_is_unchanged() -> None:
    """Nothing was interrupted."""
    transport = _Failing([], ConfigError("the tape is torn"))
    with pytest.raises(ConfigError, match="torn"):
        await client(_DIALECT, "http://tape", transport=transport).stream("hi").collect()
    assert transport.is_closed


# --- sizes


async def test_a_stream_has_a_size_limit() -> None:
    """An endless stream is interrupted at `max_bytes`."""
    pieces, go = frames(_DIALECT), asyncio.Event()
    reply = streamed(*pieces[:3], go, *[pieces[2]] * 100, Fault.HANG)
    async with (
        serving(reply) as server,
        client(_DIALECT, server.url, max_bytes=4000) as made,
        made.stream("hi") as stream,
    ):
        await anext(stream)
        go.set()
        with pytest.raises(StreamInterrupted, match="max_bytes") as raised:
            await _drained(stream)
        await server.until_idle()
    assert raised.value.partial.text


async def test_bytes_without_events_have_a_limit_too() -> None:
    """It isn't retried: the same would happen again."""
    reply: list[Step] = streamed(b": " + b"x" * 10_000 + b"\n\n")
    async with serving(reply) as server, client(_DIALECT, server.url, max_bytes=4000) as made:
        with pytest.raises(errors.TransportError, match="max_bytes"):
            await made.stream("hi").collect()
    assert len(server.seen) == 1


async def test_a_rate_limit_in_a_json_body_with_status_200_is_one() -> None:
    """In answer to a streaming request."""
    wire = {"error": {"message": "x", "type": "rate_limit_error"}}
    async with (
        serving(plain(wire)) as server,
        client(_DIALECT, server.url, retries=Retries(attempts=1)) as made,
    ):
        with pytest.raises(RateLimited):
            await made.stream("hi").collect()
    assert server.seen
