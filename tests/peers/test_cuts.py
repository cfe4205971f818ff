"""Streams that are cut anywhere, and closed as if they had ended; calls, at each character."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import dragoman
from dragoman.model.responses import Response
from dragoman.wire.text_tools import TEXT_ARGUMENT
from tests.peers.claims import is_unfinished
from tests.peers.cut_calls import (
    called,
    claude,
    claudes_end,
    delta,
    gemini,
    nothing_runs,
    responses,
)
from tests.peers.rows import Frame, Outcome, Row, Stream, outcome
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


_WRITTEN = '{"path": "/ä", "n": [-1.5e2, true], "s": "a\\"\\u00e9"}'
_LEAVES_BEFORE = 3  # pieces of Gemini's stream


def _cut(text: str) -> Iterator[tuple[str, str, tuple[Frame, ...]]]:
    """Streams of a call with the beginning of its arguments, by dialect and how they end."""
    chat = called(text)
    yield "openai-chat", "nothing", chat
    yield "openai-chat", "[DONE]", (*chat, "[DONE]")
    for reason in ("length", "content_filter"):
        yield "openai-chat", reason, (*chat, delta({}, reason), "[DONE]")
    before = delta({"tool_calls": [
        {"index": 0, "id": "call_0", "type": "function",
         "function": {"name": "now", "arguments": "{}"}},
    ]})  # fmt: skip
    second = [{**frame, "choices": [_second(frame["choices"][0])]} for frame in chat]
    yield "openai-chat", "length, after another call", (
        before, *second, delta({}, "length"), "[DONE]")  # fmt: skip
    yield "anthropic", "nothing", claude(text)
    for reason in ("max_tokens", "refusal", "model_context_window_exceeded"):
        yield "anthropic", reason, (*claude(text), *claudes_end(reason))
    yield "openai-responses", "nothing", responses(text, None)
    for reason in ("max_output_tokens", "content_filter", "odd"):
        yield "openai-responses", reason, responses(text, reason)


def _second(choice: dict[str, Any]) -> dict[str, Any]:
    """The choice of a chunk, with its call as the second one."""
    calls = [{**call, "index": 1} for call in choice["delta"]["tool_calls"]]
    return {**choice, "delta": {**choice["delta"], "tool_calls": calls}}


@pytest.mark.parametrize("front", dragoman.dialects())
@pytest.mark.parametrize("step", [9, pytest.param(1, marks=pytest.mark.thorough)])
def test_arguments_are_cut_at_each_character(front: str, step: int) -> None:
    """Whatever the model wrote of a call, no client can run it, or takes the answer for whole."""
    for length in range(0, len(_WRITTEN), step):
        for name, end, frames in _cut(_WRITTEN[:length]):
            if front == name:
                continue
            row = Row(f"{length} of {name}, {end}", "", Stream(name, frames), ())
            found = outcome(row, front)
            assert _given(found) <= {"now"}, row.what
            if end not in {"nothing", "[DONE]"}:  # of these, there is no whole answer
                assert found.whole is None or _given(found.whole) <= {"now"}, row.what
            is_unfinished(found)


def _given(found: Outcome) -> set[str]:
    """The calls that a client could run."""
    return {
        call.name
        for choice in (() if found.seen is None else found.seen.choices)
        for call in choice.message.tool_calls
        if call.raw != "" and call.object_arguments() is not None
    }


@pytest.mark.parametrize("front", dragoman.dialects())
@pytest.mark.parametrize("finish", [None, "MAX_TOKENS", "SAFETY", "MALFORMED_FUNCTION_CALL"])
def test_geminis_pieces_are_cut(front: str, finish: str | None) -> None:
    """A call of Gemini's whose pieces end early is not run."""
    for count in range(_LEAVES_BEFORE + 1):
        row = Row("", "", Stream("gemini", gemini(count, finish)), ())
        found = outcome(row, front)
        nothing_runs(found)
        is_unfinished(found)


@pytest.mark.parametrize("front", ["anthropic", "gemini", "ollama"])
@pytest.mark.parametrize("reason", ["max_output_tokens", "content_filter"])
def test_free_texts_are_cut_at_each_character(front: str, reason: str) -> None:
    """A free text that was cut off never becomes the argument of a function."""
    patch = "*** Begin Patch\n+é\n"
    for length in range(len(patch)):
        given = Stream("openai-responses", responses(patch[:length], reason, "custom"))
        found = outcome(Row("", "", given, ()), front)
        nothing_runs(found)
        is_unfinished(found)
