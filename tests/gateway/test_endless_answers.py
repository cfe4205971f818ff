"""Providers whose answers never end: an error that says which, in the front's form."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from aiohttp import web

from dragoman.transport.protocol import Timeouts
from tests.gateway.answers import KINDS, frames_of, said
from tests.gateway.client_requests import ask, body_for, path_for
from tests.gateway.running import place, routed, running, upstream

_LIMITS = {"connect": 5.0, "first_byte": 20.0}
_FRONTS = ("openai-chat", "openai-responses", "anthropic", "gemini", "ollama")
_OTHERS = dict(zip(_FRONTS, (*_FRONTS[1:], _FRONTS[0]), strict=True))


class _Endless:
    """Begins an answer, and goes on with the same piece until its client leaves."""

    def __init__(self, begun: Sequence[bytes], piece: bytes, kind: str) -> None:
        self._begun, self._piece, self._kind = begun, piece, kind

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        await request.read()
        reply = web.StreamResponse(headers={"content-type": self._kind})
        await reply.prepare(request)
        for piece in self._begun:
            await reply.write(piece)
        while True:
            await reply.write(self._piece)
            await asyncio.sleep(0.005)


def _answered(front: str, back: str, endless: _Endless, *, stream: bool, **limits: float) -> bytes:
    timeouts = Timeouts(**{**_LIMITS, **limits})
    with upstream(endless) as url:
        config = routed(place(back, KINDS[back], url, dialect=back, timeouts=timeouts))
        with running(config) as serving:
            answer = ask(
                serving.url, path_for(front, stream=stream), body_for(front, stream=stream)
            )
    if not stream:
        assert answer.status == 504
    return answer.body


def _stream_type(back: str) -> str:
    return "application/x-ndjson" if back == "ollama" else "text/event-stream"


@pytest.mark.parametrize("begins", [False, True], ids=["at once", "after some text"])
@pytest.mark.parametrize("passes", [False, True], ids=["translated", "passed through"])
@pytest.mark.parametrize("front", _FRONTS)
def test_comments_without_end(front: str, passes: bool, begins: bool) -> None:
    """A stream that only comments keep alive ends in an error with a code of its own."""
    back = front if passes else _OTHERS[front]
    asked = body_for(back, stream=True) if back == "openai-chat" else None
    begun = frames_of(back, said(), asked)[:1] if begins else []
    comment = b"\n" if back == "ollama" else b": ping\n\n"
    endless = _Endless(begun, comment, _stream_type(back))
    body = _answered(front, back, endless, stream=True, between_events=0.3)
    assert b"kept its stream open" in body


@pytest.mark.parametrize("front", _FRONTS)
def test_a_body_without_end(front: str) -> None:
    """Spaces before JSON are valid: `attempt` ends the wait for it."""
    endless = _Endless([], b" ", "application/json")
    body = _answered(front, _OTHERS[front], endless, stream=False, attempt=0.3)
    assert b"timed out" in body


def test_a_stream_has_a_total() -> None:
    """The limit of a provider holds for streams too, however much comes."""
    frames = frames_of("anthropic", said())
    text = next(frame for frame in frames if b"text_delta" in frame)
    endless = _Endless(frames[: frames.index(text)], text, "text/event-stream")
    body = _answered("openai-chat", "anthropic", endless, stream=True, total=0.5)
    assert b"timed out" in body
