"""Recorded lines are written unchanged, and other dialects' streams as lines."""

from __future__ import annotations

from typing import Any

import pytest

import dragoman
from dragoman.model.accumulate import MessageAccumulator
from dragoman.model.responses import Response
from dragoman.wire.ollama.codec import DIALECT
from tests.corpus import Corpus
from tests.wire import recorded
from tests.wire.ollama.streams import decoded, encoded, lines

pytestmark = pytest.mark.corpus


def test_lines_round_trip(corpus: Corpus) -> None:
    """Except for times and empty lines, the server's lines are written unchanged."""
    failures = []
    for recording in recorded.recordings(corpus, "ollama"):
        stream = recording.response_stream
        if stream is None or recording.row.fidelity != "wire":
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


@pytest.mark.parametrize("dialect", dragoman.dialects())
def test_streams_of_every_dialect_are_encoded(corpus: Corpus, dialect: str) -> None:
    """Text, thinking, calls and counts of other dialects' streams are kept."""
    failures = []
    total = 0
    for file, _, _, events in recorded.decoded(corpus, dialect):
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
            failures.append((file, "end"))
        elif folded.is_complete and not _say_the_same(folded.response, again.response):
            failures.append((file, "words"))
    assert total > 0
    assert failures == []


def _say_the_same(one: Response, other: Response) -> bool:
    ours, theirs = one.message, other.message
    calls = [c for c in recorded.runnable(ours) if c.object_arguments() is not None]
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
