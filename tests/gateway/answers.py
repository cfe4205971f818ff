"""Servers that answer as each provider does: a text, whole or streamed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from aiohttp import web

from dragoman.model.messages import Message
from dragoman.model.parts import Text
from dragoman.model.responses import Choice, Response
from dragoman.model.usage import FinishReason, Usage
from dragoman.transport.answers import events_of
from dragoman.wire.dialect import dialect
from dragoman.wire.front import Front

KINDS = {
    "openai-chat": "openai-compatible",
    "openai-responses": "openai",
    "anthropic": "anthropic",
    "gemini": "google",
    "ollama": "ollama",
}
"""A provider that speaks each dialect."""
SAID = "The Old Bridge is in Mostar."


def said(*parts: Any, finish: FinishReason = FinishReason.STOP, **changes: Any) -> Response:
    """An answer with these parts, as a model gives it."""
    message = Message.assistant(*(parts or (Text(SAID),))).replace(finish=finish)
    given: dict[str, Any] = {
        "choices": (Choice(0, message, finish),),
        "usage": Usage(input=11, output=7),
        "model": "model-behind",
        "id": "answer_1",
        **changes,
    }
    return Response(**given)


def body_of(name: str, response: Response) -> bytes:
    """The answer in its provider's format."""
    return dialect(name).encode_response(response).to_bytes()


def frames_of(name: str, response: Response, body: Any = None) -> list[bytes]:
    """The same as a list of frames; Chat's reports usage if requested."""
    asked = dict(body or {})
    if name == "openai-chat" and body is None:
        asked = {"messages": [], "stream_options": {"include_usage": True}}
    path = "/v1beta/models/m:streamGenerateContent?alt=sse" if name == "gemini" else None
    request = dialect(name).decode_request(asked, path=path) if asked else None
    encoder = Front(name, request, path=path, clock=lambda: 1_700_000_000.0).stream()
    frames = [encoder.feed(event) for event in events_of(response)]
    return [frame for frame in (*frames, encoder.close()) if frame]


def is_streaming(name: str, request: web.Request, body: Any) -> bool:
    """Whether a stream was requested."""
    if name == "gemini":
        return "streamGenerateContent" in request.path
    return bool(body.get("stream", name == "ollama"))


class Provider:
    """Answers every request in a dialect with the given answers, and repeats the last one."""

    def __init__(self, name: str, *answers: Response) -> None:
        self.name = name
        self.answers = list(answers) or [said()]
        self.asked: list[Any] = []
        """The bodies that came."""
        self.sent: list[bytes] = []
        """What was answered."""
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        """Answer."""
        body = json.loads(await request.read() or b"{}")
        self.asked.append(body)
        self.headers.append({key.lower(): value for key, value in request.headers.items()})
        self.paths.append(request.path)
        response = self.answers[min(len(self.asked), len(self.answers)) - 1]
        if not is_streaming(self.name, request, body):
            self.sent.append(body_of(self.name, response))
            return web.Response(body=self.sent[-1], content_type="application/json")
        frames = frames_of(self.name, response, body)
        self.sent.append(b"".join(frames))
        return await self.stream(request, frames)

    async def stream(self, request: web.Request, frames: Sequence[bytes]) -> web.StreamResponse:
        """Send frames, one at a time."""
        kind = "application/x-ndjson" if self.name == "ollama" else "text/event-stream"
        reply = web.StreamResponse(headers={"content-type": kind})
        await reply.prepare(request)
        for frame in frames:
            await reply.write(frame)
        await reply.write_eof()
        return reply
