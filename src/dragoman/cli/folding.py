"""Prints documents as lines: in colour on a terminal, as plain text elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

import click

from dragoman.cli.rendering import Line, lines_of
from dragoman.cli.wrapping import folded, styled, terminal_width
from dragoman.providers.documents.reading import Document

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
