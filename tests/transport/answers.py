"""Small example answers of each dialect, plain and streamed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import dragoman
from dragoman.model.responses import Response
from dragoman.transport.client import Client
from dragoman.transport.protocol import Timeouts
from tests.environment import PATIENCE

PROVIDERS = {
    "anthropic": "anthropic:m",
    "gemini": "google:m",
    "ollama": "ollama:m",
    "openai-chat": "openai:m",
    "openai-responses": "openai:m",
}
DIALECTS = tuple(PROVIDERS)
TEXT = "The Old Bridge is in Mostar."


class Naps(list[float]):
    """Records requested sleeps instead of sleeping."""

    async def __call__(self, seconds: float) -> None:
        """Record a sleep and return at once."""
        self.append(seconds)


def client(dialect: str, url: str, **settings: Any) -> Client:
    """A client of a loopback server that doesn't sleep between attempts."""
    settings.setdefault("timeouts", Timeouts(first_byte=PATIENCE, between_chunks=PATIENCE))
    place = PROVIDERS[dialect]
    made = Client(place, dialect=dialect, base_url=url, key="sk-test", **settings)
    made._sleep = Naps()
    return made


def naps(made: Client) -> Naps:
    """The recorded sleeps of a client."""
    assert isinstance(made._sleep, Naps)
    return made._sleep


def body(dialect: str) -> dict[str, Any]:
    """A plain response body."""
    return dragoman.dialect(dialect).encode_response(response()).body


def response() -> Response:
    """The response that every body decodes to."""
    wire = {"id": "r1", "model": "m", "choices": [{"index": 0, "finish_reason": "stop", "message":
            {"role": "assistant", "content": TEXT}}],
            "usage": {"prompt_tokens": 3, "completion_tokens": 7, "total_tokens": 10}}  # fmt: skip
    return dragoman.dialect("openai-chat").decode_response(wire)


def frames(dialect: str) -> list[bytes]:
    """A streamed answer as a list of frames."""
    if dialect == "ollama":
        return [json.dumps(each).encode() + b"\n" for each in _OLLAMA]
    named = dialect in {"anthropic", "openai-responses"}
    return [_sse(each, named=named) for each in _EVENTS[dialect]]


def kind(dialect: str) -> str:
    """The content type of a stream."""
    return "application/x-ndjson" if dialect == "ollama" else "text/event-stream"


def said(dialect: str, pieces: Sequence[bytes]) -> Response:
    """The response of a stream's chunks, decoded without a network."""
    decoder = dragoman.dialect(dialect).stream_decoder()
    for piece in pieces:
        decoder.feed(piece)
    decoder.close()
    return decoder.response


def _sse(event: dict[str, Any] | str, *, named: bool) -> bytes:
    data = event if isinstance(event, str) else json.dumps(event)
    name = f"event: {event['type']}\n" if named and not isinstance(event, str) else ""
    return f"{name}data: {data}\n\n".encode()


_WORDS = TEXT.split(" ")
_PIECES = [word if number == 0 else f" {word}" for number, word in enumerate(_WORDS)]
_OLLAMA: list[dict[str, Any]] = [
    *({"model": "m", "message": {"role": "assistant", "content": piece}, "done": False}
      for piece in _PIECES),
    {"model": "m", "message": {"role": "assistant", "content": ""}, "done": True,
     "done_reason": "stop", "prompt_eval_count": 3, "eval_count": 7},
]  # fmt: skip


def _chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "r1", "object": "chat.completion.chunk", "model": "m", "choices": [choice]}


_ITEM = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
         "content": [{"type": "output_text", "text": TEXT, "annotations": []}]}  # fmt: skip
_PART = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
_EVENTS: dict[str, list[Any]] = {
    "openai-chat": [
        _chunk({"role": "assistant", "content": ""}),
        *(_chunk({"content": piece}) for piece in _PIECES),
        _chunk({}, "stop"),
        "[DONE]",
    ],
    "anthropic": [
        {"type": "message_start", "message": {"id": "r1", "type": "message", "role": "assistant",
         "model": "m", "content": [], "stop_reason": None, "stop_sequence": None,
         "usage": {"input_tokens": 3, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *({"type": "content_block_delta", "index": 0,
           "delta": {"type": "text_delta", "text": piece}} for piece in _PIECES),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None},
         "usage": {"output_tokens": 7}},
        {"type": "message_stop"},
    ],
    "gemini": [
        *({"candidates": [{"index": 0, "content": {"role": "model", "parts": [{"text": piece}]}}],
           "modelVersion": "m", "responseId": "r1"} for piece in _PIECES),
        {"candidates": [{"index": 0, "content": {"role": "model", "parts": [{"text": ""}]},
         "finishReason": "STOP"}], "modelVersion": "m", "responseId": "r1",
         "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 7,
                           "totalTokenCount": 10}},
    ],
    "openai-responses": [
        {"type": "response.created", "response": {"id": "r1", "object": "response", "model": "m",
         "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0,
         "item": {**_ITEM, "status": "in_progress", "content": []}},
        {"type": "response.content_part.added", **_PART,
         "part": {"type": "output_text", "text": "", "annotations": []}},
        *({"type": "response.output_text.delta", **_PART, "delta": piece} for piece in _PIECES),
        {"type": "response.output_text.done", **_PART, "text": TEXT},
        {"type": "response.content_part.done", **_PART,
         "part": {"type": "output_text", "text": TEXT, "annotations": []}},
        {"type": "response.output_item.done", "output_index": 0, "item": _ITEM},
        {"type": "response.completed", "response": {"id": "r1", "object": "response", "model": "m",
         "status": "completed", "output": [_ITEM],
         "usage": {"input_tokens": 3, "output_tokens": 7, "total_tokens": 10}}},
    ],
}  # fmt: skip
