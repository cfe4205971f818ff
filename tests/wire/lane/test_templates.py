"""Repeated frames are decoded as bytes, with the same result for any bytes."""

from __future__ import annotations

import re
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from itertools import chain
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman
from dragoman.errors import WireError
from dragoman.model import ids
from dragoman.model.events import Event
from dragoman.model.responses import Response
from dragoman.wire.lane import switch
from dragoman.wire.lane.runs import Run
from dragoman.wire.lane.templates import Template
from tests.corpus import Corpus
from tests.wire import recorded
from tests.wire.lane.frames import (
    BEGINNINGS,
    ENDINGS,
    FORMS,
    PLAIN,
    Style,
    cut,
    streams,
)

RUNS = [(dialect, name) for dialect in PLAIN for name in PLAIN[dialect]]


@contextmanager
def same_ids() -> Generator[None, None, None]:
    """Within the block, generated ids start at one."""
    with patch.object(ids, "time_ns", return_value=1), patch.object(ids, "_last", 0):
        yield


class Told:
    """The output of a decoder, piece by piece."""

    def __init__(self, dialect: str, pieces: list[bytes]) -> None:
        self.events: list[list[Event]] = []
        self.errors: list[str] = []
        with same_ids():
            decoder = dragoman.dialect(dialect).stream_decoder()
            for piece in pieces:
                self._take(lambda piece=piece: decoder.feed(piece))
            self._take(decoder.close)
            self.response: Response = decoder.response
            self.is_complete = decoder.is_complete

    def _take(self, step: Any) -> None:
        try:
            self.events.append(step())
        except WireError as error:
            self.errors.append(f"{len(self.events)}: {error} at {error.path}")


def check_same(dialect: str, pieces: list[bytes]) -> Told:
    """Decode a stream in both ways; returns the output."""
    short = Told(dialect, pieces)
    with switch.off():
        long = Told(dialect, pieces)
    assert short.errors == long.errors
    assert list(map(len, short.events)) == list(map(len, long.events))
    for one, other in zip(chain(*short.events), chain(*long.events), strict=True):
        assert one.identical(other)
    assert short.response.identical(long.response)
    assert short.is_complete is long.is_complete
    return short


@pytest.mark.parametrize("dialect", FORMS)
@given(data=st.data())
def test_any_bytes_are_decoded_alike(dialect: str, data: Any) -> None:
    """Runs of any form, near misses and broken bytes give the same events and errors."""
    stream = data.draw(streams(dialect))
    places = data.draw(st.lists(st.integers(0, 10_000), max_size=6))
    check_same(dialect, list(cut(stream, places)))


@pytest.fixture
def hits(monkeypatch: pytest.MonkeyPatch) -> list[Event]:
    """The events that were decoded from bytes by a template."""
    found: list[Event] = []
    run = Template.run

    def counted(
        self: Template, data: bytes, position: int, told: list[Event], runs: list[Run]
    ) -> int:
        before = len(told)
        end = run(self, data, position, told, runs)
        found.extend(told[before:])
        return end

    monkeypatch.setattr(Template, "run", counted)
    return found


def _run(dialect: str, name: str, count: int, **ways: Any) -> list[bytes]:
    style = Style(dialect, **ways)
    texts = [f'wörd\n"{n}" ' for n in range(count)]
    bodies = [*BEGINNINGS[dialect], *(FORMS[dialect][name](text) for text in texts)]
    return [style.frame(body) for body in [*bodies, *ENDINGS[dialect]]]


@pytest.mark.parametrize(
    "way",
    [{}, {"is_wide": True}, {"end": "\r\n"}, {"is_padded": True}, {"is_spaced": True}],
)
@pytest.mark.parametrize(("dialect", "name"), RUNS)
def test_a_run_is_decoded_by_templates(
    dialect: str, name: str, way: dict[str, Any], hits: list[Event]
) -> None:
    """All but its first frames, in any server's format, in one piece or in many."""
    if dialect in ("gemini", "ollama") and way.get("is_padded"):
        pytest.skip("nobody pads there")
    frames = _run(dialect, name, 30, **way)
    for pieces in (frames, [b"".join(frames)]):
        hits.clear()
        check_same(dialect, pieces)
        assert len(hits) >= 26


