"""Any events, valid or nearly so, through every dialect's encoder."""

from __future__ import annotations

import pytest
from hypothesis import given

import dragoman
from dragoman import MessageAccumulator, Refusal, Text, Thinking, ToolCall
from dragoman.model.events import ResponseEnd, StreamError
from dragoman.model.responses import Response
from dragoman.model.usage import FinishReason
from tests.wire.anthropic import stream_grammar as anthropic_grammar
from tests.wire.openai_responses import stream_grammar as responses_grammar
from tests.wire.streamed import Script, folded, read, scripts, written


def _check_grammar(dialect: str, stream: bytes) -> None:
    if dialect == "anthropic":
        anthropic_grammar.check_stream(stream, may_break_off=True)
    elif dialect == "openai-responses":
        responses_grammar.check_stream(stream, may_contradict=True)


def _words(response: Response, choice: int, *kinds: type) -> str:
    found = [c for c in response.choices if c.index == choice]
    parts = found[0].message.parts if found else ()
    return "".join([str(getattr(p, "text", "")) for p in parts if isinstance(p, kinds)])


@pytest.mark.parametrize("dialect", dragoman.dialects())
@given(script=scripts())
def test_any_events_make_a_stream(dialect: str, script: Script) -> None:
    """The stream is valid, readable, and complete if and only if the answer was."""
    stream, _ = written(dialect, script.events)
    _check_grammar(dialect, stream)
    decoder = read(dialect, stream)
    ends = [i for i, e in enumerate(script.events) if isinstance(e, (ResponseEnd, StreamError))]
    is_whole = bool(ends) and isinstance(script.events[ends[0]], ResponseEnd)
    if dialect == "openai-responses" and is_whole:
        ended = [c for c in folded(script.events).choices if c.index == 0]
        is_whole = not ended or ended[0].finish is not FinishReason.ERROR  # a failure
    said = MessageAccumulator()
    said.extend(script.events)
    # A call whose cut arguments went out can't be taken back, whatever its part is at last.
    may_be_cut = is_whole and (said.ends_within_part or script.corrected)
    assert decoder.is_complete is is_whole or may_be_cut


@pytest.mark.parametrize("dialect", dragoman.dialects())
@given(script=scripts())
def test_texts_and_calls_arrive_once(dialect: str, script: Script) -> None:
    """Texts and calls arrive once each, or their loss is reported."""
    events = [e for e in script.events if not isinstance(e, StreamError)]
    if not isinstance(events[-1] if events else None, ResponseEnd):
        events.append(ResponseEnd())
    stream, losses = written(dialect, events)
    response, given_ = read(dialect, stream).response, folded(events)
    lost = {loss.path.partition(".message")[0] for loss in losses if ".message" not in loss.path}
    for choice in given_.choices:
        if f"choices[{choice.index}]" in lost:
            continue
        heard = _words(response, choice.index, Text, Thinking, Refusal)
        for number, part in enumerate(choice.message.parts):
            where = f"choices[{choice.index}].message.parts[{number}]"
            is_lost = any(loss.path.startswith(where) for loss in losses)
            if isinstance(part, (Text, Thinking, Refusal)) and not is_lost:
                for word in part.text.replace(">", "> ").split():
                    assert heard.count(word) == 1, (word, where)
        calls = [p for p in choice.message.parts if isinstance(p, ToolCall)]
        arrived = [c for c in response.choices if c.index == choice.index]
        found = {c.name: c for c in (arrived[0].message.tool_calls if arrived else ())}
        for call in calls:
            if call.name and call.has_valid_arguments and call.kind == "function" and not losses:
                assert found[call.name].arguments == call.arguments
