"""Wraps and prints lines: in colour on a terminal, as plain text elsewhere."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from typing import Any

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
}
_INDENT = "  "
_SHORT_CHARS = 300
_PIPE_WIDTH = 100


class Screen:
    """Prints documents: in colour on a terminal, as plain text elsewhere."""

    def __init__(self, *, short: bool = False) -> None:
        self._short = short
        self._width = _width()
        self._is_plain = bool(os.environ.get("NO_COLOR"))

    def show(self, document: Document, number: int) -> None:
        """Print one document; the second and later ones after a blank line."""
        rows = [] if number == 1 else [""]
        for line in lines_of(document):
            style = {} if self._is_plain else _STYLES.get(line.style, {})
            styled = (
                click.style(row, **style) if row and style else row for row in self._rows(line)
            )
            rows.extend(styled)
        click.echo("\n".join(rows))

    def _rows(self, line: Line) -> Iterator[str]:
        indent = _INDENT * line.indent
        text = line.text
        if self._short and len(text) > _SHORT_CHARS:
            text = f"{text[:_SHORT_CHARS]}… ({len(text) - _SHORT_CHARS} more characters)"
        for paragraph in text.split("\n"):
            for row in folded(paragraph, max(self._width - len(indent), 20)):
                yield f"{indent}{row}" if row else ""


def _width() -> int:
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else _PIPE_WIDTH


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
