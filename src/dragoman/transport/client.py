"""`Client`: a model at a provider."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from decimal import Decimal
from typing import Any

from msgspec.structs import replace

from dragoman.errors import DragomanError, InvalidInputError, ProviderError, TransportError
from dragoman.interop.reader import read_request
from dragoman.model.frozen import EMPTY
from dragoman.model.requests import Request
from dragoman.model.responses import Response
from dragoman.providers.prices import LISTED
from dragoman.providers.provider import Provider
from dragoman.tracing.spans import ModelCall
from dragoman.tracing.switch import propagated
from dragoman.transport.answers import made_at, read_answer
from dragoman.transport.blocking import BlockingTwins
from dragoman.transport.deployments import Deployment
from dragoman.transport.exchanges import Answer, Line
from dragoman.transport.other_endpoints import OtherEndpoints
from dragoman.transport.protocol import (
    ATTEMPT_LIMIT,
    HttpRequest,
    Reply,
    Timeouts,
    Transport,
    read_body,
    within,
)
from dragoman.transport.rate_limits import NO_LIMITS, GatedReply, Limits, gate_for
from dragoman.transport.retries import Retries, repeated
from dragoman.transport.stream_attempt import Incoming
from dragoman.transport.streaming import ResponseStream, Source, verified
from dragoman.wire.dialect import Dialect, dialect
from dragoman.wire.encoded import Encoded
from dragoman.wire.target import Target

_MAX_ERROR_BYTES = 1024 * 1024
_REDIRECT, _FAILED = 300, 400


async def accepted(
    transport: Transport, message: HttpRequest, timeouts: Timeouts, dialect: Dialect
) -> Reply:
    """The reply to a request if its status is a success; otherwise raises the provider's error."""
    reply = await transport.open(message, timeouts)
    if reply.status < _REDIRECT:
        return reply
    try:
        refusal = await _refusal(dialect, reply, timeouts.attempt)
    finally:
        await reply.close()
    raise refusal


async def _refusal(dialect: Dialect, reply: Reply, seconds: float | None) -> DragomanError:
    if reply.status < _FAILED:
        msg = "the server redirects, which is not followed: correct the base_url"
        return TransportError(msg, sent=True)
    try:
        body = await read_body(reply, _MAX_ERROR_BYTES, seconds)
    except TransportError:
        body = b""  # the status is enough
    return dialect.decode_error(reply.status, body, reply.headers)


_MAX_BYTES = 256 * 1024 * 1024


