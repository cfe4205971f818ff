"""Text completion: OpenAI's `/v1/completions` and Ollama's `/api/generate`.

A single prompt is handled like a chat, with another front. Several prompts are sent concurrently to
one provider, and their responses are combined into one.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from functools import reduce
from operator import add

from dragoman.errors import DragomanError, InvalidRequest, StreamInterrupted
from dragoman.gateway.chat import answer
from dragoman.gateway.client_request import ClientRequest
from dragoman.gateway.delivered import content_size, is_credible, largest, tokens_in
from dragoman.gateway.exchange import Exchange
from dragoman.gateway.inbound import InboundRequest
from dragoman.gateway.large_bodies import aside_if_large, translated_aside
from dragoman.gateway.limits import unknown_maximum
from dragoman.gateway.passage import MAX_RESPONSE_BYTES
from dragoman.gateway.response_summary import summarised
from dragoman.gateway.services.concurrency import gathered, merged
from dragoman.gateway.translation import NO_SETTINGS, Settings, Translations, encoded_for
from dragoman.gateway.upstream_task import Sink
from dragoman.gateway.upstreams import Upstream
from dragoman.model.events import Event, ResponseEnd
from dragoman.model.requests import Request
from dragoman.model.responses import Response
from dragoman.model.usage import Usage
from dragoman.transport.answers import made_at, read_answer
from dragoman.transport.model import ModelStream
from dragoman.transport.protocol import Timeouts, read_body
from dragoman.transport.stream_attempt import Incoming
from dragoman.wire.encoded import Encoded
from dragoman.wire.error_reporting import reported
from dragoman.wire.prompt_front import PromptEncoder, PromptFront, prompt_front

_MAX_PROMPTS = 128
_CONCURRENT = 8


async def prompt(inbound: InboundRequest) -> None:
    """Handles a request with one prompt or several."""
    body = await inbound.body()
    client_request = await aside_if_large(len(body), ClientRequest, inbound.endpoint.front, body)
    try:
        name, path, body = inbound.endpoint.front, inbound.path, client_request.body
        front = await translated_aside(body, prompt_front, name, body, path=path)
    except DragomanError as error:
        problem = reported(error)
    else:
        made = _exchange(inbound, client_request, front)
        await answer(inbound, made)
        return
    raise problem


def _exchange(
    inbound: InboundRequest, client_request: ClientRequest, front: PromptFront
) -> PromptExchange:
    count, sink, translations = len(front.requests), inbound.call, inbound.gateway.translations
    if count > _MAX_PROMPTS:
        msg = f"a request can have at most {_MAX_PROMPTS} prompts"
        raise InvalidRequest(msg, status=400, param="prompt")
    if getattr(front, "is_load", False):
        return LoadExchange(client_request, sink, translations, front)
    kind = PromptExchange if count == 1 else PromptsExchange
    return kind(client_request, sink, translations, front)


class PromptExchange(Exchange):
    """The exchange of a single prompt."""

    def __init__(
        self,
        client_request: ClientRequest,
        sink: Sink,
        translations: Translations,
        front: PromptFront,
    ) -> None:
        super().__init__(client_request, sink, translations, request=front.request)
        self._prompts = front

    def estimated_usage(
        self, settings: Settings = NO_SETTINGS, maximum: Callable[[], int] = unknown_maximum
    ) -> Usage:
        """Estimates the usage as for a chat, with output for each prompt."""
        usage, count = super().estimated_usage(settings, maximum), len(self._prompts.requests)
        return Usage(input=usage.input, output=usage.output * count)

    def front(self) -> PromptFront:
        """Returns the front for this client."""
        return self._prompts


class LoadExchange(PromptExchange):
    """A request without a prompt, which Ollama's clients send to load a model.

    Nothing is sent upstream: providers load their models themselves.
    """

    is_free = True

    async def _attempt(
        self, upstream: Upstream, model: str | None, settings: Settings, timeouts: Timeouts | None
    ) -> None:
        del upstream, model, settings, timeouts
        encoded = self._prompts.loaded()  # type: ignore[attr-defined] # only fronts with `is_load` get here
        await self.sink.respond(200, encoded.headers, encoded.to_bytes())


class PromptsExchange(PromptExchange):
    """The exchange of several prompts, sent to one provider."""

    supports_middleware = False
    _held = b""

    async def _attempt(
        self, upstream: Upstream, model: str | None, settings: Settings, timeouts: Timeouts | None
    ) -> None:
        asked = [
            PromptCall(self, upstream, model, settings, timeouts, each) for each in self._requests
        ]
        if self.client_request.stream:
            await self._streamed(asked)
            return
        try:
            responses = await gathered([each.response for each in asked], _CONCURRENT)
        except CancelledError:
            self._note_all(asked, is_cut_off=True)
            raise
        except BaseException:  # completed prompts cost tokens even if others failed
            self._note_all(asked)
            raise
        self._note_all(asked)
        await self._keep(asked)
        encoded = self._prompts.responses(responses)
        self.losses += encoded.losses
        self.repairs += encoded.repairs
        await self.sink.respond(200, {**encoded.headers, **self.loss_headers()}, encoded.to_bytes())

    @property
    def _requests(self) -> Sequence[Request]:
        return self._prompts.requests

    async def _streamed(self, asked: Sequence[PromptCall]) -> None:
        encoder = self._prompts.stream()
        try:
            async with aclosing(merged([each.events for each in asked], _CONCURRENT)) as pieces:
                async for number, events in pieces:
                    await self._write_piece(encoder, events, number)
        except BaseException:  # also on disconnect: the received part must be paid for
            self._note_all(asked, is_cut_off=True)
            raise
        self._note_all(asked)
        if self.encoder is None:
            msg = "the stream ended before its first event"
            raise StreamInterrupted(msg)
        await self._keep(asked)
        last = self._held + encoder.close()
        self.losses += encoder.losses
        self.repairs += encoder.repairs
        await self.sink.end(last)

    async def _keep(self, asked: Sequence[PromptCall]) -> None:
        """Store each prompt with its response, in their order."""
        for each in asked if self.recorder is not None else ():
            if self.recorder is not None and each.received is not None:
                await self.recorder.keep(each.received, each.request)

    async def _write_piece(
        self, encoder: PromptEncoder, events: Sequence[Event], number: int
    ) -> None:
        if self.encoder is None:
            self.encoder = encoder
            await self.sink.begin({**encoder.headers, **self.loss_headers()})
        data = self._held + encoder.feed_all(events, number)
        # Clients disconnect at the first end they see, so it is sent with the last piece.
        self._held = data if type(events[-1]) is ResponseEnd else b""
        if data and not self._held:
            await self.sink.write(data)

    def note_encoded(self, encoded: Encoded) -> None:
        """Collects the losses and repairs of a prompt; reports duplicates once."""
        self.losses += [loss for loss in encoded.losses if loss not in self.losses]
        self.repairs += [each for each in encoded.repairs if each not in self.repairs]

    def _note_all(self, asked: Sequence[PromptCall], *, is_cut_off: bool = False) -> None:
        begun = [each for each in asked if each.received is not None]
        responses = [each.received for each in begun if each.received is not None]
        if not responses:
            return
        credible = [each.usage for each in responses if is_credible(each.usage, content_size(each))]
        usages = [usage for usage in credible if usage is not None]
        usage = reduce(add, usages, Usage())
        self.summary = summarised(responses[0])._replace(usage=usage)
        if is_cut_off or len(usages) < len(responses):
            pieces = sum([each.pieces for each in begun])
            output = max(tokens_in(sum(map(content_size, responses))), pieces)
            delivered = Usage(input=self._went_in, output=output)
            self.partial = largest((usage, delivered))
            self.summary = self.summary._replace(usage=None)


class PromptCall:
    """One of several prompts sent to a provider."""

    def __init__(
        self, owner: PromptsExchange, upstream: Upstream, model: str | None, settings: Settings,
        timeouts: Timeouts | None, request: Request,
    ) -> None:  # fmt: skip
        self._owner = owner
        self._back, self._model = upstream, model
        self._settings, self._timeouts = settings, timeouts
        self.request = request
        self._reading: Incoming | ModelStream | None = None
        self._whole: Response | None = None
        self.pieces = 0
        """The number of events received."""

    @property
    def received(self) -> Response | None:
        """The part of the response received so far."""
        return self._whole if self._reading is None else self._reading.response

    def _local(self) -> Request:
        return self._settings.applied(self.request.replace_unchecked(model=self._model))

    def _encoded(self) -> Encoded:
        request = self._owner.permitted(self.request, self._back, self._model)
        encoded = encoded_for(request, self._back, self._model, self._settings).encoded
        self._owner.note_encoded(encoded)
        return encoded

    async def response(self) -> Response:
        """Returns the whole response."""
        self._whole = await self._sent()
        return self._whole

    async def _sent(self) -> Response:
        upstream = self._back
        if not upstream.is_wire:
            return await upstream.send(self._local())
        encoded = self._encoded()
        reply = await upstream.open("generate", encoded, self._model, self._timeouts)
        try:
            body = await read_body(
                reply, MAX_RESPONSE_BYTES, upstream.limits(self._timeouts).attempt
            )
        finally:
            await reply.close()
        read = read_answer(upstream.dialect(self._model), body, encoded.context, reply.headers)
        return made_at(upstream.provider_name, read)

    async def events(self) -> AsyncIterator[Sequence[Event]]:
        """Streams the response."""
        upstream = self._back
        if not upstream.is_wire:
            async for events in self._local_events():
                yield events
            return
        encoded = self._encoded()
        reply = await upstream.open("stream", encoded, self._model, self._timeouts)
        try:
            incoming = Incoming(
                reply, upstream.dialect(self._model), encoded.context,
                provider=upstream.provider_name, most=MAX_RESPONSE_BYTES,
                silence=upstream.limits(self._timeouts).between_events,
            )  # fmt: skip
            self._reading = incoming
            while not incoming.is_over:
                events = await incoming.read()
                self.pieces += len(events)
                if events:
                    yield events
            if incoming.failure is not None:
                raise incoming.failure
        finally:
            await reply.close()

    async def _local_events(self) -> AsyncIterator[Sequence[Event]]:
        self._reading = stream = self._back.stream(self._local())
        try:
            async for event in stream:
                self.pieces += 1
                yield [event]
        finally:
            await stream.close()
