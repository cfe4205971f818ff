"""Wraps and prints lines: in colour on a terminal, as plain text elsewhere."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import click

from dragoman.cli.rendering import Line, lines_of
from dragoman.providers.documents.reading import Document

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
_INDENT = "  "
_SHORT_CHARS = 300
_PIPE_WIDTH = 100


class Screen:
    """Prints documents: in colour on a terminal, as plain text elsewhere."""

    def __init__(self, *, short: bool = False) -> None:
        self._short = short
        self._width = terminal_width() or _PIPE_WIDTH

    def show(self, document: Document, number: int) -> None:
        """Print one document; the second and later ones after a blank line."""
        rows = [] if number == 1 else [""]
        for line in lines_of(document):
            rows.extend(styled(row, line.style) for row in self._rows(line))
        click.echo("\n".join(rows))

    def _rows(self, line: Line) -> Iterator[str]:
        indent = _INDENT * line.indent
        text = line.text
        if self._short and len(text) > _SHORT_CHARS:
            text = f"{text[:_SHORT_CHARS]}… ({len(text) - _SHORT_CHARS} more characters)"
        for paragraph in text.split("\n"):
            for row in folded(paragraph, max(self._width - len(indent), 20)):
                yield f"{indent}{row}" if row else ""


def terminal_width() -> int | None:
    """The width of the terminal; None if standard output is none."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


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
    stream = sys.stderr if err else sys.stdout
    rows = text.split("\n")
    if stream.isatty():
        width = shutil.get_terminal_size().columns
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
