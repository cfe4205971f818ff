"""Responses that are passed through: what is read from them, and what is filtered out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman
from dragoman.providers.translation import lane_of
from dragoman.wire.lane.plain import Summary
from dragoman.wire.openai_chat.usage_frames import WithoutUsage
from tests.corpus import Corpus
from tests.wire.recorded import SPOKEN_BY

_SUMMARISED = ("openai-chat", "openai-responses", "anthropic")
_BASE = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
_USAGE = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}


def _frame(value: Any, end: str = "\n\n") -> bytes:
    return f"data: {json.dumps(value)}{end}".encode()


_said = st.text(max_size=8).map(
    lambda text: _frame({**_BASE, "choices": [{"index": 0, "delta": {"content": text}}]})
)
_others = st.sampled_from(
    [
        _frame({**_BASE, "choices": [], "prompt_filter_results": []}),  # Azure's preamble
        _frame({**_BASE, "choices": [], "usage": None}),
        b": ping\n\n",
        b"data: [DONE]\n\n",
        _frame({**_BASE, "choices": [{"index": 0, "delta": {"content": '"choices":[]'}}]}),
        b'data: not json "choices":[]\n\n',
    ]
)
_usage = st.sampled_from(
    [
        _frame({**_BASE, "choices": [], "usage": _USAGE}),
        _frame({**_BASE, "choices": [], "usage": _USAGE}, "\r\n\r\n"),
    ]
)


@given(st.lists(_said | _others | _usage, max_size=8), st.lists(st.integers(1, 60), max_size=20))
def test_the_usage_frame_is_filtered_out(frames: list[bytes], cuts: list[int]) -> None:
    """All other bytes pass in order, wherever the stream is cut."""
    whole = b"".join(frames)
    kept = b"".join(frame for frame in frames if b"prompt_tokens" not in frame)
    keep, came, place = WithoutUsage(), b"", 0
    for cut in [*cuts, len(whole)]:
        came += keep.feed(whole[place : place + cut])
        place += cut
    assert came + keep.close() == kept


@pytest.mark.corpus
@pytest.mark.parametrize("name", _SUMMARISED)
def test_summaries_equal_the_decoded_answers(corpus: Corpus, name: str) -> None:
    """Model, id and counts equal the decoded answer's; other details are left to the decoder."""
    lane = lane_of(name)
    assert lane is not None
    assert lane.summary is not None
    compared = 0
    for body in _answers(corpus, name):
        found = lane.summary(body)
        if found is None:
            continue
        read = dragoman.dialect(name).decode_response(body)
        assert read.usage is not None
        assert found == Summary(read.model, found.usage, read.id)
        assert found.usage is not None
        assert found.usage.counts == read.usage.counts
        counted = {key for key, value in read.usage.details.items() if value}
        assert counted <= {"cache_write_5m"}  # the default of all of them
        compared += 1
    assert compared > 5


def _answers(corpus: Corpus, name: str) -> list[bytes]:
    spoken = SPOKEN_BY[name]
    return [
        json.dumps(each.response_body).encode()
        for each in corpus.select(provider_api=spoken, status=200, streaming=False)
        if isinstance(each.response_body, dict)
    ]
