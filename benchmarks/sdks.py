"""The official SDKs' own reading of a stream: their parsers and types, without any network.

What an SDK does for the request, and its HTTP client, take no part: it is handed a response that
has arrived already. Their inner names differ from version to version, so all of it is `Any`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib import import_module
from types import SimpleNamespace
from typing import Any

Read = Callable[[bytes], list[Any]]

_EVENTS = {"content-type": "text/event-stream"}


def readers(dialect: str) -> dict[str, Read]:
    """The SDK's ways of reading a dialect's streams; the last does most, and most like ours.

    Ours gives events and the response that they add up to: so does Anthropic's `MessageStream`.
    The others' plain readers give typed chunks, which nobody has added up yet.
    """
    return _READERS[dialect]()


def _chat() -> dict[str, Read]:
    kind = import_module("openai.types.chat").ChatCompletionChunk
    return {"openai, typed chunks": _openai(kind)}


def _responses() -> dict[str, Read]:
    kind = import_module("openai.types.responses").ResponseStreamEvent
    return {"openai, typed events": _openai(kind)}


def _openai(kind: Any) -> Read:
    openai: Any = import_module("openai")
    arrived = _arrived("openai._streaming")
    client = openai.OpenAI(api_key="none")
    return lambda stream: list(openai.Stream(cast_to=kind, response=arrived(stream), client=client))


def _anthropic() -> dict[str, Read]:
    anthropic: Any = import_module("anthropic")
    kind = anthropic.types.RawMessageStreamEvent
    arrived = _arrived("anthropic._streaming")
    client = anthropic.Anthropic(api_key="none")

    def raw(stream: bytes) -> Any:
        return anthropic.Stream(cast_to=kind, response=arrived(stream), client=client)

    def added_up(stream: bytes) -> list[Any]:
        return list(anthropic.MessageStream(raw(stream), anthropic.NotGiven()))

    return {
        "anthropic, typed raw events": lambda stream: list(raw(stream)),
        "anthropic, MessageStream": added_up,
    }


def _gemini() -> dict[str, Read]:
    genai: Any = import_module("google.genai")
    models: Any = import_module("google.genai.models")
    transport: Any = import_module("google.genai._api_client")
    arrived = _arrived("google.genai._api_client")
    client = genai.Client(api_key="none")._api_client
    waiting: list[bytes] = []

    def answer(*_: Any, **__: Any) -> Any:
        return transport.HttpResponse({}, arrived(waiting.pop()))

    client._build_request = lambda *_: None
    client._request = answer

    def chunk(body: str) -> Any:  # as `generate_content_stream` makes one
        fields = models._GenerateContentResponse_from_mldev(json.loads(body), None, None)
        return genai.types.GenerateContentResponse._from_response(response=fields, kwargs={})

    def read(stream: bytes) -> list[Any]:
        waiting.append(stream)
        return [chunk(found.body) for found in client.request_streamed("post", "", {})]

    return {"google-genai, GenerateContentResponse": read}


def _ollama() -> dict[str, Read]:
    ollama: Any = import_module("ollama")
    arrived = _arrived("ollama._client")
    client = ollama.Client()
    waiting: list[bytes] = []

    @contextmanager
    def answer(*_: Any, **__: Any) -> Generator[Any]:
        yield arrived(waiting.pop())

    client._client = SimpleNamespace(stream=answer)

    def read(stream: bytes) -> list[Any]:
        waiting.append(stream)
        return list(client._request(ollama.ChatResponse, stream=True))

    return {"ollama, ChatResponse": read}


def _arrived(module: str) -> Callable[[bytes], Any]:
    """What makes the response that a module of an SDK works on, of httpx or of its successor."""
    names = vars(import_module(module))
    http: Any = names.get("httpx2") or names["httpx"]
    request = http.Request("POST", "http://localhost")
    return lambda stream: http.Response(200, headers=_EVENTS, content=stream, request=request)


_READERS: dict[str, Callable[[], dict[str, Read]]] = {
    "openai-chat": _chat,
    "openai-responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "ollama": _ollama,
}
