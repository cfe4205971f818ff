"""One chat request: forwards it to an upstream and sends the response back to the client.

If client and upstream use the same dialect and the request's repairs need no undoing, the
response's bytes pass through unchanged. Otherwise the response is decoded into events and encoded
by the client's `Front`. Fallback to another upstream is possible only until something was sent.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Mapping
from time import perf_counter
from typing import Any, Protocol

from msgspec import Struct

from dragoman.errors import DragomanError, InvalidRequest, StreamInterrupted
from dragoman.gateway.client_request import ClientRequest
from dragoman.gateway.delivered import (
    MAX_BYTES_PER_TOKEN,
    Measured,
    StreamSize,
    content_size,
    is_credible,
    largest,
    reported_output,
    tokens_in_body,
)
from dragoman.gateway.error_texts import (
    Shown,
    holds_error,
    may_hold_error,
    shown_body,
    shown_event,
    shown_response,
    shown_texts,
)
from dragoman.gateway.large_bodies import LARGE, aside_if_large, translated_aside
from dragoman.gateway.limits import output_tokens, unknown_maximum
from dragoman.gateway.passage import MAX_RESPONSE_BYTES, Passage
from dragoman.gateway.response_summary import summarised, summary_of
from dragoman.gateway.stream_writing import Complete, StreamWriter
from dragoman.gateway.translation import NO_SETTINGS, Settings, Translations, encoded_for
from dragoman.gateway.upstream_task import Sink, UpstreamTask
from dragoman.gateway.upstreams import Upstream
from dragoman.model.events import ChoiceFinish, Event, StreamError
from dragoman.model.frozen import EMPTY
from dragoman.model.requests import Request
from dragoman.model.responses import Response
from dragoman.model.usage import FinishReason, Usage
from dragoman.transport.answers import events_of, made_at, read_answer
from dragoman.transport.direct.response import DirectReply
from dragoman.transport.protocol import Reply, Timeouts, read_body
from dragoman.transport.stream_attempt import Incoming, reported_in_stream
from dragoman.wire.answer_errors import failure_in
from dragoman.wire.encoded import Encoded
from dragoman.wire.error_reporting import reported
from dragoman.wire.front import Front, FrontEncoder, PassingFilter
from dragoman.wire.known_fields import known_fields, without_fields
from dragoman.wire.lane.passing import PassingStream
from dragoman.wire.lane.plain import Summary
from dragoman.wire.losses import Loss
from dragoman.wire.overlay import fields_of
from dragoman.wire.whole_frames import WholeFrames

_NOT_HERE = (
    "The request refers to a previous response, a conversation or an item that is not stored here,"
    " and the model's provider does not store any. Send the full input instead."
)
_SNIFFED_BYTES = 256
_ERROR = re.compile(rb'"error"\s*:\s*[^n\s]|event:\s*error')
_REQUEST_IDS = ("x-request-id", "request-id")
_USUAL_FRAME = MAX_BYTES_PER_TOKEN / 512
"""Content in a byte of a stream, at most, whose frames have the usual size."""


class Recorder(Protocol):
    """Stores responses before the client receives their end."""

    async def keep(self, response: Response, /, request: Request | None = None) -> Response | None:
        """Store a complete response; return the one to send, or None to send it unchanged.

        Pass `request` if it answers only one of several prompts.
        """


class Stamp(Struct, frozen=True, gc=False):
    """Response fields that the gateway sets itself."""

    id: str | None = None
    """The response's id; None: the provider's id."""
    says: Mapping[str, Any] = EMPTY
    """Further fields of the response and their values."""
    is_firm: bool = True
    """Whether it applies even if the upstream uses the client's dialect; False: the upstream's own
    values are kept there."""
    settled: frozenset[str] = frozenset()
    """Paths of settings that the gateway carries out: no loss where the upstream has none."""


class Filters(Protocol):
    """Middleware for a response on its way to the client."""

    holds_end: bool
    """Whether the client must not see the end of a stream before `ended`."""

    async def response(self, response: Response, /) -> Response:
        """Filter a complete response."""
        ...

    def events(self, events: list[Event], /) -> list[Event]:
        """Filter events of a stream."""
        ...

    async def ended(self, response: Response, /) -> Response:
        """The complete response of a stream, as the client received it."""
        ...

    def failed(self, error: DragomanError, /) -> Exception:
        """The exception to raise if a response failed before anything was sent."""
        ...


class Exchange(UpstreamTask):
    """A chat request and its response."""

    supports_middleware = True
    """Whether middleware can be applied."""
    filtered: Request | None = None
    """The request as changed by middleware; responses still repeat the client's settings."""
    filters: Filters | None = None
    encoder: FrontEncoder | None = None
    """Encodes the stream in progress."""
    _passing: PassingFilter | None = None
    """Filters the stream that is being passed through."""
    _begun: PassingStream | None = None
    """Reads it."""
    _is_same_dialect = False

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
        self.ignored = client_request.losses
        self.recorder = recorder
        self.stamp = stamp
        self.required_dialect = required_dialect
        """Only upstreams of this dialect can serve the request: it refers to state they store."""
        self.override = request
        """The request to use instead of the body, such as one with stored state added."""
        self._translations = translations

    async def prepare_estimate(self) -> None:
        """Decode the request's settings."""
        if self.override is None:
            await self.client_request.decoded_settings()

    def estimated_usage(
        self, settings: Settings = NO_SETTINGS, maximum: Callable[[], int] = unknown_maximum
    ) -> Usage:
        """Estimate from the body's size, and the limits of the request or its route."""
        client_request = self.client_request
        read = (self.override or client_request.settings).sampling
        known = known_fields(client_request.front)
        most = output_tokens(client_request.fields, known, read, settings, maximum)
        return Usage(input=self._went_in, output=most)

    @property
    def _went_in(self) -> int:
        """Upper estimate of the input tokens."""
        return tokens_in_body(self.client_request.body)

    def supports(self, upstream: Upstream, model: str | None) -> bool:
        """Whether an upstream can resolve the stored state that the request refers to."""
        return self.required_dialect is None or (
            upstream.is_wire and upstream.dialect(model).name == self.required_dialect
        )

    def unsupported(self) -> DragomanError:
        """The stored state that the request refers to was not found."""
        code = "previous_response_not_found"
        return InvalidRequest(_NOT_HERE, status=400, param="previous_response_id", code=code)

    # --- one attempt

    async def _attempt(
        self, upstream: Upstream, model: str | None, settings: Settings, timeouts: Timeouts | None
    ) -> None:
        self._is_same_dialect = False
        if not upstream.is_wire:
            await self._ask_model(upstream, model, settings)
            return
        encoded = await self._encoded(upstream, model, settings)
        self.losses += self._unsettled(encoded.losses)
        self.repairs += encoded.repairs
        self.translated = perf_counter()
        endpoint = "stream" if self.client_request.stream else "generate"
        reply = await upstream.open(endpoint, encoded, model, timeouts)
        self.response_began = perf_counter()
        try:
            await self._answer(upstream, model, reply, encoded, upstream.limits(timeouts))
        finally:
            await reply.close()

    def _unsettled(self, losses: tuple[Loss, ...]) -> tuple[Loss, ...]:
        settled = None if self.stamp is None else self.stamp.settled
        return tuple(each for each in losses if each.path not in settled) if settled else losses

    async def _encoded(self, upstream: Upstream, model: str | None, settings: Settings) -> Encoded:
        client_request, given = self.client_request, self.filtered or self.override
        if given is not None:
            given = self._permitted_of(given, upstream, model)
        else:
            if names := self.left_out(upstream, model, client_request.fields):
                client_request = await aside_if_large(
                    len(client_request.body), client_request.without, names
                )
            plain = await aside_if_large(
                len(client_request.body),
                self._translations.translate, client_request, upstream, model, settings,
            )  # fmt: skip
            if plain is not None:
                return plain

        def general() -> Encoded:
            request = client_request.request if given is None else given
            encoded = encoded_for(request, upstream, model, settings).encoded
            if len(client_request.body) > LARGE:
                encoded.serialise()
            return encoded

        return await translated_aside(client_request.body, general)

    def _permitted_of(self, given: Request, upstream: Upstream, model: str | None) -> Request:
        """Like `permitted`; what middleware has set is the operator's choice."""
        if self.filtered is None:
            return self.permitted(given, upstream, model)
        original, name = self.override or self.client_request.request, upstream.dialect(model).name
        own, now = fields_of(original.extras, name), fields_of(given.extras, name)
        sent = {key: value for key, value in own.items() if key in now and now[key] == value}
        names = self.left_out(upstream, model, sent)
        return without_fields(given, name, names) if names else given

    async def _answer(
        self, upstream: Upstream, model: str | None, reply: Reply, encoded: Encoded,
        limits: Timeouts,
    ) -> None:  # fmt: skip
        dialect = upstream.dialect(model)
        client_request = self.client_request
        self._is_same_dialect = dialect.name == client_request.front.name
        is_free = self.recorder is None and self.override is None and self._stamped() is None
        agent = client_request.agent
        is_free = is_free and client_request.takes_pieces and agent.takes_own
        if client_request.stream and not encoded.context.ends_with_done:
            is_free = False  # clients wait for the end marker
        self.passes = self._is_same_dialect and encoded.context.is_idle and is_free
        if self.filters is not None or self.filtered is not None:
            self.passes = False
        if not self.client_request.stream:
            await self._whole(upstream, dialect, reply, encoded, limits)
        elif self.passes:
            await self._pass_stream(upstream, model, reply, encoded, limits)
        else:
            incoming = Incoming(
                reply,
                dialect,
                encoded.context,
                provider=upstream.provider_name,
                most=MAX_RESPONSE_BYTES,
                silence=limits.between_events,
            )
            await self._stream(incoming, upstream, model)

    # --- complete responses

    async def _whole(
        self, upstream: Upstream, dialect: Any, reply: Reply, encoded: Encoded, limits: Timeouts
    ) -> None:
        body = reply.whole() if isinstance(reply, DirectReply) else None
        if body is None:
            body = await read_body(reply, MAX_RESPONSE_BYTES, limits.attempt)
        if self.passes:
            found = summary_of(dialect, body)
            if found is not None:
                if may_hold_error(body):
                    body = self._shown_body(upstream, dialect, body)
                self._note_summary(found, lambda: _content_in(dialect, body), len(body))
                headers = {
                    "content-type": "application/json",
                    **_request_id_headers(reply),
                    **self.loss_headers(),
                }
                await self.sink.respond(200, headers, body)
                return
        self.passes = False
        read = read_answer(dialect, body, encoded.context, reply.headers)
        await self._write(self._shown(upstream, made_at(upstream.provider_name, read)))

    def _shown_body(self, upstream: Upstream, dialect: Any, body: bytes) -> bytes:
        """A body to pass through; notes the error in it, and shows what clients may read of it."""
        failure = failure_in(dialect.decode_response(body))
        if failure is None:
            return body
        return shown_body(body, self._failed(upstream, failure))

    def _shown(self, upstream: Upstream, response: Response) -> Response:
        """The same for a decoded response."""
        failure = failure_in(response)
        if failure is None:
            return response
        return shown_response(response, self._failed(upstream, failure))

    def _failed(self, upstream: Upstream, failure: DragomanError) -> Shown:
        """Note the error in a response; returns how its texts are shown."""
        upstream.locate(failure, self.model)
        self.error = failure
        return shown_texts(failure, self._mask_for(upstream))

    def _mask_for(self, upstream: Upstream) -> Shown:
        model = self.model
        return lambda text: upstream.mask(text, model)

    async def answer_with(self, response: Response) -> None:
        """Send a given response without calling an upstream."""
        if not self.client_request.stream:
            await self._write(response)
            return
        writing = StreamWriter(self, Complete(response))
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
        """The encoder for this client's dialect."""
        client_request, stamp = self.client_request, self._stamped()
        request, agent = self.override or client_request.settings, client_request.agent
        if stamp is None:
            return Front(client_request.front, request, path=client_request.path, agent=agent)
        return Front(
            client_request.front,
            request,
            path=client_request.path,
            response_id=stamp.id,
            response_fields=stamp.says,
            agent=agent,
        )

    def _stamped(self) -> Stamp | None:
        stamp = self.stamp
        return None if stamp is None or (self._is_same_dialect and not stamp.is_firm) else stamp

    # --- streams

    async def _pass_stream(
        self,
        upstream: Upstream,
        model: str | None,
        reply: Reply,
        encoded: Encoded,
        limits: Timeouts,
    ) -> None:
        dialect = upstream.dialect(model)
        pieces = reply.chunks()
        first = await anext(pieces, b"")
        front = self.front()
        kind = front.form.stream_type(front)
        if not _is_stream(first, reply, kind):
            self.passes = False  # an error, a complete response or another format: decode it
            again = Incoming(
                _Replayed(reply, first), dialect, encoded.context,
                provider=upstream.provider_name, most=MAX_RESPONSE_BYTES,
                silence=limits.between_events,
            )  # fmt: skip
            await self._stream(again, upstream, model)
            return
        self._begun = passing = PassingStream(dialect)
        counted = StreamSize(dialect)
        self._passing = keep = front.form.passing_filter(front.request) or WholeFrames(kind)
        content_type = reply.headers.get("content-type", "text/event-stream")
        headers = {
            "content-type": content_type,
            **_request_id_headers(reply),
            **self.loss_headers(),
        }

        def refused(event: StreamError) -> DragomanError:
            cause = reported_in_stream(dialect, event, reply.headers)
            error = StreamInterrupted(cause.reason)
            error.__cause__ = cause
            upstream.locate(error, model)
            return error

        passage = Passage(
            self.sink, passing, keep, counted, limits.between_events, refused,
            self._mask_for(upstream),
        )  # fmt: skip
        await self.sink.begin(headers)
        try:
            failure = await passage.forward(first, pieces)
        finally:  # clients may disconnect after the last event, before the end of the stream
            passing.close()
            self._note_passed(passing, counted, passage.size)
        rest = b""
        if failure is None:
            rest, failure = passage.rest()
        self.error = passage.failure
        if passing.is_complete and self.error is not None:  # it was told, and ended as it should
            self.error = reported(self.error)
        if failure is None and self.error is None and not passing.is_complete:
            failure = StreamInterrupted("the stream ended before the response was complete")
        if failure is not None:
            await self.abort(failure)
        else:
            await self.sink.end(rest)

    def _note_passed(self, passing: PassingStream, counted: StreamSize, size: int) -> None:
        self.is_complete = passing.is_complete
        summary = summarised(passing.response)
        if passing.is_complete:
            self._note_summary(summary, counted.measured, size * _USUAL_FRAME)
        else:
            self._note_part(summary, counted.measured())

    async def abort(self, error: DragomanError) -> None:
        """End a started stream with an error in the client's dialect."""
        self.error = error
        if self.encoder is None:  # the stream was passed through
            self.encoder = self.front().stream()
            if self._begun is not None and self._begun.has_begun:
                self.encoder.resume(self._begun.response)
        before = b"" if self._passing is None else self._passing.gap
        await self.sink.end(before + self.encoder.fail(error))

    async def _stream(self, incoming: Incoming, upstream: Upstream, model: str | None) -> None:
        writing = StreamWriter(self, incoming)
        try:
            while not incoming.is_over:
                events = await incoming.read()
                if incoming.failure is not None:  # it says the same, and is not masked yet
                    events = [event for event in events if not _is_failure(event)]
                elif any(map(holds_error, events)):
                    events = self._shown_events(upstream, incoming, events)
                if events:
                    await writing.take(events)
        finally:  # clients may disconnect after the last event, before the end of the stream
            if incoming.is_complete:
                self.is_complete = True
                self.note(incoming.response)
            else:
                self._note_partial(incoming.response, writing.received)
        if incoming.failure is not None:
            upstream.locate(incoming.failure, model)
            await writing.fail(incoming.failure)
            return
        await writing.end(self._shown(upstream, incoming.response))

    def _shown_events(
        self, upstream: Upstream, incoming: Incoming, events: list[Event]
    ) -> list[Event]:
        failure = failure_in(incoming.response)
        if failure is None:
            return events
        shown = self._failed(upstream, failure)
        return [shown_event(each, shown) if holds_error(each) else each for each in events]

    async def _ask_model(self, upstream: Upstream, model: str | None, settings: Settings) -> None:
        """Generate the response with a model in this process."""
        original = self.filtered or self.override or await self.client_request.decoded()
        request = settings.applied(original.replace_unchecked(model=model))
        if not self.client_request.stream:
            await self._write(await upstream.send(request))
            return
        stream = upstream.stream(request)
        writing = StreamWriter(self, stream)
        is_complete = False
        try:
            async for event in stream:
                await writing.take([event])
            is_complete = True
        except DragomanError as error:
            await writing.fail(error)
        else:
            await writing.end(stream.response)
        finally:
            if not is_complete:
                self._note_partial(stream.response, writing.received)
            await stream.close()

    # ---

    def note(self, response: Response) -> None:
        """Record the model and the usage of a complete response."""
        size = content_size(response)
        self._note_summary(summarised(response), lambda: Measured(size, 0), size)

    def _note_summary(self, summary: Summary, measure: Callable[[], Measured], most: float) -> None:
        """Record the usage of a complete response, unless more was delivered than it says.

        `most` is an upper limit of the bytes of content, which are then measured.
        """
        usage = summary.usage
        if usage is None or not reported_output(usage) or not is_credible(usage, int(most)):
            measured = measure()
            if not is_credible(usage, measured.size):
                self._note_part(summary, measured)
                return
        self.summary, self.partial = _with_input(summary, self._went_in), None

    def _note_partial(self, response: Response, pieces: int) -> None:
        """Record what is known of a response that is not complete."""
        self._note_part(summarised(response), Measured(content_size(response), pieces))

    def _note_part(self, summary: Summary, measured: Measured) -> None:
        if measured.tokens == 0 and summary.usage is None and not self.sink.has_begun:
            self.summary = summary  # the stream failed before it began: nothing came
            return
        delivered = Usage(input=self._went_in, output=measured.tokens)
        self.partial = largest((summary.usage, delivered))
        self.summary = summary._replace(usage=None)


