"""Where a session's messages are in its file, by id.

Of a long file, most of it is kept in a file of its own, so that a process that has read nothing yet
finds a message, and notices a duplicate id, without reading the log. It is only an aid: what it
tells is verified in the log, and it is made anew if it is missing, damaged, or of another log.

    magic, file of the log, covered bytes, number of ids, checksum of all      48 bytes
    hashes of the ids, in order; then the offsets of their lines        8 bytes each
"""

from __future__ import annotations

import os
import re
import struct
import sys
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from contextlib import nullcontext, suppress
from hashlib import blake2b
from zlib import crc32

from dragoman.errors import StoreError
from dragoman.history.storage.files.directory import Directory
from dragoman.history.storage.files.log import Log, is_commit, row_in
from dragoman.history.storage.protocol import Row

_SMALL = 64 * 1024  # so much of a log is read instead
_HEADER = struct.Struct("<8s16sQQQ")
_MAGIC = b"dragids3"
_OURS = re.compile(rb'\{"dragoman":2,"kind":"Record","value":\{"seq":\d{1,18},"id":"([^"\\]+)",')


class Ids:
    """The ids of a log, as far as it was looked at."""

    def __init__(self, log: Log) -> None:
        self._file = log.file
        self.covered = self._kept = log.begin
        """The offset up to which ids are known; up to which they were written down."""
        self._hashes, self._starts = array("Q"), array("Q")
        self._new: dict[str, int] = {}

    def is_of(self, log: Log) -> bool:
        """Whether these are the ids of a log, or of its beginning."""
        return self._file == log.file and self.covered <= log.end

    def add(self, ids: Iterable[tuple[str, int]], covered: int) -> None:
        """Takes into account what was written at the end."""
        self._new.update(ids)
        self.covered = covered

    def catch_up(self, directory: Directory, log: Log, *, is_locked: bool) -> None:
        """Looks at the rest of a log; writes down what is known of a long one."""
        if not self._hashes and log.end - self.covered > _SMALL:
            self._load(directory, log)
        if self.covered < log.end:
            self.add(_ids_in(log, self.covered), log.end)
        more = self.covered - self._kept
        if more > _SMALL and more > (self._kept - log.begin) // 4:
            lock = nullcontext() if is_locked else directory.locked(log.digest)
            with suppress(OSError, StoreError), lock:
                self._write(directory, log.digest)

    def rows(self, log: Log, id: str) -> Iterator[Row]:
        """The row with this id, if there is one."""
        start = self._new.get(id)
        for at in [start] if start is not None else self._likely(id):
            if log.begin <= at < log.end:
                row = log.line_at(at).row
                if row is not None and row.id == id:
                    yield row
                    return

    def _likely(self, id: str) -> Iterator[int]:
        hashed = _hash(id)
        at = bisect_left(self._hashes, hashed)
        while at < len(self._hashes) and self._hashes[at] == hashed:
            yield self._starts[at]
            at += 1

    def _load(self, directory: Directory, log: Log) -> None:
        with suppress(OSError, struct.error), directory.reading(log.digest, ".ids") as fd:
            if fd is None:
                return
            raw = os.pread(fd, os.fstat(fd).st_size, 0)
            magic, file, covered, number, check = _HEADER.unpack_from(raw)
            body = memoryview(raw)[_HEADER.size :]
            is_sound = check == crc32(body, crc32(raw[: _HEADER.size - 8]))
            is_ours = (magic, file) == (_MAGIC, log.file) and covered <= log.end
            if is_sound and is_ours and len(body) == 16 * number:
                self._hashes, self._starts = (
                    _numbers(body[: 8 * number]),
                    _numbers(body[8 * number :]),
                )
                self.covered = self._kept = covered

    def _write(self, directory: Directory, digest: str) -> None:
        pairs = list(zip(self._hashes, self._starts, strict=True))
        pairs += [(_hash(id), start) for id, start in self._new.items()]
        pairs.sort()
        hashes, starts = array("Q", [h for h, _ in pairs]), array("Q", [s for _, s in pairs])
        body = _bytes(hashes) + _bytes(starts)
        header = _HEADER.pack(_MAGIC, self._file, self.covered, len(pairs), 0)[:-8]
        check = struct.pack("<Q", crc32(body, crc32(header)))
        directory.replace(digest, ".ids", [header, check, body])
        self._hashes, self._starts, self._kept = hashes, starts, self.covered
        self._new.clear()


def _hash(id: str) -> int:
    hashed = blake2b(id.encode(errors="surrogatepass"), digest_size=8)
    return int.from_bytes(hashed.digest(), "little")


def _numbers(raw: memoryview) -> array[int]:
    numbers = array("Q", bytes(raw))
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def _bytes(numbers: array[int]) -> bytes:
    if sys.byteorder == "big":
        numbers = array("Q", numbers)
        numbers.byteswap()
    return numbers.tobytes()


def _ids_in(log: Log, start: int) -> Iterator[tuple[str, int]]:
    for at, raw in log.raw_lines(start):
        if is_commit(raw):
            continue
        found = _OURS.match(raw)
        if found is not None:
            with suppress(UnicodeDecodeError):
                yield found[1].decode(), at
            continue
        row = row_in(raw, log.mark)
        if row is not None:
            yield row.id, at
