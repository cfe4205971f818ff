"""The id index of a large file: a hash table of message positions.

It makes finding a message, and checking for duplicate ids, as fast with 100,000 messages as with
ten, even in a process that has read nothing yet. It is only an aid: the file is authoritative. What
the index does not cover is read from the file, and what it returns is verified there. If it is
missing, damaged, of another file, or from before the last boot of the machine (when parts of it may
not have reached the disk), it is rebuilt.

    magic, slots, used, covered, stamp, boot id, checksum     80 bytes
    hash of an id, offset of its line + 1, checksum           16 bytes per slot

A free slot holds its own number and ones, and each checksum covers the slot number, so that zeros
(which disks leave behind) and moved data are detected.

Offsets are relative to the first row, so that a new first line does not change them.
"""

from __future__ import annotations

import errno
import os
import struct
import sys
from array import array
from collections.abc import Container, Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from uuid import UUID
from zlib import crc32

import msgspec

from dragoman.history.storage.files.directory import Directory, place
from dragoman.history.storage.files.log import Line, Log

SMALL = 64 * 1024  # a file up to this size needs no index
_LAG = 16 * 1024  # this much may be uncovered: it is scanned in no time
_KEPT = 16  # indexes that are kept open
_HEADER = struct.Struct("<8sQQQ16s16s")
_CHECK = 16
_START = _HEADER.size + _CHECK
_SLOT = struct.Struct("<QQ")
_SIZE = _SLOT.size
_PLACE = 40  # bits of an offset; the other 24 are its checksum
_PLACES = (1 << _PLACE) - 1
_CHECKED = 13  # bytes of a slot before its checksum
_ONES = (1 << 64) - 1
_MAGIC = b"dragids2"
_CLUSTER = 8
_PAGE = 4096  # slots that are read at once
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class _Header(msgspec.Struct):
    slots: int
    used: int
    covered: int
    stamp: bytes
    boot: bytes

    def packed(self) -> bytes:
        raw = _HEADER.pack(_MAGIC, self.slots, self.used, self.covered, self.stamp, self.boot)
        return raw + blake2b(raw, digest_size=_CHECK).digest()


def _free(slot: int) -> bytes:
    return _SLOT.pack(slot, _ONES)


def _packed(slot: int, hashed: int, at: int) -> bytes:
    bare = _SLOT.pack(hashed, at)[:_CHECKED]
    return bare + (crc32(bare, slot & 0xFFFFFFFF) >> 8).to_bytes(3, "little")


def _unpacked(slot: int, raw: bytes) -> tuple[int, int]:
    """A hash and its offset, 0 for a free slot; raises if the slot is damaged."""
    hashed, checked = _SLOT.unpack(raw)
    if checked == _ONES and hashed == slot:
        return 0, 0
    if crc32(raw[:_CHECKED], slot & 0xFFFFFFFF) >> 8 != checked >> _PLACE:
        raise OSError(errno.EIO, "")
    return hashed, checked & _PLACES


