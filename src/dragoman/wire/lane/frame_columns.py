"""Splits runs of frames that differ in few positions, all at once.

The bytes that all frames share are skipped by length, which is fast. The frames are then joined
again, which must give the same bytes: this proves that they differ in these positions only.
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
_rest = rb'(?:(?<=[^\\]\\)"[^"]*)*(?<![^\\]\\)'
for _ in range(3):  # most texts have few quotes: alternatives are faster than a repetition
    _rest = rb'(?:(?<!\\)|(?<=[^\\]\\)"[^"]*' + _rest + rb"|(?<=\\\\))"
TEXT = rb'[^"]+' + _rest
"""Pattern of a non-empty JSON string before its last quote; validity is checked later.

A quote after one backslash is part of it, after two it is not; three are handled wrongly, which
that check detects. Before a quote it can end in one place only, so that nothing is tried twice.
"""
_MIN_BATCH, _MAX_BATCH = 32, 512  # frames per batch
_MAX_BATCH_BYTES = 1 << 16
_TEXT_SIZE = 16  # assumed bytes per text
_BEGIN = 6  # bytes that mark the beginning of a frame: `data: ` or `event:`
_MIN_FRAMES = 400  # frames after which compiling a pattern pays off


class Columns:
    """Splits frames of one form; the values at one position of all frames are a column."""

    __slots__ = ("_batch", "_fixed", "_shape", "_size")

    def __init__(self, fixed: Sequence[bytes], values: tuple[bytes | None, ...]) -> None:
        """`fixed` has the bytes around the positions, `values` their patterns, one of them `TEXT`.

        None stands for a repetition of the text.
        """
        sizes = tuple(map(len, fixed))
        self._fixed = fixed
        self._shape = _shape(fixed[0][:_BEGIN], sizes, values)
        self._size = sum(sizes)
        self._batch = _MIN_BATCH

    def texts(self, data: bytes, position: int) -> tuple[list[str], int]:
        """The texts of the frames from there on, and where the next frame begins; none is empty.

        More frames may follow. If some of a batch don't match, the next batch is smaller, so that
        wasted work stays proportional to useful work.
        """
        most = min(self._batch * (self._size + _TEXT_SIZE), _MAX_BATCH_BYTES)
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
            # One per line, as no string can contain a line break: if the number of strings is
            # right, none of them was two.
            texts = _texts_in(b'["%b"]' % b'",\n"'.join(written)) if written else []
        except (msgspec.DecodeError, UnicodeError):  # such as a lone surrogate
            texts = []
        if len(texts) == len(written):
            self._batch = min(_MAX_BATCH, max(_MIN_BATCH, 2 * len(texts)))
            return texts, position + len(frames)
        self._batch = max(_MIN_BATCH, len(written) // 4)
        return [], position

    def _frames(self, columns: Sequence[Sequence[bytes]]) -> bytes:
        """Join the columns to frames again."""
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
        """The number of frames equal to the data, up to the first difference; and their size."""
        last = len(self._frames([column[-1:] for column in columns]))
        if data.startswith(frames[: len(frames) - last]):  # only the last one differs
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
    """What frames of many streams have in common: the lengths between the positions."""

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
        """The index of the position with the text."""
        taken = [n for n, value in enumerate(values) if value is not None]
        self._groups = [taken.index(self.text if value is None else n)
                        for n, value in enumerate(values)]  # fmt: skip

    def pattern(self, count: int) -> re.Pattern[bytes] | None:
        """The pattern that matches frames; None until enough frames were seen, `count` more now."""
        self._waiting += count
        if self._pattern is None and self._waiting > _MIN_FRAMES:
            written = [re.escape(self._begin), b".{%d}" % (self._sizes[0] - len(self._begin))]
            for value, size in zip(self._values, self._sizes[1:], strict=True):
                if value is TEXT:
                    written += [b"(?P<text>%b)" % value, b'".{%d}' % (size - 1)]
                else:
                    group = b"(?P=text)" if value is None else b"(%b)" % value
                    written += [group, b".{%d}" % size]
            self._pattern = re.compile(b"".join(written), re.DOTALL)
        return self._pattern

    def columns(self, rows: list[Any]) -> list[Sequence[bytes]]:
        """The values in the matched frames, by position."""
        groups = self._groups
        if not rows:
            return [()] * len(groups)
        found = [rows] if len(groups) == 1 or max(groups) == 0 else [*zip(*rows, strict=True)]
        return [found[group] for group in groups]


_shape = lru_cache(maxsize=256)(_Shape)
