"""Streams the arguments of a call so that the result is always a valid JSON object.

Other providers' models may write invalid JSON, which shows only after half of it has been sent.
So the pieces are parsed as they come. At the first invalid character the object is closed, with
the model's whole text as one more argument (W67, I6).
"""

from __future__ import annotations

import re

from dragoman.model.frozen import MAX_DEPTH
from dragoman.model.jsontext import dumps
from dragoman.wire.anthropic.tables import TEXT_ARGUMENT
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
"""Parser state to valid first characters, apart from whitespace and closing brackets."""
_CLOSING = {"{": "}", "[": "]"}
_LITERALS = {"t": "rue", "f": "alse", "n": "ull"}
_ESCAPES = '"\\/bfnrtu'
_HEX = "0123456789abcdefABCDEF"
_HEX_DIGITS = 4
_BACKSLASH = 0x5C  # searching bytes for an int takes a tenth of the time
_MAX_NUMBER_LENGTH = 1000  # characters: far more than any real number has


class Passed:
    """Determines what to send of a text, piece by piece: here all of it."""

    __slots__ = ()
    is_changed = False
    """Whether the sent text differs from what the model wrote."""
    is_complete = True
    """Whether it may end without being told to."""
    is_cut = False
    """Whether it has begun and not ended."""

    def feed(self, piece: str) -> str:
        """The text to send for a piece."""
        return piece

    def sender(self, before: bytes, after: bytes) -> Writer:
        """A writer that wraps the sendable text of each piece in these bytes."""
        return around(before, after)

    def finish(self, *, is_cut_off: bool = False) -> str:  # noqa: ARG002 - for subclasses
        """The text to send at the end; as it came, if the response was cut off."""
        return ""


PASSED = Passed()


class UntouchedArguments(Passed):
    """Arguments written by this dialect's own models, passed on unchanged."""

    __slots__ = ("_pieces",)
    is_complete = False

    def __init__(self, pieces: list[str]) -> None:
        """`pieces`: what came so far, which others append to."""
        self._pieces = pieces

    def finish(self, *, is_cut_off: bool = False) -> str:
        """An empty object if there were no arguments."""
        return "" if self._pieces or is_cut_off else "{}"


class TextArguments(Passed):
    """Arguments of a custom call, which are free text, sent as the only argument."""

    __slots__ = ("is_changed",)
    is_complete = False

    def __init__(self) -> None:
        self.is_changed = False

    def feed(self, piece: str) -> str:
        """The text as part of a JSON string."""
        opening = "" if self.is_changed else f'{{"{TEXT_ARGUMENT}":"'
        self.is_changed = True
        return opening + dumps(piece).decode()[1:-1]

    def sender(self, before: bytes, after: bytes) -> Writer:
        """Like `Passed.sender`."""

        def send(piece: str) -> bytes:
            encode_text(piece)  # may raise, so before the piece is recorded
            return before + encode_text(self.feed(piece)) + after

        def send_all(pieces: list[str]) -> bytes:
            lines_of(pieces)  # may raise, as above
            return b"".join(map(send, pieces))

        return Writer(send, send_all)

    def finish(self, *, is_cut_off: bool = False) -> str:
        """The end of the string; a text that was cut off has none (I7)."""
        opening = "" if self.is_changed else self.feed("")
        return opening if is_cut_off else opening + '"}'


class Arguments(UntouchedArguments):
    """Other models' arguments, of which only a valid object is sent."""

    __slots__ = ("_prefix", "is_changed")

    def __init__(self, pieces: list[str]) -> None:
        """As above."""
        super().__init__(pieces)
        self._prefix = JsonObjectPrefix()
        self.is_changed = False

    @property
    def is_complete(self) -> bool:  # type: ignore[override]  # it changes
        """Whether the object is closed."""
        return self._prefix.is_closed

    @property
    def is_cut(self) -> bool:  # type: ignore[override]  # it changes
        """Whether they have begun and not ended."""
        return self._prefix.is_begun and not (self._prefix.is_closed or self._prefix.is_broken)

    def feed(self, piece: str) -> str:
        """What is valid of a piece."""
        if self._prefix.is_broken:
            return ""
        taken = self._prefix.feed(piece)
        self.is_changed = self._prefix.is_broken
        return piece[:taken]

    def sender(self, before: bytes, after: bytes) -> Writer:
        """Like `Passed.sender`."""
        prefix = self._prefix

        def send(piece: str) -> bytes:
            written = encode_text(piece)  # first, because it may raise
            # Inside a string, text that JSON need not escape does not change the parser state.
            if prefix.in_escape != 0 or prefix.is_broken or _BACKSLASH in written:
                sendable = self.feed(piece)
                written = encode_text(sendable) if sendable else b""
            return before + written + after if written else b""

        def send_all(pieces: list[str]) -> bytes:
            lines = lines_of(pieces)
            if prefix.in_escape != 0 or prefix.is_broken:
                return b"".join(map(send, pieces))
            place = lines.find(_BACKSLASH)
            plain = lines if place < 0 else lines[: max(0, lines.rfind(b"\n", 0, place))]
            count = plain.count(b"\n") + 1 if plain else 0
            written = before + plain.replace(b"\n", after + before) + after if plain else b""
            return written + b"".join(map(send, pieces[count:]))

        return Writer(send, send_all)

    def finish(self, *, is_cut_off: bool = False) -> str:
        """The text to send at the end; if the response was cut off, the rest as it came (I7)."""
        written = "".join(self._pieces)
        if self._prefix.is_closed or self.is_cut:
            return ""
        if is_cut_off:
            self.is_changed = False
            return written[JsonObjectPrefix().feed(written) :]
        if not written.strip():
            return "{}"
        self.is_changed = True
        argument = f"{dumps(TEXT_ARGUMENT).decode()}:{dumps(written).decode()}"
        return self._prefix.closing(argument) if self._prefix.is_begun else f"{{{argument}}}"


class JsonObjectPrefix:
    """Incremental check whether a text is a JSON object or the beginning of one."""

    __slots__ = ("_expect", "_is_key", "_open", "_rest", "in_escape", "is_broken")

    def __init__(self) -> None:
        self._open: list[str] = []  # closing brackets of the open objects and lists
        self._expect = "object"  # then a key of `_MARKS`
        self._rest: str | None = None  # rest of a literal, or a number so far; None outside of both
        self.in_escape = (
            -1
        )  # -1 outside strings; inside 0; 5 after a backslash; 4 to 1: hex digits left
        self._is_key = False
        self.is_broken = False

    @property
    def is_begun(self) -> bool:
        """Whether there is more than whitespace."""
        return self._expect != "object"

    @property
    def is_closed(self) -> bool:
        """Whether the object is complete, whatever came after it."""
        return self._expect == "end"

    def feed(self, text: str) -> int:
        """The number of valid characters at the start of the text; if not all, it is broken."""
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
        """The end of the characters that can be taken at once; `at` if none can."""
        if self.in_escape >= 0:
            found = None if self.in_escape else _PLAIN.match(text, at)
        elif self._rest is None:
            found = _BLANKS.match(text, at)
        elif self._rest[:1].isalpha():
            found = None
        else:
            found = _NUMBER_MARKS.match(text, at)
            number = self._rest if found is None else self._rest + found[0]
            if len(number) > _MAX_NUMBER_LENGTH or not _NUMBER_SO_FAR.fullmatch(number):
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
            return mark in '"\\'  # anything else is a bare control character
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
        if len(so_far) < _MAX_NUMBER_LENGTH and _NUMBER_SO_FAR.fullmatch(so_far + mark):
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
        """The text that completes the object, with one more argument."""
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