class Client(OtherEndpoints, BlockingTwins):
    """A model at a provider: `send` a request, or `stream` the response.

    ```python
    async with Client("anthropic:claude-sonnet-4-5") as client:
        response = await client.send("Where is the Old Bridge?")
    ```

    API keys are read from the usual environment variables when they are needed. One client serves
    any number of concurrent requests, on any number of event loops.
    """

    def __init__(  # noqa: PLR0913 - all but the model by keyword, and optional
        self,
        model: str | Provider,
        *,
        key: str | None = None,
        base_url: str | None = None,
        headers: Mapping[str, str] = EMPTY,
        parameters: Mapping[str, str] = EMPTY,
        dialect: str | None = None,
        timeouts: Timeouts | None = None,
        retries: Retries | None = None,
        limits: Limits | None = None,
        strict: bool = False,
        transport: Transport | None = None,
        max_bytes: int = _MAX_BYTES,
    ) -> None:
        self._deployment = Deployment(
            model,
            key=key,
            base_url=base_url,
            headers=headers,
            parameters=parameters,
            dialect_name=dialect,
        )
        self._strict = strict
        self._timeouts = timeouts or Timeouts()
        self._retries = retries or Retries()
        self._limits = limits or NO_LIMITS
        self._owns_transport = transport is None
        self._transport = transport or _network()
        self._max_bytes = max_bytes
        self._is_closed = False
        self._sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    @property
    def name(self) -> str:
        """The model, as `provider:model`."""
        return str(self._deployment.name)

    @property
    def provider(self) -> Provider:
        """The provider."""
        return self._deployment.provider

    @property
    def target(self) -> Target:
        """The target: facts about the deployment and the model."""
        return self._deployment.target(self._deployment.name.chat)

    def __repr__(self) -> str:
        return f"Client({self.name})"

    async def close(self) -> None:
        """Close the connections, unless the transport was passed in. Can be repeated."""
        self._is_closed = True
        if self._owns_transport:
            await self._transport.close()

    # --- requests

    async def send(self, request: Request | Any) -> Response:
        """The model's response. Takes a `Request`, or whatever `Messages.from_any` takes."""
        asked = self._asked(request, stream=False)
        call = self._call(asked)
        if call is None:
            return await self._whole(asked)
        return await call.watched(self._whole(asked), self._cost)

    def _call(self, request: Request) -> ModelCall | None:
        """The span of a request; None without tracing."""
        return ModelCall.of(request, self.provider.name, self._url)

    def _url(self) -> str | None:
        return self._deployment.url

    def _cost(self, response: Response) -> Decimal | None:
        return LISTED.cost_of_response(response, self.name)

    async def _whole(self, asked: Request) -> Response:
        try:
            return await within(self._timeouts.answer_total, self._answer(asked))
        except (TransportError, ProviderError) as error:
            self._deployment.locate(error, asked.model)
            raise

    async def _answer(self, request: Request) -> Response:
        try:
            return await self._sent(request)
        except ProviderError as error:
            plain = verified(request, error)
            if plain is request:
                raise
        return await self._sent(plain)

    async def _sent(self, request: Request) -> Response:
        place = self._deployment.reaching(request.model)
        encoded = self._encoded(place, request)
        message = _message(place, "generate", request, encoded)

        async def attempt() -> Response:
            answer = await self._fetched(place, message)
            found = read_answer(place.dialect, answer.body, encoded.context, answer.headers)
            return made_at(self.provider.name, found)

        return await repeated(attempt, self._retries, self._sleep)

    def stream(self, request: Request | Any) -> ResponseStream:
        """The model's response as a stream: an async iterator of events, usable once.

        ```python
        async with client.stream("Tell me more.") as stream:
            async for event in stream:
                ...
        response = stream.response
        ```
        """
        source = Source(
            self._deployment.locate, self._incoming, self._retries, self._timeouts.stream_total,
            self._sleep, self._call, self._cost,
        )  # fmt: skip
        return ResponseStream(source, self._asked(request, stream=True))

    async def _incoming(self, request: Request) -> Incoming:
        place = self._deployment.reaching(request.model)
        encoded = self._encoded(place, request)
        reply = await self._opened(place, _message(place, "stream", request, encoded))
        return Incoming(
            reply,
            place.dialect,
            encoded.context,
            provider=self.provider.name,
            most=self._max_bytes,
            silence=self._timeouts.between_events,
        )

    # --- for streams, and for the other endpoints

    def _asked(self, request: Any, *, stream: bool) -> Request:
        asked = read_request(request)
        model = asked.model or self._deployment.name.chat
        named = asked.replace(model=model, stream=stream)
        if not stream:
            return named
        target = self._deployment.reaching(model).target(model)
        return dialect(target.dialect).with_usage_requested(named, target)

    def encode(self, request: Request | Any) -> Encoded:
        """What `send` would send, with the parts that the provider doesn't support (`losses`).

        A `strict` client raises `LossError` instead of losing anything.
        """
        asked = self._asked(request, stream=False)
        return self._encoded(self._deployment.reaching(asked.model), asked)

    def _encoded(self, place: Deployment, request: Request) -> Encoded:
        target = place.target(request.model)
        return place.dialect.encode_request(request, target, strict=self._strict)

    @property
    def _line(self) -> Line:
        return Line(self._deployment, self._exchanged)

    async def _exchanged(self, place: Deployment, message: HttpRequest) -> Answer:
        """A whole response, with as many attempts as needed and allowed."""
        asking = repeated(lambda: self._fetched(place, message), self._retries, self._sleep)
        try:
            return await within(self._timeouts.answer_total, asking)
        except (TransportError, ProviderError) as error:
            place.locate(error)
            raise

    async def _fetched(self, place: Deployment, message: HttpRequest) -> Answer:
        """A whole response, with one attempt; raises the provider's error."""
        return await within(self._timeouts.attempt, self._read(place, message), ATTEMPT_LIMIT)

    async def _read(self, place: Deployment, message: HttpRequest) -> Answer:
        reply = await self._opened(place, message)
        try:
            return Answer(reply.headers, await read_body(reply, self._max_bytes, None))
        finally:
            await reply.close()

    async def _opened(self, place: Deployment, message: HttpRequest) -> Reply:
        """A successful reply, after waiting for the rate limits; raises the provider's error."""
        if self._is_closed:
            msg = "the client is closed"
            raise InvalidInputError(msg)
        gate = gate_for(self.provider.name, self._limits)
        if gate is None:
            return await self._accepted(place, message)
        await gate.enter()
        try:
            return GatedReply(await self._accepted(place, message), gate)
        except BaseException:
            gate.leave()
            raise

    async def _accepted(self, place: Deployment, message: HttpRequest) -> Reply:
        return await accepted(self._transport, _propagated(message), self._timeouts, place.dialect)


def _message(place: Deployment, endpoint: str, request: Request, encoded: Encoded) -> HttpRequest:
    return place.request(endpoint, encoded.to_bytes(), model=request.model, headers=encoded.headers)


def _propagated(message: HttpRequest) -> HttpRequest:
    """The request with tracing headers, if tracing is on."""
    headers = propagated(message.headers)
    return message if headers is message.headers else replace(message, headers=headers)


def _network() -> Transport:
    from dragoman.transport.http import HttpTransport  # aiohttp is slow to import

    return HttpTransport()
