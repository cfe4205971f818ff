"""Frames are the same however the bytes are split."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import WireError
from dragoman.wire.framing import JsonArrayParser, NdjsonParser, SseEvent, SseParser, sse


def _cut(data: bytes, places: list[int]) -> list[bytes]:
    borders = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[start:end] for start, end in pairwise(borders)]


def _told(events: list[SseEvent]) -> list[tuple[str | None, str]]:
    return [(event.event, event.data) for event in events]


def _events(pieces: list[bytes]) -> list[tuple[str | None, str]]:
    parser = SseParser()
    events = [event for piece in pieces for event in parser.feed(piece)]
    return _told(events + parser.close())


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"data: a\n\ndata: b\n\n", [(None, "a"), (None, "b")]),
        (b"event: x\ndata: a\n\n", [("x", "a")]),
        (b"data: a\ndata: b\n\n", [(None, "a\nb")]),
        (b"data:a\r\n\r\ndata:b\r\rdata:c\n\n", [(None, "a"), (None, "b"), (None, "c")]),
        (b"\xef\xbb\xbfdata: a\n\n", [(None, "a")]),
        (b": comment\n\nid: 7\nretry: 9\ndata: a\nodd\n\n", [(None, "a")]),
        (b"data: a", [(None, "a")]),
        (b"data: a\n", [(None, "a")]),
        (b"event: ping\n\ndata: a\n\n", [(None, "a")]),
        (b"data:\n\n", [(None, "")]),
        (b"data:  two\n\n", [(None, " two")]),
        ("data: \u2028\u00e9\x85\n\n".encode(), [(None, "\u2028\u00e9\x85")]),
        (b"data: \xff\n\n", [(None, "\ufffd")]),
        (b"data: a\n\n\xef\xbb\xbfdata: b\n\n", [(None, "a")]),  # only the first BOM counts
        (b"event:x\ndata\ndata:a\ndata: b\n\n\ndata: \xc3\xa9\n\n", [("x", "\na\nb"), (None, "é")]),
        (b"", []),
    ],
)
def test_events_are_read_as_the_standard_says(
    stream: bytes, events: list[tuple[str | None, str]]
) -> None:
    """Names, multi-line data, comments, line endings and missing ends are handled as specified."""
    assert _events([stream]) == events


@given(
    texts=st.lists(st.text(st.characters(blacklist_characters="\r\n"), max_size=8), max_size=5),
    ending=st.sampled_from(["\n", "\r", "\r\n"]),
    places=st.lists(st.integers(0, 300), max_size=12),
)
def test_events_do_not_depend_on_chunk_boundaries(
    texts: list[str], ending: str, places: list[int]
) -> None:
    """Cut anywhere, within a character or a CRLF too, the same events come out."""
    stream = "".join(f"event: e{ending}data: {text}{ending}{ending}" for text in texts)
    raw = (
        stream.encode("utf-8", "surrogatepass")
        if stream.isascii()
        else stream.encode("utf-8", "replace")
    )
    whole = _events([raw])
    assert _events(_cut(raw, places)) == whole
    assert _events([raw[i : i + 1] for i in range(len(raw))]) == whole
    assert len(whole) == len(texts)


@given(
    lines=st.lists(
        st.binary(max_size=8).map(lambda b: b.translate(None, b"\r\n \t\x0b\x0c")), max_size=5
    ),
    ending=st.sampled_from([b"\n", b"\r\n"]),
    places=st.lists(st.integers(0, 100), max_size=8),
    is_ended=st.booleans(),
)
def test_lines_do_not_depend_on_chunk_boundaries(
    lines: list[bytes], ending: bytes, places: list[int], is_ended: bool
) -> None:
    """Lines of JSON are complete, with or without a final newline."""
    stream = ending.join(lines) + (ending if is_ended else b"")
    parser = NdjsonParser()
    found = [line for piece in _cut(stream, places) for line in parser.feed(piece)]
    found += parser.close()
    bare = [line.removeprefix(b"\xef\xbb\xbf") if i == 0 else line for i, line in enumerate(lines)]
    assert found == [line for line in bare if line]


@given(
    objects=st.lists(
        st.dictionaries(
            st.text(max_size=5), st.text(max_size=5) | st.lists(st.text(max_size=3)), max_size=3
        ),
        max_size=4,
    ),
    indent=st.sampled_from([None, 1]),
    between=st.sampled_from([",", "\n,\r\n", " , "]),
    places=st.lists(st.integers(0, 300), max_size=12),
)
def test_arrays_do_not_depend_on_chunk_boundaries(
    objects: list[dict[str, Any]], indent: int | None, between: str, places: list[int]
) -> None:
    """The objects of an array are complete, even with brackets and quotes in their texts."""
    written = [json.dumps(one, indent=indent, ensure_ascii=False).encode() for one in objects]
    stream = b"[" + between.encode().join(written) + b"\n]\n"
    for pieces in ([stream], _cut(stream, places), _cut(stream, [*range(len(stream))])):
        parser = JsonArrayParser()
        found = [one for piece in pieces for one in parser.feed(piece)]
        assert found == written
        assert parser.is_whole
        assert parser.close() == []


def test_array_objects_are_emitted_at_once() -> None:
    """An object is emitted with its closing bracket, before the array is complete."""
    parser = JsonArrayParser()
    assert parser.feed(b'[{"a": "}"}') == [b'{"a": "}"}']
    assert parser.feed(b',{"b"') == []
    assert not parser.is_whole
    assert parser.feed(b": 1}") == [b'{"b": 1}']
    assert not parser.is_whole
    assert parser.feed(b"]") == []
    assert parser.is_whole


def test_objects_may_come_without_an_array() -> None:
    """Objects without an array around them are complete as soon as none is open."""
    parser = JsonArrayParser()
    assert parser.feed(b'{"a":1}\n{"b":[2]}') == [b'{"a":1}', b'{"b":[2]}']
    assert parser.is_whole


@pytest.mark.parametrize("stream", [b"[1]", b"[[", b"{}]", b"[{}]{}", b"[]]", b"x", b"[{}}"])
def test_data_that_is_no_array_of_objects_is_refused(stream: bytes) -> None:
    """Other data is refused as soon as it is seen."""
    with pytest.raises(WireError):
        JsonArrayParser().feed(stream)


def test_a_frame_past_the_limit_is_refused() -> None:
    """An endless line or event does not fill the memory."""
    with pytest.raises(WireError):
        SseParser(limit=10).feed(b"data: 0123456789abc")
    parser = SseParser(limit=10)
    with pytest.raises(WireError):
        parser.feed(b"data: 012\n" * 10)
    with pytest.raises(WireError):
        NdjsonParser(limit=3).feed(b"12345")
    array = JsonArrayParser(limit=9)
    assert array.feed(b'[{"a":123},') == [b'{"a":123}']
    with pytest.raises(WireError):
        array.feed(b'{"a":1234}')


def test_written_events_can_be_parsed() -> None:
    """The parser reads the events that `sse` writes."""
    assert _events([sse(b'{"a":1}', "start"), sse(b"[DONE]")]) == [
        ("start", '{"a":1}'),
        (None, "[DONE]"),
    ]
