"""Reads the documents in files and on standard input, in batches."""

from __future__ import annotations

import stat
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from dragoman.providers.documents.batches import STDIN, Batch, batches, chunks_of
from dragoman.providers.documents.reading import StoredMessages


@contextmanager
def opened(name: str) -> Generator[BinaryIO, None, None]:
    """A file, or standard input for `-`."""
    if name == STDIN:
        yield sys.stdin.buffer
        return
    with Path(name).open("rb") as stream:
        yield stream


def size_of_files(files: Sequence[str]) -> int | None:
    """The number of bytes to read, if known in advance."""
    total = 0
    for name in files:
        if name == STDIN:
            return None
        found = Path(name).stat()
        if not stat.S_ISREG(found.st_mode):
            return None
        total += found.st_size
    return total


def documents(
    names: Iterable[str], on_read: Callable[[int], None] | None = None
) -> Iterator[Batch]:
    """The documents in the files, in batches, as they are read."""
    for name in names:
        with opened(name) as stream:
            yield from batches(chunks_of(stream, on_read=on_read), name)


def read_session(raw: bytes) -> StoredMessages:
    """The messages of an exported session."""
    from dragoman.history.transfer import exported_messages

    return StoredMessages(*exported_messages(raw))