@pytest.mark.parametrize(("dialect", "name"), RUNS)
def test_a_split_frame_does_not_end_a_run(dialect: str, name: str, hits: list[Event]) -> None:
    """A split frame is decoded in the general way, the next ones by templates again."""
    frames = _run(dialect, name, 40)
    stream = b"".join(frames)
    pieces = [stream[at : at + 1000] for at in range(0, len(stream), 1000)]
    check_same(dialect, pieces)
    assert len(hits) > 15


@pytest.mark.parametrize("dialect", FORMS)
def test_templates_are_given_up_without_repetition(dialect: str) -> None:
    """After some hundred different frames, the rest is decoded in the general way."""
    name, style = PLAIN[dialect][0], Style(dialect)
    make, other = FORMS[dialect][name], FORMS[dialect][PLAIN[dialect][1]]
    bodies = [(make, other)[n % 2]("a") for n in range(3000)]
    frames = [style.frame(body) for body in [*BEGINNINGS[dialect], *bodies]]
    check_same(dialect, [b"".join(frames)])
    decoder: Any = dragoman.dialect(dialect).stream_decoder()
    decoder.feed(b"".join(frames))
    assert decoder._budget <= 0


@pytest.mark.thorough
@pytest.mark.parametrize("rest", ["", "\\ud83d", "\\x"])
@pytest.mark.parametrize("dialect", FORMS)
def test_runs_take_linear_time(dialect: str, rest: str) -> None:
    """A stream of ten times the length takes about ten times as long, in pieces of any size.

    Also if texts end in a lone surrogate, which only the general way decodes.
    """
    name = PLAIN[dialect][0]
    for size in (1 << 30, 7):
        took = []
        for count in (400, 4000):
            stream = b"".join(_run(dialect, name, count))
            stream = re.sub(rb'([02468]\\") ', lambda found: found[1] + rest.encode(), stream)
            start = time.process_time()
            decoder = dragoman.dialect(dialect).stream_decoder()
            with suppress(WireError):
                for at in range(0, len(stream), size):
                    decoder.feed(stream[at : at + size])
            took.append(time.process_time() - start)
        assert took[1] < 40 * took[0] + 0.05


@pytest.mark.parametrize("dialect", FORMS)
def test_the_lane_can_be_turned_off(dialect: str, hits: list[Event]) -> None:
    """Then everything is decoded in the general way."""
    with switch.off():
        assert not switch.is_on()
        Told(dialect, _run(dialect, PLAIN[dialect][0], 9))
    assert switch.is_on()
    assert not hits


@pytest.mark.parametrize("key", ["usageMetadata", "modelVersion", "responseId"])
def test_the_last_usage_counts_wherever_it_is(key: str) -> None:
    """Gemini's usage, which changes in each chunk, may precede the text."""
    style = Style("gemini")
    bodies = [FORMS["gemini"]["counted"]("x" * n) for n in range(1, 30)]
    frames = [style.frame({key: body[key], **body}) for body in bodies]
    for pieces in ([b"".join(frames)], frames):
        told = check_same("gemini", pieces)
        assert told.response.usage is not None
        assert told.response.usage.output == 7 * 29


@pytest.mark.corpus
@pytest.mark.parametrize("dialect", FORMS)
def test_recorded_streams_are_decoded_alike(dialect: str, corpus: Corpus) -> None:
    """Every recorded stream, in one piece and in pieces that match no frames."""
    for _, stream in recorded.streams(corpus, dialect):
        for size in (len(stream), 997):
            check_same(dialect, [stream[at : at + size] for at in range(0, len(stream), size)])
