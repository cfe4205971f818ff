"""Streams that fail: what was received but can no longer be sent is reported."""

from __future__ import annotations

from typing import Any

import pytest

import dragoman
from dragoman import Text, Thinking, Usage
from dragoman.errors import WireError
from dragoman.model.events import (
    ChoiceFinish,
    Event,
    PartDelta,
    PartStart,
    PartStop,
    ResponseEnd,
    ResponseStart,
    StreamError,
    UsageUpdate,
)
from dragoman.model.jsontext import dumps
from dragoman.model.parts import Citation, Origin
from dragoman.model.tools import ToolCallDelta, make_call
from dragoman.model.usage import FinishReason
from tests.wire.streamed import encoder_of, folded, read

_ERROR = StreamError("it broke", "server_error", 500)
_CALL = make_call("call_1", "weather", raw="")


def _start(dialect: str, model: str | None = "m") -> ResponseStart:
    return ResponseStart(id="r1", model=model, origin=Origin(dialect=dialect, model=model))


def _failed(dialect: str, *events: Event) -> tuple[bytes, list[str]]:
    """The stream for events that end in an error, and the paths of the losses."""
    encoder = encoder_of(dialect)
    stream = b"".join([*map(encoder.feed, events), encoder.feed(_ERROR), encoder.close()])
    return stream, [loss.path for loss in encoder.losses]


@pytest.mark.parametrize("dialect", dragoman.dialects())
@pytest.mark.parametrize(
    "late",
    [
        PartStart(1, Text("more")),
        PartDelta(0, "more"),
        ToolCallDelta(0, "call_2", "weather", "{}"),
    ],
    ids=["part", "text", "call"],
)
def test_content_after_an_error_is_lost(dialect: str, late: Event) -> None:
    """Some servers continue after an error, but an error ends the encoded stream."""
    begun: list[Event] = [_start(dialect), PartStart(0, Text("")), PartDelta(0, "said"), _ERROR]
    encoder = encoder_of(dialect)
    stream = b"".join([*map(encoder.feed, [*begun, late]), encoder.close()])
    assert b"said" in stream
    assert encoder.losses or b"more" in stream or b"call_2" in stream


@pytest.mark.parametrize("dialect", dragoman.dialects())
def test_end_events_after_an_error_are_no_loss(dialect: str) -> None:
    """The ends of parts and of the response follow in any case."""
    begun: list[Event] = [_start(dialect), PartStart(0, Text("")), PartDelta(0, "said")]
    encoder = encoder_of(dialect)
    for event in [*begun, _ERROR]:
        encoder.feed(event)
    before = list(encoder.losses)
    if dialect in {"openai-chat", "ollama"}:
        encoder.feed(PartStop(0))
        encoder.feed(ResponseEnd())
    encoder.close()
    assert list(encoder.losses) == before


@pytest.mark.parametrize("dialect", dragoman.dialects())
def test_usage_before_an_error_is_sent_or_lost(dialect: str) -> None:
    """Missing token counts are reported."""
    begun: list[Event] = [_start(dialect), PartStart(0, Text("")), PartDelta(0, "said")]
    stream, losses = _failed(dialect, *begun, UsageUpdate(Usage(input=3, output=4)))
    usage = read(dialect, stream).response.usage
    assert "usage" in losses or (usage is not None and usage.output == 4)


def test_usage_in_the_first_event_is_sent() -> None:
    """Anthropic's first event has the usage, so nothing is lost by an error."""
    begun: list[Event] = [
        _start("anthropic"),
        UsageUpdate(Usage(input=3, output=4)),
        PartStart(0, Text("a")),
    ]
    stream, losses = _failed("anthropic", *begun)
    assert losses == []
    assert read("anthropic", stream).response.usage == Usage(input=3, output=4)


@pytest.mark.parametrize("dialect", dragoman.dialects())
def test_calls_before_an_error_are_sent_or_lost(dialect: str) -> None:
    """Some dialects send only complete calls, and so hold them back."""
    whole: list[Event] = [PartStart(0, _CALL), PartDelta(0, '{"city":"Rome"}')]
    streamed: list[Event] = [ToolCallDelta(0, "call_1", "weather", '{"city":"Rome"}')]
    for call in (whole, streamed):
        stream, losses = _failed(dialect, _start(dialect), *call)
        choices = read(dialect, stream).response.choices
        names = [made.name for choice in choices for made in choice.message.tool_calls]
        assert names == ["weather"] or any("parts[0]" in path for path in losses)


@pytest.mark.parametrize("dialect", dragoman.dialects())
def test_parts_that_wait_for_another_are_sent_or_lost(dialect: str) -> None:
    """Blocks are sequential: text beside an open call waits for the call's end."""
    begun: list[Event] = [_start(dialect), PartStart(0, _CALL), PartDelta(0, '{"city":')]
    stream, losses = _failed(dialect, *begun, PartStart(1, Text("")), PartDelta(1, "meanwhile"))
    heard = str(read(dialect, stream).response.message)
    assert "meanwhile" in heard or any("parts[1]" in path for path in losses)


def test_citations_and_details_for_the_last_chunk_are_lost() -> None:
    """Gemini sends them only in the last chunk."""
    cited = Text("", (Citation(kind="web", url="https://a.example"),))
    finish = ChoiceFinish(FinishReason.STOP, extras={"gemini": {"avgLogprobs": -1}})
    _, losses = _failed("gemini", _start("gemini"), PartStart(0, cited), PartDelta(0, "a"), finish)
    assert losses == ["choices[0].message.parts[0].citations", "choices[0].extras"]


