"""Behaviour shared by all stream encoders: dispatch, end, errors, and reports."""

from __future__ import annotations

from typing import Any, get_args

import pytest

import dragoman
from dragoman import Refusal, Text, Thinking, ToolCall
from dragoman.model.content import AnyPart
from dragoman.model.events import Event, OpaqueEvent, PartDelta, PartStart, ResponseEnd, StreamError
from dragoman.wire.stream_encoding import (
    CORRECTED,
    INTERRUPTED,
    EventEncoder,
    EventHandler,
    SentPart,
    unsent,
    unsent_arguments,
)

NAMES = dragoman.dialects()


@pytest.mark.parametrize("name", NAMES)
def test_a_stream_that_breaks_off_ends_in_an_error(name: str) -> None:
    """Once: silence would be taken for success, and an end is no error (G1)."""
    encoder = dragoman.dialect(name).stream_encoder()
    encoder.feed(PartStart(0, Text("Hi")))
    assert INTERRUPTED.message.encode() in encoder.close()
    assert encoder.close() == b""
    encoder = dragoman.dialect(name).stream_encoder()
    encoder.feed(ResponseEnd())
    assert encoder.close() == b""


@pytest.mark.parametrize("name", NAMES)
def test_an_error_is_the_last_thing_that_is_said(name: str) -> None:
    """Whatever follows is not written."""
    encoder = dragoman.dialect(name).stream_encoder()
    assert b"it broke" in encoder.feed(StreamError("it broke", "odd", 429))
    assert encoder.feed(PartStart(0, Text("Hi"))) == encoder.close() == b""


@pytest.mark.parametrize("name", NAMES)
def test_what_is_lost_is_reported_once(name: str) -> None:
    """However often it comes."""
    encoder = dragoman.dialect(name).stream_encoder()
    for _ in range(3):
        assert encoder.feed(OpaqueEvent("elsewhere", {"type": "odd"})) == b""
    assert [loss.path for loss in encoder.losses] == ["events"]
    assert list(encoder.losses) == list(encoder.losses)


class _Handler(EventHandler):
    def _part_delta(self, event: PartDelta) -> str:
        return event.text or ""


def _handled(kind: type[EventHandler]) -> set[type]:
    return set(kind._handlers)


def test_a_handler_has_methods_for_the_events_that_it_cares_about() -> None:
    """An encoder has one for each."""
    assert _handled(_Handler) == {PartDelta}
    assert _handled(EventEncoder) == set(get_args(Event))


@pytest.mark.parametrize(
    ("begun", "final", "more", "reasons"),
    [
        (Text("Hel"), Text("Hello"), Text("lo"), []),
        (Text("Hel"), Text("Bye"), Text(""), [CORRECTED]),
        (Thinking("Hel"), Thinking("Hello", signature="s"), Thinking("lo", signature="s"), []),
        (Refusal("No"), Refusal("No"), Refusal(""), []),
        (Text("Hel"), Refusal("Hello"), None, [CORRECTED]),
        (ToolCall("c", "f", "{}"), ToolCall("c", "f", "{}"), None, []),
        (Text("Hel"), ToolCall("c", "f", "{}"), None, [CORRECTED]),
    ],
)
def test_a_final_form_adds_and_takes_nothing_back(
    begun: AnyPart, final: AnyPart, more: Any, reasons: list[str]
) -> None:
    """What it would take back is lost (W26)."""
    sent, lost = SentPart(0, begun), list[str]()
    sent.note(begun)
    assert sent.rest(final, lost.append) == more
    assert lost == reasons


def test_arguments_may_be_the_same_in_other_words() -> None:
    """Then nothing is missing, and nothing was corrected."""
    assert unsent(["a", "b"], "abc") == "c"
    assert unsent(["a", "b"], "acb") is None
    assert unsent_arguments(['{"a": 1', "}"], '{"a":1}') == ""
    assert unsent_arguments(['{"a": 1', "}"], '{"a":2}') is None
