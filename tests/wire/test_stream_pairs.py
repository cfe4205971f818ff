"""Streams and the equivalent plain bodies of every dialect: split, cut, mutated, written again."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import WireError
from dragoman.model.accumulate import MessageAccumulator
from dragoman.model.events import (
    ChoiceFinish,
    Event,
    OpaqueEvent,
    PartDelta,
    PartStart,
    ResponseEnd,
    StreamError,
)
from dragoman.model.parts import Text
from dragoman.model.responses import Choice
from tests.wire.stream_table import EVERY, ROWS, TABLE, Case
from tests.wire.streams import Streams

pytestmark = pytest.mark.whole  # what dialects do differently shows in any row


def _drawn(data: st.DataObject, row: str) -> Case:
    return Case(row, data.draw(st.sampled_from(list(TABLE[row].bodies))))


# --- reading


@EVERY
def test_stream_equals_the_plain_response(case: Case) -> None:
    """The stream's response equals the plain one in content, finish, usage, ids and extras."""
    decoder, events = case.its.decoded(case.stream)
    assert decoder.is_complete
    its, expected = case.its, case.its.dialect.decode_response(case.body)
    assert decoder.response == expected
    for one in ("usage", "model", "created_at"):
        assert getattr(decoder.response, one) == getattr(expected, one)
    assert case.name in its.encoded_as or its.said(decoder.response) == its.said(expected)
    again = its.dialect.encode_response(decoder.response)
    assert json.loads(again.to_bytes()) == its.encoded_as.get(case.name, case.body)
    assert again.losses == ()
    folded = MessageAccumulator()
    folded.extend(events)
    if its.order != "other":
        assert its.said(folded.response) == its.said(expected)
    assert list(map(_heard, folded.response.choices)) == list(map(_heard, expected.choices))


def _heard(choice: Choice) -> object:
    message = choice.message
    return message.text, message.tool_calls, message.extras, choice.extras, choice.finish


@ROWS
@given(data=st.data())
def test_chunk_boundaries_make_no_difference(row: str, data: st.DataObject) -> None:
    """However a stream is split and its lines end, the response is the same."""
    case = _drawn(data, row)
    ending = data.draw(st.sampled_from(["\n", "\r\n", "\r", "\n" * (2 - case.its.is_sse)]))
    stream = case.stream.replace(b"\n", ending.encode())
    cuts = data.draw(st.lists(st.integers(0, len(stream))))
    decoder, _ = case.its.decoded(stream, cuts)
    assert decoder.is_complete
    assert case.its.said(decoder.response) == case.its.said(
        case.its.decoded(case.stream)[0].response
    )


@EVERY
def test_single_bytes_make_no_difference(case: Case) -> None:
    """Fed byte by byte, the decoder returns the same events."""
    whole, events = case.its.decoded(case.stream)
    decoder, single = case.its.decoded(case.stream, range(len(case.stream)))
    assert decoder.is_complete
    assert case.its.said(decoder.response) == case.its.said(whole.response)
    assert [type(event) for event in single] == [type(event) for event in events]
    if case.name not in case.its.generated:
        assert all(one.identical(other) for one, other in zip(single, events, strict=True))


@EVERY
def test_truncated_stream_is_never_complete(case: Case) -> None:
    """Truncated after any frame, a stream isn't complete and is encoded as an error (G1)."""
    frames, its = case.frames, case.its
    for count in range(len(frames)):
        decoder, events = case.its.decoded(its.written(frames[:count]))
        assert not decoder.is_complete
        assert not any(isinstance(event, ResponseEnd) for event in events)
        encoder, stream = case.its.encoded(events)
        assert its.ended(stream) == "failed"
        lost = {loss.reason for loss in encoder.losses}
        assert its.lost_when_cut is None or lost <= {*its.lost_when_cut}
        if its.decided_before is not None and count < len(frames) - its.decided_before:
            assert not any(isinstance(event, ChoiceFinish) for event in events)
            assert decoder.response.finish is None
            assert decoder.response.choices == () or decoder.response.message.finish is None