class Ids:
    """An open index."""

    def __init__(self, fd: int, header: _Header) -> None:
        self._fd = fd
        self._header = header
        self._file: tuple[int, bytes] | None = None
        self._noted: dict[str, int] = {}
        self._noted_upto = header.covered

    @property
    def used(self) -> int:
        """The number of ids in it."""
        return self._header.used

    @property
    def covered(self) -> int:
        """How much of the rows it covers, in bytes."""
        return self._header.covered

    def find(self, log: Log, id: str) -> Line | None:
        """The line of a message, as far as the index covers the file."""
        wanted = _hash(id)
        if self._is_free(wanted % self._header.slots):  # the usual case for a new message
            return None
        for _, hashed, at in self._probe(wanted):
            if at and hashed == wanted:
                line = log.line_at(log.begin + at - 1)
                if line is None or line.row is None or line.row.id != id:
                    raise OSError(errno.EIO, "")  # the index or the file is damaged
                return line
        return None

    def is_of(self, log: Log) -> bool:
        """Whether it is the index of exactly this file."""
        if self._file is None and self._header.stamp == _stamp(log):
            self._file = log.inode, log.generation
        return self._file == (log.inode, log.generation)

    def has_room(self, more: int) -> bool:
        """Whether so many can be added: an index that is more than half full gets slow."""
        return (self._header.used + more) * 2 <= self._header.slots

    def add(self, pairs: Iterable[tuple[str, int]], covered: int) -> None:
        """Adds ids with their offsets; writes `covered` last, so that it is right after a crash."""
        new = [(_hash(id), at + 1) for id, at in pairs]
        for hashed, at in new:
            self._put(hashed, at)
        self._header.used += len(new)  # also counts those that were added before a crash
        self._header.covered = covered
        os.pwrite(self._fd, self._header.packed(), 0)

    def note(self, pairs: Iterable[tuple[str, int]], start: int, end: int) -> None:
        """Remembers what was appended, so that it need not be read again to be added."""
        if self._noted_upto == start:
            self._noted.update(pairs)
            self._noted_upto = end

    def noted(self, log: Log) -> Container[str] | None:
        """The ids after the covered part, if all of them were remembered."""
        return self._noted if self._noted_upto == log.end - log.begin else None

    def add_noted(self, log: Log) -> bool:
        """Adds what was remembered; returns whether that is everything."""
        is_all = self._noted_upto == log.end - log.begin and self.has_room(len(self._noted))
        if not is_all or os.pread(self._fd, _START, 0) != self._header.packed():
            return False  # others have changed it too
        self.add(self._noted.items(), self._noted_upto)
        self._noted.clear()
        return True

    def stamp(self, log: Log) -> None:
        """Assigns it to a new file, of which only the first line is new."""
        self._header.stamp = _stamp(log)
        os.pwrite(self._fd, self._header.packed(), 0)

    def entries(self) -> Iterator[tuple[int, int]]:
        """The slots in use."""
        page = b""
        for slot in range(self._header.slots):
            if slot % _PAGE == 0:
                page = os.pread(self._fd, _PAGE * _SIZE, _START + slot * _SIZE)
            start = slot % _PAGE * _SIZE
            found = _unpacked(slot, page[start : start + _SIZE].ljust(_SIZE, b"\0"))
            if found[1]:
                yield found

    def close(self) -> None:
        """Closes the file."""
        os.close(self._fd)

    def _put(self, hashed: int, at: int) -> None:
        first = hashed % self._header.slots
        if self._is_free(first):  # the usual case
            os.pwrite(self._fd, _packed(first, hashed, at), _START + first * _SIZE)
            return
        for slot, there, place_there in self._probe(hashed):
            if (there, place_there) == (hashed, at):
                return
            if not place_there:
                os.pwrite(self._fd, _packed(slot, hashed, at), _START + slot * _SIZE)
                return

    def _is_free(self, slot: int) -> bool:
        return os.pread(self._fd, _SIZE, _START + slot * _SIZE) == _free(slot)

    def _probe(self, hashed: int) -> Iterator[tuple[int, int, int]]:
        """The slots where a hash may be, up to the first free one."""
        slots = self._header.slots
        slot = hashed % slots
        for _ in range(0, slots, _CLUSTER):
            count = min(_CLUSTER, slots - slot)
            raw = os.pread(self._fd, count * _SIZE, _START + slot * _SIZE)
            if len(raw) < count * _SIZE:
                raise OSError(errno.EIO, "")  # truncated
            for n in range(count):
                there, at = _unpacked(slot + n, raw[n * _SIZE : (n + 1) * _SIZE])
                yield slot + n, there, at
                if not at:
                    return
            slot = (slot + count) % slots


