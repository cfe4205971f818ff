"""The arguments of a call, passed on piece by piece so that they are a JSON object in the end.

What other providers' models write need not be JSON, which shows only when half of it has been
sent. So the pieces are followed as they come, and what can't be JSON any more is not passed on:
the object is closed, with the model's whole text as one more argument (W67, I6).
"""

from __future__ import annotations

import re

from dragoman.model.frozen import MAX_DEPTH
from dragoman.model.jsontext import dumps
from dragoman.wire.anthropic.tools_calls import TEXT_ARGUMENT
from dragoman.wire.lane.flows import Writer, around, encode_text, lines_of

_BLANK = " \t\n\r"
_BLANKS = re.compile(r"[ \t\n\r]+")
_PLAIN = re.compile(r'[^"\\\x00-\x1f]+')
_NUMBER_MARKS = re.compile(r"[-+.eE0-9]{1,1000}")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_NUMBER_SO_FAR = re.compile(r"-?((0|[1-9][0-9]*)((\.[0-9]+)?([eE][+-]?[0-9]*)?|\.))?")
_VALUE = '"{[-0123456789tfn'
_MARKS = {
    "object": "{",
    "first key": '"',
    "key": '"',
    "colon": ":",
    "first value": _VALUE,
    "value": _VALUE,
    "comma": ",",
    "end": "",
}
"""By what is expected: what it may begin with, blanks and the end of what is open aside."""
_CLOSING = {"{": "}", "[": "]"}
_LITERALS = {"t": "rue", "f": "alse", "n": "ull"}
_ESCAPES = '"\\/bfnrtu'
_HEX = "0123456789abcdefABCDEF"
_HEX_DIGITS = 4
_BACKSLASH = 0x5C  # as a number it is found in bytes in a tenth of the time
_LONGEST_NUMBER = 1000  # characters: far more than anybody means


class Arguments:
    """Gives out what to send of a call's arguments, piece by piece."""

    __slots__ = ("_pieces", "_prefix", "is_changed")

    def __init__(self) -> None:
        self._prefix = JsonObjectPrefix()
        self._pieces: list[str] = []
        self.is_changed = False
        """Whether what was sent is not what the model wrote."""

    @property
    def is_complete(self) -> bool:
        """Whether nothing more can come."""
        return self._prefix.is_closed

    def feed(self, piece: str) -> str:
        """What to send now."""
        self._pieces.append(piece)
        if self._prefix.is_broken:
            return ""
        taken = self._prefix.feed(piece)
        self.is_changed = self._prefix.is_broken
        return piece[:taken]

    def sender(self, before: bytes, after: bytes) -> Writer:
        """What sends one piece after the other: what may be sent of it, between these bytes."""
        prefix, keep = self._prefix, self._pieces.append

        def send(piece: str) -> bytes:
            written = encode_text(piece)  # first: it may raise
            # In a string, what JSON need not escape changes nothing.
            if prefix.in_escape == 0 and not (prefix.is_broken or _BACKSLASH in written):
                keep(piece)
                return before + written + after
            sendable = self.feed(piece)
            if sendable != piece:
                written = encode_text(sendable) if sendable else b""
            return before + written + after if written else b""

        def send_all(pieces: list[str]) -> bytes:
            lines = lines_of(pieces)
            if prefix.in_escape != 0 or prefix.is_broken:
                return b"".join(map(send, pieces))
            place = lines.find(_BACKSLASH)
            plain = lines if place < 0 else lines[: max(0, lines.rfind(b"\n", 0, place))]
            count = plain.count(b"\n") + 1 if plain else 0
            self._pieces.extend(pieces[:count])
            written = before + plain.replace(b"\n", after + before) + after if plain else b""
            return written + b"".join(map(send, pieces[count:]))

        return Writer(send, send_all)

    def finish(self) -> str:
        """What to send last."""
        written = "".join(self._pieces)
        if self._prefix.is_closed:
            return ""
        if not written.strip():
            return "{}"
        self.is_changed = True
        argument = f"{dumps(TEXT_ARGUMENT).decode()}:{dumps(written).decode()}"
        return self._prefix.closing(argument) if self._prefix.is_begun else f"{{{argument}}}"


class UntouchedArguments(Arguments):
    """Of a call that this very provider's model wrote: passed on as they are."""

    __slots__ = ()

    def feed(self, piece: str) -> str:
        """The same."""
        self._pieces.append(piece)
        return piece

    def sender(self, before: bytes, after: bytes) -> Writer:
        """The same, written."""
        encode, encode_all = around(before, after)

        def send(piece: str) -> bytes:
            written = encode(piece)
            self._pieces.append(piece)
            return written

        def send_all(pieces: list[str]) -> bytes:
            written = encode_all(pieces)
            self._pieces.extend(pieces)
            return written

        return Writer(send, send_all)

    def finish(self) -> str:
        """An empty object, if there was nothing at all."""
        return "" if self._pieces else "{}"


class TextArguments(Arguments):
    """Of a custom call, which takes any text: that is its one argument."""

    __slots__ = ()

    def feed(self, piece: str) -> str:
        """The text as part of a JSON string."""
        opening = "" if self._pieces else f'{{"{TEXT_ARGUMENT}":"'
        self._pieces.append(piece)
        self.is_changed = True
        return opening + dumps(piece).decode()[1:-1]

    def sender(self, before: bytes, after: bytes) -> Writer:
        """The same, written."""

        def send(piece: str) -> bytes:
            encode_text(piece)  # raises before the piece is noted, if it does
            return before + encode_text(self.feed(piece)) + after

        def send_all(pieces: list[str]) -> bytes:
            lines_of(pieces)  # the same
            return b"".join(map(send, pieces))

        return Writer(send, send_all)

    def finish(self) -> str:
        """The end of the string."""
        return ("" if self._pieces else self.feed("")) + '"}'


