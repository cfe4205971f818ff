"""Responses that begin twice, as proxies and retries send them."""

from __future__ import annotations

from typing import Any

from tests.peers.claims import is_finished, shows
from tests.peers.rows import Row, Stream

_MESSAGE: dict[str, Any] = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-4-5",
    "content": [], "stop_reason": None, "stop_sequence": None,
    "usage": {"input_tokens": 3, "output_tokens": 1},
}  # fmt: skip
_BEGUN: dict[str, Any] = {"type": "message_start", "message": _MESSAGE}
_SAID: list[dict[str, Any]] = [
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Warm."}},
    {"type": "content_block_stop", "index": 0},
]
_ENDED: list[dict[str, Any]] = [
    {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None},
     "usage": {"output_tokens": 4}},
    {"type": "message_stop"},
]  # fmt: skip

ROWS = (
    Row(
        "A `message_start` that is repeated with the same id is ignored",
        "BerriAI/litellm and maximhq/bifrost send it",
        Stream("anthropic", (_BEGUN, _BEGUN, *_SAID, *_ENDED)),
        (shows("Warm."), is_finished),
    ),
)
