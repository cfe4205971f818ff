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

_BLANKS = re.compile(r"[ \t\n\r]*")
_IN_STRING = re.compile(
    r'(?:[^"\\\x00-\x1f]+|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*(\\(?:u[0-9a-fA-F]{0,3})?)?'
)
"""The longest valid run within a string, maybe with the beginning of an escape at its end."""
_SCALAR = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?|true|false|null")
_SCALAR_SO_FAR = re.compile(
    r"t(?:r(?:ue?)?)?|f(?:a(?:l(?:se?)?)?)?|n(?:u(?:ll?)?)?"
    r"|-?(?:(?:0|[1-9][0-9]*)(?:\.(?:[0-9]+(?:[eE][+-]?[0-9]*)?)?|[eE][+-]?[0-9]*)?)?"
)
_LITERALS = {"t": "true", "f": "false", "n": "null"}
_MARKS = {
    "object": "{",
    "first key": '"',
    "key": '"',
    "colon": ":",
    "first value": '"{[',
    "value": '"{[',
    "comma": ",",
    "end": "",
}
"""Parser state to valid first characters, apart from whitespace, closing brackets and scalars."""
_CLOSING = {"{": "}", "[": "]"}
_ESCAPE_LENGTH = len(r"\u0000")
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
            if not prefix.takes_any_text or _BACKSLASH in written:
                sendable = self.feed(piece)
                written = encode_text(sendable) if sendable else b""
            return before + written + after if written else b""

        def send_all(pieces: list[str]) -> bytes:
            lines = lines_of(pieces)
            if not prefix.takes_any_text:
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

    __slots__ = ("_expect", "_in_string", "_is_key", "_open", "_rest", "is_broken")

    def __init__(self) -> None:
        self._open: list[str] = []  # closing brackets of the open objects and lists
        self._expect = "object"  # then a key of `_MARKS`
        self._rest = ""  # the beginning of a scalar, or within a string of an escape
        self._in_string = self._is_key = self.is_broken = False

    @property
    def is_begun(self) -> bool:
        """Whether there is more than whitespace."""
        return self._expect != "object"

    @property
    def is_closed(self) -> bool:
        """Whether the object is complete, whatever came after it."""
        return self._expect == "end"

    @property
    def takes_any_text(self) -> bool:
        """Whether text that JSON need not escape can follow without changing the state."""
        return self._in_string and not self._rest and not self.is_broken

    def feed(self, text: str) -> int:
        """The number of valid characters at the start of the text; if not all, it is broken."""
        if self.is_broken:
            return 0
        begun = len(self._rest)
        text, self._rest = self._rest + text, ""
        at, size = 0, len(text)
        while at < size and not self.is_broken:
            at = self._string(text, at) if self._in_string else self._outside(text, at)
        return at - begun

    def _string(self, text: str, at: int) -> int:
        """The end of what is valid within a string, or of the string."""
        found = _IN_STRING.match(text, at)
        at, self._rest = (at, "") if found is None else (found.end(), found[1] or "")
        if at == len(text):
            return at
        if self._rest or text[at] != '"':  # the latter: a bare control character
            self.is_broken = True
            return at
        self._in_string = False
        self._expect = "colon" if self._is_key else self._after_value()
        return at + 1

    def _outside(self, text: str, at: int) -> int:
        """The end of white space and a scalar or a mark."""
        blanks = _BLANKS.match(text, at)
        at = at if blanks is None else blanks.end()
        if at == len(text):
            return at
        if self._expect in ("first value", "value"):
            found = _SCALAR_SO_FAR.match(text, at, at + _MAX_NUMBER_LENGTH)
            if found is not None and found[0]:
                if found.end() < len(text) and _SCALAR.fullmatch(found[0]):
                    self._expect = self._after_value()
                else:
                    self._rest, self.is_broken = found[0], found.end() < len(text)
                return found.end()
        self.is_broken = not self._takes(text[at])
        return at + (not self.is_broken)

    def _takes(self, mark: str) -> bool:
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
            self._is_key, self._in_string = expect in {"key", "first key"}, True
        elif mark == ",":
            self._expect = "key" if self._open[-1] == "}" else "value"
        elif mark == ":":
            self._expect = "value"
        else:
            self._open.append(_CLOSING[mark])
            self._expect = "first key" if mark == "{" else "first value"
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
        rest = self._rest
        if self._in_string:
            self._expect = "colon" if self._is_key else "comma"
            left = "0" * (_ESCAPE_LENGTH - len(rest)) if rest else ""
            return ("\\" if rest == "\\" else left) + '"'
        if not rest:
            return ""
        self._expect = "comma"
        if rest[0] in _LITERALS:
            return _LITERALS[rest[0]][len(rest) :]
        return "" if _SCALAR.fullmatch(rest) else "0"