class _Replayed:
    """A reply whose first chunk was already read."""

    def __init__(self, reply: Reply, first: bytes) -> None:
        self.status = reply.status
        self.headers = reply.headers
        self._first = first
        self._reply = reply

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the first chunk again, then the others."""
        if self._first:
            yield self._first
        async for piece in self._reply.chunks():
            yield piece

    async def close(self) -> None:
        await self._reply.close()


def _is_failure(event: Event) -> bool:
    return type(event) is StreamError or (
        type(event) is ChoiceFinish and event.finish is FinishReason.ERROR
    )


def _with_input(summary: Summary, went_in: int) -> Summary:
    """The summary, with an estimate of the input if the provider reports only the output."""
    usage = summary.usage
    if usage is None or usage.total_input + usage.separate_input or not reported_output(usage):
        return summary
    return summary._replace(usage=usage.replace(input=went_in))


def _content_in(dialect: Any, body: bytes) -> Measured:
    """The content of a complete response, as far as it can be decoded."""
    try:
        return Measured(content_size(dialect.decode_response(body)), 0)
    except DragomanError:
        return Measured(len(body), 0)


def _request_id_headers(reply: Reply) -> dict[str, str]:
    """The headers with the provider's request id, for support requests."""
    headers = reply.headers
    return {name: headers[name] for name in _REQUEST_IDS if name in headers}


def _is_stream(first: bytes, reply: Reply, expected: str) -> bool:
    """Whether a response is a stream of the expected type that doesn't start with an error."""
    if not first or _ERROR.search(first, 0, _SNIFFED_BYTES) is not None:
        return False
    return reply.headers.get("content-type", "").partition(";")[0].strip().lower() == expected
