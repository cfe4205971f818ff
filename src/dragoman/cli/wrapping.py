"""Prints text in colour and wrapped at spaces on a terminal, unchanged elsewhere."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TextIO

import click

_STYLES: dict[str, dict[str, Any]] = {
    "head": {"bold": True, "underline": True},
    "system": {"fg": "magenta", "bold": True},
    "developer": {"fg": "magenta", "bold": True},
    "user": {"fg": "green", "bold": True},
    "assistant": {"fg": "cyan", "bold": True},
    "tool": {"fg": "yellow", "bold": True},
    "call": {"fg": "yellow"},
    "media": {"fg": "blue"},
    "error": {"fg": "red"},
    "dim": {"dim": True},
    "step": {"fg": "cyan", "bold": True},
    "aspect": {"bold": True},
    "differs": {"fg": "yellow", "bold": True},
    "command": {"fg": "cyan"},
}


def terminal_width(stream: TextIO | None = None) -> int | None:
    """The width of the terminal that a stream (standard output) is on; None if it is on none."""
    is_there = (stream or _stdout()).isatty()
    return shutil.get_terminal_size().columns if is_there else None


def _stdout() -> TextIO:
    return sys.stdout


def styled(text: str, style: str) -> str:
    """The text in the colours of a style, unless NO_COLOR is set; `click.echo` checks the rest."""
    colours = {} if os.environ.get("NO_COLOR") else _STYLES.get(style, {})
    return click.style(text, **colours) if text and colours else text


class Piece(NamedTuple):
    """A part of a line."""

    text: str
    style: str = ""


def say(text: str, style: str = "", *, err: bool = False) -> None:
    """Print text, wrapped at spaces on a terminal, which would break lines in mid-word."""
    width = terminal_width(sys.stderr if err else None)
    rows = text.split("\n")
    if width is not None:
        rows = [row for line in rows for row in folded(line, width)]
    click.echo("\n".join(styled(row, style) for row in rows), err=err)


def say_pieces(pieces: Iterable[Piece], *, indent: int = 0) -> None:
    """Print a line; on a terminal, what has no room is continued on the next one, indented."""
    width = terminal_width()
    row, used = "", 0
    for piece in pieces:
        if width is not None and used > indent and used + len(piece.text) > width:
            click.echo(row.rstrip())
            row, used = " " * indent, indent
            if piece.text.isspace():
                continue
        row += styled(piece.text, piece.style)
        used += len(piece.text)
    click.echo(row.rstrip())


class Flow:
    """Prints text as it grows, wrapped at spaces on a terminal."""

    def __init__(self) -> None:
        self._width = terminal_width()
        self._word = ""
        self._column = 0

    def write(self, text: str) -> None:
        """Print more; a word is printed when it has ended."""
        if self._width is None:
            click.echo(text, nl=False)
            return
        for letter in text:
            self._word += letter
            if letter.isspace():
                self._flush()

    def end(self) -> None:
        """Print the last word, and end the line."""
        self._flush()
        click.echo()

    def _flush(self) -> None:
        word, self._word = self._word, ""
        bare = word.rstrip()
        if self._width is not None and bare and self._column + len(bare) > self._width > len(bare):
            click.echo()
            self._column = 0
        click.echo(word, nl=False)
        self._column = 0 if word.endswith("\n") else self._column + len(word)


def folded(text: str, width: int) -> Iterator[str]:
    """The text in rows of at most `width` cells, broken at spaces if possible."""
    start = 0
    while len(text) - start > width:
        end = text.rfind(" ", start + 1, start + width + 1)
        if end < 0 or not text[start:end].strip():
            end = start + width
            yield text[start:end]
            start = end
        else:
            yield text[start:end]
            start = end + 1
    yield text[start:]
