"""Runs of deltas are written between the same bytes, with the same result as one by one."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman
from dragoman import Front, Refusal, Request, Text, Thinking
from dragoman.errors import ServerError
from dragoman.model.events import (
    ChoiceFinish,
    Event,
    OpaqueEvent,
    PartDelta,
    PartStart,
    PartStop,
    ResponseEnd,
    ResponseStart,
    UsageUpdate,
)
from dragoman.model.media import Audio
from dragoman.model.parts import Citation, Origin, ServerToolCall
from dragoman.model.tools import ToolCallDelta, make_call
from dragoman.model.usage import FinishReason, Usage
from dragoman.wire.lane import switch
from dragoman.wire.lane.flows import is_plain
from tests.corpus import Corpus
from tests.wire import recorded
from tests.wire.lane.frames import BEGINNINGS, ENDINGS, FORMS, PLAIN, TEXTS, Style
from tests.wire.lane.test_templates import same_ids

_CITATION = Citation(kind="url_citation", url="https://a.example", title="A", start=0, end=1)


def _written(make: Any, told: list[Event]) -> tuple[list[bytes], list[Any], list[Any]]:
    with same_ids():
        encoder = make()
        pieces = [*map(encoder.feed, told), encoder.close()]
        pieces += map(encoder.feed, told[-2:])  # these come too late
        return pieces, list(encoder.losses), list(encoder.repairs)


def _written_at_once(make: Any, told: list[Event], ends: list[int]) -> tuple[bytes, Any, Any]:
    """The same with several events at once."""
    with same_ids():
        encoder = make()
        pieces = [encoder.feed_all(told[start:end]) for start, end in pairwise([0, *ends])]
        pieces += [encoder.feed_all(told[sum(ends[-1:]) :]), encoder.close()]
        pieces += [encoder.feed_all(told[-2:])]
        return b"".join(pieces), list(encoder.losses), list(encoder.repairs)


def _front(dialect: str) -> Any:
    return Front(dialect, Request(model="asked"), clock=lambda: 1.0).stream()


def check_same(dialect: str, told: list[Event]) -> None:
    """Encode events in both ways, with a plain encoder and behind a front."""
    for make in (dragoman.dialect(dialect).stream_encoder, lambda: _front(dialect)):
        short = _written(make, told)
        with switch.off():
            long = _written(make, told)
            whole = b"".join(long[0]), *long[1:]
            assert _written_at_once(make, told, []) == whole
        assert short == long
        for ends in ([], [len(told) // 2], [*range(0, len(told), 7)]):
            assert _written_at_once(make, told, ends) == whole


def _part(draw: Any, number: int) -> Any:
    home = draw(st.sampled_from([None, None, *dragoman.dialects()]))
    fields: dict[str, Any] = {} if home is None else {"origin": Origin(dialect=home)}
    if draw(st.integers(0, 5)) == 0:
        fields["extras"] = {draw(st.sampled_from(dragoman.dialects())): {"odd": 1}}
    if draw(st.integers(0, 8)) == 0:
        fields["signature"] = "c2ln"
    text = draw(st.sampled_from(["", "a"]))
    kinds = ["text", "text", "thinking", "thinking", "call", "call", "refusal", "server", "audio"]
    kind = draw(st.sampled_from(kinds))
    if kind == "text":
        item = draw(st.sampled_from([{}, {"item_id": f"i{number}"}]))
        return Text(text, **fields, **item)
    if kind == "thinking":
        return Thinking(text, form=draw(st.sampled_from(["full", "summary"])), **fields)
    if kind == "call":
        form = draw(st.sampled_from(["function"] * 5 + ["custom"]))
        return make_call(f"c{number}", "f", raw="", kind=form, **fields)
    if kind == "refusal":
        return Refusal(text)
    if kind == "server":
        return ServerToolCall("s1", "mcp", {})
    return Audio(data="AAAA", mime="audio/pcm")


_ARGUMENTS = st.sampled_from(['{"a":', '"b', '"', "1", "}", "{}", ", ", '"k": "\\u00', "e9", "x"])


def _grown(draw: Any, index: int, part: Any) -> list[Event]:
    choice = draw(st.sampled_from([0, 0, 0, 0, 1]))
    is_call = not isinstance(part, (Text, Thinking, Refusal, Audio))
    texts = draw(st.lists(_ARGUMENTS if is_call else TEXTS, min_size=1, max_size=5))
    grown = [PartDelta(index, text, choice=choice) for text in texts]
    more: dict[str, Any] = draw(
        st.sampled_from([{}, {}, {}, {"signature": "eA=="}, {"data": "eA=="},
                         {"citations": (_CITATION,)}, {"extras": {"anthropic": {"late": 1}}}])
    )  # fmt: skip
    return [*grown, PartDelta(index, draw(TEXTS), choice=choice, **more)] if more else [*grown]


def _called(draw: Any) -> list[Event]:
    index = draw(st.sampled_from([None, 0, 0, 1]))
    head: dict[str, Any] = draw(
        st.sampled_from([{}, {"id": "c9", "name": "g"}, {"name": "g"}, {"signature": "eA=="},
                         {"kind": "custom"}])
    )  # fmt: skip
    texts = draw(st.lists(_ARGUMENTS, max_size=5))
    first = ToolCallDelta(index, arguments_delta=draw(_ARGUMENTS), **head)
    kind = {"kind": head["kind"]} if "kind" in head else {}
    return [first, *(ToolCallDelta(index, arguments_delta=text, **kind) for text in texts)]


@st.composite
def runs(draw: Any) -> list[Event]:
    """Events with runs of deltas, and other events between them."""
    home = draw(st.sampled_from([None, *dragoman.dialects()]))
    origin = None if home is None else Origin(dialect=home)
    start = ResponseStart(id="r1", model="m%d\u2028", created_at=1.0, origin=origin)
    told: list[Event] = [start] if draw(st.integers(0, 5)) else []
    parts: dict[int, Any] = {}
    steps = ["part", "grow", "grow", "grow", "call", "stop", "usage", "opaque", "start", "finish"]
    for step in draw(st.lists(st.sampled_from(steps), max_size=14)):
        if step == "part":
            index = len(parts)
            parts[index] = _part(draw, index)
            told.append(PartStart(index, parts[index]))
        elif step == "grow":
            index = draw(st.sampled_from([*parts, 9]))
            told += _grown(draw, index, parts.get(index, Text("")))
        elif step == "call":
            told += _called(draw)
        elif step == "stop" and parts:
            index = draw(st.sampled_from([*parts]))
            final = parts[index] if draw(st.booleans()) else None
            told.append(PartStop(index, final))
        elif step == "usage":
            told.append(UsageUpdate(Usage(1, 2)))
        elif step == "opaque":
            told.append(OpaqueEvent(draw(st.sampled_from(dragoman.dialects())), {"type": "odd"}))
        elif step == "start":
            told.append(start.replace(extras={"openai-chat": {"late": len(told)}}))
        elif step == "finish" and not draw(st.integers(0, 3)):
            told.append(ChoiceFinish(FinishReason.STOP))
    return [*told, ChoiceFinish(FinishReason.STOP), ResponseEnd()] if draw(st.booleans()) else told


@pytest.mark.parametrize("dialect", dragoman.dialects())
@given(told=runs())
def test_any_events_are_encoded_alike(dialect: str, told: list[Event]) -> None:
    """Runs among any other events give the same bytes, losses and repairs."""
    check_same(dialect, told)


@pytest.mark.parametrize("dialect", dragoman.dialects())
@pytest.mark.parametrize("audio", [
    Audio(data="AAAA", mime="audio/wav"), Audio(url="https://a.example/b.wav"),
    Audio(file_id="f"),
])  # fmt: skip
def test_audio_deltas_are_encoded(dialect: str, audio: Audio) -> None:
    """Deltas of data, a signature or unsupported text, for any kind of audio part."""
    deltas = [PartDelta(0, data="QUJD"), PartDelta(0, signature="s"), PartDelta(0, "text")]
    for first in deltas:
        for second in deltas:
            check_same(dialect, [PartStart(0, audio), first, second, ResponseEnd()])


@pytest.mark.parametrize("dialect", dragoman.dialects())
def test_nothing_is_written_after_the_end(dialect: str) -> None:
    """After `fail` or `close`, further deltas are not written."""
    deltas = [PartDelta(0, text) for text in "abcd"]
    for end in ("fail", "close"):
        encoder = _front(dialect)
        for event in [ResponseStart(id="r", model="m"), PartStart(0, Text("")), *deltas]:
            encoder.feed(event)
        assert encoder.flow is not None
        assert encoder.fail(ServerError("it broke")) if end == "fail" else encoder.close()
        assert encoder.feed(PartDelta(0, "late")) == b""


def events_of(dialect: str, *pieces: bytes) -> list[Event]:
    """The events of a stream."""
    decoder = dragoman.dialect(dialect).stream_decoder()
    return [*(event for piece in pieces for event in decoder.feed(piece)), *decoder.close()]


@pytest.mark.parametrize("target", dragoman.dialects())
@pytest.mark.parametrize(("source", "name"), [(d, n) for d in PLAIN for n in PLAIN[d]])
def test_a_run_uses_the_fast_path(source: str, name: str, target: str) -> None:
    """Runs of any dialect take the fast path in any other, with the same result."""
    style = Style(source)
    first, *parts = BEGINNINGS[source] or [{}]
    places = {"thinking": 1, "more thinking": 1, "reasoning": 1, "call": 2, "code": 3,
              "second call": 4}  # fmt: skip
    if source == "openai-chat":  # which starts only calls
        places = dict.fromkeys(FORMS[source], len(parts)) | {"call": 0, "second call": 1}
    place = places.get(name, 0)
    begun = parts[place : place + 1]
    bodies = [
        *([first] if first else []),
        *begun,
        *(FORMS[source][name](f' "w{n}é') for n in range(20)),
    ]
    stream = b"".join([style.frame(body) for body in [*bodies, *ENDINGS[source]]])
    told = events_of(source, stream)
    check_same(target, told)
    encoder: Any = _front(target)
    flowing = 0
    for event in told:
        before = encoder.flow
        encoder.feed(event)
        flowing += before is not None and before is encoder.flow
    # Provider tools have no equivalent elsewhere; two fields are written one by one.
    is_twice = name in {"thinking twice", "thinking again"} and target == "openai-chat"
    assert flowing >= 15 or name == "code" or is_twice


@pytest.mark.thorough
@pytest.mark.corpus
@pytest.mark.parametrize("source", FORMS)
def test_recorded_streams_are_encoded_alike(source: str, corpus: Corpus) -> None:
    """Recorded streams give the same result in every dialect."""
    for _, stream in recorded.streams(corpus, source):
        try:
            told = events_of(source, stream)
        except dragoman.DragomanError:
            continue
        for target in dragoman.dialects():
            check_same(target, told)


@pytest.mark.parametrize(
    ("event", "is_text"),
    [
        (PartDelta(0, text="a"), True),
        (PartDelta(0, text=""), False),
        (PartDelta(0, text="a", signature="s"), False),
        (PartDelta(0, text="a", citations=(_CITATION,)), False),
        (ToolCallDelta(0, arguments_delta="{"), True),
        (ToolCallDelta(0, arguments_delta=""), False),
        (ToolCallDelta(0, arguments_delta="{", name="look"), False),
        (ToolCallDelta(0, arguments_delta="{", id="call_1"), False),
        (ToolCallDelta(0, arguments_delta="a", kind="custom"), False),
        (PartStop(0), False),
        (UsageUpdate(Usage(input=1)), False),
    ],
)
def test_only_pure_text_deltas_are_plain(event: Event, is_text: bool) -> None:
    """Text of a part, or arguments of a function call."""
    assert is_plain(event) is is_text
