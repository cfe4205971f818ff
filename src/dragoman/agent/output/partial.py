"""Parses incomplete JSON as it streams in.

Strings are shown as far as received. A number, a literal (`true`) or a key that may be incomplete
is left out, and so is a key without a value. A syntax error or excessive nesting ends parsing: what
came before stays.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from math import isfinite
from typing import Any

from msgspec import UNSET

from dragoman.agent.output.growing import GrowingValue

_BLANK = re.compile(r"[ \t\n\r]*")
_RUN = re.compile(r'[^"\\]+')
_ESCAPE = re.compile(r'\\(?:(["\\/bfnrt])|u([0-9a-fA-F]{4}))')
_BEGUN_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?")
_NUMERIC = re.compile(r"[-+0-9.eE]+")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_ESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None}
_MAX_NUMBER = 4_300
"""Maximum digits that Python converts."""
_MAX_LITERAL = 5
_ESCAPE_SIZE = 6
_HIGH, _LOW = range(0xD800, 0xDC00), range(0xDC00, 0xE000)
"""The two halves of a surrogate pair."""


def partial_json(text: str) -> Any:
    """The value of a possibly incomplete JSON text; unset if there is none yet.

    >>> partial_json('{"city": "Bas')
    {'city': 'Bas'}
    >>> partial_json('{"city": "Basel", "days": 1')
    {'city': 'Basel'}
    """
    parser = PartialJson()
    parser.feed(text)
    return parser.value


class PartialJson:
    """An incremental parser. The total cost is that of parsing the text at once.

    >>> parser = PartialJson()
    >>> parser.feed('[1, "a')
    >>> parser.feed('b", 2')
    >>> parser.value
    [1, 'ab']
    """

    __slots__ = ("_growing", "_step", "_tail")

    def __init__(self) -> None:
        self._growing = GrowingValue()
        self._step: _Step = _value
        self._tail = ""
        """An incomplete number, literal or escape at the end."""

    def feed(self, delta: str) -> None:
        """Parse more text."""
        text, at = self._tail + delta, 0
        while at < len(text):
            if not self._growing.is_in_string:
                at = _end(_BLANK, text, at)
            if at == len(text):
                break
            taken = self._step(self._growing, text, at)
            if taken is None:
                break  # more text is needed
            at, self._step = taken
        self._tail = text[at:]

    @property
    def value(self) -> Any:
        """The value so far; unset at first. It grows in place: see `copy`."""
        return self._or_number(self._growing.shown())

    def copy(self) -> Any:
        """A snapshot of the value so far. Complete parts are not copied again."""
        return self._or_number(self._growing.copy())

    def _or_number(self, value: Any) -> Any:
        """A number at top level, which may be complete."""
        return _number_of(self._tail) if value is UNSET and self._tail else value

    @property
    def size(self) -> int:
        """The cost of a copy: the items of open containers, and the characters of the string."""
        return self._growing.size


_Step = Callable[[GrowingValue, str, int], "_Taken | None"]
"""Reads one token at a position: returns its end and the next step, or None if incomplete."""
_Taken = tuple[int, _Step]


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return at if found is None else found.end()


def _value(growing: GrowingValue, text: str, at: int) -> _Taken | None:
    match text[at]:
        case "{":
            return at + 1, _first_key if growing.open({}) else _ignored
        case "[":
            return at + 1, _first_item if growing.open([]) else _ignored
        case '"':
            growing.begin_string(is_key=False)
            return at + 1, _string
        case "t" | "f" | "n":
            return _word(growing, text, at)
        case _:
            return _number(growing, text, at)


def _settled(growing: GrowingValue, end: int) -> _Taken:
    """A value is complete."""
    return end, _after if growing.stack else _ignored


def _closed(growing: GrowingValue, end: int) -> _Taken:
    growing.close()
    return _settled(growing, end)


def _broken(growing: GrowingValue, text: str) -> _Taken:
    """A syntax error: keep the value so far, and ignore the rest."""
    if growing.is_in_text:
        growing.end_string()
    growing.is_in_key = False
    return len(text), _ignored


def _ignored(_growing: GrowingValue, text: str, _at: int) -> _Taken:
    return len(text), _ignored


def _first_item(growing: GrowingValue, text: str, at: int) -> _Taken:
    return _closed(growing, at + 1) if text[at] == "]" else (at, _value)


def _first_key(growing: GrowingValue, text: str, at: int) -> _Taken:
    return _closed(growing, at + 1) if text[at] == "}" else (at, _key)


def _key(growing: GrowingValue, text: str, at: int) -> _Taken:
    if text[at] != '"':
        return _broken(growing, text)
    growing.begin_string(is_key=True)
    return at + 1, _string


def _colon(growing: GrowingValue, text: str, at: int) -> _Taken:
    return (at + 1, _value) if text[at] == ":" else _broken(growing, text)


def _after(growing: GrowingValue, text: str, at: int) -> _Taken:
    is_array = growing.is_in_array
    if text[at] == ",":
        return at + 1, _value if is_array else _key
    if text[at] == ("]" if is_array else "}"):
        return _closed(growing, at + 1)
    return _broken(growing, text)


def _word(growing: GrowingValue, text: str, at: int) -> _Taken | None:
    rest = text[at : at + _MAX_LITERAL]
    for word, value in _WORDS.items():
        if rest.startswith(word):
            growing.place(value)
            return _settled(growing, at + len(word))
        if word.startswith(rest):
            return None
    return _broken(growing, text)


def _number(growing: GrowingValue, text: str, at: int) -> _Taken | None:
    end = _end(_NUMERIC, text, at)
    if end == len(text) and 0 < end - at <= _MAX_NUMBER:
        return None
    number = _number_of(text[at:end]) if end - at <= _MAX_NUMBER else UNSET
    if number is UNSET:
        return _broken(growing, text)
    growing.place(number)
    return _settled(growing, end)


def _number_of(text: str) -> Any:
    """The text as a number; unset if it isn't one, or is too large."""
    found = _NUMBER.fullmatch(text)
    if found is None:
        return UNSET
    if not (found[1] or found[2]):
        return int(text)
    number = float(text)
    return number if isfinite(number) else UNSET


