"""The arguments of a call, passed on piece by piece so that they are a JSON object in the end.

What other providers' models write need not be JSON, which shows only when half of it has been
sent. So the pieces are followed character by character, and what can't be JSON any more is not
passed on: the object is closed, with the model's whole text as one more argument (W67, I6).
"""

from __future__ import annotations

import re

from dragoman.model.frozen import MAX_DEPTH
from dragoman.model.jsontext import dumps
from dragoman.wire.anthropic.tools_calls import TEXT_ARGUMENT

_BLANK = " \t\n\r"
_PLAIN = re.compile(r'[^"\\\x00-\x1f]*')
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_NUMBER_SO_FAR = re.compile(r"-?((0|[1-9][0-9]*)((\.[0-9]+)?([eE][+-]?[0-9]*)?|\.))?")
_LITERALS = {"t": "rue", "f": "alse", "n": "ull"}
_ESCAPES = '"\\/bfnrt'
_HEX = "0123456789abcdefABCDEF"
_HEX_DIGITS = 4
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

    def finish(self) -> str:
        """The end of the string."""
        return ("" if self._pieces else self.feed("")) + '"}'


class JsonObjectPrefix:
    """Whether a text, given in pieces, is the beginning of a JSON object, or all of it."""

    __slots__ = ("_escape", "_expect", "_is_key", "_rest", "_stack", "is_broken")

    def __init__(self) -> None:
        self._stack: list[str] = []
        self._expect = "object"  # then: key, first key, colon, value, first value, comma, end
        self._rest: str | None = None  # of a literal; or a number so far; None outside of both
        self._escape = -1  # in a string: 0, after a backslash 5, then its hexadecimal digits
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
        at = 0
        while at < len(text):
            if self._escape == 0:
                at = self._skip_string(text, at)
                continue
            if not self._takes(text[at]):
                self.is_broken = True
                break
            at += 1
        return at

    def _skip_string(self, text: str, at: int) -> int:
        found = _PLAIN.match(text, at)
        end = found.end() if found is not None else at
        if end < len(text):
            mark = text[end]
            if mark == '"':
                self._escape = -1
                self._expect = "colon" if self._is_key else self._after_value()
            elif mark == "\\":
                self._escape = _HEX_DIGITS + 1
            else:
                self._escape = -2  # a bare control character: nothing fits after it
                return end
            end += 1
        return end

    def _takes(self, mark: str) -> bool:
        if self._escape > 0:
            return self._takes_escaped(mark)
        if self._escape < -1:
            return False
        if self._rest is not None:
            return self._takes_scalar(mark)
        if mark in _BLANK:
            return True
        return self._takes_structure(mark)

    def _takes_escaped(self, mark: str) -> bool:
        if self._escape > _HEX_DIGITS:
            if mark != "u" and mark not in _ESCAPES:
                return False
            self._escape = _HEX_DIGITS if mark == "u" else 0
            return True
        if mark not in _HEX:
            return False
        self._escape -= 1
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
        if mark == '"':
            if expect not in {"key", "first key", "value", "first value"}:
                return False
            self._is_key = expect in {"key", "first key"}
            self._escape = 0
            return True
        if mark in "}]":
            return self._takes_end(mark)
        if mark == ":" and expect == "colon":
            self._expect = "value"
            return True
        if mark == "," and expect == "comma":
            self._expect = "key" if self._stack[-1] == "{" else "value"
            return True
        return self._takes_value(mark)

    def _takes_end(self, mark: str) -> bool:
        wanted = {"first key": "}", "first value": "]"}.get(self._expect)
        if self._expect == "comma":
            wanted = "}" if self._stack[-1] == "{" else "]"
        if mark != wanted:
            return False
        self._stack.pop()
        self._expect = self._after_value()
        return True

    def _takes_value(self, mark: str) -> bool:
        expect = self._expect
        if mark in "{[" and len(self._stack) == MAX_DEPTH:
            return False
        if mark == "{" and expect in {"object", "value", "first value"}:
            self._stack.append(mark)
            self._expect = "first key"
        elif expect not in {"value", "first value"}:
            return False
        elif mark == "[":
            self._stack.append(mark)
            self._expect = "first value"
        elif mark in _LITERALS:
            self._rest = _LITERALS[mark]
        elif mark in "-0123456789":
            self._rest = mark
        else:
            return False
        return True

    def _after_value(self) -> str:
        return "comma" if self._stack else "end"

    def closing(self, argument: str) -> str:
        """What makes an object of what has been taken, with one more argument in it."""
        text = self._closed_scalar()
        if self._expect == "colon":
            text += ":null"
        elif self._expect == "value":
            text += "null"
        for opened in reversed(self._stack[1:]):
            if self._expect == "key":
                text += '"":null'
            self._expect = "comma"
            text += "}" if opened == "{" else "]"
        comma = "" if self._expect in {"first key", "key"} else ","
        return f"{text}{comma}{argument}}}"

    def _closed_scalar(self) -> str:
        text = ""
        if self._escape > _HEX_DIGITS:
            text = "\\"
        elif self._escape > 0:
            text = "0" * self._escape
        if self._escape != -1:
            self._expect = "colon" if self._is_key else "comma"
            return text + '"'
        if self._rest is not None:
            self._expect = "comma"
            if self._rest[:1].isalpha():
                return self._rest
            return "" if _NUMBER.fullmatch(self._rest) else "0"
        return text
