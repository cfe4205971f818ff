"""Reads documents in batches, without holding the whole input in memory.

The format is detected from the beginning of the input, so it can be a pipe:

- a JSON object or an array of messages is one document. If more follows, there are several, one
per line (JSONL) or, if the first spans several lines, one after the other;
- in any other array, each element is a document;
- in an export of stored sessions, each session is a document: its line and those of its messages.

A file named `….jsonl` or `….ndjson` is always read line by line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import BinaryIO, Literal, NamedTuple

from dragoman.errors import InvalidInputError
from dragoman.model.jsontext import loads
from dragoman.providers.documents.sessions import is_session, sessions_in
from dragoman.providers.documents.splitting import Piece, Splitter
from dragoman.wire.documents import is_message

CHUNK = 512 * 1024
"""Bytes to read at a time, and the approximate size of a batch."""
STDIN = "-"

Form = Literal["lines", "values", "array"]
Chunks = Iterator[bytes]

_BOM = b"\xef\xbb\xbf"
_BLANK = b" \t\r\n"
_OPENING = (b"{", b"[")
_UNFINISHED = (b":", b",", *_OPENING)


class Lines(NamedTuple):
    """Whole lines of JSONL, and the number of the first."""

    name: str
    line: int
    raw: bytes
    of_array: bool = False

    def documents(self) -> Iterator[Piece]:
        """The lines that are not blank."""
        for number, raw in enumerate(self.raw.split(b"\n"), start=self.line):
            if raw and not raw.isspace():
                yield Piece(number, raw)


class Pieces(NamedTuple):
    """Documents extracted from a larger text."""

    name: str
    pieces: list[Piece]
    of_array: bool

    def documents(self) -> Iterator[Piece]:
        """All of them."""
        return iter(self.pieces)


Batch = Lines | Pieces


def chunks_of(
    stream: BinaryIO, size: int = CHUNK, on_read: Callable[[int], None] | None = None
) -> Chunks:
    """Chunks of a stream as they become available, without waiting for full chunks."""
    read: Callable[[int], bytes] = getattr(stream, "read1", stream.read)
    while chunk := read(size):
        if on_read is not None:
            on_read(len(chunk))
        yield chunk


def batches(chunks: Chunks, name: str = STDIN) -> Iterator[Batch]:
    """Split an input into batches of documents."""
    line, beginning = _beginning(chunks)
    form: Form = "lines"
    if name.endswith((".jsonl", ".ndjson")):
        _, beginning = _first_line(beginning, chunks)
    else:
        form, beginning = _form(beginning, chunks)
    everything = chain([beginning], chunks)
    if form == "lines":
        lines = _lines(everything, name, line)
        return _sessions(lines, name) if is_session(beginning) else lines
    return _pieces(everything, name, Splitter(array=form == "array", line=line), form)


def _beginning(chunks: Chunks) -> tuple[int, bytes]:
    """The line number of the first text that is not blank, and the text."""
    line, text = 1, b""
    for chunk in chunks:
        text += chunk
        if text[:3] != _BOM and _BOM.startswith(text[:3]):
            continue  # possibly the start of a byte order mark
        text = text.removeprefix(_BOM)
        bare = text.lstrip(_BLANK)
        line += text.count(b"\n", 0, len(text) - len(bare))
        text = bare
        if text:
            break
    return line, text


def _form(beginning: bytes, chunks: Chunks) -> tuple[Form, bytes]:
    """The form of an input, and everything read to detect it."""
    if beginning.startswith(b"["):
        return _form_of_array(beginning, chunks)
    if beginning.startswith(b"{"):
        return _form_of_object(beginning, chunks)
    return "lines", beginning


def _form_of_array(beginning: bytes, chunks: Chunks) -> tuple[Form, bytes]:
    """An array of documents, unless its first element is a message: then it is one document."""
    seen = [beginning]
    splitter = Splitter(array=True)
    found = splitter.feed(beginning)
    while not found and not splitter.closed:
        chunk = next(chunks, None)
        if chunk is None:
            break
        seen.append(chunk)
        found = splitter.feed(chunk)
    head = b"".join(seen)
    if not found or not _is_message(found[0].raw):
        return "array", head
    line, head = _first_line(head, chunks)
    return ("lines" if _is_whole(line) else "values"), head


def _form_of_object(beginning: bytes, chunks: Chunks) -> tuple[Form, bytes]:
    """One document per line, unless the first continues on the next line."""
    line, head = _first_line(beginning, chunks)
    if _is_whole(line):
        return "lines", head
    if line.rstrip(_BLANK).endswith(_UNFINISHED):
        return "values", head
    after, head = _next_line(head, len(line), chunks)
    return ("lines" if after.startswith(_OPENING) else "values"), head


def _first_line(beginning: bytes, chunks: Chunks) -> tuple[bytes, bytes]:
    """The first line, and everything read to get it."""
    seen = [beginning]
    while b"\n" not in seen[-1]:
        chunk = next(chunks, None)
        if chunk is None:
            break
        seen.append(chunk)
    head = b"".join(seen)
    return head.partition(b"\n")[0], head


def _next_line(beginning: bytes, start: int, chunks: Chunks) -> tuple[bytes, bytes]:
    """The beginning of the next line that is not blank, and everything read to get it."""
    seen = [beginning]
    after = beginning[start:].lstrip(_BLANK)
    while not after:
        chunk = next(chunks, None)
        if chunk is None:
            break
        seen.append(chunk)
        after = chunk.lstrip(_BLANK)
    return after, b"".join(seen)


def _is_whole(line: bytes) -> bool:
    try:
        loads(line)
    except InvalidInputError:
        return False
    return True


def _is_message(raw: bytes) -> bool:
    try:
        return is_message(loads(raw))
    except InvalidInputError:
        return False


def _lines(chunks: Iterable[bytes], name: str, line: int) -> Iterator[Lines]:
    """Whole lines; the incomplete last line of a chunk is kept for the next."""
    waiting: list[bytes] = []
    for chunk in chunks:
        whole, newline, rest = chunk.rpartition(b"\n")
        if not newline:
            waiting.append(chunk)
            continue
        raw = b"".join((*waiting, whole))
        waiting = [rest]
        yield Lines(name, line, raw)
        line += raw.count(b"\n") + 1
    if last := b"".join(waiting):
        yield Lines(name, line, last)


def _sessions(batches: Iterable[Lines], name: str) -> Iterator[Pieces]:
    """The sessions in the lines of an export, in batches of about the same size as the lines."""
    pieces = sessions_in(piece for batch in batches for piece in batch.documents())
    waiting: list[Piece] = []
    size = 0
    for piece in pieces:
        waiting.append(piece)
        size += len(piece.raw)
        if size >= CHUNK:
            yield Pieces(name, waiting, of_array=False)
            waiting, size = [], 0
    yield Pieces(name, waiting, of_array=False)


def _pieces(chunks: Iterable[bytes], name: str, splitter: Splitter, form: Form) -> Iterator[Pieces]:
    """The pieces of a splitter; at least one batch, so that an empty array is noticed."""
    of_array = form == "array"
    waiting: list[Piece] = []
    size = 0
    for chunk in chunks:
        found = splitter.feed(chunk)
        waiting += found
        size += sum(len(piece.raw) for piece in found)
        if size >= CHUNK:
            yield Pieces(name, waiting, of_array)
            waiting, size = [], 0
    yield Pieces(name, waiting + splitter.close(), of_array)
