"""Behaviour shared by all stream decoders: broken streams, and their end."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from types import FrameType

import pytest

import dragoman
from dragoman.errors import WireError
from dragoman.model.content import AnyPart
from dragoman.model.events import (
    Event,
    PartDelta,
    PartStart,
    PartStop,
    ResponseEnd,
    ResponseStart,
    StreamError,
)
from dragoman.model.parts import Text
from dragoman.wire.lane import switch
from dragoman.wire.stream_decoding import PartEvents, stream_error

NAMES = dragoman.dialects()
SAID: list[Event] = [
    ResponseStart(id="r1", model="m", created_at=1e9),
    PartStart(0, Text("Hel")),
    PartDelta(0, "lo"),
]


def _begun(name: str) -> bytes:
    encoder = dragoman.dialect(name).stream_encoder()
    return b"".join(map(encoder.feed, SAID))


def _broken(name: str) -> bytes:
    return b"{}}\n" if name == "ollama" else b"data: {}}\n\n"


@pytest.mark.parametrize("name", NAMES)
def test_events_before_a_broken_frame_are_kept(name: str) -> None:
    """The next call returns them as if the stream had ended there; nothing more is decoded."""
    whole = dragoman.dialect(name).stream_decoder()
    expected = [*whole.feed(_begun(name)), *whole.close()]
    decoder = dragoman.dialect(name).stream_decoder()
    with pytest.raises(WireError) as caught:
        decoder.feed(_begun(name) + _broken(name) + _begun(name))
    assert (caught.value.dialect, caught.value.path) == (name, "$")
    assert caught.value.__context__ is None
    assert decoder.feed(_begun(name)) == expected
    assert decoder.close() == []
    assert decoder.response.message.text == "Hello"
    assert not decoder.is_complete


@pytest.mark.parametrize("name", NAMES)
def test_a_frame_that_holds_no_object_is_refused(name: str) -> None:
    """A frame with JSON that is no object is refused."""
    decoder = dragoman.dialect(name).stream_decoder()
    with pytest.raises(WireError):
        decoder.feed(b"12\n" if name == "ollama" else b"data: 12\n\n")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("cut", [1, 9])
def test_a_stream_may_end_in_the_middle_of_a_frame(name: str, cut: int) -> None:
    """The incomplete frame is dropped, and the stream ends once."""
    decoder = dragoman.dialect(name).stream_decoder()
    begun = _begun(name)
    decoder.feed(begun + begun[:-cut])
    decoder.close()
    assert decoder.close() == decoder.feed(begun) == []
    assert not decoder.is_complete


@pytest.mark.parametrize("name", NAMES)
def test_a_stream_with_its_end_is_complete(name: str) -> None:
    """After its end event and `close`, a stream is complete."""
    encoder = dragoman.dialect(name).stream_encoder()
    stream = b"".join(map(encoder.feed, [*SAID, PartStop(0), ResponseEnd()]))
    decoder = dragoman.dialect(name).stream_decoder()
    decoder.feed(stream)
    decoder.close()
    assert decoder.is_complete


def test_parts_are_numbered_in_the_order_in_which_they_start() -> None:
    """Open parts are stopped together, in that order."""
    emitted: list[Event] = []
    parts = PartEvents(emitted.append, 2)
    text: AnyPart = Text("")
    assert [parts.start(text), parts.whole(text), parts.start(text)] == [0, 1, 2]
    parts.grow(0, "a", signature="s")
    parts.stop_all()
    parts.stop(2, Text("b"))  # a second stop
    assert (parts.count, parts.open) == (3, [])
    assert emitted == [
        PartStart(0, text, 2),
        PartStart(1, text, 2),
        PartStop(1, None, 2),
        PartStart(2, text, 2),
        PartDelta(0, "a", "s", choice=2),
        PartStop(0, None, 2),
        PartStop(2, None, 2),
        PartStop(2, Text("b"), 2),
    ]


def test_fields_of_a_stream_error_are_type_checked() -> None:
    """Values of a wrong type are left to extras."""
    assert stream_error("m", "c", 500, {}) == StreamError("m", "c", 500)
    assert stream_error(["m"], 5, "500", {}) == StreamError("")
    assert stream_error("m", None, True, {}).status is None


def _calls(work: Callable[[], object]) -> int:
    """The number of function calls that Python makes."""
    number = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal number
        number += event == "call"

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return number


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("is_whole", [True, False])
def test_repeated_frames_are_decoded_fast(name: str, is_whole: bool) -> None:
    """A long run of text deltas takes a fraction of the work, in one read or in many."""
    encoder = dragoman.dialect(name).stream_encoder()
    begun = b"".join(map(encoder.feed, [*SAID, PartDelta(0, "!")]))
    words = [encoder.feed(PartDelta(0, f" {n}")) for n in range(100)]
    pieces = [b"".join(words)] if is_whole else words
    taken: list[int] = []
    for way in (switch.on, switch.off):
        with way():
            decoder = dragoman.dialect(name).stream_decoder()
            decoder.feed(begun)
            taken.append(_calls(partial(list, map(decoder.feed, pieces))))
    assert 3 * taken[0] < 2 * taken[1]
