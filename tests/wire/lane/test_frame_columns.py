"""Frames decoded in batches give the same texts as one by one, or are left to the decoder."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman.wire.lane.frame_columns import TEXT, Columns
from dragoman.wire.lane.templates import ASCII_TEXT, BLANKS, INTEGER

FIXED = [b'data: {"n":', b',"text":"', b'","same":"', b'","pad":', b"", b"}\n\n"]
VALUES = (INTEGER.value, TEXT, None, ASCII_TEXT.value, BLANKS.value)
TEXTS = st.one_of(
    st.sampled_from(
        ['"', "\\", 'a\\"', '","same":"', "}\n\ndata: {", "\u2028", "é", "\x00", "x" * 90]
    ),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=9),
)


def _frame(
    number: int, text: str, same: str | None = None, pad: str = '"p"', blanks: str = ""
) -> bytes:
    once, again = json.dumps(text)[1:-1], json.dumps(text if same is None else same)[1:-1]
    return (
        f'data: {{"n":{number},"text":"{once}","same":"{again}","pad":{pad}{blanks}}}\n\n'.encode()
    )


@pytest.fixture
def columns() -> Columns:
    """Columns for frames with every kind of field."""
    return Columns(FIXED, VALUES)


@given(
    texts=st.lists(TEXTS, min_size=1, max_size=40),
    after=st.sampled_from(
        [b"", b"data: [DONE]\n\n", b'data: {"n":1', b"event: x\n\n" + _frame(7, "z")]
    ),
)
@example(texts=["a"] * 300, after=b"")
def test_texts_equal_those_of_the_frames(texts: list[str], after: bytes) -> None:
    """Texts and end position are right for any texts and any data after them."""
    frames = [_frame(n, text, None, '"%s"' % ("p" * (n % 5)), " " * (n % 3))
              for n, text in enumerate(texts)]  # fmt: skip
    data = b"".join(frames) + after
    reader, found, position = Columns(FIXED, VALUES), list[str](), 0
    while True:
        more, end = reader.texts(data, position)
        if not more:
            assert end == position
            break
        found += more
        position = end
    assert found == texts[: len(found)]
    assert position == sum(map(len, frames[: len(found)]))
    is_plain = not any("\\" in text and '"' in text for text in texts)
    assert len(found) == len(texts) or not is_plain


ODD: list[bytes] = [
    _frame(2, ""),
    _frame(2, "a", "b"),
    _frame(2, "a", pad='"\\u0041"'),
    _frame(2, "a", pad="1"),
    _frame(2, "a", blanks="\r"),
    _frame(2, "a").replace(b'"n":2', b'"n":02'),
    _frame(2, "a").replace(b'"n":2', b'"n":2e9'),
    _frame(2, "a").replace(b'"n":2', b'"n":12345678901234567'),
    _frame(2, "a").replace(b'"a"', b'"\\x"'),
    _frame(2, "a").replace(b'"a"', b'"\\ud83d"'),
    _frame(2, "a").replace(b'"a"', b'"\xff"'),
    _frame(2, "a").replace(b'"a"', b'"\n"'),
    _frame(2, "a").replace(b'"a"', b'"b","text":"c"'),
    _frame(2, "a").replace(b"data", b"dada"),
    _frame(2, "a").replace(b"}", b"]"),
    _frame(2, "a").replace(b"\n\n", b"\n\r"),
]


@pytest.mark.parametrize("odd", ODD)
def test_different_frames_are_not_decoded(odd: bytes, columns: Columns) -> None:
    """A frame of a slightly different form is never decoded as one of the batch."""
    alike = [_frame(n, "word") for n in range(9)]
    texts, end = columns.texts(b"".join([*alike, odd, *alike]), 0)
    assert (texts, end) in (([], 0), (["word"] * 9, 9 * len(alike[0])))
    assert columns.texts(odd + b"".join(alike), 0) == ([], 0)


def test_joined_texts_are_rejected(columns: Columns) -> None:
    """Texts with unbalanced quotes that join into valid JSON are not decoded."""
    one, other = (_frame(2, "@").replace(b"@", text) for text in (b"a\\", b',"b'))
    assert columns.texts(one + other + _frame(3, "c"), 0) == ([], 0)


def test_failed_batches_get_smaller(columns: Columns) -> None:
    """After failures, batches get small, so that little work is wasted."""
    frames = [_frame(n, "word") for n in range(400)]
    position = 0
    for _ in range(4):
        _, position = columns.texts(b"".join(frames), position)
    assert columns._batch > 200
    half = [_frame(n, "@").replace(b"@", b"\\ud83d" if n % 2 else b"a") for n in range(400)]
    for place in (0, 2, 4):
        assert columns.texts(b"".join(half[place:]), 0) == ([], 0)
    assert columns._batch <= 32
