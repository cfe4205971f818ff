"""Tracks the progress of a JSON text that arrives in pieces."""

from __future__ import annotations

import re

_STRUCTURE = re.compile(r'["\\{}\[\]]')


class JsonProgress:
    """Tracks whether streamed JSON has started and is complete, without parsing or storing it."""

    __slots__ = ("_depth", "_escaped", "_in_string", "_is_started", "pending")

    def __init__(self) -> None:
        self._depth = 0
        self._in_string = self._escaped = self._is_started = False
        self.pending: list[str] = []
        """Pieces that have not been scanned yet."""

    @property
    def is_started(self) -> bool:
        """Whether an object or a list has started."""
        if self.pending:
            self._count()
        return self._is_started

    @property
    def is_complete(self) -> bool:
        """Whether every bracket and string is closed."""
        return self.is_started and self._depth == 0 and not self._in_string

    def feed(self, text: str) -> None:
        """Adds the next piece."""
        self.pending.append(text)

    def _count(self) -> None:
        pieces, self.pending[:] = "".join(self.pending), ()
        self._count_in(pieces)

    def _count_in(self, text: str) -> None:
        position = 0
        if self._escaped and text:
            self._escaped, position = False, 1
        while found := _STRUCTURE.search(text, position):
            position = found.end()
            mark = found[0]
            if mark == "\\":
                if self._in_string:
                    self._escaped = position == len(text)
                    position += 1
            elif mark == '"':
                self._in_string = not self._in_string
            elif not self._in_string:
                self._is_started = True
                self._depth += 1 if mark in "{[" else -1


def is_beginning(text: str) -> bool:
    """Whether a text is the beginning of an object or a list that has not ended.

    >>> is_beginning('{"path": "/a", "cont'), is_beginning('{"path": "/a"}'), is_beginning("")
    (True, False, False)
    """
    progress = JsonProgress()
    progress.feed(text)
    return progress.is_started and not progress.is_complete
