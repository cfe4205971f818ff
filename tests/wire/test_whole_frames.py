"""Only whole frames are passed through."""

from __future__ import annotations

from itertools import pairwise
from time import thread_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.wire.openai_chat.usage_frames import WithoutUsage
from dragoman.wire.whole_frames import WholeFrames

EVENTS, LINES = "text/event-stream", "application/x-ndjson"
FRAMES = [b'data: {"choices":[{"index":0}]}', b": a comment", b"event: x\ndata: 1", b"data: [DONE]"]


@given(
    st.lists(st.sampled_from(FRAMES), max_size=6),
    st.sampled_from([b"\n\n", b"\r\n\r\n", b"\r\r"]),
    st.lists(st.integers(0, 200)),
    st.sampled_from([WholeFrames, WithoutUsage]),
)
def test_frames_are_passed_whole(
    frames: list[bytes], end: bytes, cuts: list[int], kind: type[WholeFrames]
) -> None:
    """The same bytes come out, cut only at the ends of frames."""
    data = b"".join(frame + end for frame in frames)
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    passing, out = kind(), b""
    for start, stop in pairwise(places):
        out += passing.feed(data[start:stop])
        assert not out or out.endswith(end) or end == b"\r\n\r\n"
        assert passing.gap == b""
    assert out + passing.close() == data


def test_half_a_line_is_held_back() -> None:
    """Ollama's frames are lines."""
    passing = WholeFrames(LINES)
    assert passing.feed(b'{"a":1}\n{"b"') == b'{"a":1}\n'
    assert passing.feed(b":2}\n") == b'{"b":2}\n'
    assert passing.feed(b'{"c') == b""
    assert passing.close() == b'{"c'


@pytest.mark.parametrize("kind", [EVENTS, LINES])
def test_a_very_long_frame_is_passed_in_pieces(kind: str) -> None:
    """Nothing is held beyond a limit; an error after that needs a separator."""
    passing = WholeFrames(kind)
    long = b"x" * 1_100_000
    assert passing.feed(long) == long
    assert passing.gap
    assert passing.feed(b"\n\n") == b"\n\n"
    assert passing.gap == b""


def test_a_stream_without_frames_is_passed_at_once() -> None:
    """Gemini's arrays have no frames."""
    passing = WholeFrames("application/json")
    assert passing.feed(b'[{"a"') == b'[{"a"'
    assert passing.gap.isspace()
    assert passing.close() == b""


def test_a_long_frame_may_come_byte_by_byte() -> None:
    """In linear time: held bytes are neither copied nor searched again."""
    passing, before = WholeFrames(), thread_time()
    for _ in range(300_000):
        assert not passing.feed(b"x")
    assert len(passing.feed(b"\n\n")) == 300_002
    assert thread_time() - before < 20  # two minutes if each byte takes as long as all before it
