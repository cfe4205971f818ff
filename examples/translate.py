"""Sends an OpenAI Chat request to Claude, and translates the answer back, streamed or not.

    python examples/translate.py            # everything except the network, needs no key

Shows `translate`, losses and repairs, tool names that the target rejects, and the way back through
a `Front`, which adds what OpenAI's clients expect (ids, times, usage). Nothing here does I/O:
replace `claude` with your own HTTP client.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import dragoman
from dragoman import Context, Front

REQUEST = {
    "model": "gpt-5",
    "seed": 7,
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Will it rain in Mostar?"},
    ],
    "tools": [{"type": "function", "function": {"name": "acme.weather", "parameters": {}}}],
}
MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5"}
USAGE = {"input_tokens": 20, "output_tokens": 9}
EVENTS: list[dict[str, Any]] = [
    {"type": "message_start", "message": {**MESSAGE, "content": [], "usage": USAGE}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "No."}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": USAGE},
    {"type": "message_stop"},
]


def claude(body: dict[str, Any]) -> dict[str, Any]:
    """A placeholder for Anthropic's server: calls the tool in the request."""
    call = {"type": "tool_use", "id": "toolu_1", "name": body["tools"][0]["name"], "input": {}}
    return {**MESSAGE, "content": [call], "stop_reason": "tool_use", "usage": USAGE}


def claude_streams() -> Iterator[bytes]:
    """An answer as a stream, in arbitrary chunks."""
    lines = (f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in EVENTS)
    stream = "".join(lines).encode()
    yield from (stream[start : start + 100] for start in range(0, len(stream), 100))


def translated(pieces: Iterable[bytes], front: Front, context: Context) -> Iterator[bytes]:
    """Anthropic's stream in the dialect of the front, event by event."""
    decoder, encoder = dragoman.dialect("anthropic").stream_decoder(context), front.stream()
    for piece in pieces:
        yield encoder.feed_all(decoder.feed(piece))
    yield encoder.feed_all(decoder.close())
    yield encoder.close()  # an error if the stream broke off


def main() -> None:
    """Print the request for Anthropic, then both answers in OpenAI's format."""
    target = "anthropic:claude-sonnet-4-5"
    encoded = dragoman.translate(REQUEST, source="openai-chat", target=target)
    print(json.dumps(encoded.body, indent=2))
    for report in (*encoded.losses, *encoded.repairs):
        print(report)

    front = Front("openai-chat", dragoman.dialect("openai-chat").decode_request(REQUEST))
    answer = dragoman.dialect("anthropic").decode_response(claude(encoded.body), encoded.context)
    print(json.dumps(front.response(answer).body, indent=2))
    print(b"".join(translated(claude_streams(), front, encoded.context)).decode())


if __name__ == "__main__":
    main()
