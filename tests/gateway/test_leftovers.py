"""What requests leave behind in the gateway's memory: nothing, without the garbage collector."""

from __future__ import annotations

import asyncio
import json
import socket
import time
import weakref
from contextlib import suppress
from typing import Any

import pytest
from aiohttp import web

from dragoman.errors import AllFailed, ServerError
from dragoman.gateway.app import drop_frames
from dragoman.gateway.client_request import ClientRequest
from dragoman.gateway.protocol import GatewayProtocol
from dragoman.gateway.translation import NO_SETTINGS, Translations
from dragoman.gateway.upstreams import Upstream
from dragoman.transport.direct import DirectTransport
from tests.environment import PATIENCE
from tests.gateway.abuse.stage import request
from tests.gateway.answers import KINDS, Provider, is_streaming
from tests.gateway.client_requests import FRONTS, ask, body_for, path_for
from tests.gateway.matrix.native import Said, body_of, frames_of
from tests.gateway.running import place, routed, running, upstream
from tests.gateway.test_chat import gateway_to
from tests.leftovers import leftovers

RICH = Said("In Mostar. " * 20, (("weather", {"city": "Mostar"}),), thinks=True)
REFUSED = {
    "not JSON": b"{]",
    "not an object": b"[]",
    "messages": b'{"model": "m", "messages": "no", "input": 5, "contents": 5}',
}


class Failing(Provider):
    """A provider whose response is an error or invalid JSON."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__("openai-chat")
        self._answer = status, body

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        """Answer one request."""
        await request.read()
        status, body = self._answer
        return web.Response(status=status, body=body, content_type="application/json")


class Unhashable(Exception):  # noqa: N818 - as dataclasses make them
    """An error of another library that compares by value."""

    __hash__ = None  # type: ignore[assignment]  # that is the point


class Whole:
    """Answers with thinking, text in pieces, and tool calls."""

    def __init__(self, back: str) -> None:
        self.back = back

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        """Answer one request."""
        body = json.loads(await request.read())
        if not is_streaming(self.back, request, body):
            return web.Response(body=body_of(self.back, RICH), content_type="application/json")
        kind = "application/x-ndjson" if self.back == "ollama" else "text/event-stream"
        reply = web.StreamResponse(headers={"content-type": kind})
        await reply.prepare(request)
        frames = frames_of(self.back, RICH)
        for frame in frames[: len(frames) // 2]:
            await reply.write(frame)
        await self.middle(request)
        for frame in frames[len(frames) // 2 :]:
            await reply.write(frame)
        return reply

    async def middle(self, request: web.Request) -> None:
        """What happens in the middle of a stream: nothing."""


class CutOff(Whole):
    """Breaks off in the middle of a stream."""

    async def middle(self, request: web.Request) -> None:
        """Close the connection."""
        assert request.transport is not None
        request.transport.close()


class Unread(Whole):
    """Waits in the middle of a stream until its client has left."""

    async def middle(self, request: web.Request) -> None:
        """Wait; the server ends this when the gateway has closed the connection."""
        del request
        await asyncio.sleep(PATIENCE)


def settled() -> None:
    """The server finishes a request after the client has its answer."""
    time.sleep(0.05)


@pytest.mark.parametrize("front", FRONTS)
def test_answered_requests_are_freed_at_once(front: str) -> None:
    """Whichever provider has answered, streamed or not."""
    asked = [
        (path_for(front, stream=stream), body_for(front, stream=stream)) for stream in (False, True)
    ]
    for back in KINDS:
        with gateway_to(Provider(back)) as (serving, _):
            for path, body in asked:
                ask(serving.url, path, body)
            settled()
            with leftovers() as left:
                assert [ask(serving.url, *each).status for each in asked] == [200, 200]
                settled()
        assert not left, back


def left_early(url: str, path: str, body: Any) -> None:
    """A request whose client leaves after the first bytes of the answer."""
    with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2]))) as connection:
        connection.sendall(request(path, json.dumps(body).encode()))
        assert connection.recv(64)


@pytest.mark.parametrize("kind", [Whole, CutOff, Unread])
@pytest.mark.parametrize("front", FRONTS)
def test_translated_streams_are_freed_at_once(front: str, kind: type[Whole]) -> None:
    """On our own server, from every provider, however a stream with everything in it ends."""
    for back in KINDS:
        with (
            upstream(kind(back)) as url,
            running(
                routed(place(back, KINDS[back], url, dialect=back)), http=GatewayProtocol
            ) as on,
        ):
            for stream in (True,) if kind is Unread else (True, False):
                asked = path_for(front, stream=stream), body_for(front, stream=stream)
                play = left_early if kind is Unread else ask
                play(on.url, *asked)
                settled()
                with leftovers() as left:
                    for _ in range(3):
                        play(on.url, *asked)
                    settled()
                assert not left, (back, stream)


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("front", FRONTS)
def test_refused_requests_are_freed_at_once(front: str, body: bytes) -> None:
    """The error does not keep the body that it is about."""
    with gateway_to(Provider("anthropic")) as (serving, _):
        path = path_for(front, stream=False)
        with leftovers() as left:
            assert ask(serving.url, path, body).status == 400
            settled()
    assert not left


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("status", "body"), [(500, b'{"error": {"message": "no"}}'), (200, b"{]")])
def test_failed_requests_are_freed_at_once(status: int, body: bytes, stream: bool) -> None:
    """Neither one failed provider nor all of them leave anything behind."""
    providers = [Failing(status, body), Failing(status, body)]
    for count in (1, 2):
        with gateway_to(*providers[:count]) as (serving, _):
            path = path_for("anthropic", stream=stream)
            asked = body_for("anthropic", stream=stream)
            with leftovers() as left:
                assert ask(serving.url, path, asked).status >= 500
                settled()
        assert not left


def test_errors_that_refer_to_each_other_lose_their_frames() -> None:
    """Errors of middleware may have each other as cause; it ends, and reaches all of them."""
    first, second, third = ServerError("first"), Unhashable("second"), ServerError("third")
    errors = (first, second, third)
    for error in errors:
        with suppress(ServerError, Unhashable):
            raise error
    first.__cause__, second.__context__, third.__cause__ = second, first, third
    drop_frames(None, first, AllFailed("all", causes=[third]))
    assert [error.__traceback__ for error in errors] == [None, None, None]


def test_cached_translations_hold_no_request() -> None:
    """What is remembered for a route must not keep the first body that took it."""
    translations, back = (
        Translations(),
        Upstream(
            place("lab", KINDS["gemini"], "http://127.0.0.1:1", dialect="gemini"), DirectTransport()
        ),
    )
    asked = ClientRequest("openai-chat", json.dumps(body_for("openai-chat")).encode())
    assert translations.translate(asked, back, "m", NO_SETTINGS) is not None
    alive = weakref.ref(asked)
    del asked
    assert alive() is None