def test_a_signature_of_interrupted_thinking_is_lost() -> None:
    """Interrupted thinking is split, and its signature covers all of it."""
    events: list[Event] = [
        _start("anthropic"),
        PartStart(0, Thinking("", signature="")),
        PartDelta(0, "first"),
        PartStart(1, Text("")),
        PartDelta(1, "text"),
        PartDelta(0, " second"),
        PartDelta(0, signature="c2ln"),
        PartStop(0),
        PartStop(1),
        ChoiceFinish(FinishReason.STOP),
        ResponseEnd(),
    ]
    encoder = encoder_of("anthropic")
    stream = b"".join([*map(encoder.feed, events), encoder.close()])
    assert read("anthropic", stream).response.message.parts != folded(events).message.parts
    assert [loss.path for loss in encoder.losses] == ["choices[0].message.parts[0]"]


def test_a_model_that_comes_too_late_is_lost() -> None:
    """Anthropic's first event has the model, and can't be sent again."""
    events: list[Event] = [PartStart(0, Text("a")), _start("anthropic"), PartStop(0)]
    encoder = encoder_of("anthropic")
    for event in [*events, ChoiceFinish(FinishReason.STOP), ResponseEnd()]:
        encoder.feed(event)
    assert [loss.path for loss in encoder.losses] == ["model"]


@pytest.mark.parametrize("after", ["error", "cut", "broken"])
@pytest.mark.parametrize("reason", [{"blockReason": "SAFETY"}, {"safetyRatings": []}])
def test_feedback_before_the_end_of_a_failed_stream_is_sent(
    reason: dict[str, Any], after: str
) -> None:
    """Gemini's `promptFeedback` arrives even if no chunk of content follows it."""
    text = {"candidates": [{"index": 0, "content": {"role": "model", "parts": [{"text": "Hel"}]}}]}
    error = {"error": {"code": 500, "message": "x", "status": "INTERNAL"}}
    chunks = [text, {"promptFeedback": reason}, *([error] if after == "error" else [])]
    decoder = dragoman.dialect("gemini").stream_decoder()
    frames = b"".join(b"data: " + dumps(chunk) + b"\n\n" for chunk in chunks)
    events = decoder.feed(frames)
    if after == "broken":
        with pytest.raises(WireError):
            decoder.feed(b"data: {not JSON\n\n")
    events += decoder.close()
    encoder = encoder_of("gemini")
    written = b"".join(map(encoder.feed, events))
    seen = read("gemini", written if after == "error" else written + encoder.feed(_ERROR))
    assert seen.response.extras["gemini"] == {"promptFeedback": reason}
    assert not seen.is_complete
    assert not encoder.losses


_TOKEN = {"token": "log", "logprob": -1.0, "bytes": None, "top_logprobs": []}
_LATE: dict[str, Any] = {
    "openai-chat": {"id": "r", "model": "m", "created": 1, "late": 1, "choices": [
        {"index": 0, "delta": {"content": "Hi", "late": 2}, "late": 3,
         "logprobs": {"content": [_TOKEN]}}]},
    "gemini": {"responseId": "r", "late": 1, "usageMetadata": {"promptTokenCount": 9}, "candidates":
        [{"index": 0, "content": {"role": "model", "parts": [{"text": "Hi"}], "late": 2},
          "late": 3, "groundingMetadata": {"webSearchQueries": ["log"]}}]},
    "ollama": {"model": "m", "late": 1, "message": {"role": "assistant", "content": "Hi",
                                                    "late": 2}, "logprobs": [_TOKEN]},
}  # fmt: skip
_FAILURES: dict[str, Any] = {
    "openai-chat": {"error": {"message": "it broke", "type": "server_error"}},
    "gemini": {"error": {"code": 503, "message": "it broke", "status": "UNAVAILABLE"}},
    "ollama": {"error": "it broke"},
}


@pytest.mark.parametrize("dialect", _LATE)
@pytest.mark.parametrize("after", ["error", "cut", "broken"])
@pytest.mark.parametrize("target", dragoman.dialects())
def test_fields_that_wait_for_a_finish_reason_are_not_lost(
    dialect: str, after: str, target: str
) -> None:
    """They are sent back in their own dialect, and reported in others."""
    late = dumps(_LATE[dialect])
    form = b"%b\n" if dialect == "ollama" else b"data: %b\n\n"
    first = form % late.replace(b'"late"', b'"early"')
    decoder, encoder = dragoman.dialect(dialect).stream_decoder(), encoder_of(target)
    events = decoder.feed(first + form % late)
    if after == "error":
        events += decoder.feed(form % dumps(_FAILURES[dialect]))
    elif after == "broken":
        with pytest.raises(WireError):
            decoder.feed(form % b"{not JSON")
    events += decoder.close()
    written = b"".join([*map(encoder.feed, events), encoder.close()])
    assert not decoder.is_complete
    if target == dialect:
        assert all(b'"late":%d' % n in written for n in (2, 3) if b'"late":%d' % n in late)
        assert b"log" in written
    else:
        reasons = {loss.reason for loss in encoder.losses}
        assert "an unsupported event is left out" in reasons
