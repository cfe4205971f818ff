"""What opens or closes something is sent twice: nothing is lost, doubled or cut off by it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.wire.stream_table import EVERY, Case

_OPENING = {
    "message_start",
    "content_block_start",
    "response.created",
    "response.in_progress",
    "response.output_item.added",
    "response.content_part.added",
    "response.reasoning_summary_part.added",
}
_CLOSING = {
    "content_block_stop",
    "message_stop",
    "response.content_part.done",
    "response.output_text.done",
    "response.function_call_arguments.done",
    "response.reasoning_summary_part.done",
    "response.output_item.done",
    "response.completed",
}
pytestmark = pytest.mark.whole


def _doubled(case: Case, kinds: set[str], step: int) -> Iterator[bytes]:
    """The stream with one of its events sent again at a later place, every so many places."""
    frames = list(case.frames)
    for place, frame in enumerate(frames):
        if isinstance(frame, dict) and frame.get("type") in kinds:
            for later in {place + 1, *range(place + 2, len(frames), step)} - {len(frames)}:
                yield case.its.written([*frames[:later], frame, *frames[later:]])


def _told(case: Case, stream: bytes) -> Any:
    decoder, _ = case.its.decoded(stream)
    return case.its.said(decoder.response), decoder.is_complete


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.thorough)])
@EVERY
def test_openings_are_repeated(case: Case, step: int) -> None:
    """Each event that begins a response, an item or a part comes again, also after its end."""
    expected = _told(case, case.stream)
    for stream in _doubled(case, _OPENING, step):
        assert _told(case, stream) == expected


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.thorough)])
@EVERY
def test_ends_are_repeated(case: Case, step: int) -> None:
    """Each event that ends a part, an item or a response comes twice."""
    expected = _told(case, case.stream)
    for stream in _doubled(case, _CLOSING, step):
        assert _told(case, stream) == expected
