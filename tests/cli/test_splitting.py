"""Splitting JSON text into values."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.providers.documents.splitting import Piece, Splitter

scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=8)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)
containers = st.lists(values, max_size=3) | st.dictionaries(st.text(max_size=4), values, max_size=3)
indents = st.sampled_from([None, 2])


def cut(text: bytes, sizes: list[int], *, array: bool) -> list[Piece]:
    """The pieces of a text that arrives in chunks of these sizes, repeated."""
    splitter = Splitter(array=array)
    found: list[Piece] = []
    start = turn = 0
    while start < len(text):
        size = sizes[turn % len(sizes)] if sizes else len(text)
        found += splitter.feed(text[start : start + size])
        start, turn = start + size, turn + 1
    return found + splitter.close()


@given(st.lists(values, max_size=5), indents, st.lists(st.integers(1, 9), max_size=4))
def test_an_array_is_split_into_its_elements(
    elements: list[Any], indent: int | None, sizes: list[int]
) -> None:
    """For any elements, whitespace and chunks."""
    text = json.dumps(elements, indent=indent).encode()
    assert [json.loads(piece.raw) for piece in cut(text, sizes, array=True)] == elements


@given(st.lists(containers, max_size=5), indents, st.lists(st.integers(1, 9), max_size=4))
def test_a_sequence_is_split_into_its_values(
    documents: list[Any], indent: int | None, sizes: list[int]
) -> None:
    """One after the other, on separate lines or not, escaped or not."""
    texts = [json.dumps(one, indent=indent, ensure_ascii=False) for one in documents]
    for between in ("\n", "", " \r\n\n"):
        text = between.join(texts).encode("utf-8", "surrogatepass")
        found = cut(text, sizes, array=False)
        assert [json.loads(piece.raw) for piece in found] == documents


@given(st.binary(max_size=60) | st.text('[]{},:"\\ \na1', max_size=60).map(str.encode),
       st.lists(st.integers(1, 9), max_size=4), st.booleans())  # fmt: skip
def test_any_bytes_are_split_alike_in_any_chunks(
    text: bytes, sizes: list[int], array: bool
) -> None:
    """Chunks never matter, even if the text isn't JSON."""
    assert cut(text, sizes, array=array) == cut(text, [], array=array)


def test_pieces_know_their_lines() -> None:
    """Lines are counted as an editor counts them."""
    text = b'[\n\n {"a":\n1},\n  {"b": "\\n"}, 3\n]\n'
    assert cut(text, [5], array=True) == [
        Piece(3, b'{"a":\n1}'),
        Piece(5, b'{"b": "\\n"}'),
        Piece(5, b"3"),
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"[1, 2", "the array is not closed"),
        (b"[", "the array is not closed"),
        (b'[{"a": "', "the array is not closed"),
        (b"[1] 2", "unexpected text after the array"),
        (b"[1]\n[2]\n", "unexpected text after the array"),
        (b'[{"a": 1}}', "the array is not closed"),
    ],
)
def test_a_broken_array_is_reported_at_its_end(text: bytes, problem: str) -> None:
    """The elements come first, then the error."""
    assert cut(text, [], array=True)[-1].problem == problem


@pytest.mark.parametrize("text", [b"[1,]", b"[,1]", b"[1,,2]"])
def test_a_missing_element_is_an_unreadable_piece(text: bytes) -> None:
    """An array with a gap isn't silently accepted."""
    assert b"" in [piece.raw for piece in cut(text, [], array=True)]


def test_an_invalid_value_is_a_piece_of_its_own() -> None:
    """Garbage between documents is reported by line and hides no other document."""
    found = cut(b'{"a": 1}\nrubbish\n{"b": 2}\n', [], array=False)
    assert found == [Piece(1, b'{"a": 1}'), Piece(2, b"rubbish"), Piece(3, b'{"b": 2}')]
