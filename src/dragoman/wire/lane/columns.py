"""Frames that follow each other and differ in few places, taken apart all at once.

Of the bytes that all the frames share, only the number is counted, which is quick. Then the frames
are put together again, which must give the same bytes: so each of them is the one that they were
made from, but for what is in these places.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from operator import add
from typing import Any

import msgspec

_texts_in = msgspec.json.Decoder(list[str]).decode
TEXT = rb'[^"]++(?:(?<=[^\\]\\)"[^"]*+)*+'
"""A JSON string that is not empty, without its quotes; whether it is one shows later.

A quote behind one backslash is part of it, behind two it is not; behind three, that is wrong.
"""
_LEAST, _MOST = 32, 512  # frames that are taken apart at once
_MOST_BYTES = 1 << 16
_TEXT_SIZE = 16  # bytes, about
_BEGIN = 6  # bytes of a frame that tell it from the middle of another one: `data: ` or `event:`
_ENOUGH = 400  # frames that make up for the time that a pattern takes to compile


class Columns:
    """How frames like one of them are taken apart: what is in one place in each is a column."""

    __slots__ = ("_fixed", "_most", "_shape", "_size")

    def __init__(self, fixed: Sequence[bytes], values: tuple[bytes | None, ...]) -> None:
        """For the bytes around the places, and what is there: patterns, one of them `TEXT`.

        None stands for the same text once more.
        """
        sizes = tuple(map(len, fixed))
        self._fixed = fixed
        self._shape = _shape(fixed[0][:_BEGIN], sizes, values)
        self._size = sum(sizes)
        self._most = _LEAST

    def texts(self, data: bytes, position: int) -> tuple[list[str], int]:
        """The texts of the frames from there on, and where the next one begins; none is empty.

        There may be more of them. Where not all that were looked at can be taken, fewer are looked
        at the next time: what is done in vain is in proportion to what is not.
        """
        most = min(self._most * (self._size + _TEXT_SIZE), _MOST_BYTES)
        pattern = self._shape.pattern(min(most, len(data) - position) // self._size)
        if pattern is None or not data.startswith(self._fixed[0], position):
            return [], position
        columns = self._shape.columns(pattern.findall(data, position, position + most))
        frames = self._frames(columns)
        if not data.startswith(frames, position):
            count, size = self._alike(columns, frames, data[position : position + len(frames)])
            columns, frames = [column[:count] for column in columns], frames[:size]
        written = columns[self._shape.text]
        try:
            # Each in a line of its own: no text can end in another one. So if there are as many
            # of them as there were, none of them is two.
            texts = _texts_in(b'["%b"]' % b'",\n"'.join(written)) if written else []
        except (msgspec.DecodeError, UnicodeError):  # half a character, say
            texts = []
        if len(texts) == len(written):
            self._most = min(_MOST, max(_LEAST, 2 * len(texts)))
            return texts, position + len(frames)
        self._most = max(_LEAST, len(written) // 4)
        return [], position

    def _frames(self, columns: Sequence[Sequence[bytes]]) -> bytes:
        """The frames that have this in their places."""
        first, *inner, last = self._fixed
        count, width = len(columns[0]), 2 * len(columns)
        if not count:
            return b""
        pieces = [last + first] * (count * width)
        for n, column in enumerate(columns):
            pieces[2 * n :: width] = column
        for n, literal in enumerate(inner):
            pieces[2 * n + 1 :: width] = [literal] * count
        pieces[-1] = last
        pieces.insert(0, first)
        return b"".join(pieces)

    def _alike(
        self, columns: Sequence[Sequence[bytes]], frames: bytes, data: bytes
    ) -> tuple[int, int]:
        """How many of the frames are those in the data, up to the first other one; their size."""
        last = len(self._frames([column[-1:] for column in columns]))
        if data.startswith(frames[: len(frames) - last]):  # the first of others looked like one
            return len(columns[0]) - 1, len(frames) - last
        sizes = [self._size] * len(columns[0])
        for column in columns:
            sizes = list(map(add, sizes, map(len, column)))
        ends = [0, *accumulate(sizes)]
        count, end = 0, len(sizes)
        while end - count > 1:
            middle = (count + end) // 2
            if frames[ends[count] : ends[middle]] == data[ends[count] : ends[middle]]:
                count = middle
            else:
                end = middle
        return count, ends[count]


class _Shape:
    """What frames of many streams have in common: how long they are between their places."""

    __slots__ = ("_begin", "_groups", "_pattern", "_sizes", "_values", "_waiting", "text")

    def __init__(
        self, begin: bytes, sizes: tuple[int, ...], values: tuple[bytes | None, ...]
    ) -> None:
        self._begin = begin
        self._sizes = sizes
        self._values = values
        self._waiting = 0
        self._pattern: re.Pattern[bytes] | None = None
        self.text = values.index(TEXT)
        """Which of the places has the text."""
        taken = [n for n, value in enumerate(values) if value is not None]
        self._groups = [taken.index(self.text if value is None else n)
                        for n, value in enumerate(values)]  # fmt: skip

    def pattern(self, count: int) -> re.Pattern[bytes] | None:
        """What finds them; None until there were enough of them, with `count` more now."""
        self._waiting += count
        if self._pattern is None and self._waiting > _ENOUGH:
            written = [re.escape(self._begin), b".{%d}" % (self._sizes[0] - len(self._begin))]
            for value, size in zip(self._values, self._sizes[1:], strict=True):
                group = b"(?P=text)" if value is None else b"(%b)" % value
                named = b"(?P<text>%b)" % value if value is TEXT else group
                written += [named, b".{%d}" % size]
            self._pattern = re.compile(b"".join(written), re.DOTALL)
        return self._pattern

    def columns(self, rows: list[Any]) -> list[Sequence[bytes]]:
        """By place, what is there in each of the frames that were found."""
        groups = self._groups
        if not rows:
            return [()] * len(groups)
        found = [rows] if len(groups) == 1 or max(groups) == 0 else [*zip(*rows, strict=True)]
        return [found[group] for group in groups]


_shape = lru_cache(maxsize=256)(_Shape)
