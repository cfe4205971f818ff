"""Plain input of a chat: from a person at a dumb terminal, or from a pipe.

On other terminals, `dragoman.cli.chat.editor` is used instead.
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
        """The next message, of one line or more; raises `EOFError` at the end."""
        ...

    def answer(self, question: str) -> str:
        """The answer to a question; raises `EOFError` if there is nobody to ask."""
        ...

    def suggest(self, text: str) -> None:
        """Put a text on the next input line, to be edited, if supported."""
        ...


def whole(first: str, more: Callable[[], str]) -> str:
    r"""The message that begins with this line; a trailing backslash or three quotes continue it.

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
    """Reads messages from standard input."""

    def message(self) -> str:
        """The next message."""
        return whole(self._line(), self._line)

    def answer(self, question: str) -> str:  # noqa: ARG002 - nobody is there to be asked
        """Raises `EOFError`: there is nobody to ask."""
        raise EOFError

    def suggest(self, text: str) -> None:
        """Not supported in a pipe."""

    def _line(self) -> str:
        try:
            line = sys.stdin.readline()
            line.encode()  # invalid UTF-8 arrives as lone surrogates
        except UnicodeError:
            raise Ending(BROKEN, "standard input: is not UTF-8 text") from None
        if not line:
            raise EOFError
        return line.rstrip("\r\n")


class PlainLines:
    """Reads messages on a terminal that can't move its cursor.

    Uses Python's `input`, with input history if readline is available.
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
        """The next message."""
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
        """The answer to a question; it is not added to the input history."""
        line = _line(question)
        if self._readline is not None and line:
            last = self._readline.get_current_history_length()
            with suppress(ValueError):
                self._readline.remove_history_item(last - 1)
        return line

    def suggest(self, text: str) -> None:
        """Put a text on the next input line."""
        self._suggested = text if "\n" not in text else ""


def _line(prompt: str) -> str:
    """The typed text; invalid bytes become replacement characters."""
    try:
        return input(prompt).encode(errors="surrogateescape").decode(errors="replace")
    except KeyboardInterrupt:
        print()  # so that the next output starts on a new line
        raise


def _readline() -> ModuleType | None:
    """The readline module, if available; importing it makes `input` use it."""
    try:
        import readline
    except ImportError:
        return None
    return readline
