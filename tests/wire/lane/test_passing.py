"""The usage of a passed-through stream equals what its decoder finds, with little decoding."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman
from dragoman.errors import DragomanError
from dragoman.wire.lane.passing import PassingStream
from tests.corpus import Corpus
from tests.wire import recorded
from tests.wire.lane.frames import BEGINNINGS, ENDINGS, FORMS, PLAIN, Style, cut, streams


def _decoded(dialect: str, stream: bytes) -> dragoman.Response | None:
    decoder = dragoman.dialect(dialect).stream_decoder()
    try:
        decoder.feed(stream)
        decoder.close()
    except DragomanError:
        return None
    return decoder.response


def _passed(dialect: str, pieces: list[bytes]) -> PassingStream:
    passing = PassingStream(dialect)
    for piece in pieces:
        passing.feed(piece)
    passing.close()
    return passing


def check_same(dialect: str, pieces: list[bytes]) -> None:
    """Compare the summary of a passed-through stream with that of its decoder."""
    whole = _decoded(dialect, b"".join(pieces))
    passing = _passed(dialect, pieces)
    if whole is not None:
        found = (passing.usage, passing.model, passing.id, passing.finish)
        assert found == (whole.usage, whole.model, whole.id, whole.finish)


def _stream(dialect: str, count: int, **ways: Any) -> list[bytes]:
    style = Style(dialect, **ways)
    make = FORMS[dialect][PLAIN[dialect][1 if dialect == "gemini" else 0]]
    bodies = [*BEGINNINGS[dialect], *(make("usage " * n) for n in range(1, count))]
    return [style.frame(body) for body in [*bodies, *ENDINGS[dialect]]]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("dialect", FORMS)
@given(places=st.lists(st.integers(0, 10_000), max_size=9))
def test_the_usage_is_found(dialect: str, end: str, places: list[int]) -> None:
    """With any chunks and line ends."""
    stream = b"".join(_stream(dialect, 5, end=end))
    check_same(dialect, list(cut(stream, places)))


@pytest.mark.parametrize("dialect", FORMS)
def test_the_usage_of_a_cut_stream_is_found(dialect: str) -> None:
    """Wherever the stream breaks off: the incomplete frame replaces nothing that came before."""
    style = Style(dialect)
    counted = {"openai-chat": "usage", "gemini": "counted"}.get(dialect, PLAIN[dialect][0])
    bodies = [*BEGINNINGS[dialect], *(FORMS[dialect][counted]("usage" * n) for n in range(1, 4))]
    stream = b"".join([style.frame(body) for body in [*bodies, *ENDINGS[dialect]]])
    for end in range(len(stream)):
        check_same(dialect, [stream[:end]])


@pytest.mark.parametrize("dialect", sorted(FORMS.keys() - {"ollama"}))
def test_comments_before_the_stream_are_skipped(dialect: str) -> None:
    """The first frame after them has the id and the model, as OpenRouter's streams have it."""
    frames = [b": PROCESSING\n\n"] * 3 + _stream(dialect, 3)[:4]
    check_same(dialect, frames)
    check_same(dialect, [b"".join(frames)])


def test_an_event_named_only_by_its_line_ends_the_stream() -> None:
    """Claude's last event may have no type in its data: the stream is complete."""
    frames = _stream("anthropic", 3)[:-1]
    passing = _passed("anthropic", [*frames, b"event: message_stop\ndata: {}\n\n"])
    assert passing.is_complete


@pytest.mark.parametrize("dialect", FORMS)
def test_the_rest_is_not_decoded(dialect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the first frame of a long text is decoded."""
    frames = _stream(dialect, 200)
    passing = PassingStream(dialect)
    fed: list[bytes] = []
    feed = passing._decoder.feed

    def counted(data: bytes) -> object:
        fed.append(data)
        return feed(data)

    monkeypatch.setattr(passing._decoder, "feed", counted)
    for frame in frames:
        passing.feed(frame)
    passing.close()
    assert len(fed) <= 6
    assert passing.model


@pytest.mark.parametrize("dialect", FORMS)
@given(data=st.data())
def test_any_bytes_pass(dialect: str, data: Any) -> None:
    """Bytes that are no valid stream pass too."""
    stream = data.draw(st.one_of(streams(dialect), st.binary(max_size=99)))
    passing = _passed(dialect, list(cut(stream, data.draw(st.lists(st.integers(0, 999))))))
    assert passing.finish is None or passing.finish


@pytest.mark.corpus
@pytest.mark.parametrize("dialect", FORMS)
def test_recorded_streams_pass(dialect: str, corpus: Corpus) -> None:
    """Usage, model and finish reason of every recorded stream are found."""
    for _, stream in recorded.streams(corpus, dialect):
        check_same(dialect, [stream[at : at + 997] for at in range(0, len(stream), 997)])