@EVERY
def test_stream_truncated_inside_a_frame_is_never_complete(case: Case) -> None:
    """After any bytes, even inside a frame, a stream isn't complete and nothing raises."""
    stream = case.stream
    for end in range(0, len(stream.rstrip()), max(7, len(stream) // 99)):
        decoder, events = case.its.decoded(stream[:end])
        assert not decoder.is_complete
        assert case.its.ended(case.its.encoded(events)[1]) == "failed"


@ROWS
@given(data=st.data())
def test_a_dropped_connection_is_never_complete(row: str, data: st.DataObject) -> None:
    """Truncated after any byte, a stream isn't complete, and is encoded as an error."""
    case = _drawn(data, row)
    stream = case.stream
    decoder, events = case.its.decoded(
        stream[: data.draw(st.integers(0, len(stream.rstrip()) - 1))]
    )
    assert not decoder.is_complete
    assert case.its.ended(case.its.encoded(events)[1]) == "failed"


@pytest.mark.parametrize("row", [row for row, its in TABLE.items() if its.in_pieces])
def test_text_deltas_are_passed_on_immediately(row: str) -> None:
    """Each text delta is an event of its own, returned with the frame that contains it."""
    its = TABLE[row]
    assert its.in_pieces is not None
    frames, kinds, expected = its.in_pieces
    decoder, events = its.dialect.stream_decoder(), list[Event]()
    texts: list[str] = []
    for one in frames:
        found = decoder.feed(its.written([one]))
        for event in found:
            if isinstance(event, PartStart) and isinstance(event.part, Text):
                texts += [event.part.text] * bool(event.part.text)
            elif isinstance(event, PartDelta):
                texts.append(event.text or "")
        assert decoder.response.choices == () or decoder.response.text == "".join(texts)
        events += found
    events += decoder.close()
    assert [type(event).__name__ for event in events] == kinds.split()
    assert texts == expected


@pytest.mark.parametrize(
    ("row", "name"),
    [
        pytest.param(row, name, id=f"{row}-{name}")
        for row, its in TABLE.items()
        for name in its.failures
    ],
)
def test_error_event_is_decoded(row: str, name: str) -> None:
    """A mid-stream error becomes a `StreamError`, is written again, and ends incomplete (W112)."""
    its = TABLE[row]
    wanted = its.failures[name]
    decoder, events = its.decoded(wanted.stream)
    (told,) = (event for event in events if isinstance(event, StreamError))
    assert not decoder.is_complete
    encoder, again = its.encoded(events)
    assert its.ended(again) == "failed"
    assert not its.decoded(again)[0].is_complete
    assert [piece for piece in wanted.again if piece not in again] == []
    if wanted.losses is not None:
        assert [loss.path for loss in encoder.losses] == wanted.losses
    if wanted.message is None:
        assert [type(event) for event in events] == [StreamError]
    else:
        assert (told.message, told.code, told.status) == (
            wanted.message, wanted.code, wanted.status,
        )  # fmt: skip
    assert wanted.text is None or decoder.response.text == wanted.text


@pytest.mark.whole
@ROWS
@pytest.mark.parametrize(
    "data",
    ["{", "[1]", "null", '"a"', "nonsense", '{"type": "x"} {}', '{"x": 1} {}', "1e999", "[DONE",
     '"nonsense"', '{"nonsense": ', "\udcff"],
)  # fmt: skip
def test_invalid_frame_raises_wire_error(row: str, data: str) -> None:
    """A frame that isn't a JSON object raises `WireError` without quoting it, and ends decoding."""
    case = Case(row, "text")
    decoder = case.its.dialect.stream_decoder()
    with pytest.raises(WireError) as caught:
        decoder.feed(case.its.frame(data))
    assert caught.value.dialect == case.its.dialect.name
    assert "nonsense" not in str(caught.value)
    assert decoder.feed(case.stream) == []
    assert decoder.close() == []
    assert not decoder.is_complete
    assert decoder.response.choices == ()


# --- arbitrary input


def _odd(its: Streams) -> st.SearchStrategy[Any]:
    plain = st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=5), st.just(1e300), st.sampled_from(its.words),
    )  # fmt: skip
    keys = st.sampled_from(its.keys) | st.text(max_size=4)
    return st.recursive(
        plain,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
        max_leaves=8,
    )


