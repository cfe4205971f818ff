"""The providers behind the gateway: one server that gives scripted answers in every dialect.

The first segment of the path names the dialect. Requests are recorded, decoded, and checked as the
provider would check them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from aiohttp import web

from dragoman.gateway.config.settings import GatewayConfig, Hop, RouteSettings
from dragoman.model.requests import Request
from dragoman.model.responses import Response
from dragoman.providers.registry import provider
from dragoman.wire.dialect import dialect
from tests.gateway.answers import is_streaming
from tests.gateway.matrix import native
from tests.gateway.matrix.native import MODELS, Said
from tests.gateway.running import Serving, place, routed, running, upstream

KINDS = {
    "openai-chat": "openrouter",
    "openai-responses": "openai",
    "anthropic": "anthropic",
    "gemini": "google",
    "ollama": "ollama",
}
BACKS = tuple(KINDS)
"""The dialects behind the gateway, and a provider that speaks each."""


class Answer(NamedTuple):
    """The answer to one request."""

    data: bytes
    status: int = 200
    headers: Mapping[str, str] = {}
    cut: int | None = None
    """Bytes after which the connection breaks."""
    frames: Sequence[bytes] = ()
    """The same as a stream, in the pieces that it is sent in."""


class Asked(NamedTuple):
    """A received request."""

    path: str
    body: Any
    problems: tuple[str, ...]
    """What the provider would reject in it."""


class Behind:
    """Gives each request the next scripted answer."""

    def __init__(self) -> None:
        self.back = ""
        self.model = ""
        self.answers: list[Answer] = []
        self.asked: list[Asked] = []

    def script(self, back: str, model: str, *answers: Answer) -> None:
        """Start over with these answers; the last one is repeated."""
        self.back, self.model = back, model
        self.answers = list(answers)
        self.asked = []

    def request(self, number: int) -> Request:
        """A received request, decoded."""
        asked = self.asked[number]
        return dialect(self.back).decode_request(asked.body, path=asked.path)

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        """Answer a request; lists of models take no answer from the script."""
        if request.method == "GET":
            return web.json_response({"data": [], "models": []})
        back = request.path.split("/")[1]
        body = json.loads(await request.read() or b"{}")
        path = request.path_qs.removeprefix(f"/{back}")
        self.asked.append(Asked(path, body, _problems(back, self.model, path, body)))
        answer = self.answers[min(len(self.asked), len(self.answers)) - 1]
        if answer.status != 200:
            return web.Response(
                body=answer.data, status=answer.status, content_type="application/json",
                headers=dict(answer.headers),
            )  # fmt: skip
        return await _sent(request, answer, is_stream=is_streaming(back, request, body))


def _problems(back: str, model: str, path: str, body: Any) -> tuple[str, ...]:
    if "embed" in path.lower():
        return ()
    target = provider(KINDS[back]).target(model, back)
    found = dialect(back).check(body, path=path, target=target)
    return tuple(f"{each.rule} {each.path}" for each in found if each.severity == "error")


async def _sent(request: web.Request, answer: Answer, *, is_stream: bool) -> web.StreamResponse:
    kind = "application/json"
    if is_stream:
        is_ollama = request.path.startswith("/ollama")
        kind = "application/x-ndjson" if is_ollama else "text/event-stream"
    reply = web.StreamResponse(headers={"content-type": kind})
    if not is_stream:
        reply.content_length = len(answer.data)
    await reply.prepare(request)
    if answer.cut is not None:
        await reply.write(answer.data[: answer.cut])
        await asyncio.sleep(0)  # lets the bytes be sent
        assert request.transport is not None
        request.transport.close()
        return reply
    for frame in (is_stream and answer.frames) or (answer.data,):
        await reply.write(frame)
    await reply.write_eof()
    return reply


def made(back: str, said: Said, *, stream: bool) -> Answer:
    """A generated answer."""
    if not stream:
        return Answer(native.body_of(back, said))
    frames = native.frames_of(back, said)
    return Answer(b"".join(frames), frames=frames)


def either(back: str, said: Said) -> Answer:
    """The same, streamed or not as the request asks: some agents always stream."""
    return Answer(native.body_of(back, said), frames=native.frames_of(back, said))


def reading(back: str, answer: Answer, *, stream: bool) -> Response:
    """The answer, decoded without a gateway."""
    if not stream:
        return dialect(back).decode_response(answer.data)
    decoder = dialect(back).stream_decoder()
    decoder.feed(answer.data)
    decoder.close()
    assert decoder.is_complete
    return decoder.response


@contextmanager
def gateway() -> Generator[tuple[Serving, Behind]]:
    """A gateway in front of all of them: the model name selects the provider."""
    behind = Behind()
    with upstream(behind) as url, running(_config(url)) as serving:
        yield serving, behind


def _config(url: str) -> GatewayConfig:
    places = [place(back, KINDS[back], f"{url}/{back}", dialect=back) for back in BACKS]
    routes = [RouteSettings(model=MODELS[each.name], to=(Hop(place=each),)) for each in places]
    routes += [RouteSettings(model=f"{each.name}:*", to=(Hop(place=each),)) for each in places]
    from msgspec.structs import replace

    return replace(routed(*places), routes=tuple(routes))