def _string(growing: GrowingValue, text: str, at: int) -> _Taken | None:
    if text[at] == "\\":
        return _escape(growing, text, at)
    if text[at] != '"':
        end = _end(_RUN, text, at)
        growing.add(text[at:end])
        return end, _string
    is_key = growing.is_in_key
    growing.end_string()
    return (at + 1, _colon) if is_key else _settled(growing, at + 1)


def _escape(growing: GrowingValue, text: str, at: int) -> _Taken | None:
    found = _ESCAPE.match(text, at)
    if found is None:
        return None if _BEGUN_ESCAPE.fullmatch(text, at) else _broken(growing, text)
    if found[1]:
        growing.add(_ESCAPED.get(found[1], found[1]))
        return found.end(), _string
    code = int(found[2], 16)
    if code in _HIGH:
        return _pair(growing, text, found.end(), code)
    growing.add(chr(code))
    return found.end(), _string


def _pair(growing: GrowingValue, text: str, end: int, high: int) -> _Taken | None:
    """A surrogate, with its other half if that follows."""
    rest = text[end : end + _ESCAPE_SIZE]
    if not rest or _BEGUN_ESCAPE.fullmatch(rest):
        return None
    low = _ESCAPE.match(rest)
    code = int(low[2], 16) if low and low[2] else 0
    if code in _LOW:
        growing.add(chr(0x10000 + (_HIGH.index(high) << 10) + _LOW.index(code)))
        return end + _ESCAPE_SIZE, _string
    growing.add(chr(high))
    return end, _string
