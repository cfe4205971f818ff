"""Recorded streams of this and other dialects are decoded with any chunking, and encoded."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

import dragoman
from dragoman import DragomanError
from dragoman.model.accumulate import MessageAccumulator
from dragoman.model.events import Event, OpaqueEvent, StreamError
from dragoman.model.responses import Response
from dragoman.wire.framing import SseParser
from dragoman.wire.openai_responses.codec import DIALECT
from dragoman.wire.openai_responses.stream import EVENTS
from tests.corpus import Corpus, Recording
from tests.wire.openai_responses.stream_grammar import check_stream
from tests.wire.openai_responses.streams import answered, decoded, encoded, said
from tests.wire.recorded import ENDPOINTS, SPOKEN_BY

pytestmark = pytest.mark.corpus

_BYTE_BY_BYTE = 30_000
"""Bytes of a stream up to which it is also read one by one."""
_ENDS = {"response.completed", "response.incomplete", "response.failed"}
_FOLDER = "openai_responses/ai____fixtures__-"

BROKEN = _FOLDER + "parallel-tool-call-wrapper.1.json"
"""Its first and last event lack a brace: edited by hand."""
FAILED = _FOLDER + "openai-error.1.json"
CORRECTED = _FOLDER + "openai-shell-container.1.json"
"""The whole of its text is another than its pieces were: edited by hand."""
RENAMED = frozenset({
    # GitHub's gateway changes the ids in each event; the response's first id counts.
    _FOLDER + "github-copilot-id-rotation.1.json",
    "openai_responses/rig__reasoning_roundtrip-streaming__00.json",
    "openai_responses/rig__reasoning_roundtrip-streaming__01.json",
})  # fmt: skip
SEVERAL = frozenset({
    # Files with the streams of several calls: only the first is read.
    _FOLDER + "azure-reasoning-encrypted-content.1.json",
    _FOLDER + "openai-reasoning-encrypted-content.1.json",
    _FOLDER + "openai-shell-tool.1.json",
})  # fmt: skip


def _of(corpus: Corpus, dialect: str) -> Iterator[tuple[Recording, bytes]]:
    """The recorded streams of a dialect with status 200."""
    for recording in corpus.select(provider_api=SPOKEN_BY[dialect], status=200):
        path = recording.request_path.partition("?")[0]
        if ENDPOINTS[dialect].search(path) and recording.response_stream is not None:
            yield recording, recording.response_stream


@cache
def _recorded(corpus: Corpus) -> tuple[tuple[str, bytes, Response, tuple[Event, ...]], ...]:
    found = []
    for recording, stream in _of(corpus, "openai-responses"):
        if recording.row.file != BROKEN:
            decoder, events = decoded(stream)
            found.append((recording.row.file, stream, decoder.response, tuple(events)))
    return tuple(found)


def _frames(stream: bytes) -> list[dict[str, Any]]:
    parser = SseParser()
    frames = [frame.data for frame in parser.feed(stream) + parser.close()]
    return [json.loads(data) for data in frames if data != "[DONE]"]


def test_grammar_accepts_every_recorded_stream(corpus: Corpus) -> None:
    """Every recorded stream is valid up to its end."""
    for file, stream, _, _ in _recorded(corpus):
        state = check_stream(stream, is_recorded=True).state
        assert f"response.{state}" in _ENDS, file


def test_every_recorded_stream_is_decoded_completely(corpus: Corpus) -> None:
    """All but the failed one are complete, and no known event is left as opaque."""
    assert len(_recorded(corpus)) > 30
    for file, stream, _, events in _recorded(corpus):
        assert decoded(stream)[0].is_complete == (file != FAILED), file
        assert any(isinstance(event, StreamError) for event in events) == (file == FAILED), file
        unread = [e.payload.get("type") for e in events if isinstance(e, OpaqueEvent)]
        assert file in SEVERAL or not EVENTS & set(unread), file


def test_stream_equals_its_final_response(corpus: Corpus) -> None:
    """The response and the accumulated events equal the plain form of the last event."""
    for file, stream, response, events in _recorded(corpus):
        wire = next(frame["response"] for frame in _frames(stream) if frame["type"] in _ENDS)
        expected = DIALECT.decode_response(wire)
        folded = MessageAccumulator()
        folded.extend(events)
        assert said(folded.response) == said(response), file
        if not wire["output"]:  # the Codex backend
            expected = expected.replace(choices=response.choices)
        if file in RENAMED:
            assert response.message == expected.message, file
            continue
        assert said(response) == said(expected), file


def test_chunk_boundaries_make_no_difference(corpus: Corpus) -> None:
    """Split at random positions and byte by byte, a stream gives the same events."""
    chance = random.Random(7)
    for file, stream, response, events in _recorded(corpus):
        cuts = [chance.randrange(len(stream)) for _ in range(20)]
        pieces = [cuts] if len(stream) > _BYTE_BY_BYTE else [cuts, range(len(stream))]
        for places in pieces:
            decoder, found = decoded(stream, places)
            assert len(found) == len(events), file
            assert all(one.identical(two) for one, two in zip(found, events, strict=True)), file
            assert said(decoder.response) == said(response), file


def test_truncated_stream_is_never_complete(corpus: Corpus) -> None:
    """A stream isn't complete before its last event."""
    for file, stream, _, _ in _recorded(corpus):
        decoder = DIALECT.stream_decoder()
        for frame in stream.replace(b"\r\n", b"\n").split(b"\n\n"):
            is_end = any(f'"{kind}"'.encode() in frame for kind in _ENDS)
            if is_end:
                break
            decoder.feed(frame + b"\n\n")
            assert not decoder.is_complete, file


def test_every_recorded_stream_round_trips(corpus: Corpus) -> None:
    """Encoded again, a stream is valid and gives the same response; exceptions are listed."""
    for file, _, response, events in _recorded(corpus):
        encoder, stream = encoded(events)
        state = check_stream(stream, may_contradict=file == CORRECTED).state
        assert state != "failed" or file == FAILED, file
        assert said(decoded(stream)[0].response) == said(response), file
        if file not in SEVERAL | RENAMED:
            assert encoder.losses == [], file


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
    for recording, stream in _of(corpus, dialect):
        decoder = dragoman.dialect(dialect).stream_decoder()
        try:
            events = [*decoder.feed(stream), *decoder.close()]
        except DragomanError:
            continue  # tested in that dialect's own tests
        count += 1
        for written in (encoded(events)[1], answered(events)):
            grammar = check_stream(written)
            assert (grammar.state != "failed") == decoder.is_complete, recording
            if decoder.is_complete and decoder.response.choices:
                assert _told(decoded(written)[0].response) == _told(decoder.response), recording
    assert count > 40
