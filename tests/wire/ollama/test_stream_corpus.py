"""Recorded streams are decoded with any chunking, and round-trip."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

import dragoman
from dragoman.errors import DragomanError
from dragoman.model.accumulate import MessageAccumulator
from dragoman.model.events import Event
from dragoman.model.responses import Response
from dragoman.wire.ollama.codec import DIALECT
from tests.corpus import Corpus, Recording
from tests.wire.ollama.streams import decoded, encoded, lines
from tests.wire.recorded import ENDPOINTS, SPOKEN_BY

pytestmark = pytest.mark.corpus

SOURCES = [n for n in dragoman.dialects() if hasattr(dragoman.dialect(n), "stream_decoder")]


def streams(corpus: Corpus, dialect: str = "ollama") -> Iterator[tuple[Recording, bytes]]:
    """The recorded streams of a dialect with status 200."""
    for recording in corpus.select(provider_api=SPOKEN_BY[dialect], status=200):
        is_ours = ENDPOINTS[dialect].search(recording.request_path.partition("?")[0])
        if is_ours and recording.response_stream is not None:
            yield recording, recording.response_stream


def _parts(response: Response) -> list[Any]:
    return [(part, part.extras) for part in response.message.parts]


def same(one: Response, other: Response) -> bool:
    """Whether two responses are equal apart from generated ids."""
    return (
        one == other
        and (one.usage, one.model, one.created_at, one.extras)
        == (other.usage, other.model, other.created_at, other.extras)
        and (not one.choices or _parts(one) == _parts(other))
    )


def test_every_recorded_stream_is_complete(corpus: Corpus) -> None:
    """Every recorded stream is decoded to its end."""
    found = [(r.row.file, decoded([s])[0].is_complete) for r, s in streams(corpus)]
    assert found
    assert [file for file, is_complete in found if not is_complete] == []


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


def test_every_recorded_stream_round_trips(corpus: Corpus) -> None:
    """Decoded, encoded and decoded again, every stream is equal and nothing is lost."""
    failures = []
    for recording, stream in streams(corpus):
        decoder, events = decoded([stream])
        encoder = DIALECT.stream_encoder()
        again, _ = decoded([*map(encoder.feed, events), encoder.close()])
        is_same = same(again.response, decoder.response)
        if not is_same or encoder.losses or again.is_complete != decoder.is_complete:
            failures.append(recording.row.file)
    assert failures == []


def test_lines_round_trip(corpus: Corpus) -> None:
    """Except for times and empty lines, the server's lines are written unchanged."""
    failures = []
    for recording, stream in streams(corpus):
        if recording.row.fidelity != "wire":
            continue  # handwritten: text in the last line, for example
        theirs = [_timeless(one) for one in lines(stream) if _is_said(one)]
        ours = [_timeless(one) for one in lines(encoded(decoded([stream])[1])) if _is_said(one)]
        # Several calls are written in one line.
        if theirs != ours and b"tool_calls" not in stream:
            failures.append(recording.row.file)
    assert failures == []


def _is_said(one: dict[str, Any]) -> bool:
    message = one.get("message", {})
    return one["done"] or any(message.get(key) for key in ("content", "thinking", "tool_calls"))


def _timeless(one: dict[str, Any]) -> dict[str, Any]:
    """A line without its time, null fields and reason."""
    message = {
        "role": "assistant",
        "content": "",
        **one.get("message", {}),
    }  # documented examples have no message
    message = {key: value for key, value in message.items() if value is not None}
    rest = {key: value for key, value in one.items() if key not in ("created_at", "done_reason")}
    return {**rest, "message": message}


def test_truncated_stream_is_never_complete(corpus: Corpus) -> None:
    """Without its last line, no stream is complete, and it is encoded as an error."""
    dice = random.Random(7)
    for recording, stream in streams(corpus):
        end = stream.rstrip().rfind(b"\n") + 1
        decoder, events = decoded([stream[: dice.randrange(end + 1)]])
        assert not decoder.is_complete, recording
        assert "error" in lines(encoded(events))[-1], recording


def _events(dialect: str, stream: bytes) -> list[Event] | None:
    speaker: Any = dragoman.dialect(dialect)
    decoder = speaker.stream_decoder()
    try:
        return [*decoder.feed(stream), *decoder.close()]
    except DragomanError:
        return None


@pytest.mark.parametrize("dialect", SOURCES)
def test_streams_of_every_dialect_are_encoded(corpus: Corpus, dialect: str) -> None:
    """Text, thinking, calls and counts of other dialects' streams are kept."""
    failures = []
    total = 0
    for recording, stream in streams(corpus, dialect):
        events = _events(dialect, stream)
        if events is None:
            continue
        total += 1
        folded = MessageAccumulator()
        folded.extend(events)
        if not folded.response.choices:
            continue
        encoder = DIALECT.stream_encoder()
        again, _ = decoded([*map(encoder.feed, events), encoder.close()])
        if any("corrected" in loss.reason for loss in encoder.losses):
            continue  # a fixture whose deltas don't add up to its final text
        if folded.is_complete != again.is_complete:
            failures.append((recording.row.file, "end"))
        elif folded.is_complete and not _say_the_same(folded.response, again.response):
            failures.append((recording.row.file, "words"))
    assert total > 0
    assert failures == []


def _say_the_same(one: Response, other: Response) -> bool:
    ours, theirs = one.message, other.message
    calls = [c for c in ours.tool_calls if c.object_arguments() is not None]
    return (
        ours.text == theirs.text
        and "".join(ours.thinking.split()) == "".join(theirs.thinking.split())
        and [(c.name, c.object_arguments()) for c in calls]
        == [(c.name, c.object_arguments()) for c in theirs.tool_calls][: len(calls)]
        and (one.usage is None
             or (other.usage is not None
                 and (one.usage.total_input, one.usage.total_output)
                 == (other.usage.input, other.usage.output))
             or one.usage.total_input + one.usage.total_output == 0)
    )  # fmt: skip
