"""Recorded streams are decoded with any chunking, and encoded again."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from functools import cache

import pytest

from dragoman.model.events import Event, OpaqueEvent, StreamError
from dragoman.model.responses import Response
from dragoman.wire.anthropic.codec import DIALECT
from tests.corpus import Corpus, Recording
from tests.wire.anthropic.stream_grammar import check_stream
from tests.wire.anthropic.streams import decoded, encoded, said

pytestmark = pytest.mark.corpus

_ENDPOINT = re.compile(r"/v1/messages$|:(streamR|r)awPredict$")
_BYTE_BY_BYTE = 40_000
"""Bytes of a stream up to which it is also read one by one."""

SPLICED = frozenset({
    # A second `message_start` in the middle of the first message, with an unfinished call.
    "anthropic/ai____fixtures__-spliced-message-start.json",
})  # fmt: skip
SEVERAL = frozenset({
    # Files with the streams of several calls: only the first is read.
    "anthropic/ai____fixtures__-anthropic-programmatic-tool-calling.1.json",
    "anthropic/ai____fixtures__-anthropic-tool-search-bm25.1.json",
    "anthropic/ai____fixtures__-anthropic-tool-search-deferred-bm25.json",
    "anthropic/ai____fixtures__-anthropic-tool-search-deferred-regex.json",
})  # fmt: skip


@cache
def _recorded(corpus: Corpus) -> tuple[tuple[Recording, bytes], ...]:
    chosen = corpus.select(provider_api="anthropic", status=200)
    return tuple(
        (recording, stream)
        for recording in chosen
        if _ENDPOINT.search(recording.request_path.partition("?")[0])
        and (stream := recording.response_stream) is not None
    )


def _streams(corpus: Corpus) -> Iterator[tuple[str, bytes, Response, list[Event]]]:
    for recording, stream in _recorded(corpus):
        decoder, events = decoded(stream)
        yield recording.row.file, stream, decoder.response, events


def test_every_recorded_stream_is_decoded_completely(corpus: Corpus) -> None:
    """All are complete and have no unknown events, except the faults listed above."""
    assert len(_recorded(corpus)) > 40
    for recording, stream in _recorded(corpus):
        decoder, events = decoded(stream)
        file = recording.row.file
        assert decoder.is_complete is (file not in SPLICED), file
        assert any(isinstance(e, StreamError) for e in events) is (file in SPLICED), file
        unknown = any(isinstance(e, OpaqueEvent) for e in events)
        assert unknown is (file in SPLICED | SEVERAL), file


def test_chunk_boundaries_make_no_difference_to_recorded_streams(corpus: Corpus) -> None:
    """Split at random, and byte by byte if small, they give the same response."""
    chance = random.Random(7)
    for file, stream, response, _ in _streams(corpus):
        expected = said(response)
        for count in (1, 10, 200):
            cuts = [chance.randrange(len(stream)) for _ in range(count)]
            assert said(decoded(stream, cuts)[0].response) == expected, file
        if len(stream) <= _BYTE_BY_BYTE:
            assert said(decoded(stream, range(len(stream)))[0].response) == expected, file


def test_recorded_streams_round_trip(corpus: Corpus) -> None:
    """Encoded again, they are valid and give the same response, except for null fields."""
    for file, _, response, events in _streams(corpus):
        encoder, stream = encoded(events)
        end = check_stream(stream).state
        assert end == ("failed" if file in SPLICED else "stopped"), file
        assert bool(encoder.losses) is (file in SPLICED | SEVERAL), file
        again = decoded(stream)[0].response
        assert again == response, file
        assert _without_nulls(again) == _without_nulls(response), file


def test_recorded_streams_can_be_plain_bodies(corpus: Corpus) -> None:
    """An accumulated stream encodes to a plain body with the same content."""
    for file, _, response, _ in _streams(corpus):
        if file in SPLICED:
            continue
        body = DIALECT.encode_response(response)
        assert body.losses == (), file
        assert said(DIALECT.decode_response(body.to_bytes())) == said(response), file


def _without_nulls(response: Response) -> object:
    """Like `said`, without the null fields that some servers leave out."""
    document = said(response)
    extras = document.pop("extras", {})
    ours = {key: value for key, value in extras.get("anthropic", {}).items() if value is not None}
    return document, {**extras, "anthropic": ours}
