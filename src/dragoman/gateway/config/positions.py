"""Finds the line and column of the keys and values of a TOML document.

`tomllib` gives no positions, so the text is scanned a second time. The scan ends at the first
syntax error, which `tomllib` reports.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from contextlib import suppress

Path = tuple[str | int, ...]
"""The keys and indexes that lead to a value: `("routes", 0, "model")`."""

MAX_PARTS = 32
"""Maximum nesting of keys and indexes: tomllib's time grows with its square."""

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_BASIC = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_LITERAL = re.compile(r"'[^'\n]*'")
_LONG_BASIC = re.compile(r'"""(?:[^"\\]|\\.|"{1,2}(?!"))*"{3,5}', re.DOTALL)
_LONG_LITERAL = re.compile(r"'''(?:[^']|'{1,2}(?!'))*'{3,5}")
_BLANKS = re.compile(r"[ \t]*")
_BLANK_LINES = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
_SCALAR = re.compile(r"[^,\]}\n#]+")
_STRINGS = (_LONG_BASIC, _LONG_LITERAL, _BASIC, _LITERAL)


class _Stop(Exception):  # noqa: N818 - not an error: tomllib reports what is wrong
    """The text is not valid TOML from here on."""


class Positions:
    """The positions of a document's keys and values, as offsets in the text.

    Lines must end in a line feed only, as tomllib normalises them too.
    """

    def __init__(self, text: str) -> None:
        self.keys: dict[Path, int] = {}
        """By path: where its last key first appears; array items have none."""
        self.values: dict[Path, int] = {}
        """By path: where the value begins; tables with a header have none."""
        self.too_deep: int | None = None
        """Where the nesting exceeds `MAX_PARTS`; such a text must not be passed to tomllib."""
        self._text = text
        self._at = 0
        self._lengths: dict[Path, int] = {}
        self._starts = [0, *(found.end() for found in re.finditer("\n", text))]
        with suppress(_Stop):
            self._document()

    def line_and_column(self, offset: int) -> tuple[int, int]:
        """The line and column of an offset, both counted from one."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def place_of(self, path: Path, *, at_key: bool = False) -> tuple[int, int]:
        """The line and column of a value or its key, or else of the nearest enclosing one."""
        for length in range(len(path), 0, -1):
            part = path[:length]
            found = (self.keys if at_key else self.values).get(part)
            found = found if found is not None else self.keys.get(part, self.values.get(part))
            if found is not None:
                return self.line_and_column(found)
        return 1, 1

    # --- the document

    def _document(self) -> None:
        table: Path = ()
        while True:
            self._skip(_BLANK_LINES)
            if self._at >= len(self._text):
                return
            if self._text[self._at] == "[":
                table = self._header()
            else:
                self._pair(table)
            self._skip(_BLANKS)
            if self._text[self._at : self._at + 1] not in {"", "\n", "#"}:
                raise _Stop

    def _header(self) -> Path:
        """`[table]` or `[[array of tables]]`: the path of the table that begins here."""
        is_array = self._text.startswith("[[", self._at)
        self._at += 2 if is_array else 1
        parts = self._key()
        path = self._entered(parts)
        self._expect("]]" if is_array else "]")
        if is_array:
            index = self._lengths.get(path, 0)
            self._lengths[path] = index + 1
            path = (*path, index)
            self.keys[path] = parts[-1][1]
        return path

    def _entered(self, parts: list[tuple[str, int]]) -> Path:
        """The path of a header's keys; arrays on the way stand for their latest table."""
        path: Path = ()
        for number, (name, offset) in enumerate(parts):
            path = (*path, name)
            self.keys.setdefault(path, offset)
            if number < len(parts) - 1 and path in self._lengths:
                path = (*path, self._lengths[path] - 1)
        return path

    def _pair(self, table: Path) -> None:
        path = table
        for name, offset in self._key(len(table)):
            path = (*path, name)
            self.keys.setdefault(path, offset)
        self._expect("=")
        self._skip(_BLANKS)
        self._value(path)

    def _key(self, depth: int = 0) -> list[tuple[str, int]]:
        """The parts of a dotted key, with their offsets."""
        parts: list[tuple[str, int]] = []
        while True:
            self._skip(_BLANKS)
            if depth + len(parts) >= MAX_PARTS:
                raise self._nested_too_deep()
            parts.append(self._key_part())
            self._skip(_BLANKS)
            if not self._text.startswith(".", self._at):
                return parts
            self._at += 1

    def _key_part(self) -> tuple[str, int]:
        start = self._at
        for shape in (_BARE, _BASIC, _LITERAL):
            found = shape.match(self._text, start)
            if found is not None:
                self._at = found.end()
                return _unquoted(found[0]), start
        raise _Stop

    def _nested_too_deep(self) -> _Stop:
        self.too_deep = self._at
        return _Stop()

    # --- values

    def _value(self, path: Path) -> None:
        if len(path) > MAX_PARTS:
            raise self._nested_too_deep()
        self.values[path] = self._at
        opening = self._text[self._at : self._at + 1]
        if opening == "[":
            self._array(path)
        elif opening == "{":
            self._inline_table(path)
        else:
            self._plain(opening)

    def _array(self, path: Path) -> None:
        self._at += 1
        index = 0
        while not self._closes("]"):
            self._value((*path, index))
            index += 1
            self._separated("]")

    def _inline_table(self, path: Path) -> None:
        self._at += 1
        while not self._closes("}"):
            self._pair(path)
            self._separated("}")

    def _plain(self, opening: str) -> None:
        shapes = _STRINGS if opening in {'"', "'"} else (_SCALAR,)
        for shape in shapes:
            found = shape.match(self._text, self._at)
            if found is not None:
                self._at = found.end()
                return
        raise _Stop

    def _closes(self, closing: str) -> bool:
        self._skip(_BLANK_LINES)
        if not self._text.startswith(closing, self._at):
            return False
        self._at += 1
        return True

    def _separated(self, closing: str) -> None:
        self._skip(_BLANK_LINES)
        if self._text.startswith(",", self._at):
            self._at += 1
        elif not self._text.startswith(closing, self._at):
            raise _Stop

    def _skip(self, shape: re.Pattern[str]) -> None:
        found = shape.match(self._text, self._at)
        self._at = found.end() if found is not None else self._at

    def _expect(self, token: str) -> None:
        self._skip(_BLANKS)
        if not self._text.startswith(token, self._at):
            raise _Stop
        self._at += len(token)


def _unquoted(token: str) -> str:
    if token[0] not in "\"'":
        return token
    try:
        return str(tomllib.loads(f"key = {token}")["key"])
    except ValueError:
        raise _Stop from None
