"""Prompts instead of chats: OpenAI's `/v1/completions` and Ollama's `/api/generate`.

One prompt is an exchange like any chat, with another front. Several are sent side by side to one
place, and answered as one.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from functools import reduce
from operator import add

from dragoman.errors import DragomanError, InvalidRequest, StreamInterrupted
from dragoman.gateway.chat import answer
from dragoman.gateway.client_request import ClientRequest
from dragoman.gateway.exchange import MAX_RESPONSE_BYTES, Exchange
from dragoman.gateway.inbound import InboundRequest
from dragoman.gateway.response_summary import summarised
from dragoman.gateway.services.side_by_side import gathered, merged
from dragoman.gateway.translation import Settings, Translations, encoded_for
from dragoman.gateway.upstream_task import Sink
from dragoman.gateway.upstreams import Upstream
from dragoman.model.events import Event, ResponseEnd
from dragoman.model.requests import Request
from dragoman.model.responses import Response
from dragoman.model.usage import Usage
from dragoman.transport.answers import read_answer
from dragoman.transport.model import ModelStream
from dragoman.transport.origins import made_at
from dragoman.transport.protocol import Timeouts, read_body
from dragoman.transport.stream_attempt import Incoming
from dragoman.wire.encoded import Encoded
from dragoman.wire.error_reporting import reported
from dragoman.wire.prompt_front import PromptEncoder, PromptFront, prompt_front

_MOST_PROMPTS = 128
_AT_ONCE = 8


async def prompt(inbound: InboundRequest) -> None:
    """Answer a prompt, or several."""
    body = await inbound.body()
    client_request = ClientRequest(inbound.endpoint.front, body)
    try:
        front = prompt_front(inbound.endpoint.front, body, path=inbound.path)
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
    if count > _MOST_PROMPTS:
        msg = f"one request may have {_MOST_PROMPTS} prompts at the most"
        raise InvalidRequest(msg, status=400, param="prompt")
    if getattr(front, "is_load", False):
        return LoadExchange(client_request, sink, translations, front)
    kind = PromptExchange if count == 1 else PromptsExchange
    return kind(client_request, sink, translations, front)


class PromptExchange(Exchange):
    """A prompt that is being answered."""

    def __init__(
        self,
        client_request: ClientRequest,
        sink: Sink,
        translations: Translations,
        front: PromptFront,
    ) -> None:
        super().__init__(client_request, sink, translations, request=front.request)
        self._prompts = front

    def estimated_usage(self) -> Usage:
        """As for a chat, with an answer for each of the prompts."""
        usage, count = super().estimated_usage(), len(self._prompts.requests)
        return Usage(input=usage.input, output=usage.output * count)

    def front(self) -> PromptFront:
        """What answers this client."""
        return self._prompts


class LoadExchange(PromptExchange):
    """A request without a prompt, by which Ollama's clients have a model loaded.

    Nobody is asked: places load their models themselves.
    """

    is_free = True

    async def _attempt(
        self, upstream: Upstream, model: str | None, settings: Settings, timeouts: Timeouts | None
    ) -> None:
        del upstream, model, settings, timeouts
        encoded = self._prompts.loaded()  # type: ignore[attr-defined] # only where `is_load` is
        await self.sink.respond(200, encoded.headers, encoded.to_bytes())


class PromptsExchange(PromptExchange):
    """Several prompts that are being answered, by one place."""

    supports_middleware = False
    _held = b""

    async def _attempt(
        self, upstream: Upstream, model: str | None, settings: Settings, timeouts: Timeouts | None
    ) -> None:
        asked = [Asked(self, upstream, model, settings, timeouts, each) for each in self._requests]
        if self.client_request.stream:
            await self._streamed(asked)
            return
        try:
            responses = await gathered([each.response for each in asked], _AT_ONCE)
        finally:  # those that were answered cost something, even if others failed
            self._note_all(asked)
        encoded = self._prompts.responses(responses)
        self.losses += encoded.losses
        self.repairs += encoded.repairs
        await self.sink.respond(200, {**encoded.headers, **self.loss_headers()}, encoded.to_bytes())

    @property
    def _requests(self) -> Sequence[Request]:
        return self._prompts.requests

    async def _streamed(self, asked: Sequence[Asked]) -> None:
        encoder = self._prompts.stream()
        try:
            async with aclosing(merged([each.events for each in asked], _AT_ONCE)) as pieces:
                async for number, events in pieces:
                    await self._write_piece(encoder, events, number)
        finally:  # also where the client leaves: what came was paid for
            self._note_all(asked)
        if self.encoder is None:
            msg = "the stream ended without any event"
            raise StreamInterrupted(msg)
        last = self._held + encoder.close()
        self.losses += encoder.losses
        self.repairs += encoder.repairs
        await self.sink.end(last)

    async def _write_piece(
        self, encoder: PromptEncoder, events: Sequence[Event], number: int
    ) -> None:
        if self.encoder is None:
            self.encoder = encoder
            await self.sink.begin({**encoder.headers, **self.loss_headers()})
        data = self._held + encoder.feed_all(events, number)
        # Clients leave as soon as they see the end: it goes out with the last piece.
        self._held = data if type(events[-1]) is ResponseEnd else b""
        if data and not self._held:
            await self.sink.write(data)

    def note_encoded(self, encoded: Encoded) -> None:
        """What was lost and repaired of a prompt; the same of all of them is told once."""
        self.losses += [loss for loss in encoded.losses if loss not in self.losses]
        self.repairs += [each for each in encoded.repairs if each not in self.repairs]

    def _note_all(self, asked: Sequence[Asked]) -> None:
        responses = [told for told in (each.told for each in asked) if told is not None]
        usages = [each.usage for each in responses if each.usage is not None]
        if responses:
            usage = reduce(add, usages) if usages else None
            self.summary = summarised(responses[0])._replace(usage=usage)


class Asked:
    """One of several prompts, on its way to a place."""

    def __init__(
        self, owner: PromptsExchange, upstream: Upstream, model: str | None, settings: Settings,
        timeouts: Timeouts | None, request: Request,
    ) -> None:  # fmt: skip
        self._owner = owner
        self._back, self._model = upstream, model
        self._settings, self._timeouts = settings, timeouts
        self._request = request
        self._reading: Incoming | ModelStream | None = None
        self._whole: Response | None = None

    @property
    def told(self) -> Response | None:
        """What has come of the answer."""
        return self._whole if self._reading is None else self._reading.response

    def _local(self) -> Request:
        return self._settings.applied(self._request.replace_unchecked(model=self._model))

    def _encoded(self) -> Encoded:
        encoded = encoded_for(self._request, self._back, self._model, self._settings).encoded
        self._owner.note_encoded(encoded)
        return encoded

    async def response(self) -> Response:
        """The whole answer."""
        self._whole = await self._asked()
        return self._whole

    async def _asked(self) -> Response:
        upstream = self._back
        if not upstream.is_wire:
            return await upstream.send(self._local())
        encoded = self._encoded()
        reply = await upstream.open("generate", encoded, self._model, self._timeouts)
        try:
            body = await read_body(reply, MAX_RESPONSE_BYTES)
        finally:
            await reply.close()
        read = read_answer(upstream.dialect(self._model), body, encoded.context, reply.headers)
        return made_at(upstream.provider_name, read)

    async def events(self) -> AsyncIterator[Sequence[Event]]:
        """The answer as it comes."""
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
            )  # fmt: skip
            self._reading = incoming
            while not incoming.is_over:
                events = await incoming.read()
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
                yield [event]
        finally:
            await stream.close()
