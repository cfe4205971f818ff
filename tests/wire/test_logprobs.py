"""Log probabilities are translated between the dialects that have them."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import dialect, dialects
from dragoman.model import events
from dragoman.wire.logprobs import tokens_of
from tests.wire.streamed import read, written

_ENTRY = {"token": "Hi", "logprob": -0.1, "bytes": [72, 105]}
_TOKENS = [{**_ENTRY, "top_logprobs": [_ENTRY, {**_ENTRY, "token": "Ho", "bytes": [72, 111]}]}]
_HOME: dict[str, Any] = {
    "openai-chat": {
        "id": "x", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop", "logprobs": {"content": _TOKENS},
                     "message": {"role": "assistant", "content": "Hi"}}],
    },
    "openai-responses": {
        "id": "x", "object": "response", "created_at": 1, "model": "m", "status": "completed",
        "output": [{"type": "message", "id": "m1", "role": "assistant", "status": "completed",
                    "content": [{"type": "output_text", "text": "Hi", "annotations": [],
                                 "logprobs": _TOKENS}]}],
    },
    "gemini": {
        "modelVersion": "m", "responseId": "x",
        "candidates": [{
            "content": {"role": "model", "parts": [{"text": "Hi"}]}, "finishReason": "STOP",
            "logprobsResult": {
                "chosenCandidates": [{"token": "Hi", "logProbability": -0.1}],
                "topCandidates": [{"candidates": [{"token": "Hi", "logProbability": -0.1},
                                                  {"token": "Ho", "logProbability": -0.1}]}],
            },
        }],
    },
    "ollama": {
        "model": "m", "created_at": "2026-01-01T00:00:00Z", "done": True, "done_reason": "stop",
        "message": {"role": "assistant", "content": "Hi"}, "logprobs": _TOKENS,
    },
}  # fmt: skip


@pytest.mark.parametrize("target", _HOME)
@pytest.mark.parametrize("source", _HOME)
def test_logprobs_round_trip(source: str, target: str) -> None:
    """Encoded in another dialect and decoded, all tokens have the same probability."""
    given = dialect(source).decode_response(_HOME[source])
    encoded = dialect(target).encode_response(given)
    again = dialect(target).decode_response(encoded.body)
    before, after = (tokens_of(each.choices[0].logprobs) for each in (given, again))
    assert before is not None
    assert before == after
    assert not [loss for loss in encoded.losses if loss.path.startswith("choices[0].logprobs")]


@pytest.mark.parametrize("target", dialects())
@pytest.mark.parametrize("source", _HOME)
def test_streams_have_them_or_report_a_loss(source: str, target: str) -> None:
    """They are at the end of a stream if the dialect supports it; else a loss."""
    whole = dialect(source).decode_response(_HOME[source])
    stream, _ = written(source, _events(whole))
    decoder = dialect(source).stream_decoder()
    told = [*decoder.feed(stream), *decoder.close()]
    assert tokens_of(decoder.response.choices[0].logprobs) == tokens_of(whole.choices[0].logprobs)
    output, losses = written(target, told)
    again = read(target, output).response.choices[0].logprobs
    is_told = any(loss.path.startswith("choices[0].logprobs") for loss in losses)
    assert is_told or tokens_of(again) == tokens_of(whole.choices[0].logprobs)


def _events(whole: Any) -> list[Any]:
    """The answer as events."""
    choice = whole.choices[0]
    part = choice.message.parts[0]
    return [
        events.ResponseStart(id=whole.id, model=whole.model, origin=choice.message.origin),
        events.PartStart(0, part),
        events.PartStop(0),
        events.ChoiceFinish(choice.finish, choice.finish_raw, 0, choice.logprobs),
        events.ResponseEnd(),
    ]


@pytest.mark.parametrize(
    "odd", [7, "x", {}, [], {"content": [7]}, {"content": [{"token": 1, "logprob": 2}]},
            {"chosenCandidates": [{"token": "a"}]}, {"chosenCandidates": [{}], "topCandidates": 7},
            [{"token": "a", "logprob": 1, "top_logprobs": 7}]],
)  # fmt: skip
@pytest.mark.parametrize("target", dialects())
def test_odd_logprobs_do_no_harm(odd: Any, target: str) -> None:
    """An answer with malformed log probabilities is encoded."""
    for source in ("openai-chat", "gemini"):
        given = dialect(source).decode_response(_HOME[source])
        choice = given.choices[0].replace(logprobs=odd)
        dialect(target).encode_response(given.replace(choices=(choice,)))
