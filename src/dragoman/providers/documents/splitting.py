"""Cutting JSON text into its values without reading what they say.

For what lines can't cut: an array of documents, and documents that span lines. Text comes in chunks
of any size; what is kept of it is the value that has not ended yet.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_IN_STRING = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
# Up to the next bracket, over strings that end; or up to a string that does not.
_IN_VALUE = re.compile(
    rb'(?:[^"\[\]{}]++|"[^"\\]*+(?:\\.[^"\\]*+)*+")*+(?:([\[{])|([\]}])|")', re.DOTALL
)
_IN_ARRAY = re.compile(rb'["\[\]{},]')
_AT_TOP = re.compile(rb"[\[{\n]")
_QUOTE, _COMMA, _NEWLINE, _END_OF_ARRAY = b'",\n]'
_OPENS = 1  # the group of the pattern
_OPENING, _CLOSING = frozenset(b"[{"), frozenset(b"]}")
_BLANK = b" \t\r\n"


class Piece(NamedTuple):
    """The text of one value, and the line on which it begins."""

    line: int
    raw: bytes
    problem: str | None = None
    """What is wrong with the text around it, where nothing can be cut out."""


class Splitter:
    """Cuts the values out of a sequence; with `array`, the elements out of one array.

    >>> [piece.raw for piece in Splitter(array=True).feed(b'[{"a": 1}, {"b": [2, 3]}]')]
    [b'{"a": 1}', b'{"b": [2, 3]}']

    It counts brackets and knows strings, nothing more: what is malformed comes out as a piece
    that nobody can read.
    """

    def __init__(self, *, array: bool = False, line: int = 1) -> None:
        self._array = array
        self._base = 1 if array else 0
        self._depth = 0
        self._in_string = False
        self._text = bytearray()
        self._start = 0  # of the value that has not ended
        self._at = 0  # what comes before was looked at
        self._line = line  # at `_start`
        self._found: list[Piece] = []
        self._any = False  # an element was found: what follows a comma is one, even if blank
        self.closed = False
        """Whether the array has ended."""
        self._is_followed = False

    def feed(self, chunk: bytes) -> list[Piece]:
        """The values that ended in this chunk."""
        self._text += chunk
        while self._step():
            pass
        del self._text[: self._start]
        self._at -= self._start
        self._start = 0
        found, self._found = self._found, []
        return found

    def close(self) -> list[Piece]:
        """What is left when there is no more text: what did not end, or should have."""
        self._cut(len(self._text))
        if self._array and (self._is_followed or not self.closed):
            problem = "there is more after the array" if self.closed else "the array does not end"
            self._found.append(Piece(self._line, b"", problem))
        found, self._found = self._found, []
        return found

    def _step(self) -> bool:
        """Go on to the next character that matters; false where the text does not reach it."""
        text = self._text
        if self._in_string:
            at = _end_of(text, self._at)
            self._at = at
            if at >= len(text) or text[at] != _QUOTE:  # a backslash, and the rest is to come
                return False
            self._in_string = False
            self._at += 1
            return True
        if self._depth > self._base:
            return self._skim()
        at = _place(_IN_ARRAY if self._depth else _AT_TOP, text, self._at)
        if at < 0:
            self._at = len(text)
            return False
        self._at = at + 1
        self._take(text[at], at)
        return True

    def _skim(self) -> bool:
        """Go on to the bracket that ends the value; false where the text does not reach it."""
        text, at = self._text, self._at
        depth, base = self._depth, self._base
        while found := _IN_VALUE.match(text, at):
            at = found.end()
            bracket = found.lastindex
            if bracket == _OPENS:
                depth += 1
            elif bracket is None:
                self._in_string = True
                break
            elif depth == base + 1:
                self._at, self._depth = at, depth
                del found  # or the text could not be cut
                self._close(text[at - 1], at - 1)
                return True
            else:
                depth -= 1
        else:
            at = len(text)
        self._at, self._depth = at, depth
        return self._in_string

    def _take(self, character: int, at: int) -> None:
        if character == _QUOTE:
            self._in_string = True
        elif character in _OPENING:
            self._open(at)
        elif character in _CLOSING:
            self._close(character, at)
        elif character == _COMMA:
            self._cut(at, even_blank=True)
            self._move(at + 1)
        elif character == _NEWLINE:  # at the top, where it ends whatever is no value
            self._cut(at)

    def _open(self, at: int) -> None:
        if self._depth == 0 and self._array and not self.closed:
            self._move(at + 1)
        self._depth += 1

    def _close(self, character: int, at: int) -> None:
        self._depth -= 1
        if self._depth:
            return
        if self._array and not self.closed:
            if character != _END_OF_ARRAY:
                self._depth = 1  # it belongs to the element, which nobody can read then
                return
            self._cut(at, even_blank=self._any)
            self._move(at + 1)
            self.closed = True
        else:
            self._cut(at + 1)

    def _cut(self, end: int, *, even_blank: bool = False) -> None:
        raw = bytes(self._text[self._start : end])
        bare = raw.lstrip(_BLANK)
        if self.closed:
            self._is_followed |= bool(bare)
        elif bare or even_blank:
            self._any = True
            skipped = len(raw) - len(bare)
            line = self._line + raw.count(b"\n", 0, skipped)
            self._found.append(Piece(line, bare.rstrip(_BLANK)))
        self._move(end)

    def _move(self, start: int) -> None:
        self._line += self._text.count(b"\n", self._start, start)
        self._start = start


# Only numbers leave these two: a match object would hold the text, and it could not grow.


def _place(pattern: re.Pattern[bytes], text: bytearray, start: int) -> int:
    found = pattern.search(text, start)
    return -1 if found is None else found.start()


def _end_of(text: bytearray, start: int) -> int:
    found = _IN_STRING.match(text, start)
    return start if found is None else found.end()
