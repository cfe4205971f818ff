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
def test_an_interrupted_stream_ends_in_an_error(name: str) -> None:
    """There is one error; a stream with an end event has none (G1)."""
    encoder = dragoman.dialect(name).stream_encoder()
    encoder.feed(PartStart(0, Text("Hi")))
    assert INTERRUPTED.message.encode() in encoder.close()
    assert encoder.close() == b""
    encoder = dragoman.dialect(name).stream_encoder()
    encoder.feed(ResponseEnd())
    assert encoder.close() == b""


@pytest.mark.parametrize("name", NAMES)
def test_an_error_ends_the_stream(name: str) -> None:
    """Events after an error are not written."""
    encoder = dragoman.dialect(name).stream_encoder()
    assert b"it broke" in encoder.feed(StreamError("it broke", "odd", 429))
    assert encoder.feed(PartStart(0, Text("Hi"))) == encoder.close() == b""


@pytest.mark.parametrize("name", NAMES)
def test_a_loss_is_reported_once(name: str) -> None:
    """Repeated losses of the same kind are reported once."""
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


def test_a_handler_has_methods_for_its_events() -> None:
    """An encoder has a method for each kind of event."""
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
def test_only_additions_of_a_final_form_are_sent(
    begun: AnyPart, final: AnyPart, more: Any, reasons: list[str]
) -> None:
    """A correction of text that was sent is a loss (W26)."""
    sent, lost = SentPart(0, begun), list[str]()
    sent.note(begun)
    assert sent.rest(final, lost.append) == more
    assert lost == reasons


def test_equal_arguments_may_be_formatted_differently() -> None:
    """Equal JSON with other whitespace is neither missing nor corrected."""
    assert unsent(["a", "b"], "abc") == "c"
    assert unsent(["a", "b"], "acb") is None
    assert unsent_arguments(['{"a": 1', "}"], '{"a":1}') == ""
    assert unsent_arguments(['{"a": 1', "}"], '{"a":2}') is None