ODD = {row: _odd(its) for row, its in TABLE.items()}


def _mutated(value: Any, data: st.DataObject, odd: st.SearchStrategy[Any]) -> Any:
    """A copy of the value with one nested value replaced or removed."""
    if isinstance(value, list) and value and data.draw(st.integers(0, 4)):
        at = data.draw(st.integers(0, len(value) - 1))
        return [*value[:at], _mutated(value[at], data, odd), *value[at + 1 :]]
    if isinstance(value, dict) and value and data.draw(st.integers(0, 4)):
        key = data.draw(st.sampled_from(sorted(value)))
        if not data.draw(st.integers(0, 5)):
            return {k: v for k, v in value.items() if k != key}
        return {**value, key: _mutated(value[key], data, odd)}
    return data.draw(odd)


def _survives(its: Streams, pieces: list[bytes]) -> None:
    """Decodes, then encodes what was decoded: `WireError` is the only error, when decoding."""
    decoder, events = its.dialect.stream_decoder(), list[Event]()
    with suppress(WireError):
        for piece in pieces:
            events += decoder.feed(piece)
        events += decoder.close()
        folded = MessageAccumulator()
        folded.extend(events)
        assert its.order != "kept" or folded.response == decoder.response
    its.dialect.encode_response(decoder.response).to_bytes()
    _, again = its.encoded(events)
    if not any(isinstance(event, OpaqueEvent) for event in events):  # those are written unchanged
        ended = its.ended(again, may_be_odd=True)
        assert ended == "failed" or decoder.is_complete
    its.decoded(again)


@ROWS
@given(data=st.data())
def test_mutated_stream_gives_events_or_wire_error(row: str, data: st.DataObject) -> None:
    """Dropped, repeated, swapped or changed frames raise nothing but `WireError`, both ways."""
    case = _drawn(data, row)
    frames = list(case.frames)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(frames) - 1))
        what = data.draw(st.sampled_from(["drop", "double", "swap", "change", "change"]))
        if what == "drop" and len(frames) > 1:
            del frames[at]
        elif what == "double":
            frames.insert(data.draw(st.integers(0, len(frames))), frames[at])
        elif what == "swap":
            frames[at], frames[0] = frames[0], frames[at]
        else:
            frames[at] = _mutated(frames[at], data, ODD[row])
    name = data.draw(st.sampled_from(["", "e"]))
    texts = ["[DONE]" if one == "[DONE]" else json.dumps(one) for one in frames]
    _survives(case.its, [case.its.frame(text, name) for text in texts])


@ROWS
@given(data=st.data(), cut=st.integers(0, 2000), junk=st.binary(max_size=30))
def test_inserted_bytes_give_events_or_wire_error(
    row: str, data: st.DataObject, cut: int, junk: bytes
) -> None:
    """Random bytes inserted anywhere raise nothing but `WireError`."""
    case = _drawn(data, row)
    _survives(case.its, [case.stream[:cut], junk, case.stream[cut:]])


@ROWS
@given(pieces=st.lists(st.binary(max_size=200), max_size=4))
def test_any_bytes_give_events_or_wire_error(row: str, pieces: list[bytes]) -> None:
    """Random bytes raise nothing but `WireError`."""
    _survives(TABLE[row], pieces)


@ROWS
@given(data=st.data())
def test_any_json_gives_events_or_wire_error(row: str, data: st.DataObject) -> None:
    """Random JSON raises nothing but `WireError`."""
    its = TABLE[row]
    values = data.draw(st.lists(ODD[row], max_size=4))
    _survives(its, [its.frame(json.dumps(value)) for value in values])


# --- writing


@EVERY
def test_stream_round_trips(case: Case) -> None:
    """Decoded, encoded and decoded again, the response is equal and nothing is lost."""
    decoder, events = case.its.decoded(case.stream)
    encoder, stream = case.its.encoded(events)
    assert encoder.losses == []
    assert case.its.ended(stream) == "complete"
    again, _ = case.its.decoded(stream)
    assert again.is_complete
    assert again.response == decoder.response
    assert case.its.said(again.response) == case.its.said(decoder.response)
