"""Reading documents of every form, in chunks of any size."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.providers.documents.batches import CHUNK, Lines, batches, chunks_of
from dragoman.providers.documents.splitting import Piece
from tests.cli.samples import HISTORIES, chat, jsonl

BOM = b"\xef\xbb\xbf"


def read(text: bytes, size: int = CHUNK, name: str = "-") -> list[Piece]:
    """The documents in a text."""
    chunks = chunks_of(io.BytesIO(text), size)
    return [piece for batch in batches(chunks, name) for piece in batch.documents()]


def is_array(text: bytes) -> bool:
    """Whether a text is recognized as an array of documents."""
    return any(batch.of_array for batch in batches(chunks_of(io.BytesIO(text))))


HISTORY = HISTORIES["openai-chat"]
FORMS: list[tuple[bytes, list[Any], bool]] = [
    (json.dumps(chat()).encode(), [chat()], False),
    (json.dumps(chat(), indent=2).encode(), [chat()], False),
    (b'{"messages":\n[]}', [{"messages": []}], False),
    (b'{ "a": 1\n, "b": 2 }', [{"a": 1, "b": 2}], False),
    (jsonl(chat(), chat("b")), [chat(), chat("b")], False),
    (jsonl(chat(), chat("b")).replace(b"\n", b"\r\n"), [chat(), chat("b")], False),
    (b"\n\n" + jsonl(chat()) + b"\n \n" + jsonl(chat("b")), [chat(), chat("b")], False),
    (
        b"\n".join(json.dumps(chat(t), indent=1).encode() for t in "ab"),
        [chat("a"), chat("b")],
        False,
    ),
    (json.dumps(HISTORY).encode(), [HISTORY], False),
    (json.dumps(HISTORY, indent=2).encode(), [HISTORY], False),
    (jsonl(HISTORY, HISTORY[:1]), [HISTORY, HISTORY[:1]], False),
    (json.dumps([chat(), chat("b")]).encode(), [chat(), chat("b")], True),
    (json.dumps([chat(), chat("b")], indent=2).encode(), [chat(), chat("b")], True),
    (json.dumps([HISTORY, HISTORY[:1]]).encode(), [HISTORY, HISTORY[:1]], True),
    (b"[]", [], True),
    (b" [ ]\n", [], True),
    (b"", [], False),
    (b"\n \n", [], False),
]


@pytest.mark.parametrize(("text", "documents", "array"), FORMS)
@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, CHUNK])
@pytest.mark.parametrize("mark", [b"", BOM])
def test_every_form_is_recognised(
    text: bytes, documents: list[Any], array: bool, size: int, mark: bytes
) -> None:
    """The beginning is enough, whatever the chunks, with or without a byte order mark."""
    assert [json.loads(piece.raw) for piece in read(mark + text, size)] == documents
    assert is_array(mark + text) is array


@given(st.binary(max_size=80) | st.text('[]{},:"\\ \na1', max_size=80).map(str.encode),
       st.integers(1, 20))  # fmt: skip
def test_chunk_sizes_never_matter(text: bytes, size: int) -> None:
    """Any bytes give the same documents in any chunks."""
    assert read(text, size) == read(text)


@pytest.mark.parametrize(
    "first", [b'{"model": "m", "messages": [{"role": "us', b'{"a": tru', b'{"a": "b"']
)
def test_a_truncated_first_line_affects_no_other(first: bytes) -> None:
    """The rest is still read line by line."""
    found = read(first + b"\n" + jsonl(chat(), chat("b")))
    assert [piece.line for piece in found] == [1, 2, 3]
    assert [json.loads(piece.raw) for piece in found[1:]] == [chat(), chat("b")]


def test_the_jsonl_suffix_means_lines() -> None:
    """`….jsonl` is read by lines, even if a line looks like something else."""
    text = b'[{"a": 1}]\n{"b":\n{"c": 3}\n'
    assert [piece.line for piece in read(text, name="x.jsonl")] == [1, 2, 3]
    assert [piece.line for piece in read(text, name="x.ndjson")] == [1, 2, 3]


def test_lines_are_numbered_across_batches() -> None:
    """Blank lines count, but are not documents."""
    text = b"\n\n1\n\n2\r\n\n\n3"
    for size in range(1, len(text) + 1):
        found = [(piece.line, piece.raw.strip()) for piece in read(text, size)]
        assert found == [(3, b"1"), (5, b"2"), (8, b"3")]


def test_reading_does_not_wait_for_the_end_of_a_pipe() -> None:
    """What has arrived is returned before more is read."""

    def trickle() -> Any:
        yield jsonl(chat())
        yield jsonl(chat("b"))
        pytest.fail("read further than was asked for")

    found = next(iter(batches(trickle())))
    assert isinstance(found, Lines)
    assert json.loads(found.raw) == chat()
