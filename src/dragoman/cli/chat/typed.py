"""What is said to a chat: lines from a person at a terminal, or from a pipe."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Protocol

from dragoman.cli.endings import BROKEN, Ending

_QUOTES = '"""'
_MOST_LINES = 1000


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
        if first.lstrip().startswith(_QUOTES):
            lines = [first.lstrip().removeprefix(_QUOTES)]
            while not lines[-1].rstrip().endswith(_QUOTES):
                lines.append(more())
            lines[-1] = lines[-1].rstrip().removesuffix(_QUOTES)
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


class TypedLines:
    """Lines that a person types, with those of earlier chats to go back to."""

    def __init__(self, kept_at: Path | None = None, *, is_plain: bool = False) -> None:
        self._kept_at = kept_at
        self._prompt = _coloured("> ", is_plain=is_plain)
        self._more = _coloured("… ", is_plain=is_plain)
        self._readline = _readline()
        self._suggested = ""
        if self._readline is not None and kept_at is not None:
            with suppress(OSError, ValueError):
                self._readline.read_history_file(kept_at)

    def message(self) -> str:
        """What is typed next."""
        readline, text = self._readline, self._suggested
        self._suggested = ""
        if readline is None or not text:
            return whole(_line(self._prompt), lambda: _line(self._more))
        readline.set_startup_hook(lambda: readline.insert_text(text))
        try:
            first = _line(self._prompt)
        finally:
            readline.set_startup_hook(None)
        return whole(first, lambda: _line(self._more))

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

    def keep(self) -> None:
        """Keep the lines for the next chat."""
        if self._readline is None or self._kept_at is None:
            return
        with suppress(OSError):  # they are a convenience
            self._kept_at.parent.mkdir(parents=True, exist_ok=True)
            self._kept_at.touch(mode=0o600)
            self._readline.set_history_length(_MOST_LINES)
            self._readline.write_history_file(self._kept_at)


def _line(prompt: str) -> str:
    """What is typed; keys that are no text are shown as such."""
    return input(prompt).encode(errors="surrogateescape").decode(errors="replace")


def _readline() -> ModuleType | None:
    """What edits lines, where there is one; importing it is what makes `input` use it."""
    try:
        import readline
    except ImportError:
        return None
    return readline


def _coloured(prompt: str, *, is_plain: bool) -> str:
    # The marks tell readline that what is between them takes no room.
    return prompt if is_plain else f"\x01\x1b[1;32m\x02{prompt}\x01\x1b[0m\x02"
