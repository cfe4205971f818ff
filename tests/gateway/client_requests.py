"""Requests of clients in each dialect, and what they read from a response."""

from __future__ import annotations

import json
from http.client import HTTPConnection
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from dragoman.wire.dialect import dialect

FRONTS = ("openai-chat", "openai-responses", "anthropic", "gemini", "ollama")


class Answer(NamedTuple):
    """A response of a gateway."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body."""
        return json.loads(self.body)


def body_for(front: str, text: str = "Where?", *, stream: bool = False, model: str = "m") -> Any:
    """A request with one message."""
    match front:
        case "openai-responses":
            body: dict[str, Any] = {"model": model, "input": text}
        case "gemini":
            return {"contents": [{"role": "user", "parts": [{"text": text}]}]}
        case "anthropic":
            body = {"model": model, "max_tokens": 64}
            body["messages"] = [{"role": "user", "content": text}]
        case _:
            body = {"model": model, "messages": [{"role": "user", "content": text}]}
    if stream or front == "ollama":
        body["stream"] = stream
    return body


def path_for(front: str, *, stream: bool = False, model: str = "m") -> str:
    """Its path."""
    if front == "gemini":
        action = "streamGenerateContent?alt=sse" if stream else "generateContent"
        return f"/v1beta/models/{model}:{action}"
    return {
        "openai-chat": "/v1/chat/completions",
        "openai-responses": "/v1/responses",
        "anthropic": "/v1/messages",
        "ollama": "/api/chat",
    }[front]


def ask(url: str, path: str, body: Any = None, *, method: str = "POST", **headers: str) -> Answer:
    """One request on a new connection."""
    place = urlsplit(url)
    connection = HTTPConnection(place.hostname or "", place.port, timeout=30)
    try:
        raw = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, raw, {"content-type": "application/json", **named})
        reply = connection.getresponse()
        found = {name.lower(): value for name, value in reply.getheaders()}
        return Answer(reply.status, found, reply.read())
    finally:
        connection.close()


def text_in(front: str, answer: Answer, *, stream: bool = False) -> str:
    """The text of a response; raises if it is not complete."""
    if not stream:
        return dialect(front).decode_response(answer.body).message.text
    decoder = dialect(front).stream_decoder()
    decoder.feed(answer.body)
    decoder.close()
    assert decoder.is_complete
    return decoder.response.message.text