def opened(directory: Directory, log: Log, flags: int = os.O_RDONLY) -> Ids | None:
    """The index of exactly this file; `None` if there is no reliable one."""
    fd = directory.opened(place(log.digest, ".ids"), flags)
    if fd is None:
        return None
    raw = os.pread(fd, _START, 0)
    if len(raw) == _START:
        header = _Header(*_HEADER.unpack(raw[: _HEADER.size])[1:])
        if (
            (raw, header.stamp, header.boot) == (header.packed(), _stamp(log), _boot())
            and header.covered <= log.end - log.begin
            and os.fstat(fd).st_size == _START + header.slots * _SIZE > _START
        ):
            return Ids(fd, header)
    os.close(fd)
    return None


def nearly_up_to_date(directory: Directory, log: Log) -> Ids:
    """The index of this file, covering all but its end; the caller holds the lock.

    It is kept open, as appends tend to follow each other. Other processes may have added more.
    """
    kept = directory.tables.get(log.digest)
    if isinstance(kept, Ids):
        if kept.is_of(log) and (_uncovered(kept, log) <= _LAG or kept.add_noted(log)):
            return kept
        directory.tables.pop(log.digest).close()
    ids = _brought_up_to_date(directory, log)
    if len(directory.tables) >= _KEPT:
        directory.tables.pop(next(iter(directory.tables))).close()
    directory.tables[log.digest] = ids
    return ids


def _brought_up_to_date(directory: Directory, log: Log) -> Ids:
    ids = opened(directory, log, os.O_RDWR)
    if ids is not None and _uncovered(ids, log) <= _LAG:
        return ids
    new = list(_pairs(log, 0 if ids is None else ids.covered))
    if ids is None or not ids.has_room(len(new)):
        return _made(directory, log, ids, new)
    ids.add(new, log.end - log.begin)
    return ids


def _uncovered(ids: Ids, log: Log) -> int:
    return log.end - log.begin - ids.covered


def dropped(directory: Directory, digest: str) -> None:
    """Removes the index of a file that changes in more than its end, or a damaged one."""
    if digest in directory.tables:
        directory.tables.pop(digest).close()
    with suppress(OSError):  # it would not be accepted for the new file
        directory.remove(digest, [".ids"])


def _pairs(log: Log, covered: int) -> Iterator[tuple[str, int]]:
    for line in log.lines(log.begin + covered):
        if line.row is not None:
            yield line.row.id, line.start - log.begin


def _made(directory: Directory, log: Log, old: Ids | None, new: list[tuple[str, int]]) -> Ids:
    entries = [(_hash(id), at + 1) for id, at in new]
    if old is not None:
        try:
            entries += old.entries()
        finally:
            old.close()
    slots = max(1024, 1 << (3 * len(entries)).bit_length())
    header = _Header(slots, len(entries), log.end - log.begin, _stamp(log), _boot())
    directory.replace(log.digest, ".ids", [header.packed(), _table(entries, slots)])
    made = opened(directory, log, os.O_RDWR)
    if made is None:
        raise OSError(errno.EIO, "")
    return made


def _table(entries: Iterable[tuple[int, int]], slots: int) -> bytes:
    free = array("Q", [_ONES]) * (2 * slots)
    free[::2] = array("Q", range(slots))
    if sys.byteorder == "big":
        free.byteswap()
    table = bytearray(free.tobytes())
    for hashed, at in entries:
        slot = hashed % slots
        while table[slot * _SIZE : (slot + 1) * _SIZE] != _free(slot):
            slot = (slot + 1) % slots
        table[slot * _SIZE : (slot + 1) * _SIZE] = _packed(slot, hashed, at)
    return bytes(table)


@lru_cache(1024)  # needed twice for a new id: for the check, and to add it
def _hash(id: str) -> int:
    raw = id.encode(errors="surrogatepass")
    return int.from_bytes(blake2b(raw, digest_size=8).digest(), "little")


def _stamp(log: Log) -> bytes:
    return blake2b(b"%d %b" % (log.inode, log.generation), digest_size=16).digest()


@lru_cache
def _boot() -> bytes:
    """The boot id of the machine; on systems other than Linux, the index is always trusted."""
    try:
        return UUID(_BOOT.read_text().strip()).bytes
    except (OSError, ValueError):
        return bytes(16)
