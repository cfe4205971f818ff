"""Recorded streams are decoded with any chunking, and encoded again."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from dragoman.errors import InvalidRequest, ModelNotFound, ProviderError, RateLimited
from dragoman.model.accumulate import MessageAccumulator
from dragoman.model.events import Event, OpaqueEvent, ResponseEnd, StreamError
from dragoman.model.parts import Text
from dragoman.model.responses import Response
from dragoman.wire.gemini.codec import DIALECT
from dragoman.wire.gemini.stream_chunks import Form
from tests.corpus import Corpus, Recording
from tests.wire.gemini.streams import decoded, encoded, said, sent, written

pytestmark = pytest.mark.corpus

_ENDPOINT = re.compile(r":(streamG|g)enerateContent$")
_BYTE_BY_BYTE = 40_000
"""Bytes of a stream up to which it is also read one by one."""


def _is_ours(recording: Recording) -> bool:
    return bool(_ENDPOINT.search(recording.request_path.partition("?")[0]))


@cache
def _recorded(corpus: Corpus) -> tuple[tuple[Recording, bytes], ...]:
    chosen = corpus.select(provider_api="gemini", status=200)
    return tuple(
        (recording, stream)
        for recording in chosen
        if _is_ours(recording) and (stream := recording.response_stream) is not None
    )


def _streams(corpus: Corpus) -> Iterator[tuple[str, bytes, Response, list[Event]]]:
    for recording, stream in _recorded(corpus):
        decoder, events = decoded(stream)
        yield recording.row.file, stream, decoder.response, events


def _chunks(stream: bytes) -> list[Any]:
    lines = stream.decode().splitlines()
    return [json.loads(line.removeprefix("data:")) for line in lines if line.startswith("data:")]


def test_every_recorded_stream_is_decoded_completely(corpus: Corpus) -> None:
    """All are complete, without errors or unknown events."""
    assert len(_recorded(corpus)) > 20
    for recording, stream in _recorded(corpus):
        decoder, events = decoded(stream)
        assert decoder.is_complete, recording
        assert not any(isinstance(e, (StreamError, OpaqueEvent)) for e in events), recording
        assert decoder.response.finish is not None, recording
        assert decoder.response.usage is not None, recording
        assert decoder.response.id, recording


def test_a_recorded_stream_has_the_parts_of_its_chunks(corpus: Corpus) -> None:
    """Text, calls and signatures are those of all chunks together, in order."""
    for file, stream, response, _ in _streams(corpus):
        wire = [
            part
            for chunk in _chunks(stream)
            for part in chunk["candidates"][0]["content"].get("parts", ())
        ]
        texts = [part["text"] for part in wire if "text" in part and not part.get("thought")]
        assert response.text == "".join(texts), file
        calls = [part["functionCall"] for part in wire if part.get("functionCall", {}).get("name")]
        assert [call.name for call in response.tool_calls] == [call["name"] for call in calls], file
        for call, came in zip(response.tool_calls, calls, strict=True):
            assert call.has_valid_arguments, file
            assert came.get("willContinue") or call.arguments == came.get("args", {}), file
        signed = [part["thoughtSignature"] for part in wire if "thoughtSignature" in part]
        parts = response.message.parts
        assert [part.signature for part in parts if part.signature is not None] == signed, file
        assert not any(isinstance(p, Text) and p.is_empty and not p.signature for p in parts), file


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


def test_recorded_streams_as_arrays_give_the_same_response(corpus: Corpus) -> None:
    """As an array, whole or split, they give the same response as server-sent events."""
    chance = random.Random(7)
    for file, stream, response, _ in _streams(corpus):
        array = written(_chunks(stream), "array")
        cuts = [chance.randrange(len(array)) for _ in range(50)]
        decoder, _ = decoded(array, cuts)
        assert decoder.is_complete, file
        assert said(decoder.response) == said(response), file
        assert not decoded(array[:-1], cuts)[0].is_complete, file


def test_recorded_streams_end_with_their_finish(corpus: Corpus) -> None:
    """Truncated after any chunk, they are complete only if that chunk has a finish reason."""
    for file, stream, _, _ in _streams(corpus):
        chunks = _chunks(stream)
        for count in range(len(chunks)):
            decoder, events = decoded(written(chunks[:count]))
            is_finished = count > 0 and "finishReason" in chunks[count - 1]["candidates"][0]
            assert decoder.is_complete is is_finished, file
            assert any(isinstance(event, ResponseEnd) for event in events) is is_finished, file
            if not is_finished:
                assert decoder.response.finish is None, file
                assert "error" in sent(encoded(events)[1])[-1], file


def test_accumulated_events_equal_the_response(corpus: Corpus) -> None:
    """Accumulating the events gives the decoder's response."""
    for file, _, response, events in _streams(corpus):
        folded = MessageAccumulator()
        folded.extend(events)
        assert said(folded.response) == said(response), file


