"""Recorded streams are decoded with any chunking, and round-trip."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from dragoman.model.responses import Response
from dragoman.model.value import Value
from dragoman.wire.openai_chat.codec import DIALECT
from tests.corpus import Corpus, Recording
from tests.wire.openai_chat.streams import decoded, encoded

pytestmark = pytest.mark.corpus

_SPOKEN_BY = ("openai_chat", "groq", "mistral", "other_openai_compatible")
_BYTE_BY_BYTE = 60_000  # larger streams are only split at random

# Streams that aren't complete, and why: the fault is in the recording.
_FAULTS = {
    "groq/pydantic-ai__test_groq-test_tool_use_failed_error_streaming__00.json": "error",
    "groq/pydantic-ai__test_groq-test_tool_use_failed_error_streaming_with_text__00.json": "error",
    "other_openai_compatible/pydantic-ai__test_openrouter-test_openrouter_stream_error__00.json":
        "error",
    "openai_chat/ai____fixtures__-azure-deepseek-reasoning.1.json": "no [DONE]",
    # Perplexity never sends `[DONE]`: `ends_with_done=False` is for such servers.
    "other_openai_compatible/prism__perplexity-stream-basic-text-1.json": "no [DONE]",
    "other_openai_compatible/rig__prompt_caching-streaming_probe__00~2.json": "no [DONE]",
    "other_openai_compatible/rig__prompt_caching-streaming_probe__02~4.json": "no [DONE]",
    "other_openai_compatible/rig__raw_stream_capture_matrix-"
    "stream_raw_round_trips_terminal_type__00.json": "no [DONE]",
    "other_openai_compatible/rig__streaming-streaming_smoke__00.json": "no [DONE]",
}  # fmt: skip


def streams(corpus: Corpus) -> Iterator[tuple[Recording, bytes]]:
    """The recorded streams of this dialect with status 200."""
    for recording in corpus.select(provider_api=_SPOKEN_BY, status=200):
        is_chat = recording.request_path.partition("?")[0].endswith("/chat/completions")
        if is_chat and recording.response_stream is not None:
            yield recording, recording.response_stream


def same(one: Response, other: Response) -> bool:
    """Whether two responses are equal apart from generated ids."""
    return (
        one == other
        and (one.usage, one.id, one.model, one.extras)
        == (other.usage, other.id, other.model, other.extras)
        and all(
            mine.extras == theirs.extras
            and mine.finish_raw == theirs.finish_raw
            and mine.message.extras == theirs.message.extras
            and [_rest(part) for part in mine.message.parts]
            == [_rest(part) for part in theirs.message.parts]
            for mine, theirs in zip(one.choices, other.choices, strict=True)
        )
    )


def _rest(part: Value) -> list[object]:
    """The fields that equality ignores."""
    return [getattr(part, name) for name in ("extras", "item_id", "origin", "signature")]


def test_every_recorded_stream_is_complete(corpus: Corpus) -> None:
    """Every recorded stream is complete, except the known incomplete ones."""
    unfinished = {}
    for recording, stream in streams(corpus):
        decoder, _ = decoded([stream])
        if not decoder.is_complete:
            unfinished[recording.row.file] = "error" if b'"error"' in stream else "no [DONE]"
    assert unfinished.items() <= _FAULTS.items()


def test_stream_without_done_is_complete_by_its_finish_reason(corpus: Corpus) -> None:
    """With `ends_with_done=False`, recorded streams without `[DONE]` are complete."""
    for recording, stream in streams(corpus):
        if _FAULTS.get(recording.row.file) == "no [DONE]":
            decoder = DIALECT.stream_decoder(ends_with_done=False)
            decoder.feed(stream)
            decoder.close()
            assert decoder.is_complete, recording


def test_chunk_boundaries_make_no_difference(corpus: Corpus) -> None:
    """Split at random, every stream gives the same response."""
    dice = random.Random(7)
    failures = []
    for recording, stream in streams(corpus):
        places = sorted(dice.randrange(len(stream) + 1) for _ in range(50))
        pieces = [stream[a:b] for a, b in zip([0, *places], [*places, None], strict=True)]
        if not same(decoded(pieces)[0].response, decoded([stream])[0].response):
            failures.append(recording.row.file)
    assert failures == []


@pytest.mark.thorough
def test_single_bytes_make_no_difference(corpus: Corpus) -> None:
    """Fed byte by byte, every stream up to a maximum size gives the same response."""
    failures = []
    for recording, stream in streams(corpus):
        if len(stream) > _BYTE_BY_BYTE:
            continue
        pieces = [stream[at : at + 1] for at in range(len(stream))]
        if not same(decoded(pieces)[0].response, decoded([stream])[0].response):
            failures.append(recording.row.file)
    assert failures == []


def test_every_recorded_stream_round_trips(corpus: Corpus) -> None:
    """Decoded, encoded and decoded again, every stream gives the same response without losses.

    A stream that is not complete can't report its usage, which is a loss.
    """
    failures = []
    for recording, stream in streams(corpus):
        decoder, events = decoded([stream])
        encoder = DIALECT.stream_encoder(include_usage=True)
        again, _ = decoded([*map(encoder.feed, events), encoder.close()])
        if recording.row.file in _FAULTS:  # incomplete, and so without its usage
            is_same = not again.is_complete and again.response == decoder.response
            is_same = is_same and {loss.path for loss in encoder.losses} <= {"usage"}
        elif encoder.losses:
            is_same = False
        else:
            is_same = again.is_complete and same(_with_head(again.response), decoder.response)
        if not is_same:
            failures.append(recording.row.file)
    assert failures == []


def _with_head(response: Response) -> Response:
    """The response without the model and time that the encoder adds if the server sent none."""
    if response.model:
        return response
    words = {"openai-chat spelling": {"words": ["-created", "-model"]}}
    return response.replace(model=None, extras=words)


def test_every_accumulated_stream_can_be_a_plain_body(corpus: Corpus) -> None:
    """Encoded as a plain body, an accumulated stream decodes to the same response."""
    failures = []
    for recording, stream in streams(corpus):
        response = decoded([stream])[0].response
        body = DIALECT.encode_response(response)
        if body.losses or DIALECT.decode_response(body.to_bytes()) != response:
            failures.append(recording.row.file)
    assert failures == []


def test_truncated_stream_is_never_complete(corpus: Corpus) -> None:
    """Without its last frames, no stream is complete or encoded as complete."""
    dice = random.Random(7)
    for recording, stream in streams(corpus):
        end = stream.rfind(b"data: [DONE]")
        if recording.row.file in _FAULTS:
            continue
        decoder, events = decoded([stream[: dice.randrange(end + 1)]])
        assert not decoder.is_complete, recording
        assert b"[DONE]" not in encoded(events), recording