class JsonObjectPrefix:
    """Whether a text, given in pieces, is the beginning of a JSON object, or all of it."""

    __slots__ = ("_expect", "_is_key", "_open", "_rest", "in_escape", "is_broken")

    def __init__(self) -> None:
        self._open: list[str] = []  # what closes the objects and lists that are open
        self._expect = "object"  # then one of `_MARKS`
        self._rest: str | None = None  # of a literal; or a number so far; None outside of both
        self.in_escape = -1  # in a string: 0, after a backslash 5, then its hexadecimal digits
        self._is_key = False
        self.is_broken = False

    @property
    def is_begun(self) -> bool:
        """Whether there is more than blanks."""
        return self._expect != "object"

    @property
    def is_closed(self) -> bool:
        """Whether the object is whole, whatever came after it."""
        return self._expect == "end"

    def feed(self, text: str) -> int:
        """How many of these characters may follow; less than all of them breaks it."""
        at, size = 0, len(text)
        while at < size and not self.is_broken:
            end = self._run(text, at)
            if end > at:
                at = end
                continue
            self.is_broken = not self._takes(text[at])
            at += not self.is_broken
        return at

    def _run(self, text: str, at: int) -> int:
        """Where the characters end that can be taken at once; the same place, where none can."""
        if self.in_escape >= 0:
            found = None if self.in_escape else _PLAIN.match(text, at)
        elif self._rest is None:
            found = _BLANKS.match(text, at)
        elif self._rest[:1].isalpha():
            found = None
        else:
            found = _NUMBER_MARKS.match(text, at)
            number = self._rest if found is None else self._rest + found[0]
            if len(number) > _LONGEST_NUMBER or not _NUMBER_SO_FAR.fullmatch(number):
                return at
            self._rest = number
        return at if found is None else found.end()

    def _takes(self, mark: str) -> bool:
        if self.in_escape >= 0:
            return self._takes_in_string(mark)
        if self._rest is not None:
            return self._takes_scalar(mark)
        return mark in _BLANK or self._takes_structure(mark)

    def _takes_in_string(self, mark: str) -> bool:
        if self.in_escape == 0:
            if mark == '"':
                self.in_escape = -1
                self._expect = "colon" if self._is_key else self._after_value()
            elif mark == "\\":
                self.in_escape = _HEX_DIGITS + 1
            return mark in '"\\'  # else a bare control character
        if mark not in (_HEX if self.in_escape <= _HEX_DIGITS else _ESCAPES):
            return False
        if self.in_escape <= _HEX_DIGITS:
            self.in_escape -= 1
        else:
            self.in_escape = _HEX_DIGITS if mark == "u" else 0
        return True

    def _takes_scalar(self, mark: str) -> bool:
        so_far = self._rest or ""
        if so_far[:1].isalpha():
            if mark != so_far[0]:
                return False
            self._rest = so_far[1:] or None
            if self._rest is None:
                self._expect = self._after_value()
            return True
        if len(so_far) < _LONGEST_NUMBER and _NUMBER_SO_FAR.fullmatch(so_far + mark):
            self._rest = so_far + mark
            return True
        if not _NUMBER.fullmatch(so_far):
            return False
        self._rest, self._expect = None, self._after_value()
        return mark in _BLANK or self._takes_structure(mark)

    def _takes_structure(self, mark: str) -> bool:
        expect = self._expect
        is_end = expect in {"first key", "first value", "comma"} and mark == self._open[-1]
        if not is_end and mark not in _MARKS[expect]:
            return False
        if mark in _CLOSING and len(self._open) == MAX_DEPTH:
            return False
        if is_end:
            self._open.pop()
            self._expect = self._after_value()
        elif mark == '"':
            self._is_key, self.in_escape = expect in {"key", "first key"}, 0
        elif mark == ",":
            self._expect = "key" if self._open[-1] == "}" else "value"
        elif mark == ":":
            self._expect = "value"
        elif mark in _CLOSING:
            self._open.append(_CLOSING[mark])
            self._expect = "first key" if mark == "{" else "first value"
        else:
            self._rest = _LITERALS.get(mark, mark)
        return True

    def _after_value(self) -> str:
        return "comma" if self._open else "end"

    def closing(self, argument: str) -> str:
        """What makes an object of what has been taken, with one more argument in it."""
        text = self._closed_scalar() + {"colon": ":null", "value": "null"}.get(self._expect, "")
        for closing in reversed(self._open[1:]):
            if self._expect == "key":
                text += '"":null'
            self._expect = "comma"
            text += closing
        comma = "" if self._expect in {"first key", "key"} else ","
        return f"{text}{comma}{argument}}}"

    def _closed_scalar(self) -> str:
        if self.in_escape != -1:
            self._expect = "colon" if self._is_key else "comma"
            return ("\\" if self.in_escape > _HEX_DIGITS else "0" * self.in_escape) + '"'
        if self._rest is None:
            return ""
        self._expect = "comma"
        if self._rest[:1].isalpha():
            return self._rest
        return "" if _NUMBER.fullmatch(self._rest) else "0"
