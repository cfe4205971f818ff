"""One answer: the places of a route are asked in turn, and what the first one says goes back.

Where front and place speak one dialect and nothing has to be undone, bytes pass; else the answer is
read as events and written by the client's `Front`. Another place is asked only as long as nothing
was sent.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from time import perf_counter
from typing import Any, NamedTuple, Protocol

from msgspec import Struct

from dragoman.errors import DragomanError, InvalidRequest, StreamInterrupted
from dragoman.gateway.client_request import ClientRequest
from dragoman.gateway.passing import summarised, summary_of
from dragoman.gateway.translation import Settings, Translations, encoded_for
from dragoman.gateway.upstream_task import MIN_BYTES_PER_TOKEN, Sink, UpstreamTask
from dragoman.gateway.upstreams import Upstream
from dragoman.gateway.whole_calls import Answering, WholeCalls
from dragoman.model.events import ChoiceFinish, Event
from dragoman.model.frozen import EMPTY
from dragoman.model.requests import Request
from dragoman.model.responses import Response
from dragoman.model.usage import Usage
from dragoman.transport.answers import events_of, read_answer
from dragoman.transport.origins import made_at
from dragoman.transport.protocol import Reply, Timeouts, read_body
from dragoman.transport.stream_attempt import Incoming
from dragoman.wire.encoded import Encoded
from dragoman.wire.front import Front, FrontEncoder, PassingFilter
from dragoman.wire.lane.passing import PassingStream
from dragoman.wire.whole_frames import WholeFrames

MAX_RESPONSE_BYTES = 256 * 1024 * 1024
_NOT_HERE = (
    "The request names a previous response, a conversation or an item that is not stored here, and"
    " the model's provider stores none."
)
_OPENING = 256
_MAX_TOKENS = 10**9
"""Whatever a client says."""
_ERROR = re.compile(rb'"error"\s*:\s*[^n\s]|event:\s*error')
_REQUEST_IDS = ("x-request-id", "request-id")
DEFAULT_OUTPUT_TOKENS = 4096
"""Tokens that an answer may take where the request sets no limit."""


class Recorder(Protocol):
    """Keeps answers; the client is told of the end when it is kept."""

    async def keep(self, response: Response, /) -> Response | None:
        """Keep a complete answer. Returns it as the client is to see it; None: as it is."""


class Stamp(Struct, frozen=True, gc=False):
    """What the gateway itself says of an answer."""

    id: str | None = None
    """In place of the model's; None: as it comes."""
    says: Mapping[str, Any] = EMPTY
    """Fields of the answer that are the gateway's to say."""
    is_firm: bool = True
    """Whether it counts where the bytes of an answer could pass; there, the place says it."""


class Filters(Protocol):
    """What middleware does to an answer on its way to the client."""

    holds_end: bool
    """Whether the client must not see the end of a stream before `ended`."""

    async def response(self, response: Response, /) -> Response:
        """A whole answer as the client is to see it."""
        ...

    def events(self, events: list[Event], /) -> list[Event]:
        """Events of a stream as the client is to see them."""
        ...

    async def ended(self, response: Response, /) -> Response:
        """The answer that a stream has told, as the client has seen it."""
        ...

    def failed(self, error: DragomanError, /) -> Exception:
        """What to raise where an answer broke off and nothing was sent."""
        ...


