"""Gemini's recorded streams: their chunks, as arrays, and its recorded errors."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from dragoman.errors import InvalidRequest, ModelNotFound, ProviderError, RateLimited
from dragoman.model.events import ResponseEnd
from dragoman.model.parts import Text
from dragoman.wire.gemini.codec import DIALECT
from tests.corpus import Corpus
from tests.wire import recorded
from tests.wire.gemini.streams import decoded, encoded, said, sent, written

pytestmark = pytest.mark.corpus


def _chunks(stream: bytes) -> list[Any]:
    lines = stream.decode().splitlines()
    return [json.loads(line.removeprefix("data:")) for line in lines if line.startswith("data:")]


def test_a_recorded_stream_has_the_parts_of_its_chunks(corpus: Corpus) -> None:
    """Text, calls and signatures are those of all chunks together, in order."""
    for file, stream, decoder, _ in recorded.decoded(corpus, "gemini"):
        response = decoder.response
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


def test_recorded_streams_as_arrays_give_the_same_response(corpus: Corpus) -> None:
    """As an array, whole or split, they give the same response as server-sent events."""
    chance = random.Random(7)
    for file, stream, decoder, _ in recorded.decoded(corpus, "gemini"):
        response = decoder.response
        array = written(_chunks(stream), "array")
        cuts = [chance.randrange(len(array)) for _ in range(50)]
        again, _ = decoded(array, cuts)
        assert again.is_complete, file
        assert said(again.response) == said(response), file
        assert not decoded(array[:-1], cuts)[0].is_complete, file


def test_recorded_streams_end_with_their_finish(corpus: Corpus) -> None:
    """Truncated after any chunk, they are complete only if that chunk has a finish reason."""
    for file, stream, _, _ in recorded.decoded(corpus, "gemini"):
        chunks = _chunks(stream)
        for count in range(len(chunks)):
            decoder, events = decoded(written(chunks[:count]))
            is_finished = count > 0 and "finishReason" in chunks[count - 1]["candidates"][0]
            assert decoder.is_complete is is_finished, file
            assert any(isinstance(event, ResponseEnd) for event in events) is is_finished, file
            if not is_finished:
                assert decoder.response.finish is None, file
                assert "error" in sent(encoded(events)[1])[-1], file


def test_plain_body_is_a_stream_of_one_chunk(corpus: Corpus) -> None:
    """A recorded plain response decodes the same as a single chunk."""
    count = 0
    for recording in recorded.recordings(corpus, "gemini"):
        body = recording.response_body
        if not isinstance(body, dict) or "candidates" not in body:
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
