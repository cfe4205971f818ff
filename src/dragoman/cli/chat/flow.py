"""Streams text to the screen: finished blocks are printed, the last one is redrawn live."""

from __future__ import annotations

from collections.abc import Callable
from itertools import dropwhile

from rich.console import Console, RenderableType
from rich.segment import Segment, SegmentLines

from dragoman.cli.screen import harmless_stream

Split = Callable[[str], tuple[list[str], str]]
Typeset = Callable[[str], RenderableType]

_LINES_BELOW = 4
_MIN_LINES = 3


class Flow:
    """Prints a text block by block as it arrives.

    Only the last block is redrawn while it grows, and only as much of it as fits on the screen: a
    terminal can't change lines that have scrolled off.
    """

    def __init__(
        self, console: Console, split: Split, typeset: Typeset, *, is_spaced: bool = True
    ) -> None:
        self._console = console
        self._split = split
        self._typeset = typeset
        self._is_spaced = is_spaced
        self._has_begun = False
        self._visible = harmless_stream()
        self._rest = ""
        self._gone = 0  # lines of the last block already printed
        self._width: int | None = None  # screen width when the first of them were printed

    def feed(self, text: str) -> None:
        """Append text; its control and invisible characters are made visible."""
        text = self._visible.feed(text)
        if not self._rest and not self._has_begun:
            text = text.lstrip("\n")
        self._rest += text
        if "\n" in text:
            blocks, self._rest = self._split(self._rest)
            for block in blocks:
                self._print(block)
        self._let_go()

    def tail(self) -> RenderableType:
        """The part not yet printed, as it looks now."""
        lines = self._lines(self._rest)[self._gone :] if self._rest.strip() else []
        if lines and self._is_spaced and self._has_begun and not self._gone:
            lines.insert(0, [])
        return SegmentLines(lines[-self._room() :], new_lines=True)

    def close(self) -> None:
        """Print the rest."""
        rest, self._rest = self._rest + self._visible.flush(), ""
        if rest.strip():
            self._print(rest.rstrip())

    # Update the state before printing: rich redraws the rest below in the same call.

    def _print(self, block: str) -> None:
        lines, gone = self._lines(block)[self._gone :], self._gone
        self._gone = 0
        self._put(lines, is_first=not gone)
        self._width = None

    def _let_go(self) -> None:
        """Print the first lines of a block that has outgrown the screen."""
        room = self._room()
        rest = self._rest
        if len(rest) // max(self._console.width, 1) + rest.count("\n") < room:
            return
        lines = self._lines(rest)
        gone, last = self._gone, len(lines) - room
        if last > gone:
            self._gone, self._width = last, self._width or self._console.width
            self._put(lines[gone:last], is_first=not gone)

    def _room(self) -> int:
        return max(self._console.height - _LINES_BELOW, _MIN_LINES)

    def _put(self, lines: list[list[Segment]], *, is_first: bool) -> None:
        if not lines:
            return
        if self._has_begun and self._is_spaced and is_first:
            lines = [[], *lines]
        self._has_begun = True
        # Not cropped: the terminal wraps lines that were laid out for a wider screen.
        self._console.print(SegmentLines(lines, new_lines=True), end="", crop=False)

    def _lines(self, text: str) -> list[list[Segment]]:
        # A block that is partly printed keeps its width, or the count of printed lines would be
        # wrong.
        options = self._console.options
        if self._width is not None:
            options = options.update_width(self._width)
        rendered = self._console.render_lines(self._typeset(text), options, pad=False)
        lines = [_without_padding(line) for line in rendered]
        while lines and not lines[-1]:
            lines.pop()
        return [*dropwhile(lambda line: not line, lines)]


def _without_padding(line: list[Segment]) -> list[Segment]:
    """The line without trailing spaces, which would get in the way when copying."""
    kept = [*line]
    while kept and not kept[-1].text.strip():
        kept.pop()
    if kept:
        last = kept[-1]
        kept[-1] = Segment(last.text.rstrip(), last.style)
    return kept
