"""What is said to a chat: messages from a person at a plain terminal, or from a pipe.

On a terminal that can move its cursor, `dragoman.cli.chat.editor` takes their place.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from types import ModuleType
from typing import Protocol

from dragoman.cli.chat.kept_lines import KeptLines
from dragoman.cli.exit_codes import BROKEN, Ending

QUOTES = '"""'


class Lines(Protocol):
    """Where messages come from."""

    def message(self) -> str:
        """What is said next, of one line or more; raises `EOFError` at the end."""
        ...

    def answer(self, question: str) -> str:
        """A line in answer to a question; raises `EOFError` where nobody is asked."""
        ...

    def suggest(self, text: str) -> None:
        """Put a text on the next line, to be changed, where that can be done."""
        ...


def whole(first: str, more: Callable[[], str]) -> str:
    r"""A message that begins with this line: a backslash at its end, or three quotes, go on.

    >>> rest = iter(["two\\", "three"])
    >>> whole("one\\", lambda: next(rest))
    'one\ntwo\nthree'
    """
    lines = [first]
    with suppress(EOFError):
        if first.lstrip().startswith(QUOTES):
            lines = [first.lstrip().removeprefix(QUOTES)]
            while not lines[-1].rstrip().endswith(QUOTES):
                lines.append(more())
            lines[-1] = lines[-1].rstrip().removesuffix(QUOTES)
            return "\n".join(lines).strip("\n")
        while lines[-1].endswith("\\"):
            lines[-1] = lines[-1][:-1]
            lines.append(more())
    return "\n".join(lines)


class PipedLines:
    """Lines of standard input."""

    def message(self) -> str:
        """The next line, or lines."""
        return whole(self._line(), self._line)

    def answer(self, question: str) -> str:  # noqa: ARG002 - nobody is there to be asked
        """Nobody answers."""
        raise EOFError

    def suggest(self, text: str) -> None:
        """Nobody reads it."""

    def _line(self) -> str:
        try:
            line = sys.stdin.readline()
            line.encode()  # Python lets half characters in, where it reads UTF-8 by itself
        except UnicodeError:
            raise Ending(BROKEN, "standard input: is not text in UTF-8") from None
        if not line:
            raise EOFError
        return line.rstrip("\r\n")


class PlainLines:
    """Lines that a person types on a terminal that can't move its cursor.

    With what Python's `input` has to offer: earlier lines, where readline is there.
    """

    def __init__(self, kept: KeptLines | None = None) -> None:
        self._kept = kept
        self._readline = _readline()
        self._suggested = ""
        if self._readline is not None and kept is not None:
            for text in kept.load():
                if "\n" not in text:
                    self._readline.add_history(text)

    def message(self) -> str:
        """What is typed next."""
        readline, text = self._readline, self._suggested
        self._suggested = ""
        if readline is None or not text:
            return self._noted(whole(_line("> "), lambda: _line("… ")))
        readline.set_startup_hook(lambda: readline.insert_text(text))
        try:
            first = _line("> ")
        finally:
            readline.set_startup_hook(None)
        return self._noted(whole(first, lambda: _line("… ")))

    def _noted(self, text: str) -> str:
        if self._kept is not None:
            self._kept.add(text)
        return text

    def answer(self, question: str) -> str:
        """A line in answer; it is no message, and is not kept among them."""
        line = _line(question)
        if self._readline is not None and line:
            last = self._readline.get_current_history_length()
            with suppress(ValueError):
                self._readline.remove_history_item(last - 1)
        return line

    def suggest(self, text: str) -> None:
        """Put a text on the next line."""
        self._suggested = text if "\n" not in text else ""


def _line(prompt: str) -> str:
    """What is typed; keys that are no text are shown as such."""
    try:
        return input(prompt).encode(errors="surrogateescape").decode(errors="replace")
    except KeyboardInterrupt:
        print()  # what is said next begins a line
        raise


def _readline() -> ModuleType | None:
    """What edits lines, where there is one; importing it is what makes `input` use it."""
    try:
        import readline
    except ImportError:
        return None
    return readline
