"""Splits JSON text into its values without parsing them.

For inputs that can't be split by lines: an array of documents, and documents that span lines. Text
comes in chunks of any size; only the incomplete value is kept.
"""

from __future__ import annotations

import re
from typing import NamedTuple

# Possessive quantifiers would be the obvious choice, but are broken before Python 3.11.5. In these
# patterns whatever can follow a repetition excludes what is repeated, so that they take linear time
# all the same; and repetitions are limited where each takes memory until the match ends.
# A quote after an odd number of backslashes is escaped. After more than there are here, as in a
# JSON text in a JSON text in a JSON text, `_end_of` counts them.
_ODD = rb"(?<=\\)(?:(?<=[^\\]\\)|(?<=[^\\]\\{3})|(?<=[^\\]\\{5}))"
_EVEN = rb"(?:(?<!\\)|(?<=[^\\]\\{2})|(?<=[^\\]\\{4}))"
_ESCAPED_QUOTES = rb"(?:" + _ODD + rb'"[^"]*){0,500}'
_IN_STRING = re.compile(rb'[^"]*' + _ESCAPED_QUOTES)
_STRING = rb'"[^"]*' + _ESCAPED_QUOTES + _EVEN + b'"'
# Up to the next bracket, skipping complete strings; or up to a string that is not so simple. Ends
# after nothing of that if the text ends, or after many strings.
_IN_VALUE = re.compile(
    rb'[^"\[\]{}]*(?:' + _STRING + rb'[^"\[\]{}]*){0,50}(?:([\[{])|([\]}])|(")|)'
)
_IN_ARRAY = re.compile(rb'["\[\]{},]')
_AT_TOP = re.compile(rb"[\[{\n]")
_QUOTE, _COMMA, _NEWLINE, _END_OF_ARRAY, _BACKSLASH = b'",\n]\\'
_OPENS, _CLOSES = 1, 2  # groups of the pattern above
_OPENING, _CLOSING = frozenset(b"[{"), frozenset(b"]}")
_BLANK = b" \t\r\n"


class Piece(NamedTuple):
    """The text of one value, and its line number."""

    line: int
    raw: bytes
    problem: str | None = None
    """What is wrong with the surrounding text, if nothing could be extracted."""


class Splitter:
    """Extracts the values of a sequence or, with `array`, the elements of one array.

    >>> [piece.raw for piece in Splitter(array=True).feed(b'[{"a": 1}, {"b": [2, 3]}]')]
    [b'{"a": 1}', b'{"b": [2, 3]}']

    It only counts brackets and skips strings: malformed text comes out as a piece that can't be
    parsed.
    """

    def __init__(self, *, array: bool = False, line: int = 1) -> None:
        self._array = array
        self._base = 1 if array else 0
        self._depth = 0
        self._in_string = False
        self._text = bytearray()
        self._start = 0  # start of the incomplete value
        self._at = 0  # position up to which the text was scanned
        self._line = line  # at `_start`
        self._found: list[Piece] = []
        self._any = (
            False  # an element was found, so that another must follow a comma, even if blank
        )
        self.closed = False
        """Whether the array has ended."""
        self._is_followed = False

    def feed(self, chunk: bytes) -> list[Piece]:
        """The values completed by this chunk."""
        self._text += chunk
        while self._step():
            pass
        del self._text[: self._start]
        self._at -= self._start
        self._start = 0
        found, self._found = self._found, []
        return found

    def close(self) -> list[Piece]:
        """The rest at the end of the text: an incomplete value, or an error."""
        self._cut(len(self._text))
        if self._array and (self._is_followed or not self.closed):
            problem = (
                "unexpected text after the array" if self.closed else "the array is not closed"
            )
            self._found.append(Piece(self._line, b"", problem))
        found, self._found = self._found, []
        return found

    def _step(self) -> bool:
        """Advance to the next significant character; False if the text ends before it."""
        text = self._text
        if self._in_string:
            at = _end_of(text, self._at)
            self._in_string = at == len(text)
            self._at = at + (not self._in_string)
            return not self._in_string
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
        """Advance to the bracket that closes the value; False if the text ends before it."""
        text, at = self._text, self._at
        depth, base = self._depth, self._base
        while at < len(text):
            found = _IN_VALUE.match(text, at)
            if found is None:  # it always matches
                break
            at = found.end()
            bracket = found.lastindex
            if bracket == _OPENS:
                depth += 1
            elif bracket is None:
                continue
            elif bracket != _CLOSES:
                self._in_string = True
                break
            elif depth == base + 1:
                self._at, self._depth = at, depth
                del found  # it would lock the buffer against resizing
                self._close(text[at - 1], at - 1)
                return True
            else:
                depth -= 1
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
        elif character == _NEWLINE:  # at the top level, where it ends anything that is not a value
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
                self._depth = 1  # counts as part of the element, which is then malformed
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


# These only return numbers: a match object would lock the buffer against resizing.


def _place(pattern: re.Pattern[bytes], text: bytearray, start: int) -> int:
    found = pattern.search(text, start)
    return -1 if found is None else found.start()


def _end_of(text: bytearray, start: int) -> int:
    """The quote that ends the string around this position; the end of the text if there is none."""
    while True:
        found = _IN_STRING.match(text, start)
        at = start if found is None else found.end()
        if at == len(text) or not _is_escaped(text, at):
            return at
        start = at + 1


def _is_escaped(text: bytearray, quote: int) -> bool:
    before = quote - 1
    while text[before] == _BACKSLASH:  # ends at the string's first quote
        before -= 1
    return (quote - before) % 2 == 0
