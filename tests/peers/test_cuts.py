"""Streams that a proxy cuts anywhere and closes as if they had ended."""

from __future__ import annotations

from typing import Any

import pytest

import dragoman
from dragoman.model.responses import Response
from dragoman.wire.text_tools import TEXT_ARGUMENT
from tests.wire.front_types import request_to
from tests.wire.stream_table import EVERY, Case

_LENGTH = {"index": 0, "delta": {}, "finish_reason": "length"}
_CLOSINGS: dict[str, tuple[tuple[Any, ...], ...]] = {
    "openai-chat": (("[DONE]",), ({"choices": [_LENGTH]}, "[DONE]")),
    "anthropic": (
        ({"type": "message_stop"},),
        (
            {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}},
            {"type": "message_stop"},
        ),
    ),
    "gemini": ((), ({"candidates": [{"finishReason": "MAX_TOKENS"}]},)),
    "ollama": ((), ({"message": {"role": "assistant"}, "done": True, "done_reason": "length"},)),
    "openai-responses": (
        (),
        ({"type": "response.incomplete", "response": {
            "id": "resp_1", "model": "m", "status": "incomplete",
            "incomplete_details": {"reason": "max_output_tokens"}}},),
    ),
}  # fmt: skip
"""How a stream of each dialect is closed after it was cut: without a reason, and with one."""


def _made(response: Response) -> list[Any]:
    """The arguments that a client could use, if there are any."""
    return [
        arguments
        for choice in response.choices[:1]
        for call in choice.message.tool_calls
        if (arguments := call.object_arguments())
    ]


@EVERY
@pytest.mark.parametrize("front", dragoman.dialects())
def test_cut_streams(case: Case, front: str) -> None:
    """A front's client never gets a call with arguments that the model did not write."""
    if not case.its.is_sse and case.its.dialect.name == "gemini":
        pytest.skip("an array that was cut is not JSON")
    frames = list(case.frames)
    whole = case.its.decoded(case.stream)[0].response
    texts = [call.raw for choice in whole.choices for call in choice.message.tool_calls]
    wrote = [*_made(whole), *[{TEXT_ARGUMENT: text} for text in texts]]
    for place in range(len(frames)):
        for closing in _CLOSINGS[case.its.dialect.name]:
            source = case.its.dialect.stream_decoder()
            stream = case.its.written([*frames[:place], *closing])
            encoder = dragoman.Front(front, request_to(front)).stream()
            written = b"".join(
                [*map(encoder.feed, [*source.feed(stream), *source.close()]), encoder.close()]
            )
            client = dragoman.dialect(front).stream_decoder()
            client.feed(written)
            client.close()
            for arguments in _made(client.response):
                assert arguments in wrote, (place, closing)
