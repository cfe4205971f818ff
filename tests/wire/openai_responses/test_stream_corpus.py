"""Recorded streams equal their last event, and other dialects' streams are valid here."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.model.accumulate import MessageAccumulator
from dragoman.model.responses import Response
from dragoman.wire.framing import SseParser
from dragoman.wire.openai_responses.codec import DIALECT
from tests.corpus import Corpus
from tests.wire import recorded
from tests.wire.openai_responses.stream_grammar import check_stream
from tests.wire.openai_responses.streams import ENDS, TABLE, answered, decoded, encoded, said

pytestmark = pytest.mark.corpus


def _frames(stream: bytes) -> list[dict[str, Any]]:
    parser = SseParser()
    frames = [frame.data for frame in parser.feed(stream) + parser.close()]
    return [json.loads(data) for data in frames if data != "[DONE]"]


def test_grammar_accepts_every_recorded_stream(corpus: Corpus) -> None:
    """Every recorded stream is valid up to its end."""
    for file, stream, _, _ in recorded.decoded(corpus, "openai-responses"):
        state = check_stream(stream, is_recorded=True).state
        assert f"response.{state}" in ENDS, file


def test_stream_equals_its_final_response(corpus: Corpus) -> None:
    """The response and the accumulated events equal the plain form of the last event."""
    faults = TABLE["openai-responses"].recorded_faults
    for file, stream, decoder, events in recorded.decoded(corpus, "openai-responses"):
        response = decoder.response
        wire = next(frame["response"] for frame in _frames(stream) if frame["type"] in ENDS)
        expected = DIALECT.decode_response(wire)
        folded = MessageAccumulator()
        folded.extend(events)
        assert said(folded.response) == said(response), file
        if not wire["output"]:  # the Codex backend
            expected = expected.replace(choices=response.choices)
        if faults.get(file) == "renamed":
            assert response.message == expected.message, file
            continue
        assert said(response) == said(expected), file


def _told(response: Response) -> tuple[Any, ...]:
    """What must be equal in any dialect."""
    usage = response.usage
    return (
        response.text,
        [(call.id, call.name, call.raw_arguments or "{}") for call in response.tool_calls],
        usage and (usage.total_input, usage.total_output),
    )


@pytest.mark.parametrize("dialect", ["anthropic", "openai-chat"])
def test_recorded_streams_of_other_dialects_are_valid_here(corpus: Corpus, dialect: str) -> None:
    """Streams of other dialects encode to valid streams with the same text and calls."""
    count = 0
    for file, _, decoder, events in recorded.decoded(corpus, dialect):
        count += 1
        for written in (encoded(events)[1], answered(events)):
            grammar = check_stream(written)
            assert (grammar.state != "failed") == decoder.is_complete, file
            if decoder.is_complete and decoder.response.choices:
                assert _told(decoded(written)[0].response) == _told(decoder.response), file
    assert count > 40