@pytest.mark.parametrize("form", ["sse", "array"])
def test_recorded_streams_round_trip(corpus: Corpus, form: Form) -> None:
    """Encoded again, in either form, they give the same response without losses."""
    for file, _, response, events in _streams(corpus):
        encoder, stream = encoded(events, form)
        assert encoder.losses == [], file
        again, _ = decoded(stream)
        assert again.is_complete, file
        assert said(again.response) == said(response), file
        chunks = sent(stream, form)
        assert all("responseId" in chunk and "modelVersion" in chunk for chunk in chunks), file


def test_recorded_streams_can_be_plain_bodies(corpus: Corpus) -> None:
    """An accumulated stream encodes to a plain body with the same content."""
    for file, _, response, _ in _streams(corpus):
        body = DIALECT.encode_response(response)
        assert body.losses == (), file
        assert said(DIALECT.decode_response(body.to_bytes())) == said(response), file


def test_plain_body_is_a_stream_of_one_chunk(corpus: Corpus) -> None:
    """A recorded plain response decodes the same as a single chunk."""
    count = 0
    for recording in corpus.select(provider_api="gemini", status=200):
        body = recording.response_body
        if not _is_ours(recording) or not isinstance(body, dict) or "candidates" not in body:
            continue
        decoder, _ = decoded(written([body]))
        plain = DIALECT.decode_response(body)
        finished = [choice.finish is not None for choice in plain.choices]
        assert decoder.is_complete is all(finished), recording
        streamed = decoder.response
        assert streamed.text == plain.text, recording
        assert [c.arguments for c in streamed.tool_calls] == [c.arguments for c in plain.tool_calls]
        assert [c.finish for c in streamed.choices] == [c.finish for c in plain.choices], recording
        assert streamed.usage == plain.usage, recording
        count += 1
    assert count > 20


def test_recorded_errors_have_the_right_class(corpus: Corpus) -> None:
    """Recorded errors map to the right class, and their message isn't quoted."""
    kinds: dict[str, type[ProviderError]] = {
        "NOT_FOUND": ModelNotFound,
        "RESOURCE_EXHAUSTED": RateLimited,
        "INVALID_ARGUMENT": InvalidRequest,
    }
    found: set[str] = set()
    for recording in corpus.select(provider_api="gemini", status=(400, 404), tier="extended"):
        error = recording.response_body["error"]
        decoded_error = DIALECT.decode_error(recording.row.status, recording.response_body)
        name = type(decoded_error).__name__
        found.add(name)
        if "API key not valid" in error["message"]:
            assert name == "AuthenticationError", recording
        elif error.get("status") in kinds and recording.row.status == error["code"]:
            assert type(decoded_error) is kinds[error["status"]], recording
        assert error["message"] not in str(decoded_error), recording
    assert found >= {"AuthenticationError", "InvalidRequest", "ModelNotFound"}