class Exchange(UpstreamTask):
    """A request that is being answered, and what is known about it afterwards."""

    supports_middleware = True
    """Whether middleware can be heeded."""

    def __init__(
        self,
        client_request: ClientRequest,
        sink: Sink,
        translations: Translations,
        *,
        recorder: Recorder | None = None,
        request: Request | None = None,
        stamp: Stamp | None = None,
        required_dialect: str | None = None,
    ) -> None:
        super().__init__(client_request.model, sink, stream=client_request.stream)
        self.client_request = client_request
        self.recorder = recorder
        self.stamp = stamp
        self.required_dialect = required_dialect
        """The dialect of the places that can be asked, where the request names what they hold."""
        self._is_same_dialect = False
        self.override = request
        """The request where it is not what the body says: state was put in, or middleware spoke."""
        self.filtered: Request | None = None
        """What middleware made of the request; answers repeat the settings of the client's own."""
        self.filters: Filters | None = None
        self._translations = translations
        self.encoder: FrontEncoder | None = None
        """What writes the stream that is under way."""
        self._passing: PassingFilter | None = None
        """What passes the stream that is under way."""

    def estimated_usage(self) -> Usage:
        """By the size of the body, and the limit that it sets."""
        sampling = (self.override or self.client_request.settings).sampling
        limit = DEFAULT_OUTPUT_TOKENS if sampling.max_tokens is None else sampling.max_tokens
        most = limit * max(sampling.choices or 1, 1)
        sent = len(self.client_request.body) // MIN_BYTES_PER_TOKEN + 1
        return Usage(input=sent, output=min(max(most, 0), _MAX_TOKENS))

    def supports(self, upstream: Upstream, model: str | None) -> bool:
        """Whether a place holds what the request names, where it names something."""
        return self.required_dialect is None or (
            upstream.is_wire and upstream.dialect(model).name == self.required_dialect
        )

    def unsupported(self) -> DragomanError:
        """Nobody holds what the request names."""
        code = "previous_response_not_found"
        return InvalidRequest(_NOT_HERE, status=400, param="previous_response_id", code=code)

    # --- one place

    async def _attempt(
        self, upstream: Upstream, model: str | None, settings: Settings, timeouts: Timeouts | None
    ) -> None:
        self._is_same_dialect = False
        if not upstream.is_wire:
            await self._ask_model(upstream, model, settings)
            return
        encoded = self._encoded(upstream, model, settings)
        self.losses += encoded.losses
        self.repairs += encoded.repairs
        self.translated = perf_counter()
        endpoint = "stream" if self.client_request.stream else "generate"
        reply = await upstream.open(endpoint, encoded, model, timeouts)
        self.response_began = perf_counter()
        try:
            await self._answer(upstream, model, reply, encoded)
        finally:
            await reply.close()

    def _encoded(self, upstream: Upstream, model: str | None, settings: Settings) -> Encoded:
        request = self.filtered or self.override
        if request is None:
            return self._translations.translate(self.client_request, upstream, model, settings)
        return encoded_for(request, upstream, model, settings).encoded

    async def _answer(
        self, upstream: Upstream, model: str | None, reply: Reply, encoded: Encoded
    ) -> None:
        dialect = upstream.dialect(model)
        client_request = self.client_request
        self._is_same_dialect = dialect.name == client_request.front.name
        is_free = self.recorder is None and self.override is None and self._stamped() is None
        is_free = is_free and client_request.takes_pieces
        self.passes = self._is_same_dialect and encoded.context.is_idle and is_free
        if self.filters is not None or self.filtered is not None:
            self.passes = False
        if not self.client_request.stream:
            await self._whole(upstream, dialect, reply, encoded)
        elif self.passes:
            await self._pass_stream(upstream, dialect, reply, encoded)
        else:
            incoming = Incoming(
                reply,
                dialect,
                encoded.context,
                provider=upstream.provider_name,
                most=MAX_RESPONSE_BYTES,
            )
            await self._stream(incoming)

    # --- whole answers

    async def _whole(
        self, upstream: Upstream, dialect: Any, reply: Reply, encoded: Encoded
    ) -> None:
        body = await read_body(reply, MAX_RESPONSE_BYTES)
        if self.passes:
            found = summary_of(dialect, body)
            if found is not None:
                self.summary = found
                headers = {"content-type": "application/json", **_ids(reply), **self.loss_headers()}
                await self.sink.respond(200, headers, body)
                return
        self.passes = False
        read = read_answer(dialect, body, encoded.context, reply.headers)
        await self._write(made_at(upstream.provider_name, read))

    async def answer_with(self, response: Response) -> None:
        """Answer without asking anybody."""
        if not self.client_request.stream:
            await self._write(response)
            return
        writing = _Writing(self, _Said(response))
        await writing.take(list(events_of(response)))
        await writing.end(response)

    async def _write(self, response: Response) -> None:
        self.note(response)
        if self.filters is not None:
            response = await self.filters.response(response)
        if self.recorder is not None:
            response = await self.recorder.keep(response) or response
        encoded = self.front().response(response)
        self.losses += encoded.losses
        self.repairs += encoded.repairs
        await self.sink.respond(200, {**encoded.headers, **self.loss_headers()}, encoded.to_bytes())

    def front(self) -> Front:
        """What answers this client."""
        client_request, stamp = self.client_request, self._stamped()
        request = self.override or client_request.settings
        if stamp is None:
            return Front(client_request.front, request, path=client_request.path)
        return Front(
            client_request.front,
            request,
            path=client_request.path,
            own_id=stamp.id,
            says=stamp.says,
        )

    def _stamped(self) -> Stamp | None:
        stamp = self.stamp
        return None if stamp is None or (self._is_same_dialect and not stamp.is_firm) else stamp

    # --- streams

    async def _pass_stream(
        self, upstream: Upstream, dialect: Any, reply: Reply, encoded: Encoded
    ) -> None:
        pieces = reply.chunks()
        first = await anext(pieces, b"")
        front = self.front()
        kind = front.form.stream_type(front)
        if not _is_stream(first, reply, kind):
            self.passes = False  # an error, a whole answer, or another form: that has to be read
            again = Incoming(
                _Replayed(reply, first), dialect, encoded.context,
                provider=upstream.provider_name, most=MAX_RESPONSE_BYTES,
            )  # fmt: skip
            await self._stream(again)
            return
        told = PassingStream(dialect)
        self._passing = keep = front.form.passing_filter(front.request) or WholeFrames(kind)
        content_type = reply.headers.get("content-type", "text/event-stream")
        headers = {"content-type": content_type, **_ids(reply), **self.loss_headers()}
        await self.sink.begin(headers)
        try:
            failure = await self._pass(first, pieces, told, keep)
        finally:  # clients leave at the last word, before the end of the stream
            told.close()
            self._note_passed(told)
        if failure is None and not told.is_complete:
            failure = StreamInterrupted("the stream ended before the answer was complete")
        if failure is not None:
            await self.abort(failure)
        else:
            await self.sink.end(keep.close())

    async def _pass(
        self, piece: bytes, pieces: AsyncIterator[bytes], told: PassingStream,
        keep: PassingFilter,
    ) -> DragomanError | None:  # fmt: skip
        """Send on what comes; returns why nothing more does, if that is a failure."""
        write = self.sink.write
        while piece:
            told.feed(piece)
            data = keep.feed(piece)
            if data:
                await write(data)
            try:
                piece = await anext(pieces, b"")
            except DragomanError as error:
                return error
        return None

    def _note_passed(self, told: PassingStream) -> None:
        self.is_complete = told.is_complete
        summary = summarised(told.response)
        # What an answer that is not complete says of its usage is not all that it costs.
        self.summary = summary if told.is_complete else summary._replace(usage=None)

    async def abort(self, error: DragomanError) -> None:
        """End a stream that has begun with an error, in the client's form."""
        self.error = error
        if self.encoder is None:  # bytes passed
            self.encoder = self.front().stream()
        before = b"" if self._passing is None else self._passing.gap
        await self.sink.end(before + self.encoder.fail(error))

    async def _stream(self, incoming: Incoming) -> None:
        writing = _Writing(self, incoming)
        try:
            while not incoming.is_over:
                events = await incoming.read()
                if events:
                    await writing.take(events)
        finally:  # clients leave at the last word, before the end of the stream
            if incoming.is_complete:
                self.is_complete = True
                self.note(incoming.response)
        if incoming.failure is not None:
            await writing.fail(incoming.failure, incoming.response)
            return
        await writing.end(incoming.response)

    async def _ask_model(self, upstream: Upstream, model: str | None, settings: Settings) -> None:
        """Ask a model in this process."""
        given = self.filtered or self.override or self.client_request.request
        request = settings.applied(given.replace_unchecked(model=model))
        if not self.client_request.stream:
            await self._write(await upstream.send(request))
            return
        stream = upstream.stream(request)
        writing = _Writing(self, stream)
        try:
            async for event in stream:
                await writing.take([event])
        except DragomanError as error:
            await writing.fail(error, stream.response)
        else:
            await writing.end(stream.response)
        finally:
            await stream.close()

    # ---

    def note(self, response: Response) -> None:
        """Keep who answered, and the usage."""
        self.summary = summarised(response)


