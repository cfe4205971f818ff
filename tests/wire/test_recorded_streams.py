"""Recorded streams of every dialect are decoded with any chunking, and encoded again."""

from __future__ import annotations

import random
from functools import cache
from typing import Any, NamedTuple

import pytest

from dragoman.model.accumulate import MessageAccumulator
from dragoman.model.events import Event, OpaqueEvent, ResponseEnd, StreamError
from dragoman.model.responses import Response
from dragoman.wire.openai_responses.stream import EVENTS
from tests.corpus import Corpus
from tests.wire import recorded
from tests.wire.stream_table import ROWS, TABLE

pytestmark = pytest.mark.corpus

_LEAST = {"anthropic": 40, "gemini": 20, "ollama": 6, "openai-chat": 90, "openai-responses": 30}
_BYTE_BY_BYTE = 60_000
"""Bytes of a stream up to which it is also read one by one."""
DIALECTS = pytest.mark.parametrize("row", _LEAST)


class Recorded(NamedTuple):
    """A recorded stream, and what is read from it."""

    file: str
    stream: bytes
    response: Response
    events: tuple[Event, ...]
    is_complete: bool
    fault: str
    """As in `Streams.recorded_faults`; empty for most."""


@cache
def _recorded(corpus: Corpus, row: str) -> tuple[Recorded, ...]:
    its = TABLE[row]
    return tuple(
        Recorded(
            file, stream, decoder.response, tuple(events), decoder.is_complete,
            its.recorded_faults.get(file, ""),
        )
        for file, stream, decoder, events in recorded.decoded(corpus, its.dialect.name)
    )  # fmt: skip


def _said(row: str, response: Response) -> Any:
    """As data; what a server may leave out makes no difference."""
    document = TABLE[row].said(response)
    if row == "openai-chat" and not response.model:  # our encoder adds a model and a time
        document |= {"model": None, "extras": None}
        for choice in document["choices"]:
            choice["message"]["origin"].pop("model", None)
    if row == "openai-chat":  # and writes counts in its own way
        for one in (document, *(choice["message"] for choice in document.get("choices", ()))):
            one.get("usage", {}).get("extras", {}).pop("openai-chat spelling", None)
    if row == "anthropic":  # some servers leave out fields that are null
        extras = document.pop("extras", {}).get("anthropic", {})
        return document, {key: value for key, value in extras.items() if value is not None}
    return document


@DIALECTS
def test_every_recorded_stream_is_complete(corpus: Corpus, row: str) -> None:
    """Every stream is complete and has no unknown events, except for the known faults."""
    found = _recorded(corpus, row)
    assert len(found) >= _LEAST[row]
    for file, _, response, events, is_complete, fault in found:
        assert is_complete is (fault not in {"failed", "unfinished"}), file
        assert any(isinstance(event, StreamError) for event in events) is (fault == "failed"), file
        assert any(isinstance(event, ResponseEnd) for event in events) is is_complete, file
        unread = [event.payload for event in events if isinstance(event, OpaqueEvent)]
        if row == "openai-responses":  # whose other events tell of progress
            unread = [payload for payload in unread if payload.get("type") in EVENTS]
        if row == "anthropic":
            assert bool(unread) is (fault in {"failed", "several"}), file
        assert fault in {"failed", "several"} or unread == [], file
        if is_complete and row == "gemini":
            assert response.finish is not None, file
            assert response.usage is not None, file
            assert response.id, file


@DIALECTS
def test_chunk_boundaries_make_no_difference(corpus: Corpus, row: str) -> None:
    """Split at random, a stream gives the same response, and as many events."""
    chance, its = random.Random(7), TABLE[row]
    for file, stream, response, events, _, _ in _recorded(corpus, row):
        expected = its.said(response)
        for count in (1, 10, 50, 200):
            cuts = [chance.randrange(len(stream) + 1) for _ in range(count)]
            decoder, found = its.decoded(stream, cuts)
            assert its.said(decoder.response) == expected, file
            assert [type(event) for event in found] == [type(event) for event in events], file


@DIALECTS
def test_single_bytes_make_no_difference(corpus: Corpus, row: str) -> None:
    """Fed byte by byte, every stream up to a maximum size gives the same response and events."""
    its = TABLE[row]
    for file, stream, response, events, _, _ in _recorded(corpus, row):
        if len(stream) <= _BYTE_BY_BYTE:
            decoder, found = its.decoded(stream, range(len(stream)))
            assert its.said(decoder.response) == its.said(response), file
            assert len(found) == len(events), file
            assert all(one.identical(two) for one, two in zip(found, events, strict=True)), file


@DIALECTS
def test_truncated_stream_is_never_complete(corpus: Corpus, row: str) -> None:
    """Before its last frame no stream is complete, and it is encoded as an error."""
    chance, its = random.Random(7), TABLE[row]
    between = b"\n\n" if its.is_sse else b"\n"
    for file, stream, _, _, _, _ in _recorded(corpus, row):
        decoder, before = its.dialect.stream_decoder(), b""
        for frame in stream.replace(b"\r\n", b"\n").split(between):
            if any(end in frame for end in its.last):
                break
            before += frame + between
            decoder.feed(frame + between)
            assert not decoder.is_complete, file
        cut, events = its.decoded(before[: chance.randrange(len(before) + 1)])
        assert not cut.is_complete, file
        assert its.ended(its.encoded(events)[1]) == "failed", file


@ROWS
def test_every_recorded_stream_round_trips(corpus: Corpus, row: str) -> None:
    """Encoded again, a stream is valid and gives the same response; nothing is lost."""
    its = TABLE[row]
    for file, _, response, events, is_complete, fault in _recorded(corpus, row):
        encoder, stream = its.encoded(events)
        end = its.ended(stream, may_be_odd=fault == "corrected")
        assert end == ("complete" if is_complete else "failed"), file
        again, _ = its.decoded(stream)
        assert again.is_complete is is_complete, file
        assert again.response == response, file
        paths = {loss.path for loss in encoder.losses}
        if is_complete:
            assert _said(row, again.response) == _said(row, response), file
            assert not paths or fault in {"several", "renamed"}, file
        else:  # its usage can't be reported
            assert paths <= {"usage", "events"}, file
        if row == "anthropic":
            assert bool(paths) is bool(fault), file
        if its.dialect.name == "gemini":
            assert stream.count(b'"responseId"') == stream.count(b'"candidates"'), file
            assert stream.count(b'"modelVersion"') == stream.count(b'"candidates"'), file


@DIALECTS
def test_accumulated_events_equal_the_response(corpus: Corpus, row: str) -> None:
    """Accumulating the events gives the decoder's response, where the order of parts is kept."""
    its = TABLE[row]
    for file, _, response, events, _, _ in _recorded(corpus, row):
        folded = MessageAccumulator()
        folded.extend(events)
        assert folded.response.text == response.text, file
        assert its.order == "other" or its.said(folded.response) == its.said(response), file


@DIALECTS
def test_every_accumulated_stream_can_be_a_plain_body(corpus: Corpus, row: str) -> None:
    """Encoded as a plain body, an accumulated stream decodes to the same response."""
    its = TABLE[row]
    for file, _, response, _, _, fault in _recorded(corpus, row):
        if row == "anthropic" and fault == "failed":
            continue
        body = its.dialect.encode_response(response)
        assert body.losses == (), file
        again = its.dialect.decode_response(body.to_bytes())
        assert again == response, file
        assert fault or row == "openai-chat" or its.said(again) == its.said(response), file
