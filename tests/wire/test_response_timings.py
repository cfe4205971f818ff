"""How long a server took is no loss: nobody wrote it, and another server takes another time."""

from __future__ import annotations

import json
from typing import Any

import pytest

import dragoman

_OLLAMA = {"model": "m", "created_at": "2026-11-20T00:00:00Z", "done": True, "done_reason": "stop",
           "message": {"role": "assistant", "content": "Hi"}, "prompt_eval_count": 3,
           "eval_count": 4, "total_duration": 5, "load_duration": 1, "prompt_eval_duration": 2,
           "eval_duration": 2}  # fmt: skip
_CHAT = {"id": "c", "object": "chat.completion", "created": 1, "model": "m",
         "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"},
                      "finish_reason": "stop"}],
         "timings": {"predicted_ms": 3.2},
         "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2,
                   "queue_time": 0.1, "prompt_time": 0.1, "completion_time": 0.2,
                   "total_time": 0.3}}  # fmt: skip
_WITHOUT_COUNTS = {key: value for key, value in _OLLAMA.items() if not key.endswith("count")}


@pytest.mark.parametrize("target", dragoman.dialects())
@pytest.mark.parametrize(
    ("source", "body"),
    [("ollama", _OLLAMA), ("ollama", _WITHOUT_COUNTS), ("openai-chat", _CHAT)],
)
def test_timings_are_no_loss(source: str, body: dict[str, Any], target: str) -> None:
    """In whole answers, with and without token counts."""
    response = dragoman.dialect(source).decode_response(body)
    losses = dragoman.dialect(target).encode_response(response).losses
    assert [loss.path for loss in losses if loss.path != "id"] == []


@pytest.mark.parametrize("target", dragoman.dialects())
def test_timings_of_a_stream_are_no_loss(target: str) -> None:
    """Nor in a stream, where an Ollama server reports them at the end of every answer."""
    decoder = dragoman.dialect("ollama").stream_decoder()
    encoder = dragoman.dialect(target).stream_encoder()
    for event in [*decoder.feed(json.dumps(_OLLAMA).encode() + b"\n"), *decoder.close()]:
        encoder.feed(event)
    encoder.close()
    assert [loss.path for loss in encoder.losses] == []


def test_other_fields_are_still_reported() -> None:
    """Only timings are left out of the report."""
    response = dragoman.dialect("openai-chat").decode_response({**_CHAT, "odd": {"total_time": 1}})
    losses = dragoman.dialect("gemini").encode_response(response).losses
    assert [loss.path for loss in losses] == ["extras.odd"]