class _Said(NamedTuple):
    """An answer that is there as a whole."""

    response: Response


class _Writing:
    """Writes the events of one answer to the client, as they come."""

    def __init__(self, exchange: Exchange, source: Answering) -> None:
        self._exchange = exchange
        self._whole = None if exchange.client_request.takes_pieces else WholeCalls(source)
        self._sink = exchange.sink
        self._held: list[Event] | None = None  # from the finish on, until the answer is kept

    async def take(self, events: list[Event]) -> None:
        exchange = self._exchange
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
        """What the client may see now; by the rest, it would take the answer for complete.

        Nor is the rest written yet: a writer that has ended an answer can't tell an error any more.
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
        exchange = self._exchange
        exchange.note(response)
        encoder = exchange.encoder
        if encoder is None:
            msg = "the stream ended before it began"
            raise StreamInterrupted(msg)
        if exchange.filters is not None:
            response = await exchange.filters.ended(response)
        if exchange.recorder is not None:
            await exchange.recorder.keep(response)
        last = encoder.feed_all(self._held or []) + encoder.close()
        exchange.losses += encoder.losses
        exchange.repairs += encoder.repairs
        await self._sink.end(last)

    async def fail(self, error: DragomanError, response: Response) -> None:
        """Tell the client that the answer broke off; raises where nothing was sent."""
        if self._exchange.encoder is None:
            filters = self._exchange.filters
            raise error if filters is None else filters.failed(error)
        self._exchange.note(response)
        await self._exchange.abort(error)


class _Replayed:
    """A reply whose first piece was read already."""

    def __init__(self, reply: Reply, first: bytes) -> None:
        self.status = reply.status
        self.headers = reply.headers
        self._first = first
        self._reply = reply

    async def chunks(self) -> AsyncIterator[bytes]:
        """The first piece again, and then the others."""
        if self._first:
            yield self._first
        async for piece in self._reply.chunks():
            yield piece

    async def close(self) -> None:
        await self._reply.close()


def _ids(reply: Reply) -> dict[str, str]:
    """The provider's id of a request, by which its support finds it."""
    headers = reply.headers
    return {name: headers[name] for name in _REQUEST_IDS if name in headers}


def _is_stream(first: bytes, reply: Reply, expected: str) -> bool:
    """Whether an answer begins as a stream of that type does, and not with an error."""
    if not first or _ERROR.search(first, 0, _OPENING) is not None:
        return False
    return reply.headers.get("content-type", "").partition(";")[0].strip().lower() == expected
